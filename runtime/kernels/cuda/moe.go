package cuda

import (
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

var _ kernels.MoEOps = (*ops)(nil)

func (o *ops) Route(a kernels.RouteArgs) {
	rows, n, k := a.Logits.Shape.Dim(0), a.Logits.Shape.Dim(1), a.IDs.Shape.Dim(1)
	if !(isMatrix(a.Logits, rows, n) && isMatrix(a.IDs, rows, k) && a.Weights.Shape == a.IDs.Shape &&
		a.Logits.DType == tensor.F32 && a.IDs.DType == tensor.I32 && a.Weights.DType == tensor.F32 &&
		k >= 1 && k <= min(n, kernels.MaxChosen) && n <= kernels.MaxExperts) {
		mismatch("Route", a.IDs, a.Weights, a.Logits)
	}
	o.stream.own("Route", a.IDs, a.Weights, a.Logits)
	if rows == 0 {
		return
	}
	normalize := 0
	if a.Normalize {
		normalize = 1
	}
	l := o.stream.launch("Route", o.fn.route, (rows+3)/4, 1, 1, 128)
	l.ptr(at(a.Logits))
	l.ptr(at(a.IDs))
	l.ptr(at(a.Weights))
	l.i32(rows)
	l.i32(n)
	l.i32(k)
	l.i32(normalize)
	l.end()
}

// Tiles of pairs (a row and one of its experts) that a block of the products
// takes: few for when reading weights is what counts, many for arithmetic.
const (
	fewPairs  = 3 // 8
	manyPairs = 6 // 64
)

// expertTiles bounds the tiles of 1 << shift pairs that groups of pairs make:
// each expert with pairs may have one that is not full.
func expertTiles(pairs, experts, shift int) int {
	return min(pairs, experts) + pairs>>shift
}

// Experts sorts the pairs by expert and multiplies each tile of them by its
// expert's weights. The launches depend on the number of rows alone, never on
// where they go, so that they can be replayed.
func (o *ops) Experts(a kernels.ExpertsArgs) {
	rows, h, k := a.X.Shape.Dim(0), a.X.Shape.Dim(1), a.IDs.Shape.Dim(1)
	gateUp, down, s, e, n := o.weight("Experts", a.GateUp), o.weight("Experts", a.Down), a.Scratch, a.Experts, a.Inter
	pairs := rows * k
	if !(isMatrix(a.X, rows, h) && a.Dst.Shape == a.X.Shape && a.X.DType == o.actType && a.Dst.DType == o.actType &&
		isMatrix(a.IDs, rows, k) && a.Weights.Shape == a.IDs.Shape && a.IDs.DType == tensor.I32 && a.Weights.DType == tensor.F32 &&
		e <= kernels.MaxExperts && a.Act <= kernels.GELUTanh &&
		gateUp.rows == e*kernels.ExpertRows(2*n) && gateUp.cols == h && down.rows == e*kernels.ExpertRows(h) && down.cols == n &&
		isMatrix(s.Hidden, pairs, 2*n) && isMatrix(s.Gated, pairs, n) && isMatrix(s.Out, pairs, h) &&
		s.Hidden.DType == o.actType && s.Gated.DType == o.actType && s.Out.DType == tensor.F32 &&
		s.Order.DType == tensor.I32 && s.Order.Shape.Elems() >= kernels.ExpertsOrder(rows, k, e)) {
		mismatch("Experts", a.Dst, a.X, a.IDs, a.Weights, s.Hidden, s.Gated, s.Out, s.Order)
	}
	o.stream.own("Experts", a.Dst, a.X, a.IDs, a.Weights, s.Hidden, s.Gated, s.Out, s.Order)
	if rows == 0 {
		return
	}
	p := expertsProduct{pairs: pairs, experts: e, order: s.Order, shift: fewPairs}
	if rows > fewRows && pairs > 4*e {
		p.shift = manyPairs
	}
	l := o.stream.launch("Experts (sort)", o.fn.group, 1, 1, 1, 1024)
	l.ptr(at(a.IDs))
	l.ptr(at(s.Order))
	l.i32(pairs)
	l.i32(e)
	l.i32(p.shift)
	l.end()

	gates := n%tileRows == 0
	p.w, p.outputs, p.x, p.dst, p.k, p.act = gateUp, 2*n, a.X, s.Hidden, k, a.Act
	if gates {
		p.flags, p.gated = productGates, s.Gated
	}
	o.expertsProduct("Experts (gate and up)", p)
	if !gates {
		o.GatedAct(s.Gated, s.Hidden, a.Act)
	}
	p.w, p.outputs, p.x, p.dst, p.k, p.flags, p.gated = down, h, s.Gated, s.Out, 0, productF32, tensor.Tensor{}
	o.expertsProduct("Experts (down)", p)

	l = o.stream.launch("Experts (sum)", o.fn.expertsSum[o.act], (h+255)/256, rows, 1, 256)
	l.ptr(at(s.Out))
	l.ptr(at(a.Weights))
	l.ptr(at(a.Dst))
	l.i32(h)
	l.i32(k)
	l.end()
}

// expertsProduct is one product of all pairs with their experts' weights.
type expertsProduct struct {
	w              *weight // a stack
	outputs        int     // of an expert
	x, dst         tensor.Tensor
	order          tensor.Tensor
	pairs, experts int
	shift          int // of the tiles
	k              int // pairs of a row of x; 0: x is sorted, and dst by pair
	flags          int
	gated          tensor.Tensor
	act            kernels.Activation
}

func (o *ops) expertsProduct(name string, p expertsProduct) {
	tiles := expertTiles(p.pairs, p.experts, p.shift)
	var l *list
	if p.shift == fewPairs {
		l = o.stream.launch(name, o.fn.expertsGemv[p.w.format][o.act], (p.outputs+31)/32, tiles, 1, 256)
	} else {
		l = o.stream.launch(name, o.fn.expertsGemm[p.w.format][o.act], (p.outputs+127)/128, tiles, 1, 256)
	}
	l.ptr(p.w.buf.ptr)
	l.ptr(p.w.scales)
	l.ptr(at(p.x))
	l.ptr(at(p.dst))
	l.ptr(at(p.order))
	l.i32(p.pairs)
	l.i32(p.experts)
	l.i32(p.outputs)
	l.i32(p.w.cols)
	l.i32(p.k)
	l.i32(p.flags)
	l.ptr(at(p.gated))
	l.i32(int(p.act))
	l.end()
}
