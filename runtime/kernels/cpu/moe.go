package cpu

import (
	"math"
	"unsafe"

	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

var _ kernels.MoEOps = (*ops)(nil)

// routing is one row's place in Route, without memory of its own.
type routing struct {
	path      *path
	logits    []float32
	weights   []float32
	ids       []int32
	n, k      int
	normalize bool
}

func (o *ops) Route(a kernels.RouteArgs) {
	rows, n, k := a.Logits.Shape.Dim(0), a.Logits.Shape.Dim(1), a.IDs.Shape.Dim(1)
	if !(isMatrix(a.Logits, rows, n) && isMatrix(a.IDs, rows, k) && a.Weights.Shape == a.IDs.Shape &&
		k >= 1 && k <= min(n, kernels.MaxChosen) && n <= kernels.MaxExperts) {
		mismatch("Route", a.IDs, a.Weights, a.Logits)
	}
	o.routing = routing{path: o.path, logits: floats(a.Logits), weights: floats(a.Weights), ids: ints(a.IDs), n: n, k: k, normalize: a.Normalize}
	o.pool.run(&o.routing, rows, max(1, rowGrain/(4*n)))
	o.routing = routing{}
}

func (t *routing) run(_ *worker, lo, hi int) {
	for i := lo; i < hi; i++ {
		t.row(t.logits[i*t.n:][:t.n], t.weights[i*t.k:][:t.k], t.ids[i*t.k:][:t.k])
	}
}

func (t *routing) row(logits, weights []float32, ids []int32) {
	top := t.path.vec.max(logits)
	if math.IsInf(float64(top), 0) || t.path.vec.anyNaN(logits) {
		for j := range ids {
			ids[j], weights[j] = int32(j), float32(math.NaN())
		}
		return
	}
	// Insertion into a short list, the best first; among equals who came first
	// stays in front.
	for i, v := range logits {
		n := min(i, len(ids))
		if n == len(ids) && !(v > weights[n-1]) {
			continue
		}
		j := min(n, len(ids)-1)
		for ; j > 0 && v > weights[j-1]; j-- {
			weights[j], ids[j] = weights[j-1], ids[j-1]
		}
		weights[j], ids[j] = v, int32(i)
	}
	for i := 1; i < len(ids); i++ { // ascending ids
		for j := i; j > 0 && ids[j-1] > ids[j]; j-- {
			weights[j-1], weights[j] = weights[j], weights[j-1]
			ids[j-1], ids[j] = ids[j], ids[j-1]
		}
	}
	var all, chosen float64
	for _, v := range logits {
		all += math.Exp(float64(v) - float64(top))
	}
	for _, v := range weights {
		chosen += math.Exp(float64(v) - float64(top))
	}
	if t.normalize {
		all = chosen
	}
	for j, v := range weights {
		weights[j] = float32(math.Exp(float64(v)-float64(top)) / all)
	}
}

// experts is kernels.ExpertsArgs in progress. The pairs of a row and one of
// its experts are sorted by expert, so that the rows of an expert lie together
// and its weights are read once.
//
//	x ─gather─► Out ─gate,up of each expert─► Hidden ─act─► Gated ─down─► Out ─sum─► dst
type experts struct {
	path    *path
	h, k    int
	ids     []int32
	weights []float32
	x, dst  []float32
	out     []float32 // [pairs, h]: rows of x by expert, then what the experts made of them
	at      []int32   // [pairs] where a pair is among the sorted
	starts  []int32   // [E+1] the sorted pairs of expert e are starts[e]..starts[e+1]
	active  []int32   // experts with pairs
}

func (o *ops) Experts(a kernels.ExpertsArgs) {
	rows, h, k := a.X.Shape.Dim(0), a.X.Shape.Dim(1), a.IDs.Shape.Dim(1)
	gateUp, down, s, e := a.GateUp.(*weight), a.Down.(*weight), a.Scratch, a.Experts
	pairs := rows * k
	if !(isMatrix(a.X, rows, h) && a.Dst.Shape == a.X.Shape && isMatrix(a.IDs, rows, k) && a.Weights.Shape == a.IDs.Shape &&
		gateUp.rows == e*kernels.ExpertRows(2*a.Inter) && gateUp.cols == h && down.rows == e*kernels.ExpertRows(h) && down.cols == a.Inter &&
		isMatrix(s.Hidden, pairs, 2*a.Inter) && isMatrix(s.Gated, pairs, a.Inter) && isMatrix(s.Out, pairs, h) &&
		s.Order.Shape.Elems() >= kernels.ExpertsOrder(rows, k, e)) {
		mismatch("Experts", a.Dst, a.X, a.IDs, a.Weights, s.Hidden, s.Gated, s.Out, s.Order)
	}
	if pairs == 0 {
		return
	}
	order := ints(s.Order)
	t := &o.experts
	*t = experts{
		path: o.path, h: h, k: k, ids: ints(a.IDs), weights: floats(a.Weights), x: floats(a.X), dst: floats(a.Dst), out: floats(s.Out),
		starts: order[:e+1], at: order[e+1:][:pairs], active: order[e+1+pairs:][:e],
	}
	t.sort(e)
	hidden, gated := floats(s.Hidden), floats(s.Gated)
	o.each(expertRows{do: (*experts).gather}, rows)
	o.byExpert(gateUp, 2*a.Inter, t.out, hidden)
	o.GatedAct(s.Gated, s.Hidden, a.Act)
	o.byExpert(down, h, gated, t.out)
	o.each(expertRows{do: (*experts).sum}, rows)
	*t = experts{} // keep no view of memory that may be freed
}

// sort is a counting sort: the pairs of an expert keep their order.
func (t *experts) sort(n int) {
	clear(t.starts)
	for _, e := range t.ids {
		t.starts[e+1]++
	}
	t.active = t.active[:0]
	for e := range n {
		if t.starts[e+1] > 0 {
			t.active = append(t.active, int32(e))
		}
		t.starts[e+1] += t.starts[e]
	}
	for p, e := range t.ids {
		t.at[p] = t.starts[e]
		t.starts[e]++
	}
	copy(t.starts[1:], t.starts[:n]) // each was moved to the next one's start
	t.starts[0] = 0
}

// expertRows does something for each row of x.
type expertRows struct {
	do func(t *experts, row int)
	t  *experts
}

func (r *expertRows) run(_ *worker, lo, hi int) {
	for i := lo; i < hi; i++ {
		r.do(r.t, i)
	}
}

func (o *ops) each(r expertRows, rows int) {
	r.t = &o.experts
	o.expertRows = r
	o.pool.run(&o.expertRows, rows, max(1, rowGrain/(r.t.k*r.t.h)))
	o.expertRows = expertRows{}
}

func (t *experts) gather(row int) {
	x := t.x[row*t.h:][:t.h]
	for _, at := range t.at[row*t.k:][:t.k] {
		copy(t.out[int(at)*t.h:][:t.h], x)
	}
}

// sum adds a row's results to dst, in the order of its ids.
func (t *experts) sum(row int) {
	dst := t.dst[row*t.h:][:t.h]
	for j := range t.k {
		p := row*t.k + j
		t.path.vec.mix(dst, t.out[int(t.at[p])*t.h:][:t.h], 1, t.weights[p])
	}
}

// byExpert multiplies each expert's rows of x by its part of a stack, all in
// one task: items are panels of the experts that have rows.
type byExpert struct {
	path   *path
	format int
	w      *weight
	rows   int // of an expert: outputs
	x      operand
	dst    []float32
	starts []int32
	active []int32
}

func (o *ops) byExpert(w *weight, rows int, x, dst []float32) {
	t := &o.expert
	format := o.path.mm.formatOf(w)
	*t = byExpert{path: o.path, format: format, w: w, rows: rows, x: o.operand(format, w.cols, x), dst: dst, starts: o.experts.starts, active: o.experts.active}
	n := len(t.active) * t.panels()
	grain := min(grainBytes/w.panelBytes(), n/(4*len(o.pool.workers)))
	o.pool.run(t, n, max(8, grain&^7))
	*t = byExpert{}
}

// panels of an expert.
func (t *byExpert) panels() int { return (t.rows + lanes - 1) / lanes }

func (t *byExpert) run(w *worker, lo, hi int) {
	n := t.panels()
	for lo < hi {
		e, from := int(t.active[lo/n]), lo%n
		to := min(n, from+hi-lo)
		first := int(t.starts[e])
		w.stacked = *t.w
		w.stacked.rows, w.stacked.first = t.rows, e*n
		w.product = matMul{
			path: t.path, format: t.format, w: &w.stacked, x: t.x.from(first), dst: t.dst[first*t.rows:], rows: int(t.starts[e+1]) - first,
		}
		w.product.panels(w, 0, w.product.rows, from, to)
		lo += to - from
	}
	w.stacked, w.product = weight{}, matMul{} // keep no view of memory that may be freed
}

// ints is the view's numbers.
func ints(t tensor.Tensor) []int32 {
	if t.DType != tensor.I32 {
		mismatch("operand", t)
	}
	if t.Shape.Elems() == 0 {
		return nil
	}
	m := mem(t)
	return unsafe.Slice((*int32)(unsafe.Pointer(&m[0])), len(m)/4)
}
