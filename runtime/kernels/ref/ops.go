package ref

import (
	"encoding/binary"
	"math"

	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

type ops struct {
	batch *kernels.Batch
}

func (o *ops) Begin(b *kernels.Batch) { o.batch = b }

func (o *ops) Embed(dst tensor.Tensor, table kernels.Weight) {
	w := table.(*weight)
	must(isMatrix(dst, len(o.batch.Tokens), w.cols), "Embed", dst)
	v := make([]float64, w.cols)
	for t, tok := range o.batch.Tokens {
		w.row(v, int(tok))
		store(dst, t*w.cols, v)
	}
}

func (o *ops) RMSNorm(dst, x, w tensor.Tensor, eps float32) {
	rows, h := x.Shape.Dim(0), x.Shape.Dim(1)
	must(dst.Shape == x.Shape && w.Shape == tensor.Of(h), "RMSNorm", dst, x, w)
	v, g := make([]float64, h), all(w)
	for t := range rows {
		load(v, x, t*h)
		norm(v, g, eps)
		store(dst, t*h, v)
	}
}

// norm: v = v / √(mean(v²) + eps) · g.
func norm(v, g []float64, eps float32) {
	var sum float64
	for _, a := range v {
		sum += a * a
	}
	s := 1 / math.Sqrt(sum/float64(len(v))+float64(eps))
	for i := range v {
		v[i] *= s * g[i]
	}
}

func (o *ops) MatMul(a kernels.MatMulArgs) {
	w := a.W.(*weight)
	rows := a.X.Shape.Dim(0)
	must(isMatrix(a.Dst, rows, w.rows) && isMatrix(a.X, rows, w.cols) &&
		(a.Bias.IsNone() || a.Bias.Shape == tensor.Of(w.rows)), "MatMul", a.Dst, a.X, a.Bias)
	x, wn := all(a.X), make([]float64, w.cols)
	bias := make([]float64, w.rows)
	if !a.Bias.IsNone() {
		load(bias, a.Bias, 0)
	}
	var v [1]float64
	for n := range w.rows {
		w.row(wn, n)
		for t := range rows {
			var sum float64
			for k, b := range x[t*w.cols : (t+1)*w.cols] {
				sum += b * wn[k]
			}
			sum += bias[n]
			if a.Add {
				load(v[:], a.Dst, t*w.rows+n)
				sum += v[0]
			}
			v[0] = sum
			store(a.Dst, t*w.rows+n, v[:])
		}
	}
}

func (o *ops) GatedAct(dst, gateUp tensor.Tensor, act kernels.Activation) {
	rows, n := gateUp.Shape.Dim(0), gateUp.Shape.Dim(1)/2
	must(isMatrix(dst, rows, n) && isMatrix(gateUp, rows, 2*n), "GatedAct", dst, gateUp)
	v := make([]float64, 2*n)
	for t := range rows {
		load(v, gateUp, t*2*n)
		for i := range n {
			v[i] = activate(v[i], act) * v[n+i]
		}
		store(dst, t*n, v[:n])
	}
}

func activate(x float64, act kernels.Activation) float64 {
	switch act {
	case kernels.SiLU:
		return x / (1 + math.Exp(-x))
	case kernels.GELU:
		return x * 0.5 * math.Erfc(-x/math.Sqrt2)
	case kernels.GELUTanh:
		// ½(1 + tanh u) = 1/(1 + e^(−2u)), without the loss when u is far below 0.
		return x / (1 + math.Exp(-2*math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	}
	panic("ref: unknown activation")
}

func (o *ops) GatherRows(dst, src tensor.Tensor) {
	h := src.Shape.Dim(1)
	must(isMatrix(dst, len(o.batch.Logits), h) && dst.DType == src.DType, "GatherRows", dst, src)
	for r, t := range o.batch.Logits {
		copy(mem(dst.Rows(r, r+1)), mem(src.Rows(int(t), int(t)+1)))
	}
}

func (o *ops) Argmax(dst, logits tensor.Tensor) {
	rows, n := logits.Shape.Dim(0), logits.Shape.Dim(1)
	must(dst.Shape == tensor.Of(rows) && dst.DType == tensor.I32, "Argmax", dst, logits)
	v, out := make([]float64, n), mem(dst)
	for r := range rows {
		load(v, logits, r*n)
		best, at := math.Inf(-1), -1
		for i, a := range v {
			if math.IsNaN(a) || math.IsInf(a, 1) {
				at = -1
				break
			}
			if a > best {
				best, at = a, i
			}
		}
		binary.LittleEndian.PutUint32(out[4*r:], uint32(at))
	}
}

func (o *ops) Copy(dst, src tensor.Tensor) {
	mustSize("Copy", src.Bytes(), dst.Bytes())
	copy(mem(dst), mem(src))
}

func (o *ops) Digest(out *kernels.Digest, t tensor.Tensor) { *out = kernels.DigestOf(mem(t)) }
