package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"infer/models"
	"infer/runtime/device"
	"infer/runtime/devicemap"
	"infer/runtime/kernels"
	"infer/runtime/kernels/ref"
	"infer/runtime/tensor"
)

// rotting is a backend that says it is a GPU, so that its weights are looked
// at. On demand its memory changes.
type rotting struct {
	*wrapped
	now *atomic.Bool
}

func (r *rotting) NewOps(s device.Stream) (kernels.Ops, error) {
	ops, err := r.wrapped.NewOps(s)
	return &rottingOps{ops, s, r.now}, err
}

type rottingOps struct {
	kernels.Ops
	s   device.Stream
	now *atomic.Bool
}

func (o *rottingOps) Digest(out *kernels.Digest, t tensor.Tensor) {
	if o.now.Swap(false) {
		o.s.Upload(t, make([]byte, t.Bytes()))
	}
	o.Ops.Digest(out, t)
}

// heavyModel is the fake model with 64 bytes of weights on each device.
type heavyModel struct {
	*fakeModel
	flaw  func(load int, b []byte) // of what arrives
	loads atomic.Int64
	rot   atomic.Bool // the next memory that is looked at changes before
}

type heavyStage struct {
	models.Stage
	list []kernels.Resident
}

func (s heavyStage) Resident() []kernels.Resident { return s.list }

func (m *heavyModel) Load(ctx context.Context, o models.LoadOptions) (models.Stage, error) {
	st, err := m.fakeModel.Load(ctx, o)
	if err != nil {
		return nil, err
	}
	h := heavyStage{Stage: st}
	for i := range 3 {
		buf, err := o.Backend.Device().Alloc(64)
		if err != nil {
			return nil, err
		}
		b := make([]byte, 64)
		for j := range b {
			b[j] = byte(i*7 + j)
		}
		r := kernels.Resident{What: "a matrix", Memory: tensor.Tensor{Buf: buf, DType: tensor.U8, Shape: tensor.Of(64)}, Sent: kernels.DigestOf(b)}
		if m.flaw != nil && i == 1 {
			m.flaw(int(m.loads.Add(1)), b)
		}
		o.Stream.Upload(r.Memory, b)
		h.list = append(h.list, r)
	}
	return h, nil
}

func heavyPlan(index int) devicemap.Plan {
	return devicemap.Plan{
		Blocks: 32, MaxContext: 128, MaxSeqs: 4, MaxTokens: 16, MaxLogits: 4,
		Stages: []devicemap.Stage{{Device: device.ID{Kind: device.CUDA, Index: index}, Hi: 2, Embed: true, Head: true}},
	}
}

// placeOn places the model on cuda:0, or on cuda:1 when that is gone.
func placeOn(m *heavyModel) *Placement {
	return &Placement{
		Runner: RunnerConfig{Model: m},
		Plan: func(gone []device.ID) (devicemap.Plan, []kernels.Backend, error) {
			if len(gone) > 1 {
				return devicemap.Plan{}, nil, errors.New("nothing is left")
			}
			return heavyPlan(len(gone)), []kernels.Backend{&rotting{&wrapped{Backend: ref.Open(), id: device.ID{Kind: device.CUDA, Index: len(gone)}}, &m.rot}}, nil
		},
	}
}

// Weights that do not arrive as sent are not computed with: the device is left
// out, or, with none left, loading fails by name.
func TestWeightsArriveChanged(t *testing.T) {
	for name, c := range map[string]struct {
		flaw func(load int, b []byte)
		on   string // "": nowhere
	}{
		"well":           {nil, "cuda:0"},
		"one device":     {func(load int, b []byte) { b[9] ^= byte(load & 1) }, "cuda:1"},
		"on all devices": {func(_ int, b []byte) { b[9] ^= 1 }, ""},
	} {
		m := &heavyModel{fakeModel: &fakeModel{layers: 2, vocab: 50}, flaw: c.flaw}
		r, err := placeOn(m).Load(t.Context())
		if c.on == "" {
			var w *WeightsError
			if !errors.As(err, &w) || !strings.Contains(err.Error(), "nothing is left") || !strings.Contains(err.Error(), "64 bytes on cuda:1") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if on := r.Plan().Stages[0].Device.String(); on != c.on {
			t.Errorf("%s: on %s", name, on)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Memory that changes later is found while nothing is computed, or between
// steps: what runs is failed, and the weights are loaded again; the second time
// the device is not used any more.
func TestScrub(t *testing.T) {
	m := &heavyModel{fakeModel: &fakeModel{layers: 2, vocab: 50}}
	p := placeOn(m)
	r, err := p.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var told atomic.Int64
	e, err := New(Config{
		Runner: r, MaxQueue: 10, Scrub: 100 * time.Microsecond, Recover: p.Recover,
		Events: Events{WeightsChanged: func(error) { told.Add(1) }},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	wait := func(what string, ok func(s Stats) bool) {
		t.Helper()
		for range 5000 {
			if ok(e.Stats()) {
				return
			}
			time.Sleep(time.Millisecond)
		}
		t.Fatalf("%s: %+v", what, e.Stats())
	}
	check := func() {
		t.Helper()
		ids, _, err := collect(t.Context(), e, greedy(fakePrompt(10, 1), 20))
		if want := m.continuation(fakePrompt(10, 1), 20, nil); err != nil || !slices.Equal(ids, want) {
			t.Errorf("%v: %v, want %v", err, ids, want)
		}
	}
	wait("no look at weights", func(s Stats) bool { return s.ScrubPasses > 2 && s.ScrubBytes >= 3*64*3 })
	check()
	for i, on := range []string{"cuda:0", "cuda:1"} {
		m.rot.Store(true)
		wait("a change is not found", func(s Stats) bool { return s.ScrubFaults == uint64(i+1) && s.Recovering == nil })
		wait("not loaded again", func(Stats) bool { return told.Load() == int64(i+1) })
		check()
		if got := e.Plan().Stages[0].Device.String(); got != on {
			t.Errorf("after %d changes on %s, want %s", i+1, got, on)
		}
	}
}
