package transfer

import (
	"context"
	"errors"
	"slices"
	"time"

	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// speeds measures the direct way against the way by the host, which is
// verified as well.
func (l *linkProbe) speeds(ctx context.Context) error {
	i := slices.IndexFunc(l.p.Links, func(k device.Link) bool { return k.From == l.pair.From && k.To == l.pair.To })
	if i >= 0 {
		a, b := l.src.info.GPU, l.dst.info.GPU
		l.m.Ceiling = Ceiling(l.p.Links[i].Kind, [2]int{a.PCIeGen, b.PCIeGen}, [2]int{a.PCIeWidth, b.PCIeWidth})
	}
	return l.measure(ctx, l.src.largest())
}

// farSlower is how many times slower than host staging a link may be to be
// worth a closer look.
const farSlower = 5

// glance tells whether the link is so slow that it is not used whatever it
// brings; looking closer would take seconds.
func (l *linkProbe) glance(ctx context.Context) (slow bool, err error) {
	if err := l.measure(ctx, smallMost); err != nil {
		return false, err
	}
	if l.m.Peer.GBps*farSlower >= l.m.Staged.GBps {
		return false, nil
	}
	l.m.Copies, l.m.Bytes = 1, smallMost
	return true, nil
}

// measure times a large and a small copy, directly and by way of the host.
func (l *linkProbe) measure(ctx context.Context, big int64) error {
	small := int64(4096)
	var err error
	if l.m.Peer, err = l.speed(ctx, big, small, func(n int64) error {
		return l.send(view(l.dst.in.mem, 0, n), view(l.src.out.mem, 0, n))
	}); err != nil {
		return err
	}
	c := New(Options{Devices: []device.Device{l.src.b.Device(), l.dst.b.Device()}})
	defer func() { _ = c.Close() }()
	l.m.Staged, err = l.speed(ctx, big, small, func(n int64) error {
		return c.Move(ctx, l.end(l.dst, &l.dst.in, n), l.end(l.src, &l.src.out, n))
	})
	if err != nil {
		return err
	}
	if err := l.waitBoth(ctx); err != nil { // digests arrive with it
		return err
	}
	if err := c.Commit(0); err != nil {
		l.m.Staging = err.Error()
	}
	return nil
}

func (l *linkProbe) end(s *probeSide, e *probeEnd, n int64) End {
	return End{Device: s.info.ID, Stream: e.stream, Ops: idleDigest{e.ops, n <= 4096}, Tensor: view(e.mem, 0, n)}
}

// idleDigest leaves the digest of timed large copies out.
type idleDigest struct {
	kernels.Ops
	on bool
}

func (d idleDigest) Digest(out *kernels.Digest, t tensor.Tensor) {
	*out = kernels.Digest{}
	if d.on {
		d.Ops.Digest(out, t)
	}
}

// speed times a large and a small copy, twice each; the quicker counts.
func (l *linkProbe) speed(ctx context.Context, big, small int64, send func(n int64) error) (Speed, error) {
	var s Speed
	for _, n := range []int64{big, small} {
		least := time.Duration(0)
		for range 2 {
			d, err := l.time(ctx, func() error { return send(n) })
			if err != nil {
				return s, err
			}
			if least == 0 || d < least {
				least = d
			}
		}
		if least <= 0 {
			continue
		}
		if n == big {
			s.GBps = float64(n) / least.Seconds() / 1e9
		} else {
			s.US = float64(least.Nanoseconds()) / 1e3
		}
	}
	return s, nil
}

// time is how long f's work takes until the destination has it, by the
// source's clock.
func (l *linkProbe) time(ctx context.Context, f func() error) (time.Duration, error) {
	if err := l.waitBoth(ctx); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, l.patience)
	defer cancel()
	work := func() error {
		if err := f(); err != nil {
			return err
		}
		l.dst.in.stream.Record(l.dst.returned)
		l.src.out.stream.Wait(l.dst.returned)
		return nil
	}
	if t, ok := l.src.b.Device().(device.Timer); ok {
		return t.Time(ctx, l.src.out.stream, work)
	}
	began := time.Now()
	if err := work(); err != nil {
		return 0, err
	}
	err := l.src.out.stream.Sync(ctx)
	return time.Since(began), err
}

// kernelReads asks whether a kernel of the destination reads the source's
// memory right. Nothing depends on it.
func (l *linkProbe) kernelReads(ctx context.Context) error {
	if !l.p.access(l.pair.To, l.pair.From) {
		return nil
	}
	s, err := l.dst.b.Device().NewStream()
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	ops, err := l.dst.b.NewOps(s)
	if err != nil {
		return err
	}
	reader, ok := ops.(kernels.PeerReader)
	if !ok {
		return nil
	}
	l.m.KernelReads = Healthy
	for range 2 {
		x := l.p.next()
		t := view(l.src.out.mem, 0, 4096)
		fill(&l.src.out, t, x)
		if err := l.wait(ctx, l.src.out.stream); err != nil {
			return err
		}
		var got kernels.Digest
		reader.PeerDigest(&got, t)
		switch err := l.wait(ctx, s); {
		case errors.Is(err, device.ErrNotSupported):
			l.m.KernelReads = Unavailable
			return nil
		case err != nil:
			return err
		case got != kernels.DigestOf(x.bytes(4096)):
			l.m.KernelReads = Corrupt
			return nil
		}
	}
	return nil
}
