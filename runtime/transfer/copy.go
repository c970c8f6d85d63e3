package transfer

import (
	"context"
	"fmt"

	"infer/runtime/device"
	"infer/runtime/tensor"
)

// direct copies between two GPUs without the host, behind a barrier on both
// sides: the copy, which runs on the source's stream, waits for what was queued
// on the destination's before; what is queued there afterwards waits for the
// copy.
func (c *copier) direct(ctx context.Context, p *pair, dst, src End) error {
	peer, ok := src.Stream.(device.PeerStream)
	if !ok {
		return fmt.Errorf("%v has no peer copies: %w", src.Device, device.ErrNotSupported)
	}
	if p.sync {
		if err := waitFor(ctx, dst); err != nil {
			return err
		}
		peer.CopyTo(dst.Tensor, src.Tensor)
		return waitFor(ctx, src)
	}
	dst.Stream.Record(p.ready)
	src.Stream.Wait(p.ready)
	peer.CopyTo(dst.Tensor, src.Tensor)
	src.Stream.Record(p.sent)
	dst.Stream.Wait(p.sent)
	return nil
}

// stepSlots is how many staging buffers copies out of host memory take before
// they wait and begin anew: experts in host memory make two copies a layer.
const stepSlots = 8

// slot is one staging buffer with what orders its uses.
type slot struct {
	mem          []byte
	host         device.HostBuffer // nil: ordinary memory
	filled, free device.Event      // between two queues: recorded by the source, by the destination
	inUse        bool              // free was recorded
}

func (s *slot) close() error {
	for _, e := range []device.Event{s.filled, s.free} {
		if e != nil {
			if err := e.Close(); err != nil {
				return err
			}
		}
	}
	if s.host != nil {
		return s.host.Free()
	}
	return nil
}

// slot i of the pair, of at least n bytes.
func (p *pair) slot(i int, n int64) (*slot, error) {
	for len(p.slots) <= i {
		p.slots = append(p.slots, &slot{})
	}
	s := p.slots[i]
	if int64(len(s.mem)) >= n {
		return s, nil
	}
	if s.host != nil {
		if err := s.host.Free(); err != nil {
			return nil, err
		}
		s.host = nil
	}
	from, ok := p.to.(device.HostAllocator)
	if !ok {
		from, ok = p.from.(device.HostAllocator)
	}
	if !ok {
		s.mem = make([]byte, n)
		return s, nil
	}
	var err error
	if s.host, err = from.AllocHost(n); err != nil {
		return nil, fmt.Errorf("staging buffer of %d bytes: %w", n, err)
	}
	s.mem = s.host.Bytes()
	if p.fromAsync && p.toAsync && s.filled == nil {
		if s.filled, err = p.from.NewEvent(); err != nil {
			return nil, err
		}
		if s.free, err = p.to.NewEvent(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// staged copies by way of host memory, in chunks, so that the way down of one
// chunk and the way up of the one before overlap.
func (c *copier) staged(ctx context.Context, p *pair, h *hop, dst, src End) error {
	total := src.Tensor.Bytes()
	if p.fromAsync && !p.toAsync {
		return c.toHost(ctx, p, h, dst, src)
	}
	waits := p.sync || h.diagnosed
	for lo := int64(0); lo < total; lo += c.o.Chunk {
		n := min(c.o.Chunk, total-lo)
		queued := p.fromAsync && p.toAsync
		i := p.used
		switch {
		case queued:
			i %= 2
		case i == stepSlots: // their way up may still be queued
			if err := waitFor(ctx, dst); err != nil {
				return err
			}
			i, p.used = 0, 0
		}
		p.used++
		// A buffer that grows must not be one that a queue still uses: those of
		// two queues have their full size at once.
		size := n
		if queued {
			size = c.o.Chunk
		}
		s, err := p.slot(i, size)
		if err != nil {
			return err
		}
		if queued && s.inUse && !waits {
			src.Stream.Wait(s.free)
		}
		src.Stream.Download(s.mem[:n], part(src.Tensor, lo, n))
		switch {
		case waits:
			if err := waitFor(ctx, src); err != nil {
				return err
			}
			if h.diagnosed {
				h.half.Add(s.mem[:n], lo)
			}
		case queued:
			src.Stream.Record(s.filled)
			dst.Stream.Wait(s.filled)
		}
		dst.Stream.Upload(part(dst.Tensor, lo, n), s.mem[:n])
		switch {
		case waits:
			if err := waitFor(ctx, dst); err != nil {
				return err
			}
		case queued:
			dst.Stream.Record(s.free)
			s.inUse = true
		}
	}
	return nil
}

// toHost copies from a queue to host memory, which is written by the caller:
// it has to wait for each chunk, and meanwhile the next is on its way.
func (c *copier) toHost(ctx context.Context, p *pair, h *hop, dst, src End) error {
	total := src.Tensor.Bytes()
	var before *slot
	var at int64 // of before
	flush := func() {
		if before != nil {
			n := min(c.o.Chunk, total-at)
			if h.diagnosed {
				h.half.Add(before.mem[:n], at)
			}
			dst.Stream.Upload(part(dst.Tensor, at, n), before.mem[:n])
		}
	}
	for lo, i := int64(0), 0; lo < total; lo, i = lo+c.o.Chunk, 1-i {
		n := min(c.o.Chunk, total-lo)
		s, err := p.slot(i, n)
		if err != nil {
			return err
		}
		src.Stream.Download(s.mem[:n], part(src.Tensor, lo, n))
		flush()
		if err := waitFor(ctx, src); err != nil {
			return err
		}
		before, at = s, lo
	}
	flush()
	if p.sync {
		return waitFor(ctx, dst)
	}
	return nil
}

func waitFor(ctx context.Context, e End) error {
	if err := e.Stream.Sync(ctx); err != nil {
		return fmt.Errorf("wait for %v: %w", e.Device, err)
	}
	return nil
}

// part is the view of bytes lo..lo+n; of all, the tensor itself.
func part(t tensor.Tensor, lo, n int64) tensor.Tensor {
	if lo == 0 && n == t.Bytes() {
		return t
	}
	t.DType, t.Shape = tensor.U8, tensor.Of(int(n))
	t.Offset += lo
	return t
}
