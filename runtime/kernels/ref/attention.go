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
	q, kv, out := make([]float64, h.Dim), make([]float64, h.Dim), make([]float64, h.Dim)
	for s, table := range b.BlockTables {
		for t := int(b.Starts[s]); t < int(b.Starts[s+1]); t++ {
			pos := int(b.Positions[t])
			first := 0
			if a.Window > 0 {
				first = max(0, pos-a.Window+1)
			}
			p := make([]float64, pos+1-first)
			for i := range h.Q {
				load(q, a.QKV, t*h.Cols()+i*h.Dim)
				slot := func(j int) int { // element of position first+j in the pages
					at := first + j
					return pageAt(int(table[at/kernels.BlockSize])*kernels.BlockSize+at%kernels.BlockSize, i/(h.Q/h.KV), h)
				}
				top := math.Inf(-1)
				for j := range p {
					load(kv, a.KV.K, slot(j))
					p[j] = 0
					for d := range q {
						p[j] += q[d] * kv[d]
					}
					p[j] *= float64(a.Scale)
					top = max(top, p[j])
				}
				var sum float64
				clear(out)
				for j := range p {
					e := math.Exp(p[j] - top)
					sum += e
					load(kv, a.KV.V, slot(j))
					for d := range out {
						out[d] += e * kv[d]
					}
				}
				for d := range out {
					out[d] /= sum
				}
				store(a.Dst, (t*h.Q+i)*h.Dim, out)
			}
		}
	}
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
