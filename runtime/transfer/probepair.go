package transfer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// sentinelSeed is of what a destination holds before a copy.
const sentinelSeed = 0x5e417e1

// pattern of one copy: different at each position, and each time.
type pattern struct{ seed, step uint64 }

func (p *Probe) next() pattern {
	p.round++
	return pattern{kernels.DigestMix0(p.round), kernels.DigestMix1(p.round) | 1}
}

var sentinel = pattern{seed: sentinelSeed}

// bytes of the pattern, as Prober.Fill writes them.
func (x pattern) bytes(n int64) []byte {
	b := make([]byte, (n+7)/8*8)
	for i := range len(b) / 8 {
		binary.LittleEndian.PutUint64(b[8*i:], kernels.Pattern(x.seed, x.step, uint64(i)))
	}
	return b[:n]
}

// send queues a copy of n bytes between the barriers that production has.
func (l *linkProbe) send(dst, src tensor.Tensor) error {
	return direct(l.src.out.stream, l.dst.in.stream, l.dst.ready, l.src.done, dst, src)
}

func direct(from, to device.Stream, ready, done device.Event, dst, src tensor.Tensor) error {
	peer, ok := from.(device.PeerStream)
	if !ok {
		return device.ErrNotSupported
	}
	to.Record(ready)
	from.Wait(ready)
	peer.CopyTo(dst, src)
	from.Record(done)
	to.Wait(done)
	return nil
}

// wait for streams, each a bounded time.
func (l *linkProbe) wait(ctx context.Context, streams ...device.Stream) error {
	for _, s := range streams {
		ctx, cancel := context.WithTimeout(ctx, l.patience)
		err := s.Sync(ctx)
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *linkProbe) waitBoth(ctx context.Context) error {
	return l.wait(ctx, l.src.out.stream, l.dst.in.stream)
}

// fill writes a pattern on a device, by its kernel if it has one.
func fill(e *probeEnd, t tensor.Tensor, x pattern) {
	if f, ok := e.ops.(kernels.Prober); ok {
		f.Fill(t, x.seed, x.step)
		return
	}
	e.stream.Upload(t, x.bytes(t.Bytes()))
}

// looked is a view that is compared with what it should hold.
type looked struct {
	t       tensor.Tensor
	want    pattern
	earlier pattern // that the memory held before the sentinel; zero: none
	found   kernels.Comparison
	digest  kernels.Digest
	during  string
}

// look queues the comparison of a view.
func look(e *probeEnd, v *looked) {
	if f, ok := e.ops.(kernels.Prober); ok {
		f.Compare(&v.found, v.t, v.want.seed, v.want.step)
		return
	}
	e.ops.Digest(&v.digest, v.t)
}

// differs tells, after the stream's Sync, whether the view is not what it
// should be.
func (v *looked) differs(e *probeEnd) bool {
	if _, ok := e.ops.(kernels.Prober); ok {
		return v.found.Bad > 0
	}
	return v.digest != kernels.DigestOf(v.want.bytes(v.t.Bytes()))
}

// judge counts a copy, and describes what is wrong with it.
func (l *linkProbe) judge(ctx context.Context, v *looked) error {
	n := v.t.Bytes()
	l.m.Copies++
	l.m.Bytes += n
	if l.m.Corruption != nil || !v.differs(&l.dst.in) {
		return nil
	}
	got := make([]byte, n)
	l.dst.in.stream.Download(got, v.t)
	if err := l.wait(ctx, l.dst.in.stream); err != nil {
		return err
	}
	return l.classify(v, got)
}

func (l *linkProbe) classify(v *looked, got []byte) error {
	n := v.t.Bytes()
	var earlier []byte
	if v.earlier != (pattern{}) {
		earlier = v.earlier.bytes(n)
	}
	want := v.want.bytes(n)
	l.m.Corruption = Classify(want, got, sentinel.bytes(n), earlier)
	if l.m.Corruption == nil {
		// The device saw other bytes than the host sees now: they came late,
		// or the way to the host is not to be trusted either.
		return fmt.Errorf("%d bytes differ on the device, but not when the host looks: %w", v.found.Bad, errUntrusted)
	}
	l.m.Corruption.During = v.during
	return nil
}

var errUntrusted = errors.New("late or unstable data")

// copies goes through the sizes, twice each, with a new pattern every time over
// a poisoned destination.
func (l *linkProbe) copies(ctx context.Context) error {
	var before pattern
	for _, n := range []int64{4096, smallMost, 4096 + 13, smallMost - 8 + 3} {
		for range 2 {
			v := looked{want: l.p.next(), earlier: before, t: view(l.dst.in.mem, 0, n)}
			from := view(l.src.out.mem, 0, n)
			fill(&l.src.out, from, v.want)
			fill(&l.dst.in, v.t, sentinel)
			if err := l.send(v.t, from); err != nil {
				return err
			}
			look(&l.dst.in, &v)
			if err := l.waitBoth(ctx); err != nil {
				return err
			}
			if err := l.judge(ctx, &v); err != nil || l.m.Corruption != nil {
				return err
			}
			before = v.want
		}
	}
	return nil
}

// large copies. Their patterns are made and compared by the host where kernels
// are interpreted.
func (l *linkProbe) large(ctx context.Context) error {
	sizes := []int64{1 << 20, 16 << 20, 64<<20 - 5}
	host := l.src.info.GPU.Simulated
	if host {
		sizes = []int64{1<<20 + 9, timedSim}
	}
	for _, n := range sizes {
		v := looked{want: l.p.next(), t: view(l.dst.in.mem, 0, n), during: "in a large copy"}
		from := view(l.src.out.mem, 0, n)
		if host {
			l.src.out.stream.Upload(from, v.want.bytes(n))
			l.dst.in.stream.Upload(v.t, sentinel.bytes(n))
		} else {
			fill(&l.src.out, from, v.want)
			fill(&l.dst.in, v.t, sentinel)
		}
		if err := l.send(v.t, from); err != nil {
			return err
		}
		if !host {
			look(&l.dst.in, &v)
			if err := l.waitBoth(ctx); err != nil {
				return err
			}
			if err := l.judge(ctx, &v); err != nil || l.m.Corruption != nil {
				return err
			}
			continue
		}
		got := make([]byte, n)
		l.dst.in.stream.Download(got, v.t)
		if err := l.waitBoth(ctx); err != nil {
			return err
		}
		l.m.Copies++
		l.m.Bytes += n
		if !bytes.Equal(got, v.want.bytes(n)) {
			return l.classify(&v, got)
		}
	}
	return nil
}

// backToBack queues copies behind one another, as micro-batches do.
func (l *linkProbe) backToBack(ctx context.Context) error {
	const n = smallMost / slices8
	var vs [slices8]looked
	for i := range vs {
		at := int64(i) * n
		vs[i] = looked{want: l.p.next(), t: view(l.dst.in.mem, at, n), during: "back to back"}
		fill(&l.src.out, view(l.src.out.mem, at, n), vs[i].want)
		fill(&l.dst.in, vs[i].t, sentinel)
	}
	for i := range vs {
		if err := l.send(vs[i].t, view(l.src.out.mem, int64(i)*n, n)); err != nil {
			return err
		}
	}
	for i := range vs {
		look(&l.dst.in, &vs[i])
	}
	return l.settle(ctx, vs[:])
}

func (l *linkProbe) settle(ctx context.Context, vs []looked, more ...device.Stream) error {
	if err := errors.Join(l.waitBoth(ctx), l.wait(ctx, more...)); err != nil {
		return err
	}
	for i := range vs {
		if err := l.judge(ctx, &vs[i]); err != nil || l.m.Corruption != nil {
			return err
		}
	}
	return nil
}

// bothWays copies in both directions at once.
func (l *linkProbe) bothWays(ctx context.Context) error {
	if !l.p.access(l.pair.To, l.pair.From) {
		return nil
	}
	const n = smallMost / slices8
	var vs [slices8 / 2]looked
	back := l.p.next()
	fill(&l.dst.out, view(l.dst.out.mem, 0, n), back)
	for i := range vs {
		at := int64(i) * n
		vs[i] = looked{want: l.p.next(), t: view(l.dst.in.mem, at, n), during: "with copies the other way at the same time"}
		fill(&l.src.out, view(l.src.out.mem, at, n), vs[i].want)
		fill(&l.dst.in, vs[i].t, sentinel)
	}
	for i := range vs {
		err := direct(l.dst.out.stream, l.src.in.stream, l.src.ready, l.dst.returned, view(l.src.in.mem, 0, n), view(l.dst.out.mem, 0, n))
		if err := errors.Join(err, l.send(vs[i].t, view(l.src.out.mem, int64(i)*n, n))); err != nil {
			return err
		}
	}
	for i := range vs {
		look(&l.dst.in, &vs[i])
	}
	return l.settle(ctx, vs[:], l.dst.out.stream, l.src.in.stream)
}

// chain sends what the source has just been sent by a third GPU and computed
// with.
func (l *linkProbe) chain(ctx context.Context) error {
	var third *probeSide
	for _, b := range l.p.Backends {
		id := b.Device().Info().ID
		if s := l.p.sides[id]; s != nil && id != l.pair.From && id != l.pair.To && l.p.access(id, l.pair.From) {
			third = s
			break
		}
	}
	if third == nil {
		return nil
	}
	const n = smallMost
	v := looked{want: l.p.next(), t: view(l.dst.in.mem, 0, n), during: "in a chain of three"}
	first := looked{want: v.want, t: view(l.src.in.mem, 0, n)}
	fill(&third.out, view(third.out.mem, 0, n), v.want)
	fill(&l.src.in, first.t, sentinel)
	fill(&l.dst.in, v.t, sentinel)
	if err := direct(third.out.stream, l.src.in.stream, l.src.ready, third.returned, first.t, view(third.out.mem, 0, n)); err != nil {
		return err
	}
	computed := view(l.src.work, 0, n)
	l.src.in.ops.Copy(computed, first.t)
	look(&l.src.in, &first)
	if err := direct(l.src.in.stream, l.dst.in.stream, l.dst.ready, l.src.done, v.t, computed); err != nil {
		return err
	}
	look(&l.dst.in, &v)
	if err := errors.Join(l.waitBoth(ctx), l.wait(ctx, third.out.stream, l.src.in.stream)); err != nil {
		return err
	}
	if first.differs(&l.src.in) {
		return nil // the link before this one, whose own probe says so
	}
	return l.judge(ctx, &v)
}

// access tells whether the driver offers direct copies.
func (p *Probe) access(from, to device.ID) bool {
	return slices.ContainsFunc(p.Links, func(l device.Link) bool { return l.From == from && l.To == to && l.PeerAccess })
}
