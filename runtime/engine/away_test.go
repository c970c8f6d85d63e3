package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"infer/models"
	"infer/models/modelstest"
	"infer/runtime/device"
	"infer/runtime/devicemap"
	"infer/runtime/kernels"
	"infer/runtime/kernels/cpu"
	"infer/runtime/kernels/ref"
	"infer/runtime/tensor"
	"infer/runtime/transfer"
)

// elsewhere is a backend under another name, with all of its operations.
type elsewhere struct{ *wrapped }

func (e elsewhere) NewOps(s device.Stream) (kernels.Ops, error) { return e.Backend.NewOps(s) }

// openGolden runs a golden model with its stages' experts where the map says:
// for each stage, its device and that of its experts.
func openGolden(t *testing.T, name string, maps string, experts []int, tokens int, backends ...kernels.Backend) *Engine {
	t.Helper()
	ck := modelstest.OpenGolden(t, name)
	m, err := models.Open(ck)
	if err != nil {
		t.Fatal(err)
	}
	in, err := PlanInput(m, ck, backends, PlanOptions{MaxContext: 128, MaxSeqs: 8, MaxTokens: tokens})
	if err != nil {
		t.Fatal(err)
	}
	parts, err := devicemap.Parse(maps, len(in.Model.Layers))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := devicemap.Fixed(in, parts)
	if err != nil {
		t.Fatal(err)
	}
	for i, index := range experts {
		if id := (device.ID{Kind: device.CPU, Index: index}); id != plan.Stages[i].Device {
			plan.Stages[i].ExpertsOn = id
		}
	}
	r, err := Load(t.Context(), RunnerConfig{Model: m, Checkpoint: ck, Plan: plan, Backends: backends})
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(Config{Runner: r, MaxQueue: 100})
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

func two(first, second kernels.Backend, harm ...func(device.Stream) device.Stream) []kernels.Backend {
	if harm != nil {
		first = elsewhere{&wrapped{Backend: first, id: device.ID{Kind: device.CPU}, stream: harm[0]}}
	}
	w := &wrapped{Backend: second, id: device.ID{Kind: device.CPU, Index: 1}}
	if len(harm) > 1 {
		w.stream = harm[1]
	}
	return []kernels.Backend{first, elsewhere{w}}
}

// Wherever the experts are computed, tokens and log-probabilities are those of
// one device, bit for bit.
func TestExpertsElsewhere(t *testing.T) {
	for _, name := range []string{"mixtral", "qwen3_moe"} {
		one := openGolden(t, name, "cpu", nil, 64, openCPU(t, cpu.Auto))
		var jobs []job
		for i := range 8 {
			prompt := fakePrompt(3+9*i, i)
			for j := range prompt {
				prompt[j] %= 320
			}
			r := greedy(prompt, 6+i)
			r.Sampling.Logprobs, r.Sampling.IgnoreEOS = 3, true
			if i%2 == 1 {
				r.Sampling.PromptLogprobs = 1
			}
			a, _, err := answerTo(t.Context(), one, r)
			if err != nil {
				t.Fatal(err)
			}
			jobs = append(jobs, job{r, a})
		}
		for _, c := range []struct {
			maps    string
			experts []int
			tokens  int
		}{
			{"cpu=0-1", []int{1}, 64},
			{"cpu:1=0-1", []int{0}, 9},
			{"cpu=0,cpu:1=1", []int{1, 0}, 17},
			{"cpu=0,cpu:1=1", []int{0, 0}, 64},
		} {
			t.Run(fmt.Sprintf("%s %s experts on %v", name, c.maps, c.experts), func(t *testing.T) {
				runJobs(t, openGolden(t, name, c.maps, c.experts, c.tokens, two(openCPU(t, cpu.Auto), openCPU(t, cpu.Auto))...), jobs)
			})
		}
	}
	t.Run("reference", func(t *testing.T) {
		r := greedy(fakePrompt(5, 1), 4)
		want, _, err := answerTo(t.Context(), openGolden(t, "mixtral", "cpu", nil, 16, ref.Open()), r)
		if err != nil {
			t.Fatal(err)
		}
		runJobs(t, openGolden(t, "mixtral", "cpu=0-1", []int{1}, 16, two(ref.Open(), ref.Open())...), []job{{r, want}})
	})
}

// A copy to or from the experts that arrives changed is made again, and never
// turned into a token; one that fails ends the step. What comes after is right.
func TestExpertsElsewhereFaults(t *testing.T) {
	var in, bad, fail [2]atomic.Int64 // copies until the first bad one, bad ones in a row, syncs until one fails; by device
	broken := errors.New("test: link down")
	harm := func(i int) func(device.Stream) device.Stream {
		return func(s device.Stream) device.Stream {
			return &faultStream{
				Stream: s,
				corrupt: func(dst tensor.Tensor) bool {
					return dst.Shape.Rank() == 2 && dst.Shape.Dim(1) == 64 && in[i].Add(-1) < 0 && bad[i].Add(-1) >= 0
				},
				onSync: func(int64, context.Context) error {
					if fail[i].Load() > 0 && fail[i].Add(-1) == 0 {
						return broken
					}
					return nil
				},
			}
		}
	}
	e := openGolden(t, "qwen3_moe", "cpu=0-1", []int{1}, 64, two(openCPU(t, cpu.Auto), openCPU(t, cpu.Auto), harm(0), harm(1))...)
	r := greedy(fakePrompt(20, 3), 8)
	r.Sampling.IgnoreEOS = true
	want, _, err := answerTo(t.Context(), e, r)
	if err != nil {
		t.Fatal(err)
	}
	replays := e.Stats().Replays
	for i, path := range []string{"cpu:1 to cpu", "cpu to cpu:1"} {
		for _, step := range []int{0, 1, 5} {
			bad[i].Store(1)
			in[i].Store(int64(2*step + step%2)) // two layers a step
			runJobs(t, e, []job{{r, want}})
			if replays++; e.Stats().Replays != replays {
				t.Errorf("%s, one bad copy in step %d: %d replays, want %d", path, step, e.Stats().Replays, replays)
			}
			bad[i].Store(1000)
			in[i].Store(int64(2 * step))
			ids, _, err := collect(t.Context(), e, r)
			bad[i].Store(0)
			mustFail(t, err, path, "arrived changed")
			if m := (*transfer.MismatchError)(nil); !errors.As(err, &m) {
				t.Errorf("%v is no MismatchError", err)
			}
			if !slices.Equal(ids, want.ids[:step]) {
				t.Fatalf("got %v before the fault, want %v", ids, want.ids[:step])
			}
			replays = e.Stats().Replays
		}
		fail[i].Store(3)
		_, _, err := collect(t.Context(), e, r)
		mustFail(t, err, "link down")
		runJobs(t, e, []job{{r, want}})
	}
}
