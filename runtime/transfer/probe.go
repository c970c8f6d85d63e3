package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// Probe measures links between GPUs, with the allocator, the streams and the
// copies that production uses.
type Probe struct {
	Backends []kernels.Backend // of the GPUs
	Links    []device.Link
	Store    *Store        // for the marker of what is probed just now; nil: none
	Patience time.Duration // for one wait; 0: a second
	// Soak repeats the copies of each pair for so long.
	Soak  time.Duration
	round uint64
	sides map[device.ID]*probeSide
}

// Add has a GPU take part, once.
func (p *Probe) Add(b kernels.Backend) {
	if !slices.ContainsFunc(p.Backends, func(o kernels.Backend) bool { return o.Device().Info().ID == b.Device().Info().ID }) {
		p.Backends = append(p.Backends, b)
	}
}

// probeSide is one GPU with its memory and streams for probing.
type probeSide struct {
	b        kernels.Backend
	info     device.Info
	out, in  probeEnd // as source, as destination
	work     tensor.Tensor
	ready    device.Event
	done     device.Event
	returned device.Event
}

type probeEnd struct {
	stream device.Stream
	ops    kernels.Ops
	mem    tensor.Tensor
}

// Sizes of copies. On a simulated machine kernels are interpreted, and large
// patterns are made and looked at by the host instead.
const (
	smallMost = 64 << 10
	timedReal = 64 << 20
	timedSim  = 4 << 20
	slices8   = 8 // back to back
)

func (s *probeSide) largest() int64 {
	if s.info.GPU.Simulated {
		return timedSim
	}
	return timedReal
}

// Run probes the pairs, and prints a Line as each begins and ends. It stops
// after one that hung or failed. Before each, its marker is on the disk.
func (p *Probe) Run(ctx context.Context, pairs []Pair, w io.Writer) error {
	line := func(l Line) error {
		text, err := json.Marshal(l)
		if err != nil {
			return err
		}
		_, err = w.Write(append(text, '\n'))
		return err
	}
	for _, pair := range pairs {
		unmark := func() error { return nil }
		if p.Store != nil {
			var err error
			if unmark, err = p.Store.mark(p.ends(pair)); err != nil {
				unmark = func() error { return nil } // it goes without
			}
		}
		if err := line(Line{Begin: &IDPair{pair.From.Index, pair.To.Index}}); err != nil {
			return errors.Join(err, unmark())
		}
		began := time.Now()
		m := p.Pair(ctx, pair)
		if ctx.Err() != nil { // called off, which says nothing of the link
			return errors.Join(ctx.Err(), unmark())
		}
		if err := errors.Join(unmark(), line(Line{Result: &m, Took: time.Since(began).Seconds()})); err != nil {
			return err
		}
		if m.TimedOut || m.Error != "" || m.KernelReads == Hung {
			// The streams have the error, or the devices are lost: what they
			// hold cannot be freed without waiting for them.
			return nil
		}
	}
	p.close()
	return nil
}

func (p *Probe) ends(pair Pair) ends {
	var infos []device.Info
	for _, b := range p.Backends {
		infos = append(infos, b.Device().Info())
	}
	return endsOf(infos, pair)
}

// Pair measures one directed link.
func (p *Probe) Pair(ctx context.Context, pair Pair) (m Measurement) {
	src, err1 := p.side(pair.From)
	dst, err2 := p.side(pair.To)
	if err := errors.Join(err1, err2); err != nil {
		m.Setup = err.Error()
		return m
	}
	patience := p.Patience
	if patience == 0 {
		patience = time.Second
	}
	l := &linkProbe{p: p, m: &m, pair: pair, src: src, dst: dst, patience: patience}
	if slow, err := l.glance(ctx); err != nil {
		l.failed(err)
		return m
	} else if slow {
		return m
	}
	began := time.Now()
	steps := []func(context.Context) error{l.copies, l.large, l.backToBack, l.bothWays, l.chain}
	for round := 0; round == 0 || time.Since(began) < p.Soak; round++ {
		for _, what := range steps {
			if err := what(ctx); err != nil {
				l.failed(err)
				return m
			}
			if m.Corruption != nil {
				return m
			}
		}
	}
	if err := l.speeds(ctx); err != nil {
		l.failed(err)
		return m
	}
	if err := l.kernelReads(ctx); errors.Is(err, context.DeadlineExceeded) {
		m.KernelReads = Hung
	} else if err != nil {
		m.KernelReads = Unavailable
	}
	return m
}

// linkProbe is the measurement of one link.
type linkProbe struct {
	p        *Probe
	m        *Measurement
	pair     Pair
	src, dst *probeSide
	patience time.Duration
}

// failed files an error where Judge looks for it.
func (l *linkProbe) failed(err error) {
	if errors.Is(err, context.DeadlineExceeded) {
		l.m.TimedOut = true
		return
	}
	l.m.Error = err.Error()
}

// side opens a GPU for probing, once.
func (p *Probe) side(id device.ID) (*probeSide, error) {
	if s := p.sides[id]; s != nil {
		return s, nil
	}
	i := slices.IndexFunc(p.Backends, func(b kernels.Backend) bool { return b.Device().Info().ID == id })
	if i < 0 {
		return nil, fmt.Errorf("there is no %v here", id)
	}
	b := p.Backends[i]
	d := b.Device()
	s := &probeSide{b: b, info: d.Info()}
	if p.sides == nil {
		p.sides = map[device.ID]*probeSide{}
	}
	p.sides[id] = s
	n := s.largest() + 4096
	var err error
	if s.work, err = allocBytes(d, 2*smallMost); err != nil {
		return nil, err
	}
	for _, e := range []*probeEnd{&s.out, &s.in} {
		if e.stream, err = d.NewStream(); err != nil {
			return nil, err
		}
		if e.ops, err = b.NewOps(e.stream); err != nil {
			return nil, err
		}
		if e.mem, err = allocBytes(d, n); err != nil {
			return nil, err
		}
	}
	for _, e := range []*device.Event{&s.ready, &s.done, &s.returned} {
		if *e, err = d.NewEvent(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func allocBytes(d device.Device, n int64) (tensor.Tensor, error) {
	buf, err := d.Alloc(n)
	if err != nil {
		return tensor.Tensor{}, fmt.Errorf("memory for probing: %w", err)
	}
	return tensor.Tensor{Buf: buf, DType: tensor.U8, Shape: tensor.Of(int(n))}, nil
}

// close frees what can be freed; the process ends soon.
func (p *Probe) close() {
	for _, s := range p.sides {
		for _, e := range []*probeEnd{&s.out, &s.in} {
			if e.stream != nil && e.stream.Err() == nil {
				_ = e.stream.Close()
			}
			if b, ok := e.mem.Buf.(device.Buffer); ok {
				_ = b.Free()
			}
		}
		if b, ok := s.work.Buf.(device.Buffer); ok {
			_ = b.Free()
		}
		for _, e := range []device.Event{s.ready, s.done, s.returned} {
			if e != nil {
				_ = e.Close()
			}
		}
	}
	p.sides = nil
}

// view is n bytes from offset on.
func view(t tensor.Tensor, offset, n int64) tensor.Tensor {
	t.Offset += offset
	t.Shape = tensor.Of(int(n))
	return t
}
