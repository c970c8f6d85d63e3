package transfer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"infer/runtime/arch"
	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/kernels/ref"
	"infer/runtime/tensor"
)

// world is a machine whose streams run late and in any order that events
// allow: the seed picks which stream goes next. What is not ordered shows as
// wrong data.
type world struct {
	rng     *rand.Rand
	streams []*queued
	// deaf streams forget to wait for events: a barrier taken out.
	deaf  func(s *queued, e *mark) bool
	harm  func(p Pair, dst []byte) // of direct copies
	ops   int
	where map[tensor.Buffer]device.ID
}

type queued struct {
	w     *world
	id    device.ID
	inner device.Stream
	todo  []work
	err   error
}

type work struct {
	run   func()
	event *mark // waited for
	seq   int
}

type mark struct{ recorded, passed int }

func (*mark) Close() error { return nil }

func (s *queued) push(f func())                        { s.todo = append(s.todo, work{run: f}) }
func (s *queued) Upload(dst tensor.Tensor, src []byte) { s.push(func() { s.inner.Upload(dst, src) }) }

func (s *queued) Download(dst []byte, src tensor.Tensor) {
	s.push(func() { s.inner.Download(dst, src) })
}
func (s *queued) Err() error   { return s.err }
func (s *queued) Close() error { return nil }

func (s *queued) Record(e device.Event) {
	m := e.(*mark)
	m.recorded++
	n := m.recorded
	s.push(func() { m.passed = max(m.passed, n) })
}

func (s *queued) Wait(e device.Event) {
	m := e.(*mark)
	if s.w.deaf != nil && s.w.deaf(s, m) {
		return
	}
	s.todo = append(s.todo, work{run: func() {}, event: m, seq: m.recorded})
}

func (s *queued) CopyTo(dst, src tensor.Tensor) {
	s.push(func() {
		b := make([]byte, src.Bytes())
		s.inner.Download(b, src)
		if s.w.harm != nil {
			s.w.harm(Pair{s.id, s.w.where[dst.Buf]}, b)
		}
		s.inner.Upload(dst, b)
	})
}

func (s *queued) Sync(ctx context.Context) error {
	for len(s.todo) > 0 {
		if !s.w.step() {
			s.err = fmt.Errorf("%v waits for what nobody records: %w", s.id, device.ErrDeviceLost)
			return s.err
		}
	}
	return s.err
}

// step runs one piece of work of a random stream that can go on.
func (w *world) step() bool {
	for _, i := range w.rng.Perm(len(w.streams)) {
		s := w.streams[i]
		if len(s.todo) == 0 {
			continue
		}
		head := s.todo[0]
		if head.event != nil && head.event.passed < head.seq {
			continue
		}
		s.todo = s.todo[1:]
		w.ops++
		head.run()
		return true
	}
	return false
}

// gpu is a queued device.
type gpu struct {
	*ref.Backend
	w          *world
	id         device.ID
	capability arch.ComputeCapability
	pinned     int64
}

func (g *gpu) Info() device.Info {
	return device.Info{ID: g.id, GPU: &device.GPU{Capability: g.capability, UUID: "GPU-" + g.id.String(), Simulated: true}}
}
func (g *gpu) Device() device.Device                { return g }
func (g *gpu) NewEvent() (device.Event, error)      { return &mark{}, nil }
func (g *gpu) Close() error                         { return nil }
func (g *gpu) Alloc(n int64) (device.Buffer, error) { return g.Backend.Device().Alloc(n) }
func (g *gpu) AllocHost(n int64) (device.HostBuffer, error) {
	g.pinned += n
	return hostBuffer{make([]byte, n), g}, nil
}

func (g *gpu) NewStream() (device.Stream, error) {
	s, err := g.Backend.Device().NewStream()
	q := &queued{w: g.w, id: g.id, inner: s}
	g.w.streams = append(g.w.streams, q)
	return q, err
}

func (g *gpu) NewOps(s device.Stream) (kernels.Ops, error) {
	q := s.(*queued)
	ops, err := g.Backend.NewOps(q.inner)
	return &queuedOps{Ops: ops, s: q}, err
}

type hostBuffer struct {
	b []byte
	g *gpu
}

func (h hostBuffer) Bytes() []byte { return h.b }
func (h hostBuffer) Free() error   { h.g.pinned -= int64(len(h.b)); return nil }

type queuedOps struct {
	kernels.Ops
	s *queued
}

func (o *queuedOps) Digest(out *kernels.Digest, t tensor.Tensor) {
	o.s.push(func() { o.Ops.Digest(out, t) })
}
func (o *queuedOps) Copy(dst, src tensor.Tensor) { o.s.push(func() { o.Ops.Copy(dst, src) }) }

// newWorld has n GPUs of a capability with a row.
func newWorld(seed uint64, n int) (*world, []*gpu) {
	w := &world{rng: rand.New(rand.NewPCG(seed, 1)), where: map[tensor.Buffer]device.ID{}}
	var all []*gpu
	for i := range n {
		all = append(all, &gpu{Backend: ref.Open(), w: w, id: device.ID{Kind: device.CUDA, Index: i}, capability: arch.Of(8, 6)})
	}
	return w, all
}

// end is a tensor of n bytes on a new stream of the GPU.
func (g *gpu) end(t testing.TB, n int) End {
	t.Helper()
	s, err := g.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	ops, err := g.NewOps(s)
	if err != nil {
		t.Fatal(err)
	}
	return End{Device: g.id, Stream: s, Ops: ops, Tensor: g.tensor(t, n)}
}

func (g *gpu) tensor(t testing.TB, n int) tensor.Tensor {
	t.Helper()
	b, err := g.Alloc(int64(n))
	if err != nil {
		t.Fatal(err)
	}
	g.w.where[b] = g.id
	return tensor.Tensor{Buf: b, DType: tensor.U8, Shape: tensor.Of(n)}
}

// idleStream does nothing.
type idleStream struct{}

func (idleStream) Upload(tensor.Tensor, []byte)        {}
func (idleStream) Download([]byte, tensor.Tensor)      {}
func (idleStream) CopyTo(tensor.Tensor, tensor.Tensor) {}
func (idleStream) Record(device.Event)                 {}
func (idleStream) Wait(device.Event)                   {}
func (idleStream) Sync(context.Context) error          { return nil }
func (idleStream) Err() error                          { return nil }
func (idleStream) Close() error                        { return nil }

type counting struct {
	idleStream
	syncs int
}

func (c *counting) Sync(context.Context) error { c.syncs++; return nil }

// equalDigests gives the same digest of everything.
type equalDigests struct{ kernels.Ops }

func (*equalDigests) Digest(*kernels.Digest, tensor.Tensor) {}
