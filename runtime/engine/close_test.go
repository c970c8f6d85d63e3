package engine

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"infer/runtime/device"
	"infer/runtime/devicemap"
	"infer/runtime/kernels"
	"infer/runtime/kernels/ref"
	"infer/runtime/tensor"
)

// busyDevice knows whether work is queued on one of its streams while memory
// is freed.
type busyDevice struct {
	device.Device
	queued *atomic.Int64 // streams with work since their last Sync
	early  *atomic.Int64 // buffers freed meanwhile
}

func (d busyDevice) NewStream() (device.Stream, error) {
	s, err := d.Device.NewStream()
	return &busyStream{Stream: s, d: d}, err
}

func (d busyDevice) Alloc(n int64) (device.Buffer, error) {
	b, err := d.Device.Alloc(n)
	return busyBuffer{b, d}, err
}

type busyStream struct {
	device.Stream
	d    busyDevice
	work bool
}

func (s *busyStream) Upload(dst tensor.Tensor, src []byte) {
	if !s.work {
		s.work = true
		s.d.queued.Add(1)
	}
	dst.Buf = dst.Buf.(busyBuffer).Buffer
	s.Stream.Upload(dst, src)
}

func (s *busyStream) Sync(ctx context.Context) error {
	if s.work {
		s.work = false
		s.d.queued.Add(-1)
	}
	return s.Stream.Sync(ctx)
}

type busyBuffer struct {
	device.Buffer
	d busyDevice
}

func (b busyBuffer) Free() error {
	if b.d.queued.Load() > 0 {
		b.d.early.Add(1)
	}
	return b.Buffer.Free()
}

type busyBackend struct {
	kernels.Backend
	d busyDevice
}

func (b busyBackend) Device() device.Device { return b.d }

func (b busyBackend) NewOps(s device.Stream) (kernels.Ops, error) {
	return b.Backend.NewOps(s.(*busyStream).Stream)
}

// Nothing is freed while a stream has work that may use it.
func TestCloseWaits(t *testing.T) {
	b := ref.Open()
	d := busyDevice{b.Device(), new(atomic.Int64), new(atomic.Int64)}
	plan := devicemap.Plan{
		Stages: []devicemap.Stage{{Device: b.Device().Info().ID, Hi: 2, Embed: true, Head: true}},
		Blocks: 4, MaxContext: 64, MaxSeqs: 2, MaxTokens: 8, MaxLogits: 2, MicroBatches: 2,
	}
	for _, lane := range []int{0, 1} {
		r, err := Load(t.Context(), RunnerConfig{
			Model: &fakeModel{layers: 2, vocab: 50}, Plan: plan, Backends: []kernels.Backend{busyBackend{b, d}},
		})
		if err != nil {
			t.Fatal(err)
		}
		out := r.out
		r.lanes[lane].streams[0].Upload(out, slices.Repeat([]byte{1}, int(out.Bytes())))
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if n := d.early.Load(); n > 0 || d.queued.Load() > 0 {
			t.Errorf("lane %d: %d buffers were freed while work was queued", lane, n)
		}
	}
}
