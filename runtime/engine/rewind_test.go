package engine

import (
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"infer/runtime/device"
	"infer/runtime/devicemap"
	"infer/runtime/kernels"
	"infer/runtime/kernels/ref"
	"infer/runtime/tensor"
)

// shaky is a backend whose device gets a batch with other slots than were sent,
// every so many steps.
type shaky struct {
	wrapped
	every int
	harm  func(b *kernels.Batch)
}

func (s *shaky) NewOps(st device.Stream) (kernels.Ops, error) {
	ops, err := s.wrapped.NewOps(st)
	return &shakyOps{Ops: ops, shaky: s}, err
}

type shakyOps struct {
	kernels.Ops
	*shaky
	steps int
	sent  kernels.Digest
	there *kernels.Batch
}

func (o *shakyOps) Begin(b *kernels.Batch) {
	c := *b
	c.Slots = slices.Clone(b.Slots)
	o.sent = digestOf(&c)
	if o.steps++; o.every > 0 && o.steps%o.every == 0 {
		o.harm(&c)
	}
	o.there = &c
	o.Ops.Begin(&c)
}

func (o *shakyOps) arrived() *kernels.Batch { return o.there }

func (o *shakyOps) VerifyBatch(sent, got *kernels.Digest) { *sent, *got = o.sent, digestOf(o.there) }

func digestOf(b *kernels.Batch) kernels.Digest {
	raw, err := json.Marshal(b)
	if err != nil {
		panic(err)
	}
	return kernels.DigestOf(raw)
}

func openShaky(t *testing.T, s *shaky, c Config) (*Engine, *fakeModel) {
	m := &fakeModel{layers: 2, vocab: 50}
	s.wrapped = wrapped{Backend: ref.Open(), id: device.ID{Kind: device.CUDA}}
	plan := devicemap.Plan{
		Blocks: 256, MaxContext: 512, MaxSeqs: 32, MaxTokens: 64, MaxLogits: 32,
		Stages: []devicemap.Stage{{Device: s.id, Hi: 2, Embed: true, Head: true}},
	}
	r, err := Load(t.Context(), RunnerConfig{Model: m, Plan: plan, Backends: []kernels.Backend{s}})
	if err != nil {
		t.Fatal(err)
	}
	c.Runner, c.MaxQueue = r, 1000
	e, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e, m
}

// A bit of a slot that flips on its way to the device harms another position's
// K/V. Computing the step again would not mend that: all is computed again.
func TestChangedBatchHarmsNobody(t *testing.T) {
	for name, harm := range map[string]func(b *kernels.Batch){
		"a slot nearby": func(b *kernels.Batch) { b.Slots[len(b.Slots)-1] ^= 1 },
		"another page":  func(b *kernels.Batch) { b.Slots[0] ^= 2 * kernels.BlockSize },
		"all alike": func(b *kernels.Batch) {
			for i := range b.Slots {
				b.Slots[i] = 0
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var rewound atomic.Uint64
			e, m := openShaky(t, &shaky{every: 7, harm: harm}, Config{Events: Events{Rewound: func(error) { rewound.Add(1) }}})
			runJobs(t, e, fakeJobs(m, 12))
			runJobs(t, e, fakeJobs(m, 12)) // with what is in the prefix cache
			if n := rewound.Load(); n < 5 || e.c.Runner.Replays() < n {
				t.Errorf("computed again %d times, counted %d", n, e.c.Runner.Replays())
			}
		})
	}
}

// A step is not computed again over pages that a step behind it has harmed.
func TestReplayBehindChangedBatch(t *testing.T) {
	m := &fakeModel{layers: 4, vocab: 50}
	var copies, begun atomic.Int64
	plan := devicemap.Plan{Blocks: 256, MaxContext: 512, MaxSeqs: 32, MaxTokens: 64, MaxLogits: 32, MicroBatches: 2}
	var backends []kernels.Backend
	for i := range 2 {
		s := &shaky{every: 1, harm: func(b *kernels.Batch) {
			if begun.Add(1)%23 == 0 {
				for j := range b.Slots { // the pages of everybody's beginning
					b.Slots[j] = b.Slots[j]%kernels.BlockSize + int32(j%24)*kernels.BlockSize
				}
			}
		}}
		s.wrapped = wrapped{Backend: ref.Open(), id: device.ID{Kind: device.CPU, Index: i}, stream: func(x device.Stream) device.Stream {
			return &faultStream{Stream: x, corrupt: func(dst tensor.Tensor) bool {
				return i == 1 && dst.Shape.Rank() == 2 && dst.Shape.Dim(1) == 2 && copies.Add(1)%5 == 0
			}}
		}}
		backends = append(backends, s)
		plan.Stages = append(plan.Stages, devicemap.Stage{Device: s.id, Lo: 2 * i, Hi: 2*i + 2, Embed: i == 0, Head: i == 1})
	}
	r, err := Load(t.Context(), RunnerConfig{Model: m, Plan: plan, Backends: backends})
	if err != nil {
		t.Fatal(err)
	}
	var rewound, replayed atomic.Int64
	e, err := New(Config{Runner: r, MaxQueue: 1000, Events: Events{
		Rewound: func(error) { rewound.Add(1) }, Replayed: func(error) { replayed.Add(1) },
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for range 3 {
		runJobs(t, e, fakeJobs(m, 24))
	}
	if rewound.Load() < 5 || replayed.Load() < 5 {
		t.Errorf("all computed again %d times, a step %d times", rewound.Load(), replayed.Load())
	}
}

// A device that never gets a batch right ends with a named error.
func TestBatchNeverArrives(t *testing.T) {
	e, _ := openShaky(t, &shaky{every: 1, harm: func(b *kernels.Batch) { b.Slots[0] ^= 1 }}, Config{})
	_, _, err := collect(t.Context(), e, greedy(fakePrompt(20, 1), 10))
	if !errors.Is(err, ErrFault) {
		t.Fatalf("%v", err)
	}
}
