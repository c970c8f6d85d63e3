package engine

import (
	"context"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"infer/models"
	_ "infer/models/all"
	"infer/models/tiny"
	"infer/runtime/devicemap"
	"infer/runtime/kernels"
	"infer/runtime/kernels/cpu"
	"infer/runtime/kernels/ref"
	"infer/runtime/loader"
	"infer/runtime/tensor"
)

// tinyModel is the embedded model.
func tinyModel(t testing.TB) (models.Model, *loader.Checkpoint) {
	t.Helper()
	ck, err := loader.OpenFS(tiny.FS, tiny.Name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ck.Close() })
	m, err := models.Open(ck)
	if err != nil {
		t.Fatal(err)
	}
	return m, ck
}

// openCPU is a CPU backend of its own, closed at the end of the test.
func openCPU(t testing.TB, p cpu.Precision) kernels.Backend {
	t.Helper()
	return openCPUWith(t, cpu.Options{Precision: p})
}

// openKV is one with K/V of a type.
func openKV(t testing.TB, kv tensor.DType) kernels.Backend {
	t.Helper()
	return openCPUWith(t, cpu.Options{KV: kv})
}

func openCPUWith(t testing.TB, o cpu.Options) kernels.Backend {
	t.Helper()
	o.Threads, o.MemoryLimit = 2, 1<<30
	b, err := cpu.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Device().Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// setup says how a test wants its engine.
type setup struct {
	PlanOptions
	blocks   int    // 0: as planned
	maps     string // device map
	backends []kernels.Backend
	change   func(*devicemap.Plan)
	c        Config
}

func openEngine(t testing.TB, s setup) *Engine {
	t.Helper()
	m, ck := tinyModel(t)
	if s.backends == nil {
		s.backends = []kernels.Backend{openCPU(t, cpu.Auto)}
	}
	in, err := PlanInput(m, ck, s.backends, s.PlanOptions)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := devicemap.Auto(in)
	if s.maps != "" {
		var parts []devicemap.Part
		if parts, err = devicemap.Parse(s.maps, len(in.Model.Layers)); err == nil {
			plan, err = devicemap.Fixed(in, parts)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if s.change != nil {
		s.change(&plan)
	}
	if s.blocks > 0 {
		plan.Blocks = s.blocks
	}
	r, err := Load(t.Context(), RunnerConfig{Model: m, Checkpoint: ck, Plan: plan, Backends: s.backends, Format: s.Format})
	if err != nil {
		t.Fatal(err)
	}
	s.c.Runner = r
	if s.c.MaxQueue == 0 {
		s.c.MaxQueue = 1000
	}
	e, err := New(s.c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return e
}

func greedy(prompt []int32, n int) Request {
	return Request{Prompt: prompt, Sampling: Sampling{MaxTokens: n, Logprobs: -1, PromptLogprobs: -1}}
}

// collect runs a request and returns its tokens.
func collect(ctx context.Context, e *Engine, r Request) ([]int32, Result, error) {
	a, res, err := answerTo(ctx, e, r)
	return a.ids, res, err
}

// answer is all that a request was told.
type answer struct {
	ids      []int32
	logprobs []Logprob
}

func (a answer) equal(b answer) bool {
	return slices.Equal(a.ids, b.ids) && reflect.DeepEqual(a.logprobs, b.logprobs)
}

func answerTo(ctx context.Context, e *Engine, r Request) (answer, Result, error) {
	var a answer
	res, err := e.Generate(ctx, r, func(ev Event) error {
		if ev.HasToken {
			a.ids = append(a.ids, ev.Token)
		}
		if ev.Logprob != nil {
			a.logprobs = append(a.logprobs, *ev.Logprob)
		}
		a.logprobs = append(a.logprobs, ev.Prompt...)
		return nil
	})
	return a, res, err
}

type expectedCase struct {
	PromptIDs     []int32 `json:"prompt_ids"`
	IDs           []int32
	IDsBeforeStop int     `json:"ids_before_stop"`
	Margin        float64 `json:"smallest_margin"`
}

func expected(t testing.TB) (stops []int32, cases []expectedCase) {
	t.Helper()
	raw, err := os.ReadFile("../../models/tiny/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var x struct {
		StopIDs []int32 `json:"stop_ids"`
		Cases   []expectedCase
	}
	if err := json.Unmarshal(raw, &x); err != nil || len(x.Cases) == 0 {
		t.Fatal(err, len(x.Cases))
	}
	return x.StopIDs, x.Cases
}

func TestGreedyIsWhatTheModelIsKnownToSay(t *testing.T) {
	stops, cases := expected(t)
	for name, b := range map[string]kernels.Backend{"ref": ref.Open(), "cpu": openCPU(t, cpu.F32)} {
		t.Run(name, func(t *testing.T) {
			e := openEngine(t, setup{backends: []kernels.Backend{b}, c: Config{StopIDs: stops}})
			n := len(cases)
			if name == "ref" && testing.Short() {
				n = 2
			}
			for i, c := range cases[:n] {
				known(t, e, i, c)
			}
			idle(t, e)
		})
	}
}

// known asks one case with and without stop ids.
func known(t *testing.T, e *Engine, i int, c expectedCase) {
	t.Helper()
	r := greedy(c.PromptIDs, len(c.IDs))
	r.Sampling.IgnoreEOS = true
	ids, res, err := collect(t.Context(), e, r)
	if err != nil || !slices.Equal(ids, c.IDs) || res.Finish != FinishLength || res.StopID != -1 || res.Completion != len(c.IDs) {
		t.Errorf("case %d (margin %g): %v %+v\ngot  %v\nwant %v", i, c.Margin, err, res, ids, c.IDs)
	}
	if c.IDsBeforeStop == len(c.IDs) {
		return
	}
	ids, res, err = collect(t.Context(), e, greedy(c.PromptIDs, 0))
	if want := c.IDs[:c.IDsBeforeStop+1]; err != nil || !slices.Equal(ids, want) || res.Finish != FinishStop || res.StopID != want[len(want)-1] {
		t.Errorf("case %d with stop ids: %v %+v\ngot  %v\nwant %v", i, err, res, ids, want)
	}
}

// idle waits until nothing runs and verifies the books.
func idle(t testing.TB, e *Engine) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if s := e.Stats(); s.Running == 0 && s.Waiting == 0 && s.BlocksUsed == 0 {
			e.mu.Lock()
			defer e.mu.Unlock()
			if err := e.sched.Check(); err != nil {
				t.Fatal(err)
			}
			if len(e.tasks) != 0 {
				t.Fatalf("%d tasks are left", len(e.tasks))
			}
			return
		}
	}
	t.Fatalf("not idle: %+v", e.Stats())
}
