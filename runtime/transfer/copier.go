package transfer

import (
	"context"
	"errors"
	"fmt"

	"infer/runtime/arch"
	"infer/runtime/device"
	"infer/runtime/kernels"
)

// Options of a Copier. The zero value stages everything through ordinary host
// memory and verifies it.
type Options struct {
	// Devices that copies may name. What they offer is used: pinned memory and
	// events where there is queued work, peer copies where the Router allows
	// them.
	Devices []device.Device
	Router  *Router // nil: HostStaged everywhere
	Verify  Verify
	Sync    bool  // wait for both ends around every copy
	Chunk   int64 // bytes of a staging buffer; 0: 1 MiB
}

// copier implements Copier.
type copier struct {
	o       Options
	router  *Router
	devices map[device.ID]device.Device
	pairs   map[Pair]*pair
	hops    []*hop // of this step first, then those of earlier steps for reuse
	n       int    // of this step
	epoch   uint64 // steps begun
	checked bool   // this step's copies are verified
	// After a staged copy that arrived changed, the next step looks at the
	// bytes half way, to tell which device it was.
	diagnose bool
}

// hop is one copy of the step.
type hop struct {
	link      *link
	route     Route
	verified  bool
	pair      Pair
	bytes     int64
	sent, got kernels.Digest
	half      kernels.Digest // in the staging buffers, with diagnose
	diagnosed bool
}

// pair is what copies along one directed link use again and again.
type pair struct {
	link     *link
	from, to device.Device // nil: only streams are known
	fromAsync, toAsync,
	sync bool
	ready, sent device.Event // of direct copies: dst's work before, the copy
	slots       []*slot      // staging buffers; two between queues, else up to stepSlots
	used        int          // of slots in this step, or since they were last waited for
}

// New makes a Copier. Staging buffers come when they are first needed.
func New(o Options) Copier {
	c := &copier{o: o, router: o.Router, devices: map[device.ID]device.Device{}, pairs: map[Pair]*pair{}}
	if c.router == nil {
		c.router = NewRouter(nil, Events{})
	}
	if c.o.Chunk == 0 {
		c.o.Chunk = 1 << 20
	}
	for _, d := range o.Devices {
		c.devices[d.Info().ID] = d
	}
	c.begin(false)
	return c
}

// begin forgets the copies so far. What follows a copy that arrived changed is
// verified whatever the mode.
func (c *copier) begin(changed bool) {
	c.n = 0
	c.epoch++
	c.checked = changed || c.o.Verify.Step(c.epoch)
	for _, p := range c.pairs {
		p.used = 0
	}
}

// Ready implements Copier.
func (c *copier) Ready(ctx context.Context, e End) (Ready, error) {
	if err := e.Stream.Sync(ctx); err != nil {
		return Ready{}, fmt.Errorf("wait for %v to write %d bytes: %w", e.Device, e.Tensor.Bytes(), err)
	}
	return Ready{e.Tensor.Buf, c.epoch}, nil
}

// Move implements Copier.
func (c *copier) Move(ctx context.Context, dst, src End) error {
	n := src.Tensor.Bytes()
	if dst.Tensor.Bytes() != n {
		panic(fmt.Sprintf("transfer: copy of %d bytes into a tensor of %d", n, dst.Tensor.Bytes()))
	}
	p, err := c.pair(Pair{src.Device, dst.Device})
	if err != nil {
		return err
	}
	if !p.fromAsync && (src.Ready.buf != src.Tensor.Buf || src.Ready.epoch != c.epoch) {
		return fmt.Errorf("copy of %d bytes from %v to %v: %w", n, src.Device, dst.Device, ErrNotReady)
	}
	h := c.hop(p, Pair{src.Device, dst.Device}, n)
	if c.checked {
		src.Ops.Digest(&h.sent, src.Tensor)
	}
	if h.route == PeerDirect {
		err = c.direct(ctx, p, dst, src)
	} else {
		err = c.staged(ctx, p, h, dst, src)
	}
	if err != nil {
		return fmt.Errorf("copy of %d bytes from %v (%v): %w", n, h.pair, h.route, err)
	}
	if c.checked {
		dst.Ops.Digest(&h.got, dst.Tensor)
	}
	p.link.bytes[h.route].Add(uint64(n))
	return nil
}

func (c *copier) hop(p *pair, at Pair, n int64) *hop {
	if c.n == len(c.hops) {
		c.hops = append(c.hops, &hop{})
	}
	h := c.hops[c.n]
	c.n++
	h.link, h.route, h.pair, h.bytes, h.verified = p.link, p.link.route(), at, n, c.checked
	h.half, h.diagnosed = kernels.NewDigest(n), c.diagnose && c.checked
	if _, ok := p.from.(device.HostAllocator); !ok && h.route == PeerDirect {
		h.route = HostStaged
	}
	return h
}

// pair is made when a link is first used.
func (c *copier) pair(at Pair) (*pair, error) {
	if p, ok := c.pairs[at]; ok {
		return p, nil
	}
	p := &pair{link: c.router.link(at), from: c.devices[at.From], to: c.devices[at.To]}
	_, p.fromAsync = p.from.(device.HostAllocator)
	_, p.toAsync = p.to.(device.HostAllocator)
	p.sync = c.o.Sync || synchronous(p.from) || synchronous(p.to)
	if p.fromAsync && p.toAsync {
		var err1, err2 error
		p.ready, err1 = p.to.NewEvent()
		p.sent, err2 = p.from.NewEvent()
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("prepare copies from %v: %w", at, err)
		}
	}
	c.pairs[at] = p
	return p, nil
}

// synchronous tells whether the table wants each copy waited for.
func synchronous(d device.Device) bool {
	if d == nil {
		return false
	}
	g := d.Info().GPU
	return g != nil && arch.Lookup(g.Capability).Copies == arch.Synchronous
}

// Commit implements Copier.
func (c *copier) Commit(step uint64) error {
	var bad Mismatches
	for _, h := range c.hops[:c.n] {
		switch {
		case !h.verified:
		case h.sent == h.got:
			h.link.verified.Add(1)
		default:
			h.link.mismatched.Add(1)
			bad = append(bad, h.mismatch(step))
		}
	}
	c.begin(bad != nil)
	c.diagnose = false
	if bad == nil {
		return nil
	}
	for _, m := range bad {
		if m.Route == PeerDirect {
			c.router.Quarantine(Pair{m.From, m.To}, m.Error())
		} else {
			c.diagnose = true
		}
	}
	return bad
}

func (h *hop) mismatch(step uint64) *MismatchError {
	m := &MismatchError{
		Route: h.route, From: h.pair.From, To: h.pair.To, Bytes: h.bytes, Step: step, Sent: h.sent, Got: h.got,
	}
	switch {
	case !h.diagnosed || h.route == PeerDirect:
	case h.half == h.sent:
		m.Suspect = &m.To
	default:
		m.Suspect = &m.From
	}
	return m
}

// Abandon implements Copier.
func (c *copier) Abandon() { c.begin(false) }

// Close frees staging buffers and events; work that uses them must have
// finished.
func (c *copier) Close() error {
	var errs []error
	for _, p := range c.pairs {
		for _, s := range p.slots {
			errs = append(errs, s.close())
		}
		for _, e := range []device.Event{p.ready, p.sent} {
			if e != nil {
				errs = append(errs, e.Close())
			}
		}
	}
	clear(c.pairs)
	return errors.Join(errs...)
}
