package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"infer/runtime/device"
	"infer/runtime/devicemap"
	"infer/runtime/kernels"
	"infer/runtime/kernels/ref"
	"infer/runtime/tensor"
)

// spare loads the fake model anew over devices 10, 11 …, of which each
// recovery takes the next.
type spare struct {
	m       *fakeModel
	plan    devicemap.Plan
	stream  func(n int, s device.Stream) device.Stream
	refuse  error
	calls   atomic.Int64
	lost    [][]device.ID
	shrinks int // of the context, in blocks and tokens
}

func (p *spare) recover(ctx context.Context, lost []device.ID, cause error) (*Runner, error) {
	n := int(p.calls.Add(1))
	p.lost = append(p.lost, lost)
	if p.refuse != nil {
		return nil, p.refuse
	}
	plan := p.plan
	if p.shrinks > 0 {
		plan.Blocks, plan.MaxContext = p.shrinks/kernels.BlockSize, p.shrinks
	}
	id := device.ID{Kind: device.CPU, Index: 9 + n}
	plan.Stages = []devicemap.Stage{{Device: id, Hi: p.m.layers, Embed: true, Head: true}}
	w := &wrapped{Backend: ref.Open(), id: id}
	if p.stream != nil {
		w.stream = func(s device.Stream) device.Stream { return p.stream(n, s) }
	}
	return Load(ctx, RunnerConfig{Model: p.m, Plan: plan, Backends: []kernels.Backend{w}})
}

// breaks is a stream that is lost for good at its n-th Sync.
func breaks(s device.Stream, n int64) device.Stream {
	f := &faultStream{Stream: s}
	f.onSync = func(i int64, _ context.Context) error {
		if i < n {
			return nil
		}
		err := fmt.Errorf("sync: CUDA_ERROR_ILLEGAL_ADDRESS: %w", device.ErrDeviceLost)
		f.sticky.Store(&err)
		return err
	}
	return f
}

// Losing a device pauses the streams: all end with the text they would have
// had, and no token comes twice.
func TestRecover(t *testing.T) {
	for name, at := range map[string]int64{"in prefill": 2, "while decoding": 40, "late": 90} {
		t.Run(name, func(t *testing.T) {
			p := &spare{stream: func(n int, s device.Stream) device.Stream {
				if n == 1 {
					return breaks(s, 25) // the second is lost as well
				}
				return s
			}}
			var lost, again atomic.Int64
			setup := fakeSetup{
				stages: 3, seqs: 16, blocks: 400, tokens: 64,
				stream: func(stage int, s device.Stream) device.Stream {
					if stage == 1 {
						return breaks(s, at)
					}
					return s
				},
				c: Config{Events: Events{
					DeviceLost: func([]device.ID, error) { lost.Add(1) },
					Recovered:  func(devicemap.Plan, time.Duration, error) { again.Add(1) },
					Failed:     func(err error) { t.Errorf("gave up: %v", err) },
				}},
			}
			var m *fakeModel
			var e *Engine
			setup.c.Recover = func(ctx context.Context, ids []device.ID, cause error) (*Runner, error) {
				p.m, p.plan = m, e.Plan()
				return p.recover(ctx, ids, cause)
			}
			e, m = openFake(t, setup)
			var wg sync.WaitGroup
			for i := range 16 {
				wg.Go(func() {
					r := greedy(fakePrompt(20+i, i), 60)
					ids, res, err := collect(t.Context(), e, r)
					if want := m.continuation(r.Prompt, 60, nil); err != nil || !slices.Equal(ids, want) || res.Completion != 60 {
						t.Errorf("stream %d: %v\n got %v\nwant %v", i, err, ids, want)
					}
				})
			}
			wg.Wait()
			if s := e.Stats(); s.DevicesLost < 2 || s.Failed != nil || s.Recovering != nil || lost.Load() != 2 || again.Load() != 2 {
				t.Errorf("%+v, lost %d times, went on %d times", s, lost.Load(), again.Load())
			}
			if !slices.Equal(p.lost[0], []device.ID{{Kind: device.CPU, Index: 1}}) {
				t.Errorf("lost %v", p.lost)
			}
			idle(t, e)
			if n := boundThreads(e); !slices.Equal(n, []int64{1}) {
				t.Errorf("the loop's thread was given to the new backend %v times, want once", n)
			}
		})
	}
}

// boundThreads is how often each backend of the fake engine got a thread.
func boundThreads(e *Engine) (n []int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, b := range e.c.Runner.backends {
		n = append(n, b.(*wrapped).bound.Load())
	}
	return n
}

// The thread of the step loop belongs to every backend.
func TestLoopGivesItsThread(t *testing.T) {
	e, m := openFake(t, fakeSetup{stages: 2})
	runJobs(t, e, fakeJobs(m, 3))
	if n := boundThreads(e); !slices.Equal(n, []int64{1, 1}) {
		t.Errorf("the loop's thread was given %v times, want once to each", n)
	}
}

// When the rest cannot hold the model, everything ends with its name, and the
// process stays.
func TestCannotRecover(t *testing.T) {
	p := &spare{refuse: errors.New("17 GiB are missing")}
	var m *fakeModel
	var e *Engine
	setup := fakeSetup{stages: 2, stream: func(stage int, s device.Stream) device.Stream {
		if stage == 1 {
			return breaks(s, 10)
		}
		return s
	}}
	setup.c.Recover = func(ctx context.Context, ids []device.ID, cause error) (*Runner, error) {
		return p.recover(ctx, ids, cause)
	}
	e, m = openFake(t, setup)
	ids, _, err := collect(t.Context(), e, greedy(fakePrompt(10, 1), 50))
	mustFail(t, err, "cpu:1", "ILLEGAL_ADDRESS", "17 GiB are missing")
	if want := m.continuation(fakePrompt(10, 1), 50, nil); !slices.Equal(ids, want[:len(ids)]) {
		t.Errorf("wrong tokens before the fault: %v", ids)
	}
	if _, _, err := collect(t.Context(), e, greedy([]int32{1}, 1)); !errors.Is(err, device.ErrDeviceLost) {
		t.Errorf("afterwards: %v", err)
	}
	if s := e.Stats(); s.Failed == nil {
		t.Errorf("%+v", s)
	}
}

// Less room after the loss: what does not fit any more fails by name, the rest
// goes on.
func TestRecoverWithLess(t *testing.T) {
	p := &spare{shrinks: 96}
	var m *fakeModel
	var e *Engine
	var started sync.WaitGroup // the step that breaks waits for all to be there
	started.Add(3)
	setup := fakeSetup{stages: 2, seqs: 4, stream: func(stage int, s device.Stream) device.Stream {
		f := &faultStream{Stream: s}
		if stage == 0 {
			f.onSync = func(n int64, _ context.Context) error {
				if n <= 2 { // of the first step: for the copy, and at its end
					return nil
				}
				started.Wait()
				err := fmt.Errorf("sync: %w", device.ErrDeviceLost)
				f.sticky.Store(&err)
				return err
			}
		}
		return f
	}}
	setup.c.Recover = func(ctx context.Context, ids []device.ID, cause error) (*Runner, error) {
		p.m, p.plan = m, e.Plan()
		return p.recover(ctx, ids, cause)
	}
	e, m = openFake(t, setup)
	runJobs(t, e, []job{{greedy([]int32{3}, 1), answer{ids: m.continuation([]int32{3}, 1, nil)}}}) // the first step
	var wg sync.WaitGroup
	for i, n := range []int{10, 200, 30} {
		wg.Go(func() {
			r := greedy(fakePrompt(n, i), 40)
			tk := e.newTask(&r)
			tk.sampler = newSampler(&r, 0, nil)
			if err := e.submit(tk); err != nil {
				t.Error(err)
			}
			started.Done()
			var ids []int32
			err := e.follow(t.Context(), tk, func(n *news) error { ids = append(ids, n.token); return nil })
			want := m.continuation(r.Prompt, 40, nil)
			if n == 200 {
				mustFail(t, err, "room for 96 tokens")
				want = want[:len(ids)]
			} else if err != nil {
				t.Errorf("%d tokens: %v", n, err)
			}
			if !slices.Equal(ids, want) {
				t.Errorf("%d tokens: got %v, want %v", n, ids, want)
			}
		})
	}
	wg.Wait()
	if e.MaxContext() != 96 {
		t.Errorf("context %d", e.MaxContext())
	}
	idle(t, e)
}

// A staging path that brings other bytes again and again costs the device, not
// the answer.
func TestFaultyStaging(t *testing.T) {
	p := &spare{}
	var m *fakeModel
	var e *Engine
	var copies atomic.Int64
	setup := fakeSetup{stages: 2, stream: func(stage int, s device.Stream) device.Stream {
		f := &faultStream{Stream: s}
		if stage == 1 {
			f.corrupt = func(dst tensor.Tensor) bool {
				return dst.Shape.Rank() == 2 && dst.Shape.Dim(1) == 2 && copies.Add(1) > 20
			}
		}
		return f
	}}
	setup.c.Recover = func(ctx context.Context, ids []device.ID, cause error) (*Runner, error) {
		p.m, p.plan = m, e.Plan()
		return p.recover(ctx, ids, cause)
	}
	e, m = openFake(t, setup)
	r := greedy(fakePrompt(10, 1), 50)
	ids, _, err := collect(t.Context(), e, r)
	if want := m.continuation(r.Prompt, 50, nil); err != nil || !slices.Equal(ids, want) {
		t.Fatalf("%v\n got %v\nwant %v", err, ids, want)
	}
	if len(p.lost) != 1 || !slices.Equal(p.lost[0], []device.ID{{Kind: device.CPU, Index: 1}}) {
		t.Errorf("lost %v, want the device that the bytes did not reach", p.lost)
	}
	if s := e.Stats(); s.Replays != 1 || s.DevicesLost != 1 {
		t.Errorf("%+v", s)
	}
}
