package cuda

import (
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// fewRows is the largest number of rows that the bandwidth-bound product takes.
const fewRows = 8

// Flags of a product, see src/weight.h.
const (
	productAdd   = 1
	productF32   = 2
	productGates = 4
)

// product is a matrix product whose operands fit together. It is postponed
// until the next operation is known: if that gates its result, both are one
// launch.
type product struct {
	w    *weight
	args kernels.MatMulArgs
}

func (o *ops) MatMul(a kernels.MatMulArgs) {
	w := o.weight("MatMul", a.W)
	m := a.X.Shape.Dim(0)
	if !(isMatrix(a.Dst, m, w.rows) && isMatrix(a.X, m, w.cols) && a.X.DType == o.actType &&
		(a.Dst.DType == o.actType || a.Dst.DType == tensor.F32) &&
		(a.Bias.IsNone() || isVector(a.Bias, w.rows) && a.Bias.DType == tensor.F32)) {
		mismatch("MatMul", a.Dst, a.X, a.Bias)
	}
	s := o.stream
	s.own("MatMul", a.Dst, a.X, a.Bias)
	s.settle()
	if m == 0 {
		return
	}
	o.product = product{w, a}
	if !a.Add && a.Dst.DType == o.actType && w.rows%(2*tileRows) == 0 {
		s.postponed = o
		return
	}
	o.multiply("MatMul", tensor.Tensor{}, 0)
}

// multiply queues the product; with gated its activation too.
func (o *ops) multiply(name string, gated tensor.Tensor, act kernels.Activation) {
	a, w := &o.product.args, o.product.w
	m, flags := a.X.Shape.Dim(0), 0
	if a.Add {
		flags |= productAdd
	}
	if a.Dst.DType == tensor.F32 {
		flags |= productF32
	}
	if !gated.IsNone() {
		flags |= productGates
	}
	var l *list
	if m <= fewRows {
		l = o.stream.launch(name, o.fn.gemv[w.format][o.act], (w.rows+31)/32, 1, 1, 256)
	} else {
		l = o.stream.launch(name, o.fn.gemm[w.format][o.act], (w.rows+127)/128, (m+63)/64, 1, 256)
	}
	l.ptr(w.buf.ptr)
	l.ptr(w.scales)
	l.ptr(at(a.X))
	l.ptr(at(a.Dst))
	l.ptr(at(a.Bias))
	l.i32(m)
	l.i32(w.rows)
	l.i32(w.cols)
	l.i32(flags)
	l.ptr(at(gated))
	l.i32(int(act))
	l.end()
	o.product = product{} // keeps no view of memory that may be freed
}

func (o *ops) GatedAct(dst, gateUp tensor.Tensor, act kernels.Activation) {
	rows, n := gateUp.Shape.Dim(0), gateUp.Shape.Dim(1)/2
	if !(isMatrix(dst, rows, n) && isMatrix(gateUp, rows, 2*n) && act <= kernels.GELUTanh &&
		dst.DType == o.actType && gateUp.DType == o.actType) {
		mismatch("GatedAct", dst, gateUp)
	}
	s := o.stream
	s.own("GatedAct", dst, gateUp)
	if rows == 0 {
		return
	}
	if s.postponed == o && o.product.args.Dst == gateUp {
		s.postponed = nil
		o.multiply("MatMul and GatedAct", dst, act)
		return
	}
	l := s.launch("GatedAct", o.fn.gated[o.act], (n+255)/256, rows, 1, 256)
	l.ptr(at(gateUp))
	l.ptr(at(dst))
	l.i32(n)
	l.i32(int(act))
	l.end()
}
