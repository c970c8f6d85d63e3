package cuda

import (
	"context"
	"fmt"

	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// ops are the operations: each checks its operands and queues its launches.
// What differs from one step of decoding to the next lies in the device's
// memory (batch), so that the launches are the same and can be replayed.
type ops struct {
	stream          *stream
	fn              *functions
	actType, kvType tensor.DType
	act, pair       int

	batch   batch
	scratch *buffer // of attention
	arrived *buffer // of attention: zeros
	product product // postponed
}

// close frees the memory of the operations.
func (o *ops) close() error {
	var first error
	for _, b := range []*buffer{o.batch.buf, o.scratch, o.arrived} {
		if b == nil {
			continue
		}
		if err := b.Free(); first == nil {
			first = err
		}
	}
	o.batch.buf, o.scratch, o.arrived = nil, nil, nil
	return first
}

// grow makes a buffer of at least n bytes, with room to spare; what it held is
// lost. The device's work is waited for when one is replaced.
func (o *ops) grow(b **buffer, n int64, what string) bool {
	s := o.stream
	if *b != nil && (*b).size >= n {
		return true
	}
	if *b != nil {
		if s.Err() != nil || s.await(context.Background(), nil) != nil {
			return false
		}
		old := *b
		*b = nil
		if err := old.Free(); err != nil {
			s.fail(err)
			return false
		}
	}
	buf, err := s.dev.alloc(roomFor(n))
	if err != nil {
		s.fail(fmt.Errorf("%s: %w", what, err))
		return false
	}
	*b = buf
	return true
}

// Layer implements kernels.LayerMarker.
func (o *ops) Layer(n int) { o.stream.layer = int32(n) }

func (o *ops) Embed(dst tensor.Tensor, table kernels.Weight) {
	w, rows := o.weight("Embed", table), o.batch.rows
	if !(isMatrix(dst, rows, w.cols) && dst.DType == o.actType) {
		mismatch("Embed", dst)
	}
	o.stream.own("Embed", dst)
	l := o.stream.launch("Embed", o.fn.embed[w.format][o.act], rows, 1, 1, 128)
	l.ptr(w.buf.ptr)
	l.ptr(w.scales)
	l.ptr(o.batch.tokens)
	l.ptr(at(dst))
	l.i32(w.rows)
	l.i32(w.cols)
	l.end()
}

// weight checks that a weight is of this device.
func (o *ops) weight(op string, w kernels.Weight) *weight {
	own, ok := w.(*weight)
	if !ok || own.buf.dev != o.stream.dev {
		panic(fmt.Sprintf("cuda: %s on %v: the weight lies elsewhere", op, o.stream.dev.id))
	}
	return own
}

func (o *ops) RMSNorm(dst, x, w tensor.Tensor, eps float32) {
	rows, n := x.Shape.Dim(0), x.Shape.Dim(1)
	if !(isMatrix(x, rows, n) && dst.Shape == x.Shape && isVector(w, n) &&
		x.DType == o.actType && dst.DType == o.actType && w.DType == tensor.F32) {
		mismatch("RMSNorm", dst, x, w)
	}
	o.stream.own("RMSNorm", dst, x, w)
	if rows == 0 {
		return
	}
	l := o.stream.launch("RMSNorm", o.fn.norm[o.act], rows, 1, 1, 256)
	l.ptr(at(x))
	l.ptr(at(w))
	l.ptr(at(dst))
	l.i32(n)
	l.f32(eps)
	l.end()
}

func (o *ops) GatherRows(dst, src tensor.Tensor) {
	n := src.Shape.Dim(1)
	if !(isMatrix(dst, o.batch.logits, n) && dst.DType == src.DType) {
		mismatch("GatherRows", dst, src)
	}
	o.stream.own("GatherRows", dst, src)
	if o.batch.logits == 0 {
		return
	}
	l := o.stream.launch("GatherRows", o.fn.gather, o.batch.logits, 1, 1, 128)
	l.ptr(at(dst))
	l.ptr(at(src))
	l.ptr(o.batch.logitRows)
	l.u64(uint64(n * src.DType.Bits() / 8))
	l.end()
}

func (o *ops) Argmax(dst, logits tensor.Tensor) {
	rows, n := logits.Shape.Dim(0), logits.Shape.Dim(1)
	if !(isVector(dst, rows) && dst.DType == tensor.I32 && isMatrix(logits, rows, n) && logits.DType == tensor.F32) {
		mismatch("Argmax", dst, logits)
	}
	o.stream.own("Argmax", dst, logits)
	if rows == 0 {
		return
	}
	l := o.stream.launch("Argmax", o.fn.argmax, rows, 1, 1, 512)
	l.ptr(at(logits))
	l.ptr(at(dst))
	l.i32(n)
	l.end()
}

func (o *ops) Copy(dst, src tensor.Tensor) {
	mustSize("Copy", src.Bytes(), dst.Bytes())
	o.stream.own("Copy", dst, src)
	if src.Bytes() == 0 {
		return
	}
	c := o.stream.push(opCopy, "Copy")
	c.dst, c.src, c.n = at(dst), at(src), src.Bytes()
}

func isMatrix(t tensor.Tensor, rows, cols int) bool { return t.Shape == tensor.Of(rows, cols) }
func isVector(t tensor.Tensor, n int) bool          { return t.Shape == tensor.Of(n) }

// mismatch panics: operands that do not fit together are a programming error.
func mismatch(op string, ts ...tensor.Tensor) {
	s := "cuda: " + op + ": operands do not fit together:"
	for _, t := range ts {
		s += fmt.Sprintf(" %v%v", t.DType, t.Shape)
	}
	panic(s)
}

// blocks is a grid for n bytes, some a thread.
func blocks(n int64) int { return int(min(max((n+8191)/8192, 1), 512)) }

func (o *ops) Digest(out *kernels.Digest, t tensor.Tensor) {
	o.stream.own("Digest", t)
	o.digest("Digest", out, t)
}

func (o *ops) digest(name string, out *kernels.Digest, t tensor.Tensor) {
	p := o.stream.result(out, nil)
	l := o.stream.launch(name, o.fn.digest, blocks(t.Bytes()), 1, 1, 256)
	l.ptr(at(t))
	l.u64(uint64(t.Bytes()))
	l.ptr(p)
	l.end()
}

var (
	_ kernels.Ops         = (*ops)(nil)
	_ kernels.LayerMarker = (*ops)(nil)
)
