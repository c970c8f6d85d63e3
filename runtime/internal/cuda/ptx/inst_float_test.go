package ptx

import (
	"math"
	"math/big"
	"testing"
)

// bigRound computes a*b+c without error and rounds once.
func bigRound(a, b, c float64, mode big.RoundingMode, prec uint) (float64, bool) {
	for _, v := range []float64{a, b, c} {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return 0, false
		}
	}
	x := new(big.Float).SetPrec(2000).SetFloat64(a)
	x.Mul(x, new(big.Float).SetFloat64(b))
	x.Add(x, new(big.Float).SetFloat64(c))
	if prec == 24 && mode == big.ToNearestEven {
		f, _ := x.Float32() // knows subnormal numbers
		return float64(f), x.Sign() != 0
	}
	x.SetMode(mode).SetPrec(prec)
	f, _ := x.Float64()
	tiny := x.Sign() == 0 || math.Abs(f) < 0x1p-126 || math.Abs(f) > math.MaxFloat32
	return f, !tiny
}

// rounded gives a reference for a*b+c in single precision; where the exact
// value says nothing (NaN, infinities, zero's sign, the far ends of a directed
// rounding) it falls back on ordinary arithmetic.
func rounded(mode big.RoundingMode, f func(a, b, c float64) (x, y, z float64)) func(a, b, c uint64) uint64 {
	return func(a, b, c uint64) uint64 {
		x, y, z := f(float64(f32of(a)), float64(f32of(b)), float64(f32of(c)))
		if v, ok := bigRound(x, y, z, mode, 24); ok {
			return of32(float32(v))
		}
		return of32(float32(x*y + z))
	}
}

func TestFloatArithmetic(t *testing.T) {
	near, zero, down, up := big.ToNearestEven, big.ToZero, big.ToNegativeInf, big.ToPositiveInf
	add := func(a, b, _ float64) (float64, float64, float64) { return 1, a, b }
	sub := func(a, b, _ float64) (float64, float64, float64) { return 1, a, -b }
	mul := func(a, b, _ float64) (float64, float64, float64) { return a, b, math.Copysign(0, a*b) }
	fma := func(a, b, c float64) (float64, float64, float64) { return a, b, c }
	flush := func(v uint64) uint64 { return of32(ftzRef(f32of(v))) }
	check(t, []instCase{
		{"add.f32 %d, %a, %b;", "f32", rounded(near, add)},
		{"add.rn.f32 %d, %a, %b;", "f32", rounded(near, add)},
		{"sub.f32 %d, %a, %b;", "f32", rounded(near, sub)},
		{"mul.f32 %d, %a, %b;", "f32", rounded(near, mul)},
		{"fma.rn.f32 %d, %a, %b, %c;", "f32", rounded(near, fma)},
		{"mad.rn.f32 %d, %a, %b, %c;", "f32", rounded(near, fma)},
		{"div.rn.f32 %d, %a, %b;", "f32", func(a, b, _ uint64) uint64 { return of32(f32of(a) / f32of(b)) }},
		{"div.full.f32 %d, %a, %b;", "f32", func(a, b, _ uint64) uint64 { return of32(f32of(a) / f32of(b)) }},
		{"sqrt.rn.f32 %d, %a;", "f32", func(a, _, _ uint64) uint64 { return of32(float32(math.Sqrt(float64(f32of(a))))) }},
		{"rcp.rn.f32 %d, %a;", "f32", func(a, _, _ uint64) uint64 { return of32(1 / f32of(a)) }},
		{"neg.f32 %d, %a;", "f32", func(a, _, _ uint64) uint64 { return u32of(a) ^ 0x80000000 }},
		{"abs.f32 %d, %a;", "f32", func(a, _, _ uint64) uint64 { return u32of(a) &^ 0x80000000 }},
		{"min.f32 %d, %a, %b;", "f32", func(a, b, _ uint64) uint64 {
			x, y := float64(f32of(a)), float64(f32of(b))
			switch {
			case x != x:
				return u32of(b)
			case y != y:
				return u32of(a)
			}
			return of32(float32(math.Min(x, y)))
		}},
		{"max.NaN.f32 %d, %a, %b;", "f32", func(a, b, _ uint64) uint64 {
			return of32(float32(math.Max(float64(f32of(a)), float64(f32of(b)))))
		}},
		{"add.sat.f32 %d, %a, %b;", "f32", func(a, b, _ uint64) uint64 {
			s := f32of(a) + f32of(b)
			if !(s > 0) {
				return 0
			}
			return of32(min(s, 1))
		}},
		{"add.ftz.f32 %d, %a, %b;", "f32", func(a, b, _ uint64) uint64 { return flush(of32(f32of(flush(a)) + f32of(flush(b)))) }},
		{"fma.rn.ftz.f32 %d, %a, %b, %c;", "f32", func(a, b, c uint64) uint64 {
			return flush(rounded(near, fma)(flush(a), flush(b), flush(c)))
		}},
		{"add.f64 %D, %A, %B;", "f64", func(a, b, _ uint64) uint64 { return math.Float64bits(f64of(a) + f64of(b)) }},
		{"fma.rn.f64 %D, %A, %B, %C;", "f64", func(a, b, c uint64) uint64 { return math.Float64bits(math.FMA(f64of(a), f64of(b), f64of(c))) }},
		{"div.rn.f64 %D, %A, %B;", "f64", func(a, b, _ uint64) uint64 { return math.Float64bits(f64of(a) / f64of(b)) }},
		{"sqrt.rn.f64 %D, %A;", "f64", func(a, _, _ uint64) uint64 { return math.Float64bits(math.Sqrt(f64of(a))) }},
	})
	// Directed roundings: where the result is an ordinary number.
	for _, m := range []struct {
		name string
		mode big.RoundingMode
	}{{"rz", zero}, {"rm", down}, {"rp", up}} {
		for _, op := range []struct {
			inst string
			f    func(a, b, c float64) (float64, float64, float64)
		}{
			{"add." + m.name + ".f32 %d, %a, %b;", add},
			{"mul." + m.name + ".f32 %d, %a, %b;", mul},
			{"fma." + m.name + ".f32 %d, %a, %b, %c;", fma},
		} {
			a, b, c := operands("f32")
			for i, g := range evaluate(t, op.inst, a, b, c) {
				x, y, z := op.f(float64(f32of(a[i])), float64(f32of(b[i])), float64(f32of(c[i])))
				if want, ok := bigRound(x, y, z, m.mode, 24); ok && float64(f32of(g)) != want {
					t.Errorf("%s of %g, %g, %g is %g, want %g", op.inst, f32of(a[i]), f32of(b[i]), f32of(c[i]), f32of(g), want)
				}
			}
		}
		a, b, c := operands("f32")
		for i, g := range evaluate(t, "div."+m.name+".f32 %d, %a, %b;", a, b, c) {
			x, y := f32of(a[i]), f32of(b[i])
			if x == 0 || y == 0 || math.IsNaN(float64(x*y)) || math.IsInf(float64(x), 0) || math.IsInf(float64(y), 0) {
				continue
			}
			q := new(big.Float).SetPrec(24).SetMode(m.mode).Quo(big.NewFloat(float64(x)), big.NewFloat(float64(y)))
			if want, _ := q.Float64(); math.Abs(want) > 0x1p-126 && math.Abs(want) < math.MaxFloat32 && float64(f32of(g)) != want {
				t.Errorf("div.%s of %g, %g is %g, want %g", m.name, x, y, f32of(g), want)
			}
		}
		for i, g := range evaluate(t, "sqrt."+m.name+".f32 %d, %a;", a, b, c) {
			x := f32of(a[i])
			if !(x > 0) || math.IsInf(float64(x), 0) {
				continue
			}
			r := new(big.Float).SetPrec(200).Sqrt(big.NewFloat(float64(x)))
			if want, _ := r.SetMode(m.mode).SetPrec(24).Float64(); float64(f32of(g)) != want {
				t.Errorf("sqrt.%s of %g is %g, want %g", m.name, x, f32of(g), want)
			}
		}
	}
}

func ftzRef(f float32) float32 {
	if math.Abs(float64(f)) < 0x1p-126 {
		return float32(math.Copysign(0, float64(f)))
	}
	return f
}

// TestApproximations holds the approximate functions to the errors the PTX
// manual documents for the hardware.
func TestApproximations(t *testing.T) {
	a, b, c := operands("f32")
	for i := range a { // a range on which all are defined
		if f := f32of(a[i]); !(math.Abs(float64(f)) < 1e6) || math.Abs(float64(f)) < 1e-6 {
			a[i] = of32(float32(i)/16 + 0.03)
		}
	}
	for _, k := range []struct {
		inst     string
		f        func(float64) float64
		rel, abs float64
	}{
		{"rcp.approx.f32 %d, %a;", func(x float64) float64 { return 1 / x }, 0x1p-23, 0},
		{"rsqrt.approx.f32 %d, %a;", func(x float64) float64 { return 1 / math.Sqrt(x) }, 0x1p-22, 0},
		{"sqrt.approx.f32 %d, %a;", math.Sqrt, 0x1p-23, 0},
		{"ex2.approx.ftz.f32 %d, %a;", math.Exp2, 0x1p-22, 0},
		{"lg2.approx.f32 %d, %a;", math.Log2, 0x1p-22, 0x1p-22},
		{"sin.approx.f32 %d, %a;", math.Sin, 0, 0x1p-20},
		{"cos.approx.f32 %d, %a;", math.Cos, 0, 0x1p-20},
		{"tanh.approx.f32 %d, %a;", math.Tanh, 0x1p-11, 0},
	} {
		exact := 0
		for i, g := range evaluate(t, k.inst, a, b, c) {
			x, got := float64(f32of(a[i])), float64(f32of(g))
			want := k.f(x)
			switch {
			case math.IsNaN(want):
				if !math.IsNaN(got) {
					t.Errorf("%s of %g is %g, want NaN", k.inst, x, got)
				}
			case math.Abs(want) > math.MaxFloat32, math.Abs(want) < 0x1p-126: // out of range
			case math.Abs(got-want) > k.abs+k.rel*math.Abs(want):
				t.Errorf("%s of %g is %g, want %g", k.inst, x, got, want)
			case got == float64(float32(want)):
				exact++
			}
		}
		if k.rel == 0x1p-11 && exact > len(a)*3/4 {
			t.Errorf("%s is exact in %d of %d cases: a kernel could rely on more than the hardware gives", k.inst, exact, len(a))
		}
	}
}

// half8 decodes a half or bfloat16 by its definition.
func halfRef(kind string, v uint64) float64 {
	if kind == "f16" {
		return f16ref(v & 0xffff)
	}
	return float64(math.Float32frombits(uint32(v) << 16))
}

// nearestHalf finds the 16-bit float nearest to an exact value by search over
// all of them, ties to the even one.
func nearestHalf(kind string, exact *big.Float) uint64 {
	sign := uint64(0)
	if exact.Signbit() {
		sign = 0x8000
	}
	mag := new(big.Float).Abs(exact)
	top := uint64(0x7c00)
	if kind == "bf16" {
		top = 0x7f80
	}
	lo, hi := uint64(0), top // value(lo) <= mag; hi is above or infinity
	for lo+1 < hi {
		mid := (lo + hi) / 2
		if big.NewFloat(halfRef(kind, mid)).Cmp(mag) <= 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	below := big.NewFloat(halfRef(kind, lo))
	gap := new(big.Float).SetPrec(200)
	if hi == top { // as far as the next value would be
		gap.SetFloat64(halfRef(kind, lo) - halfRef(kind, lo-1))
	} else {
		gap.SetFloat64(halfRef(kind, hi) - halfRef(kind, lo))
	}
	rest := new(big.Float).SetPrec(2000).Sub(mag, below)
	switch rest.Mul(rest, big.NewFloat(2)).Cmp(gap) {
	case 1:
		return sign | hi
	case 0:
		return sign | lo + lo&1
	}
	return sign | lo
}

func TestHalfArithmetic(t *testing.T) {
	for _, kind := range []string{"f16", "bf16"} {
		ref := func(f func(a, b, c float64) (x, y, z float64)) func(a, b, c uint64) uint64 {
			return func(a, b, c uint64) uint64 {
				x, y, z := f(halfRef(kind, a), halfRef(kind, b), halfRef(kind, c))
				v := x*y + z
				if math.IsNaN(v) {
					return 0x7fff
				}
				if math.IsInf(x, 0) || math.IsInf(y, 0) || math.IsInf(z, 0) {
					return nearestHalf(kind, big.NewFloat(math.Copysign(1e300, v)))
				}
				e := new(big.Float).SetPrec(2000).SetFloat64(x)
				e.Mul(e, new(big.Float).SetFloat64(y))
				e.Add(e, new(big.Float).SetFloat64(z))
				if e.Sign() == 0 { // the sign of zero is the ordinary sum's
					e.SetFloat64(v)
				}
				return nearestHalf(kind, e)
			}
		}
		check(t, []instCase{
			{"add.rn." + kind + " %w, %x, %y;", kind, ref(func(a, b, _ float64) (float64, float64, float64) { return 1, a, b })},
			{"sub.rn." + kind + " %w, %x, %y;", kind, ref(func(a, b, _ float64) (float64, float64, float64) { return 1, a, -b })},
			{"mul.rn." + kind + " %w, %x, %y;", kind, ref(func(a, b, _ float64) (float64, float64, float64) { return a, b, math.Copysign(0, a*b) })},
			{"fma.rn." + kind + " %w, %x, %y, %z;", kind, ref(func(a, b, c float64) (float64, float64, float64) { return a, b, c })},
			{"neg." + kind + " %w, %x;", kind, func(a, _, _ uint64) uint64 { return a&0xffff ^ 0x8000 }},
			{"abs." + kind + " %w, %x;", kind, func(a, _, _ uint64) uint64 { return a & 0x7fff }},
			{"max." + kind + " %w, %x, %y;", kind, func(a, b, _ uint64) uint64 {
				x, y := halfRef(kind, a), halfRef(kind, b)
				switch {
				case x != x:
					return b & 0xffff
				case y != y, x > y, x == y && a&0x8000 == 0:
					return a & 0xffff
				}
				return b & 0xffff
			}},
			{"fma.rn.relu." + kind + " %w, %x, %x, %y;", kind, func(a, b, _ uint64) uint64 {
				v := ref(func(a, b, _ float64) (float64, float64, float64) { return a, a, b })(a, b, 0)
				if f := halfRef(kind, v); f < 0 {
					return 0
				}
				return v
			}},
			// Both halves of a pair.
			{
				"mov.b32 %a, {%x, %y}; mov.b32 %b, {%y, %z}; add.rn." + kind + "x2 %a, %a, %b; mov.b32 {%w, %x}, %a;", kind,
				ref(func(a, b, _ float64) (float64, float64, float64) { return 1, a, b }),
			},
			{
				"mov.b32 %a, {%x, %y}; mov.b32 %b, {%y, %z}; mul.rn." + kind + "x2 %a, %a, %b; mov.b32 {%x, %w}, %a;", kind,
				ref(func(_, b, c float64) (float64, float64, float64) { return b, c, math.Copysign(0, b*c) }),
			},
		})

	}
}
