package cuda

import (
	"fmt"

	driver "infer/runtime/internal/cuda"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// Fill implements kernels.Prober.
func (o *ops) Fill(dst tensor.Tensor, seed, step uint64) {
	o.stream.own("Fill", dst)
	l := o.stream.launch("Fill", o.fn.fill, blocks(dst.Bytes()), 1, 1, 256)
	l.ptr(at(dst))
	l.u64(uint64(dst.Bytes()))
	l.u64(seed)
	l.u64(step)
	l.end()
}

// Compare implements kernels.Prober.
func (o *ops) Compare(out *kernels.Comparison, t tensor.Tensor, seed, step uint64) {
	o.stream.own("Compare", t)
	p := o.stream.result(nil, out)
	// The second word takes the smallest offset.
	c := o.stream.push(opSet, "Compare")
	c.dst, c.n, c.value = p+8, 8, 0xff
	l := o.stream.launch("Compare", o.fn.compare, blocks(t.Bytes()), 1, 1, 256)
	l.ptr(at(t))
	l.u64(uint64(t.Bytes()))
	l.u64(seed)
	l.u64(step)
	l.ptr(p)
	l.end()
}

func comparison(bad, first uint64) kernels.Comparison {
	if bad == 0 {
		return kernels.Comparison{First: -1}
	}
	return kernels.Comparison{Bad: int64(bad), First: int64(first)}
}

// PeerDigest implements kernels.PeerReader.
func (o *ops) PeerDigest(out *kernels.Digest, t tensor.Tensor) {
	if o.reach("PeerDigest", t) {
		o.digest("PeerDigest", out, t)
	}
}

// PeerCopy implements kernels.PeerReader.
func (o *ops) PeerCopy(dst, src tensor.Tensor) {
	mustSize("PeerCopy", src.Bytes(), dst.Bytes())
	o.stream.own("PeerCopy", dst)
	if !o.reach("PeerCopy", src) {
		return
	}
	l := o.stream.launch("PeerCopy", o.fn.copy, blocks(src.Bytes()), 1, 1, 256)
	l.ptr(at(dst))
	l.ptr(at(src))
	l.u64(uint64(src.Bytes()))
	l.end()
}

// reach lets kernels read memory of another device; a refusal is the stream's
// error.
func (o *ops) reach(op string, t tensor.Tensor) bool {
	b, ok := t.Buf.(*buffer)
	if !ok || b.dev.sys != o.stream.dev.sys {
		panic(fmt.Sprintf("cuda: %s: memory that is not a GPU's of this machine", op))
	}
	d := o.stream.dev
	if b.dev == d {
		return true
	}
	err := d.do(op, func(t *driver.Thread) error { return d.enablePeer(t, b.dev) })
	if err != nil {
		o.stream.fail(err)
	}
	return err == nil
}

var (
	_ kernels.Prober     = (*ops)(nil)
	_ kernels.PeerReader = (*ops)(nil)
)
