package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"infer/runtime/device"
	"infer/runtime/devicemap"
	"infer/runtime/kernels"
	"infer/runtime/kernels/ref"
	"infer/runtime/tensor"
	"infer/runtime/transfer"
)

// faultStream fails on command.
type faultStream struct {
	device.Stream
	syncs   atomic.Int64
	onSync  func(n int64, ctx context.Context) error // n counts from 1; an error here is not sticky
	corrupt func(dst tensor.Tensor) bool             // what is uploaded to dst
	sticky  atomic.Pointer[error]
}

func (f *faultStream) Sync(ctx context.Context) error {
	if err := f.Err(); err != nil {
		return err
	}
	n := f.syncs.Add(1)
	if f.onSync != nil {
		if err := f.onSync(n, ctx); err != nil {
			return err
		}
	}
	return f.Stream.Sync(ctx)
}

func (f *faultStream) Err() error {
	if p := f.sticky.Load(); p != nil {
		return *p
	}
	return f.Stream.Err()
}

func (f *faultStream) Upload(dst tensor.Tensor, src []byte) {
	if f.corrupt != nil && f.corrupt(dst) {
		src = slices.Clone(src)
		src[0] ^= 1
	}
	f.Stream.Upload(dst, src)
}

// mustFail asserts that err is a fault that says all of want.
func mustFail(t *testing.T, err error, want ...string) {
	t.Helper()
	if !errors.Is(err, ErrFault) {
		t.Fatalf("%v, want a device fault", err)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
}

// A step that fails costs its sequences, and nothing else: the engine goes on,
// and nothing of the step is in the prefix cache.
func TestStepFails(t *testing.T) {
	var fs *faultStream
	fail := errors.New("sync went wrong")
	var reported atomic.Int64
	e, m := openFake(t, fakeSetup{
		stream: func(_ int, s device.Stream) device.Stream {
			fs = &faultStream{Stream: s}
			fs.onSync = func(n int64, _ context.Context) error {
				if n == 3 {
					return fail
				}
				return nil
			}
			return fs
		},
		c: Config{Events: Events{StepFailed: func(error, int) { reported.Add(1) }, Failed: func(err error) { t.Errorf("all failed: %v", err) }}},
	})
	prompt := fakePrompt(64, 1)
	ids, res, err := collect(t.Context(), e, greedy(prompt, 20))
	mustFail(t, err, "step 3", "1 tokens of 1 sequences", "cpu")
	if !errors.Is(err, fail) || !slices.Equal(ids, m.continuation(prompt, 2, nil)) || res.Completion != 2 || reported.Load() != 1 {
		t.Errorf("%v: %v, %+v, reported %d times", err, ids, res, reported.Load())
	}
	runJobs(t, e, []job{{greedy(prompt, 20), answer{ids: m.continuation(prompt, 20, nil)}}})
	if s := e.Stats(); s.FailedSteps != 1 || s.FinishedError != 1 || s.FinishedLength != 1 || s.Failed != nil {
		t.Errorf("%+v", s)
	}
}

// A copy between stages that arrives changed is never turned into a token: the
// step is computed again, and when that does not help either, it fails.
func TestCorruptCopy(t *testing.T) {
	var in, bad atomic.Int64 // copies of hidden states until the first bad one; bad ones in a row
	var told atomic.Uint64
	events := Events{Replayed: func(cause error) {
		if m := transfer.Mismatches(nil); errors.As(cause, &m) {
			told.Add(1)
		}
	}}
	e, m := openFake(t, fakeSetup{stages: 2, c: Config{Events: events}, stream: func(stage int, s device.Stream) device.Stream {
		f := &faultStream{Stream: s}
		if stage == 1 {
			f.corrupt = func(dst tensor.Tensor) bool {
				n := in.Load()
				return dst.Shape.Rank() == 2 && dst.Shape.Dim(1) == 2 && in.Add(-1) < 1 && n > -bad.Load()+1
			}
		}
		return f
	}})
	prompt := fakePrompt(40, 1)
	want := m.continuation(prompt, 30, nil)
	replays := uint64(0)
	for _, good := range []int{0, 1, 17} {
		bad.Store(1)
		in.Store(int64(good + 1))
		runJobs(t, e, []job{{greedy(prompt, 30), answer{ids: want}}})
		replays++
		if s := e.Stats(); s.Replays != replays || told.Load() != replays || s.FailedSteps != 0 {
			t.Errorf("one bad copy after %d: %d replays, told of %d, %d failed steps", good, s.Replays, told.Load(), s.FailedSteps)
		}
	}
	for i, good := range []int{0, 1, 17} {
		bad.Store(2)
		in.Store(int64(good + 1))
		ids, _, err := collect(t.Context(), e, greedy(prompt, 30))
		mustFail(t, err, "cpu to cpu:1", "arrived changed")
		var mismatch *transfer.MismatchError
		if !errors.As(err, &mismatch) {
			t.Errorf("%v is no MismatchError", err)
		}
		if !slices.Equal(ids, want[:good]) {
			t.Fatalf("got %v before the fault, want %v", ids, want[:good])
		}
		bad.Store(0)
		runJobs(t, e, []job{{greedy(prompt, 30), answer{ids: want}}})
		if s := e.Stats(); s.FailedSteps != uint64(i+1) {
			t.Errorf("%d failed steps", s.FailedSteps)
		}
	}
}

// A lost device ends everything with its name, at once and from then on.
func TestDeviceLost(t *testing.T) {
	var fs atomic.Pointer[faultStream] // the runner's; that which looks whether the device is there comes later
	var failed atomic.Int64
	e, _ := openFake(t, fakeSetup{
		seqs: 2, context: fakeContext, blocks: 600,
		stream: func(_ int, s device.Stream) device.Stream {
			f := &faultStream{Stream: s}
			fs.CompareAndSwap(nil, f)
			return f
		},
		c: Config{Events: Events{Failed: func(error) { failed.Add(1) }}},
	})
	lost := fmt.Errorf("cpu: %w", device.ErrDeviceLost)
	var wg sync.WaitGroup
	for i := range 6 { // two run, four wait
		wg.Go(func() {
			n := 0
			_, err := e.Generate(t.Context(), greedy(fakePrompt(5, i), 4000), func(Event) error {
				if n++; n == 10 {
					fs.Load().sticky.Store(&lost)
				}
				return nil
			})
			if !errors.Is(err, ErrFault) || !errors.Is(err, device.ErrDeviceLost) {
				t.Errorf("stream %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if _, _, err := collect(t.Context(), e, greedy([]int32{1}, 1)); !errors.Is(err, device.ErrDeviceLost) {
		t.Errorf("afterwards: %v", err)
	}
	if failed.Load() != 1 || e.Stats().Failed == nil {
		t.Errorf("reported %d times, %v", failed.Load(), e.Stats().Failed)
	}
	idle(t, e)
}

// A device that does not answer is waited for until the step's deadline.
func TestHungDevice(t *testing.T) {
	e, _ := openFake(t, fakeSetup{
		runner: RunnerConfig{StepTimeout: 30 * time.Millisecond},
		stream: func(_ int, s device.Stream) device.Stream {
			f := &faultStream{Stream: s}
			f.onSync = func(n int64, ctx context.Context) error {
				if n < 4 {
					return nil
				}
				<-ctx.Done()
				err := fmt.Errorf("sync: %w: %w", device.ErrDeviceLost, ctx.Err())
				f.sticky.Store(&err)
				return err
			}
			return f
		},
	})
	began := time.Now()
	_, res, err := collect(t.Context(), e, greedy(fakePrompt(5, 1), 100))
	mustFail(t, err, "step 4", "deadline exceeded", "device lost")
	if res.Completion != 3 || time.Since(began) > 5*time.Second {
		t.Errorf("%+v after %v", res, time.Since(began))
	}
}

// Logits that are not numbers end their own sequence only.
func TestNaN(t *testing.T) {
	for _, c := range []struct {
		name  string
		other Request
	}{
		{"maxima only", greedy(fakePrompt(30, 2), 40)},
		{"whole rows", sampled(fakePrompt(30, 2), 40, 3)},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, _ := openFake(t, fakeSetup{model: fakeModel{nan: 13}})
			bad := greedy([]int32{1, 13}, 5)
			var wg sync.WaitGroup
			wg.Go(func() {
				if _, _, err := collect(t.Context(), e, c.other); err != nil && !strings.Contains(err.Error(), "NaN") {
					t.Errorf("the other: %v", err)
				}
			})
			ids, _, err := collect(t.Context(), e, bad)
			wg.Wait()
			mustFail(t, err, "NaN", "output token 0")
			if len(ids) > 0 {
				t.Errorf("tokens %v", ids)
			}
			if _, err := e.Score(t.Context(), []int32{1, 13, 2}, ScoreOptions{}); !errors.Is(err, ErrFault) || !strings.Contains(err.Error(), "position 1") {
				t.Errorf("score: %v", err)
			}
			idle(t, e)
		})
	}
}

// A request that forbids every token is that request's mistake.
func TestNoTokenLeft(t *testing.T) {
	e, _ := openFake(t, fakeSetup{})
	r := greedy(fakePrompt(3, 1), 5)
	r.Sampling.Allowed, r.Sampling.BadWords = []int32{4}, [][]int32{{4, 4}}
	ids, _, err := collect(t.Context(), e, r)
	if !errors.Is(err, ErrInvalid) || errors.Is(err, ErrFault) || !slices.Equal(ids, []int32{4}) {
		t.Errorf("%v, %v", ids, err)
	}
	idle(t, e)
}

// limited hands out so much memory and no more.
type limited struct {
	*ref.Backend
	left int64
}

func (l *limited) Device() device.Device { return limitedDevice{l.Backend.Device(), l} }

type limitedDevice struct {
	device.Device
	l *limited
}

func (d limitedDevice) Alloc(n int64) (device.Buffer, error) {
	if n > d.l.left {
		return nil, fmt.Errorf("allocate %d bytes, %d are left: %w", n, d.l.left, device.ErrOutOfMemory)
	}
	b, err := d.Device.Alloc(n)
	d.l.left -= n
	return b, err
}

// Load that fails leaves nothing allocated, whatever the allocation that failed.
func TestLoadFails(t *testing.T) {
	plan := devicemap.Plan{
		Stages: []devicemap.Stage{{Device: device.ID{Kind: device.CPU}, Hi: 2, Embed: true, Head: true}},
		Blocks: 4, MaxContext: 64, MaxSeqs: 2, MaxTokens: 8, MaxLogits: 2,
	}
	m := &fakeModel{layers: 2, vocab: 50}
	for _, left := range []int64{0, 600, 1200, 1800, 2100, 2500} {
		l := &limited{Backend: ref.Open(), left: left}
		r, err := Load(t.Context(), RunnerConfig{Model: m, Plan: plan, Backends: []kernels.Backend{l}})
		if err == nil {
			if left < 2048+400 {
				t.Errorf("loaded with %d bytes", left)
			}
			err = r.Close()
			if err != nil {
				t.Error(err)
			}
		} else if !errors.Is(err, device.ErrOutOfMemory) || !strings.Contains(err.Error(), "cpu:") {
			t.Errorf("%d bytes: %v", left, err)
		}
		if i := l.Backend.Device().Info(); i.FreeBytes != i.TotalBytes {
			t.Errorf("%d bytes: %d bytes are not freed", left, i.TotalBytes-i.FreeBytes)
		}
	}
	plan.Stages[0].Device.Index = 5
	if _, err := Load(t.Context(), RunnerConfig{Model: m, Plan: plan, Backends: []kernels.Backend{ref.Open()}}); err == nil || !strings.Contains(err.Error(), "cpu:5") {
		t.Errorf("device that is not open: %v", err)
	}
}
