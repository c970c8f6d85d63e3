package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"infer/runtime/arch"
	"infer/runtime/device"
	"infer/runtime/devicemap"
	"infer/runtime/engine"
	"infer/runtime/internal/cuda/sim"
	"infer/runtime/kernels"
	"infer/runtime/kernels/cpu"
	"infer/runtime/transfer"
)

// load is what is computed.
type load struct {
	name    string
	prompts []int // lengths
	tokens  int
}

var loads = []load{
	{"prefill", []int{28}, 1},
	{"decode", []int{5}, 8},
	{"batched", []int{9, 4, 6}, 5},
}

// setup is one machine under one load.
type setup struct {
	spec    sim.Spec
	load    load
	offload bool            // the last layers are the CPU's
	verify  transfer.Verify // of copies and weights
	probe   bool            // else every link that the driver offers is used as if it had passed
	inject  func(m *sim.Machine)
	seed    uint64        // of the machine
	timeout time.Duration // of a step; 0: stepTimeout
	scrub   bool          // the weights have been looked at before the first request
}

// layers of the model: one for each GPU, one for the CPU.
func (s setup) layers() int { return len(s.spec.Devices) + 1 }

// outcome of a setup.
type outcome struct {
	texts   [][]int32
	err     error // the first
	errs    int
	stats   engine.Stats
	links   []transfer.LinkStatus
	notes   []string
	took    time.Duration
	struck  int // faults that the machine let show
	pairs   int // probed
	stage   int
	modeled time.Duration
}

// deadlines of a step, and of everything.
const (
	stepTimeout = 20 * time.Second
	hangTimeout = 3 * time.Second // of a step, where one is sure to hang
	caseTimeout = 2 * time.Minute
)

var cpuBackend = sync.OnceValues(func() (*cpu.Backend, error) { return cpu.Open(cpu.Options{Threads: 1, BesideGPUs: true}) })

// run does what cmd/infer does: survey, routes, plan, load, answers.
func run(t testing.TB, s setup) (out outcome) {
	t.Helper()
	began := time.Now()
	defer func() { out.took = time.Since(began) }()
	ctx, cancel := context.WithTimeout(t.Context(), caseTimeout)
	defer cancel()
	host, err := cpuBackend()
	if err != nil {
		t.Fatal(err)
	}
	m, ck := openModel(t, s.layers())
	defer ck.Close()

	sys, machine, end, err := open(s.spec, s.seed)
	if err != nil {
		out.err = err
		return out
	}
	infos, links := sys.Infos(), sys.Links()
	v := transfer.Surveyor{Infos: infos, Links: links, Limit: 30 * time.Second}
	for i := range len(infos) - 1 { // the hops of the plan
		v.Only = append(v.Only, transfer.Pair{From: infos[i].ID, To: infos[i+1].ID})
	}
	if s.probe {
		end() // one machine at a time
		v.Spawn = spawn(s.spec, 500*time.Millisecond)
	}
	known := v.Survey(ctx)
	if s.probe {
		if sys, machine, end, err = open(s.spec, s.seed); err != nil {
			out.err = err
			return out
		}
	} else {
		for i := range known.Facts {
			known.Facts[i].Finding = transfer.Finding{Verdict: transfer.Healthy}
		}
	}
	defer end()
	out.pairs = len(known.Probed)
	router := transfer.NewRouter(known.Facts, transfer.Events{Quarantined: func(p transfer.Pair, _ string) {
		out.notes = append(out.notes, "quarantine "+p.String())
	}})

	place := &engine.Placement{
		Runner: engine.RunnerConfig{
			Model: m, Checkpoint: ck, StepTimeout: cmp.Or(s.timeout, stepTimeout),
			Copies: transfer.Options{Router: router, Verify: s.verify},
		},
		Plan: func(gone []device.ID) (devicemap.Plan, []kernels.Backend, error) {
			var backends []kernels.Backend
			for i, info := range infos {
				if slices.Contains(gone, info.ID) || arch.Lookup(info.GPU.Capability).Image == arch.NoImage {
					continue
				}
				b, err := sys.Backend(i)
				if err != nil {
					out.notes = append(out.notes, err.Error())
					continue
				}
				backends = append(backends, b)
			}
			if s.offload || len(backends) == 0 {
				backends = append(backends, host)
			}
			p := split(backends, s.layers())
			if len(s.load.prompts) > 1 && len(backends) > 1 {
				p.MicroBatches = 2 // steps of different sequences are in flight
			}
			return p, backends, nil
		},
		Excluded: func(id device.ID, why error) { out.notes = append(out.notes, "left out "+id.String()) },
	}
	r, err := place.Load(ctx)
	if err != nil {
		out.err = err
		return out
	}
	out.stage = len(r.Plan().Stages)
	e, err := engine.New(engine.Config{Runner: r, MaxQueue: 100, NoSpeculation: true, Scrub: s.scrubbing(), Recover: place.Recover, Events: engine.Events{
		DeviceLost: func(lost []device.ID, _ error) { out.notes = append(out.notes, fmt.Sprintf("lost %v", lost)) },
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		out.stats, out.links = e.Stats(), router.Links()
		_ = e.Close()
		out.modeled = machine.Time()
		for _, n := range machine.Stats().Faults {
			out.struck += n
		}
	}()
	if s.inject != nil {
		s.inject(machine)
		if s.scrub {
			for e.Stats().ScrubPasses < 2 && e.Stats().ScrubFaults == 0 && ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
		}
	}
	out.texts, out.errs, out.err = answers(ctx, e, s.load)
	return out
}

func (s setup) scrubbing() time.Duration {
	if s.scrub {
		return time.Microsecond
	}
	return 0
}

// split gives each backend its share of the layers.
func split(backends []kernels.Backend, layers int) devicemap.Plan {
	p := devicemap.Plan{Blocks: 32, MaxContext: 128, MaxSeqs: 4, MaxTokens: 24, MaxLogits: 8}
	n := len(backends)
	for i, b := range backends {
		p.Stages = append(p.Stages, devicemap.Stage{
			Device: b.Device().Info().ID, Lo: i * layers / n, Hi: (i + 1) * layers / n, Embed: i == 0, Head: i == n-1,
		})
	}
	return p
}

// answers generates the load's texts, all at once.
func answers(ctx context.Context, e *engine.Engine, l load) (texts [][]int32, failed int, first error) {
	texts = make([][]int32, len(l.prompts))
	errs := make([]error, len(l.prompts))
	var wg sync.WaitGroup
	for i, n := range l.prompts {
		wg.Go(func() {
			prompt := make([]int32, n)
			for j := range prompt {
				prompt[j] = int32((j*j*7 + 13*i + 3*j + 1) % (vocab - 1))
			}
			req := engine.Request{Prompt: prompt, Sampling: engine.Sampling{MaxTokens: l.tokens, Logprobs: -1, PromptLogprobs: -1}}
			_, errs[i] = e.Generate(ctx, req, func(ev engine.Event) error {
				if ev.HasToken {
					texts[i] = append(texts[i], ev.Token)
				}
				return nil
			})
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			failed++
			if first == nil {
				first = err
			}
		}
	}
	return texts, failed, first
}

// truths are what models say without any fault, on the CPU alone.
var truths = map[string][][]int32{}

func truth(t testing.TB, s setup) [][]int32 {
	t.Helper()
	key := fmt.Sprint(s.layers(), s.load)
	if v, ok := truths[key]; ok {
		return v
	}
	host, err := cpuBackend()
	if err != nil {
		t.Fatal(err)
	}
	texts, err := onCPU(t, host, s)
	if err != nil {
		t.Fatal(err)
	}
	truths[key] = texts
	return texts
}

func onCPU(t testing.TB, host *cpu.Backend, s setup) ([][]int32, error) {
	m, ck := openModel(t, s.layers())
	defer ck.Close()
	backends := []kernels.Backend{host}
	r, err := engine.Load(t.Context(), engine.RunnerConfig{Model: m, Checkpoint: ck, Plan: split(backends, s.layers()), Backends: backends})
	if err != nil {
		return nil, err
	}
	e, err := engine.New(engine.Config{Runner: r, MaxQueue: 100, NoSpeculation: true})
	if err != nil {
		return nil, err
	}
	texts, _, err := answers(t.Context(), e, s.load)
	return texts, errors.Join(err, e.Close())
}

// warmUp has every kernel read and compiled, which takes longer than steps may.
func warmUp(t testing.TB) {
	t.Helper()
	spec, err := sim.Preset("1xRTX-4090")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range loads {
		if o := run(t, setup{spec: spec, load: l, timeout: 10 * time.Minute}); o.err != nil {
			t.Fatal(o.err)
		}
	}
}
