package ref

import (
	"math"

	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

func (o *ops) Rotary(a kernels.RotaryArgs) {
	h, rows := a.Heads, len(o.batch.Positions)
	half := a.Cos.Shape.Dim(1)
	must(isMatrix(a.QKV, rows, h.Cols()) && a.Sin.Shape == a.Cos.Shape && 2*half <= h.Dim &&
		isPages(a.KV.K, h) && a.KV.V.Shape == a.KV.K.Shape, "Rotary", a.QKV, a.Cos, a.Sin, a.KV.K, a.KV.V)
	v := make([]float64, h.Dim)
	cos, sin := make([]float64, half), make([]float64, half)
	for t := range rows {
		load(cos, a.Cos, int(o.batch.Positions[t])*half)
		load(sin, a.Sin, int(o.batch.Positions[t])*half)
		for i := range h.Q + h.KV {
			at := t*h.Cols() + i*h.Dim
			load(v, a.QKV, at)
			w := a.QNorm
			if i >= h.Q {
				w = a.KNorm
			}
			if !w.IsNone() {
				norm(v, all(w), a.Eps)
			}
			for j := range half {
				x, y := v[j], v[j+half]
				v[j] = x*cos[j] - y*sin[j]
				v[j+half] = y*cos[j] + x*sin[j]
			}
			store(a.QKV, at, v)
		}
		for i := range h.KV { // the pages get what QKV now holds
			to := pageAt(int(o.batch.Slots[t]), i, h)
			load(v, a.QKV, t*h.Cols()+(h.Q+i)*h.Dim)
			store(a.KV.K, to, v)
			load(v, a.QKV, t*h.Cols()+(h.Q+h.KV+i)*h.Dim)
			store(a.KV.V, to, v)
		}
	}
}

func (o *ops) Attention(a kernels.AttentionArgs) {
	h, b := a.Heads, o.batch
	rows := len(b.Positions)
	must(isMatrix(a.Dst, rows, h.Q*h.Dim) && isMatrix(a.QKV, rows, h.Cols()) && h.Q%h.KV == 0 &&
		isPages(a.KV.K, h) && a.KV.V.Shape == a.KV.K.Shape, "Attention", a.Dst, a.QKV, a.KV.K, a.KV.V)
	q, out := make([]float64, h.Dim), make([]float64, h.Dim)
	for s, table := range b.BlockTables {
		lo, hi := int(b.Starts[s]), int(b.Starts[s+1])
		for head := range h.KV {
			// The sequence's K and V of this head, from the first position that
			// is looked at.
			first := 0
			if a.Window > 0 {
				first = max(0, int(b.Positions[lo])-a.Window+1)
			}
			k := gather(a.KV.K, h, table, head, first, int(b.Positions[hi-1])+1)
			v := gather(a.KV.V, h, table, head, first, int(b.Positions[hi-1])+1)
			for t := lo; t < hi; t++ {
				to := int(b.Positions[t]) + 1
				from := 0
				if a.Window > 0 {
					from = max(0, to-a.Window)
				}
				for i := head * (h.Q / h.KV); i < (head+1)*(h.Q/h.KV); i++ {
					load(q, a.QKV, t*h.Cols()+i*h.Dim)
					attend(out, q, k[(from-first)*h.Dim:(to-first)*h.Dim], v[(from-first)*h.Dim:], float64(a.Scale))
					store(a.Dst, (t*h.Q+i)*h.Dim, out)
				}
			}
		}
	}
}

// attend: out = softmax(scale · q·k) · v; k and v hold one position after the
// other.
func attend(out, q, k, v []float64, scale float64) {
	n := len(q)
	p := make([]float64, len(k)/n)
	top := math.Inf(-1)
	for j := range p {
		for d, x := range k[j*n:][:n] {
			p[j] += q[d] * x
		}
		p[j] *= scale
		top = max(top, p[j])
	}
	var sum float64
	clear(out)
	for j := range p {
		e := math.Exp(p[j] - top)
		sum += e
		for d, x := range v[j*n:][:n] {
			out[d] += e * x
		}
	}
	for d := range out {
		out[d] /= sum
	}
}

// gather reads positions from..to of a sequence's K or V of one head.
func gather(t tensor.Tensor, h kernels.Heads, table []int32, head, from, to int) []float64 {
	v := make([]float64, (to-from)*h.Dim)
	for p := from; p < to; p++ {
		slot := int(table[p/kernels.BlockSize])*kernels.BlockSize + p%kernels.BlockSize
		load(v[(p-from)*h.Dim:][:h.Dim], t, pageAt(slot, head, h))
	}
	return v
}

// isPages tells whether t has the shape of K or V pages for these heads.
func isPages(t tensor.Tensor, h kernels.Heads) bool {
	return t.Shape == tensor.Of(t.Shape.Dim(0), h.KV, kernels.BlockSize, h.Dim)
}

// pageAt is the first element of a K/V head at a slot.
func pageAt(slot, head int, h kernels.Heads) int {
	block, off := slot/kernels.BlockSize, slot%kernels.BlockSize
	return ((block*h.KV+head)*kernels.BlockSize + off) * h.Dim
}
