package sim

import (
	"bytes"
	"testing"
)

// forked captures on s: mix x on s beside mix y on s2, then x += y.
func forked(b *bench, s, s2, x, y uint64, joined bool) (uint64, Result) {
	g := b.Device(0)
	e, e2 := b.event(0), b.event(0)
	b.ok(g.StreamBeginCapture(s, captureThreadLocal))
	b.ok(g.EventRecord(e, s))
	b.ok(g.StreamWaitEvent(s2, e))
	b.ok(b.mix(0, s, x, 3, 1, 64))
	b.ok(b.mix(0, s2, y, 5, 2, 64))
	b.ok(g.EventRecord(e2, s2))
	if joined {
		b.ok(g.StreamWaitEvent(s, e2))
		b.ok(g.Launch(b.fns[0]["add"], [3]uint32{1, 1, 1}, [3]uint32{64, 1, 1}, 0, s, pack(x, y, uint32(64))))
	}
	return g.StreamEndCapture(s)
}

func TestForkedGraph(t *testing.T) {
	for seed := range uint64(30) {
		b := machine(t, "RTX-5090", Options{Seed: seed})
		g := b.Device(0)
		s, s2 := b.stream(0), b.stream(0)
		dx, dy := words(64, 1), words(64, 2)
		x, y := b.upload(0, dx), b.upload(0, dy)
		gr, r := forked(b, s, s2, x, y, true)
		b.ok(r)
		if !bytes.Equal(b.download(0, x, 256), dx) {
			t.Fatal("a captured kernel ran")
		}
		ex, r := g.GraphInstantiate(gr)
		b.ok(r)
		b.ok(g.GraphDestroy(gr))
		for range 3 {
			b.ok(g.GraphLaunch(ex, s))
			b.ok(b.mix(0, s, x, 7, 1, 64)) // what follows on the stream comes after
			dx, dy = mixed(dx, 3, 1), mixed(dy, 5, 2)
			dx = mixed(added(dx, dy), 7, 1)
		}
		b.ok(g.StreamSynchronize(s))
		if !bytes.Equal(b.download(0, x, 256), dx) || !bytes.Equal(b.download(0, y, 256), dy) {
			t.Fatalf("seed %d: three launches of a graph made other words", seed)
		}
		st := b.Stats().Devices[0]
		if st.GraphLaunches != 3 || st.Kernels != 12 || st.Launches != 6 {
			t.Errorf("counted %+v", st)
		}
		b.ok(g.GraphExecDestroy(ex))
		b.want(g.GraphLaunch(ex, s), InvalidValue)
	}
}

func TestCaptureRules(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(b *bench, s uint64) Result
		want Result // of the call
		end  Result // of EndCapture
	}{
		"unjoined": {func(b *bench, s uint64) Result {
			e, s2 := b.event(0), b.stream(0)
			b.ok(b.Device(0).EventRecord(e, s))
			b.ok(b.Device(0).StreamWaitEvent(s2, e))
			return b.mix(0, s2, b.spare64, 3, 1, 64)
		}, Success, CaptureUnjoined},
		"synchronize": {func(b *bench, s uint64) Result { return b.Device(0).StreamSynchronize(s) }, CaptureUnsupported, CaptureInvalidated},
		"query":       {func(b *bench, s uint64) Result { return b.Device(0).StreamQuery(s) }, CaptureUnsupported, CaptureInvalidated},
		"alloc": {func(b *bench, s uint64) Result {
			_, r := b.Device(0).MemAlloc(64)
			return r
		}, CaptureUnsupported, CaptureInvalidated},
		"alloc on another device": {func(b *bench, s uint64) Result {
			_, r := b.Device(1).MemAlloc(64)
			return r
		}, Success, Success},
		"pageable copy": {func(b *bench, s uint64) Result {
			return b.Device(0).CopyToDevice(b.spare64, make([]byte, 64), s)
		}, CaptureUnsupported, CaptureInvalidated},
		"event from outside": {func(b *bench, s uint64) Result {
			e, s2 := b.event(0), b.stream(0)
			b.ok(b.Device(0).EventRecord(e, s2))
			return b.Device(0).StreamWaitEvent(s, e)
		}, CaptureIsolation, CaptureInvalidated},
		"event queried": {func(b *bench, s uint64) Result {
			e := b.event(0)
			b.ok(b.Device(0).EventRecord(e, s))
			return b.Device(0).EventQuery(e)
		}, CaptureUnsupported, CaptureInvalidated},
		"twice": {func(b *bench, s uint64) Result { return b.Device(0).StreamBeginCapture(s, captureRelaxed) }, InvalidValue, Success},
	} {
		t.Run(name, func(t *testing.T) {
			b := machine(t, "2xRTX-4090", Options{})
			s := b.stream(0)
			b.spare64 = b.alloc(0, 256)
			b.ok(b.Device(0).StreamBeginCapture(s, captureThreadLocal))
			b.want(c.do(b, s), c.want)
			_, r := b.Device(0).StreamEndCapture(s)
			b.want(r, c.end)
			// The stream is free again.
			b.ok(b.Device(0).StreamSynchronize(s))
			_, r = b.Device(0).MemAlloc(64)
			b.ok(r)
		})
	}
	b := machine(t, "RTX-5090", Options{})
	b.want(b.Device(0).StreamBeginCapture(0, captureRelaxed), CaptureUnsupported)
	_, r := b.Device(0).StreamEndCapture(b.stream(0))
	b.want(r, InvalidValue)
}

// Pinned memory is read when the graph runs, every time.
func TestCopiesInGraphs(t *testing.T) {
	b := machine(t, "RTX-5090", Options{})
	g := b.Device(0)
	in, out := b.pinned(256), b.pinned(256)
	p, s := b.alloc(0, 256), b.stream(0)
	b.ok(g.StreamBeginCapture(s, captureThreadLocal))
	b.ok(g.CopyToDevice(p, in, s))
	b.ok(b.mix(0, s, p, 3, 1, 64))
	b.ok(g.CopyToHost(out, p, s))
	b.ok(g.Set(p, 0, 1, 256, s, false))
	gr, r := g.StreamEndCapture(s)
	b.ok(r)
	ex, r := g.GraphInstantiate(gr)
	b.ok(r)
	for i := range uint32(3) {
		copy(in, words(64, i))
		b.ok(g.GraphLaunch(ex, s))
		b.ok(g.StreamSynchronize(s))
		if !bytes.Equal(out, mixed(words(64, i), 3, 1)) {
			t.Fatalf("launch %d gave other words", i)
		}
	}
}
