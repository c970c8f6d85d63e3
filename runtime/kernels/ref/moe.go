package ref

import (
	"encoding/binary"
	"math"
	"slices"

	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

var _ kernels.MoEOps = (*ops)(nil)

func (o *ops) Route(a kernels.RouteArgs) {
	rows, n, k := a.Logits.Shape.Dim(0), a.Logits.Shape.Dim(1), a.IDs.Shape.Dim(1)
	must(isMatrix(a.Logits, rows, n) && isMatrix(a.IDs, rows, k) && a.IDs.DType == tensor.I32 && a.Weights.Shape == a.IDs.Shape &&
		k >= 1 && k <= min(n, kernels.MaxChosen) && n <= kernels.MaxExperts, "Route", a.IDs, a.Weights, a.Logits)
	v, w, raw := make([]float64, n), make([]float64, k), mem(a.IDs)
	for t := range rows {
		load(v, a.Logits, t*n)
		ids := route(w, v, a.Normalize)
		for j, id := range ids {
			binary.LittleEndian.PutUint32(raw[4*(t*k+j):], uint32(id))
		}
		store(a.Weights, t*k, w)
	}
}

// route fills weights and gives the ids that they belong to.
func route(weights, logits []float64, normalize bool) []int {
	ids := make([]int, len(logits))
	top := math.Inf(-1)
	bad := false
	for i, v := range logits {
		ids[i] = i
		top = max(top, v) // NaN if any is
		bad = bad || math.IsNaN(v)
	}
	k := len(weights)
	if bad || math.IsInf(top, 0) {
		for j := range weights {
			weights[j] = math.NaN()
		}
		return ids[:k]
	}
	slices.SortStableFunc(ids, func(a, b int) int { // stable: the lower index first among equals
		switch {
		case logits[a] > logits[b]:
			return -1
		case logits[a] < logits[b]:
			return 1
		}
		return 0
	})
	ids = ids[:k]
	slices.Sort(ids)
	var all, chosen float64
	for _, v := range logits {
		all += math.Exp(v - top)
	}
	for j, id := range ids {
		weights[j] = math.Exp(logits[id]-top) / all
		chosen += weights[j]
	}
	for j := range weights {
		if normalize {
			weights[j] /= chosen
		}
	}
	return ids
}

func (o *ops) Experts(a kernels.ExpertsArgs) {
	rows, h, k := a.X.Shape.Dim(0), a.X.Shape.Dim(1), a.IDs.Shape.Dim(1)
	gateUp, down := a.GateUp.(*weight), a.Down.(*weight)
	s := a.Scratch
	must(isMatrix(a.X, rows, h) && a.Dst.Shape == a.X.Shape && isMatrix(a.IDs, rows, k) && a.Weights.Shape == a.IDs.Shape &&
		gateUp.rows == a.Experts*kernels.ExpertRows(2*a.Inter) && gateUp.cols == h &&
		down.rows == a.Experts*kernels.ExpertRows(h) && down.cols == a.Inter &&
		isMatrix(s.Hidden, rows*k, 2*a.Inter) && isMatrix(s.Gated, rows*k, a.Inter) && isMatrix(s.Out, rows*k, h) &&
		s.Order.Shape.Elems() >= kernels.ExpertsOrder(rows, k, a.Experts),
		"Experts", a.Dst, a.X, a.IDs, a.Weights, s.Hidden, s.Gated, s.Out, s.Order)
	x, dst, sum := make([]float64, h), make([]float64, h), make([]float64, h)
	hidden, w, ids := make([]float64, 2*a.Inter), make([]float64, k), mem(a.IDs)
	row := make([]float64, max(h, a.Inter))
	for t := range rows {
		load(x, a.X, t*h)
		load(dst, a.Dst, t*h)
		load(w, a.Weights, t*k)
		clear(sum)
		for j := range k {
			e := int(binary.LittleEndian.Uint32(ids[4*(t*k+j):]))
			for n := range hidden {
				gateUp.row(row[:h], e*kernels.ExpertRows(2*a.Inter)+n)
				hidden[n] = dot(row[:h], x)
			}
			for i := range a.Inter {
				hidden[i] = activate(hidden[i], a.Act) * hidden[a.Inter+i]
			}
			for n := range sum {
				down.row(row[:a.Inter], e*kernels.ExpertRows(h)+n)
				sum[n] += w[j] * dot(row[:a.Inter], hidden[:a.Inter])
			}
		}
		for n := range dst {
			dst[n] += sum[n]
		}
		store(a.Dst, t*h, dst)
	}
}

func dot(a, b []float64) float64 {
	var sum float64
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}
