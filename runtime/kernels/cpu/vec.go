package cpu

import (
	"math"
	"unsafe"

	"infer/runtime/kernels"
)

// vecSet is the loops over vectors of one instruction set. Each works on the
// first n elements, n a multiple of 8; the wrappers below do the rest. All
// add in an order that depends on n alone.
type vecSet struct {
	// sumSquares: Σ x².
	sumSquares func(x *float32, n int) float32
	// scaleMul: dst = x · s · w.
	scaleMul func(dst, x, w *float32, s float32, n int)
	// rotate: a, b = a·cos − b·sin, b·cos + a·sin.
	rotate func(a, b, cos, sin *float32, n int)
	// largest: the largest that is not NaN; −Inf if there is none.
	largest func(x *float32, n int) float32
	// find: the first index that equals v; n if none does.
	find func(x *float32, n int, v float32) int
	// expSum: x = e^(x−shift); their sum.
	expSum func(x *float32, n int, shift float32) float32
	// blend: acc = acc·a + part·b.
	blend func(acc, part *float32, a, b float32, n int)
	// gate: dst = g · up · σ(g·(a + b·g²)).
	gate func(dst, g, up *float32, a, b float32, n int)
	// gateErf: dst = g · up · Φ(g), Φ the normal distribution.
	gateErf func(dst, g, up *float32, n int)
}

// vecGo is the loops in Go, for any n.
var vecGo = vecSet{
	sumSquares: func(x *float32, n int) float32 {
		var s float32
		for _, v := range slice(x, n) {
			s += v * v
		}
		return s
	},
	scaleMul: func(dst, x, w *float32, s float32, n int) {
		d, v, g := slice(dst, n), slice(x, n), slice(w, n)
		for i := range d {
			d[i] = v[i] * s * g[i]
		}
	},
	rotate: func(a, b, cos, sin *float32, n int) {
		x, y, c, s := slice(a, n), slice(b, n), slice(cos, n), slice(sin, n)
		for i := range x {
			x[i], y[i] = x[i]*c[i]-y[i]*s[i], y[i]*c[i]+x[i]*s[i]
		}
	},
	largest: func(x *float32, n int) float32 {
		m := float32(math.Inf(-1))
		for _, v := range slice(x, n) {
			if v > m {
				m = v
			}
		}
		return m
	},
	find: func(x *float32, n int, v float32) int {
		for i, a := range slice(x, n) {
			if a == v {
				return i
			}
		}
		return n
	},
	expSum: func(x *float32, n int, shift float32) float32 {
		var s float32
		v := slice(x, n)
		for i := range v {
			v[i] = exp32(v[i] - shift)
			s += v[i]
		}
		return s
	},
	blend: func(acc, part *float32, a, b float32, n int) {
		x, y := slice(acc, n), slice(part, n)
		for i := range x {
			x[i] = x[i]*a + y[i]*b
		}
	},
	gate: func(dst, g, up *float32, a, b float32, n int) {
		d, x, u := slice(dst, n), slice(g, n), slice(up, n)
		for i := range d {
			t := a * x[i]
			if b != 0 {
				t = x[i] * (a + b*x[i]*x[i])
			}
			d[i] = x[i] * u[i] / (1 + exp32(-t))
		}
	},
	gateErf: func(dst, g, up *float32, n int) {
		d, u := slice(dst, n), slice(up, n)
		for i, x := range slice(g, n) {
			x := float64(x)
			d[i] = float32(x * 0.5 * math.Erfc(-x/math.Sqrt2) * float64(u[i]))
		}
	},
}

func exp32(x float32) float32 { return float32(math.Exp(float64(x))) }

func slice(x *float32, n int) []float32 { return unsafe.Slice(x, n) }

func data(x []float32) *float32 { return unsafe.SliceData(x) }

// The functions below take any length: the set's loop, then the rest in Go.

// norm: dst = x / √(mean(x²) + eps) · w.
func (v *vecSet) norm(dst, x, w []float32, eps float32) {
	n := len(x)
	m := n &^ 7
	s := v.sumSquares(data(x), m)
	if m < n {
		s += vecGo.sumSquares(data(x[m:]), n-m)
	}
	f := float32(1 / math.Sqrt(float64(s)/float64(n)+float64(eps)))
	v.scaleMul(data(dst), data(x), data(w), f, m)
	if m < n {
		vecGo.scaleMul(data(dst[m:]), data(x[m:]), data(w[m:]), f, n-m)
	}
}

func (v *vecSet) turn(a, b, cos, sin []float32) {
	n := len(a)
	m := n &^ 7
	v.rotate(data(a), data(b), data(cos), data(sin), m)
	if m < n {
		vecGo.rotate(data(a[m:]), data(b[m:]), data(cos[m:]), data(sin[m:]), n-m)
	}
}

func (v *vecSet) max(x []float32) float32 {
	n := len(x)
	m := n &^ 7
	a := v.largest(data(x), m)
	if m < n {
		a = max(a, vecGo.largest(data(x[m:]), n-m))
	}
	return a
}

// argmax is the lowest index of the largest element; −1 when some element is
// NaN or +Inf, or all are −Inf.
func (v *vecSet) argmax(x []float32) int {
	n := len(x)
	m := n &^ 7
	a := v.max(x)
	if math.IsInf(float64(a), 0) || v.anyNaN(x) {
		return -1
	}
	i := v.find(data(x), m, a)
	if i == m {
		i += vecGo.find(data(x[m:]), n-m, a)
	}
	return i
}

// anyNaN: a sum of squares may overflow to +Inf, but only a NaN makes it NaN.
func (v *vecSet) anyNaN(x []float32) bool {
	n := len(x)
	m := n &^ 7
	s := v.sumSquares(data(x), m)
	if m < n {
		s += vecGo.sumSquares(data(x[m:]), n-m)
	}
	return s != s
}

// exps: x = e^(x−shift); their sum.
func (v *vecSet) exps(x []float32, shift float32) float32 {
	n := len(x)
	m := n &^ 7
	s := v.expSum(data(x), m, shift)
	if m < n {
		s += vecGo.expSum(data(x[m:]), n-m, shift)
	}
	return s
}

func (v *vecSet) mix(acc, part []float32, a, b float32) {
	n := len(acc)
	m := n &^ 7
	v.blend(data(acc), data(part), a, b, m)
	if m < n {
		vecGo.blend(data(acc[m:]), data(part[m:]), a, b, n-m)
	}
}

func (v *vecSet) gated(dst, g, up []float32, act kernels.Activation) {
	a, b := float32(1), float32(0)
	switch act {
	case kernels.GELU:
		n := len(dst)
		m := n &^ 7
		v.gateErf(data(dst), data(g), data(up), m)
		if m < n {
			vecGo.gateErf(data(dst[m:]), data(g[m:]), data(up[m:]), n-m)
		}
		return
	case kernels.GELUTanh: // ½(1 + tanh u) = σ(2u)
		a = 2 * 0.7978845608028654 // 2 √(2/π)
		b = a * 0.044715
	}
	n := len(dst)
	m := n &^ 7
	v.gate(data(dst), data(g), data(up), a, b, m)
	if m < n {
		vecGo.gate(data(dst[m:]), data(g[m:]), data(up[m:]), a, b, n-m)
	}
}
