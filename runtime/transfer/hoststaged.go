package transfer

import (
	"context"
	"fmt"

	"infer/runtime/kernels"
)

// HostStaged copies by way of a host buffer: source → host → destination. It
// needs nothing of the devices but Upload and Download.
type HostStaged struct {
	hops []*hop // of this step first, then those of earlier steps for reuse
	n    int    // of this step
}

// hop is one copy of the step. The buffer must live until the destination's
// stream has been synchronised, so that each hop has its own.
type hop struct {
	dst, src  End
	buf       []byte
	sent, got kernels.Digest
}

// NewHostStaged makes a copier without buffers; they grow to the largest copy
// and are reused.
func NewHostStaged() *HostStaged { return &HostStaged{} }

// Move implements Copier. It waits for the source's queued work.
func (c *HostStaged) Move(ctx context.Context, dst, src End) error {
	n := src.Tensor.Bytes()
	if dst.Tensor.Bytes() != n {
		panic(fmt.Sprintf("transfer: copy of %d bytes into a tensor of %d", n, dst.Tensor.Bytes()))
	}
	if c.n == len(c.hops) {
		c.hops = append(c.hops, &hop{})
	}
	h := c.hops[c.n]
	c.n++
	h.dst, h.src = dst, src
	if int64(cap(h.buf)) < n {
		h.buf = make([]byte, n)
	}
	h.buf = h.buf[:n]
	src.Ops.Digest(&h.sent, src.Tensor)
	src.Stream.Download(h.buf, src.Tensor)
	if err := src.Stream.Sync(ctx); err != nil {
		return fmt.Errorf("copy of %d bytes from %v to %v (host staged): read from %v: %w", n, src.Device, dst.Device, src.Device, err)
	}
	dst.Stream.Upload(dst.Tensor, h.buf)
	dst.Ops.Digest(&h.got, dst.Tensor)
	return nil
}

// Commit implements Copier.
func (c *HostStaged) Commit(step uint64) error {
	var first error
	for _, h := range c.hops[:c.n] {
		if h.sent != h.got && first == nil {
			first = &MismatchError{
				Route: "host staged", From: h.src.Device, To: h.dst.Device,
				Bytes: h.src.Tensor.Bytes(), Step: step, Sent: h.sent, Got: h.got,
			}
		}
	}
	c.n = 0
	return first
}
