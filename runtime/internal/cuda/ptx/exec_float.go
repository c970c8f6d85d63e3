package ptx

import "math"

// finish32 applies .ftz and .sat to a single-precision result.
func finish32(f float32, ftz, sat bool) float32 {
	if ftz {
		f = ftz32(f)
	}
	if sat {
		if f != f {
			return 0
		}
		f = max(0, min(1, f))
	}
	return f
}

// buildFloat2 is add, sub, mul and div of every float type.
func buildFloat2(b *builder) exec {
	b.args(3)
	t, op, mode := b.s.typ(), b.s.op, b.rounding()
	if t.half() {
		return buildHalf2(b)
	}
	ftz, sat := b.s.has("ftz"), b.s.has("sat")
	d, x, y := b.dst(0, t), b.src(1, t), b.src(2, t)
	if t == tF64 {
		if mode != rndNearest {
			return nil
		}
		switch op {
		case "add":
			return opAdd[float64](d, x, y)
		case "sub":
			return opSub[float64](d, x, y)
		case "mul":
			return opMul[float64](d, x, y)
		}
		return map2(d, x, y, func(x, y float64) float64 { return x / y })
	}
	if t != tF32 {
		return nil
	}
	if !ftz && !sat && mode == rndNearest {
		switch op {
		case "add":
			return opAdd[float32](d, x, y)
		case "sub":
			return opSub[float32](d, x, y)
		case "mul":
			return opMul[float32](d, x, y)
		}
	}
	f := float2(op, mode)
	return map2(d, x, y, func(x, y float32) float32 {
		if ftz {
			x, y = ftz32(x), ftz32(y)
		}
		return finish32(f(x, y), ftz, sat)
	})
}

// float2 is a two-operand f32 operation with a rounding mode.
func float2(op string, mode rounding) func(x, y float32) float32 {
	if mode == rndNearest {
		switch op {
		case "add":
			return func(x, y float32) float32 { return x + y }
		case "sub":
			return func(x, y float32) float32 { return x - y }
		case "mul":
			return func(x, y float32) float32 { return x * y }
		}
		return func(x, y float32) float32 { return x / y }
	}
	switch op {
	case "add":
		return func(x, y float32) float32 { return round32(fmaOdd(1, float64(x), float64(y)), mode) }
	case "sub":
		return func(x, y float32) float32 { return round32(fmaOdd(1, float64(x), -float64(y)), mode) }
	case "mul":
		return func(x, y float32) float32 { return round32(float64(x)*float64(y), mode) }
	}
	return func(x, y float32) float32 {
		q := float64(x) / float64(y)
		// Rounded to odd by the remainder's sign, so that it can round again.
		if r := math.FMA(q, float64(y), -float64(x)); r != 0 && !math.IsNaN(r) && math.Float64bits(q)&1 == 0 {
			if (r > 0) == (float64(y) > 0) {
				q = math.Nextafter(q, math.Inf(-1))
			} else {
				q = math.Nextafter(q, math.Inf(1))
			}
		}
		return round32(q, mode)
	}
}

func round32(f float64, mode rounding) float32 { return float32(fmtF32.round(f, mode)) }

// buildFma is fma and the float forms of mad.
func buildFma(b *builder) exec {
	b.args(4)
	t, mode := b.s.typ(), b.rounding()
	if t.half() {
		return buildHalfFma(b)
	}
	ftz, sat := b.s.has("ftz"), b.s.has("sat")
	d, x, y, z := b.dst(0, t), b.src(1, t), b.src(2, t), b.src(3, t)
	switch {
	case t == tF64 && mode == rndNearest:
		return map3(d, x, y, z, math.FMA)
	case t != tF32:
		return nil
	case mode != rndNearest:
		return map3(d, x, y, z, func(x, y, z float32) float32 {
			if ftz {
				x, y, z = ftz32(x), ftz32(y), ftz32(z)
			}
			return finish32(round32(fmaOdd(float64(x), float64(y), float64(z)), mode), ftz, sat)
		})
	case ftz || sat:
		return map3(d, x, y, z, func(x, y, z float32) float32 {
			if ftz {
				x, y, z = ftz32(x), ftz32(y), ftz32(z)
			}
			return finish32(fma32(x, y, z), ftz, sat)
		})
	}
	return opFma32(d, x, y, z)
}

// buildFloatMinMax is min and max of floats: the number wins over NaN, unless
// .NaN asks for NaN. -0 counts as less than +0.
func buildFloatMinMax(b *builder) exec {
	t, larger, nan := b.s.typ(), b.s.op == "max", b.s.has("NaN")
	if b.s.has("xorsign") {
		return nil
	}
	if t.half() {
		b.args(3)
		if !b.s.has("ftz") {
			return b.halfMinMax(t, larger, nan)
		}
		return b.half2(t, func(x, y float64) float64 { return minMax(x, y, larger, nan) })
	}
	d, x, y := b.dst(0, t), b.src(1, t), b.src(2, t)
	ftz := b.s.has("ftz")
	if len(b.s.args) == 4 && t == tF32 {
		return map3(d, x, y, b.src(3, t), func(x, y, z float32) float32 {
			return finish32(minMax(minMax(x, y, larger, nan), z, larger, nan), ftz, false)
		})
	}
	b.args(3)
	if t == tF64 {
		return map2(d, x, y, func(x, y float64) float64 { return minMax(x, y, larger, nan) })
	}
	return map2(d, x, y, func(x, y float32) float32 {
		if ftz {
			x, y = ftz32(x), ftz32(y)
		}
		return minMax(x, y, larger, nan)
	})
}

func minMax[T float32 | float64](x, y T, larger, nan bool) T {
	switch {
	case x != x && y != y, nan && (x != x || y != y):
		return T(math.NaN())
	case x != x:
		return y
	case y != y:
		return x
	case larger:
		return max(x, y)
	}
	return min(x, y)
}

// buildFloatSign is abs and neg.
func buildFloatSign(b *builder) exec {
	b.args(2)
	t, abs := b.s.typ(), b.s.op == "abs"
	signs := map[typ]uint64{tF64: 1 << 63, tF32: 1 << 31, tF16: 0x8000, tBF16: 0x8000, tF16x2: 0x80008000, tBF16x2: 0x80008000}[t]
	if signs == 0 {
		return nil
	}
	d, x := b.dst(0, t), b.src(1, t)
	if t == tF64 {
		return map1(d, x, func(v uint64) uint64 {
			if abs {
				return v &^ signs
			}
			return v ^ signs
		})
	}
	ftz := b.s.has("ftz") && t == tF32
	return map1(d, x, func(v uint32) uint32 {
		if ftz {
			v = math.Float32bits(ftz32(math.Float32frombits(v)))
		}
		if abs {
			return v &^ uint32(signs)
		}
		return v ^ uint32(signs)
	})
}

// unaryFloat gives the mathematical function of an opcode. The approximate
// forms are computed more exactly than the hardware does; tanh, whose hardware
// result has 11 good bits, is cut to that so that no kernel relies on more.
func unaryFloat(op string) func(float64) float64 {
	switch op {
	case "rcp":
		return func(x float64) float64 { return 1 / x }
	case "sqrt":
		return math.Sqrt
	case "rsqrt":
		return func(x float64) float64 { return 1 / math.Sqrt(x) }
	case "ex2":
		return math.Exp2
	case "lg2":
		return math.Log2
	case "sin":
		return math.Sin
	case "cos":
		return math.Cos
	case "tanh":
		return func(x float64) float64 { return fmtTanh.round(math.Tanh(x), rndNearest) }
	}
	return nil
}

var fmtTanh = format{11, -126, math.MaxFloat32, true}

// buildUnaryFloat is rcp, sqrt, rsqrt and the approximate functions.
func buildUnaryFloat(b *builder) exec {
	b.args(2)
	t, f := b.s.typ(), unaryFloat(b.s.op)
	if t.half() {
		return b.half1(t, f)
	}
	d, x := b.dst(0, t), b.src(1, t)
	if t == tF64 {
		return map1(d, x, f)
	}
	if t != tF32 {
		return nil
	}
	mode, ftz := b.rounding(), b.s.has("ftz")
	if mode != rndNearest {
		odd := exactUnary(b.s.op)
		if odd == nil {
			return nil
		}
		return map1(d, x, func(v float32) float32 {
			if ftz {
				v = ftz32(v)
			}
			return finish32(round32(odd(float64(v)), mode), ftz, false)
		})
	}
	return map1(d, x, func(v float32) float32 {
		if ftz {
			v = ftz32(v)
		}
		return finish32(float32(f(float64(v))), ftz, false)
	})
}

// exactUnary is rcp and sqrt rounded to odd, for the directed roundings.
func exactUnary(op string) func(float64) float64 {
	fix := func(q, r float64, up bool) float64 {
		if r == 0 || math.IsNaN(r) || math.Float64bits(q)&1 == 1 {
			return q
		}
		if up {
			return math.Nextafter(q, math.Inf(1))
		}
		return math.Nextafter(q, math.Inf(-1))
	}
	switch op {
	case "rcp":
		return func(x float64) float64 {
			q := 1 / x
			r := math.FMA(q, x, -1) // positive: |q| is too large
			return fix(q, r, (r > 0) != (x > 0))
		}
	case "sqrt":
		return func(x float64) float64 {
			q := math.Sqrt(x)
			r := math.FMA(q, q, -x)
			return fix(q, r, r < 0)
		}
	}
	return nil
}

func buildCopysign(b *builder) exec {
	b.args(3)
	t := b.s.typ()
	d, x, y := b.dst(0, t), b.src(1, t), b.src(2, t)
	// The sign comes from the first operand.
	switch t {
	case tF64:
		return map2(d, x, y, func(x, y float64) float64 { return math.Copysign(y, x) })
	case tF32:
		return map2(d, x, y, func(x, y uint32) uint32 { return x&(1<<31) | y&^(1<<31) })
	}
	return nil
}

// buildTestp tests a float for a property.
func buildTestp(b *builder) exec {
	b.args(2)
	t := b.s.typ()
	d, _ := b.pred(b.arg(0))
	x := b.src(1, t)
	if len(b.s.mods) == 0 || t != tF32 && t != tF64 {
		return nil
	}
	tiny := 0x1p-126
	if t == tF64 {
		tiny = 0x1p-1022
	}
	test := map[string]func(float64) bool{
		"finite":     func(f float64) bool { return !math.IsInf(f, 0) && !math.IsNaN(f) },
		"infinite":   func(f float64) bool { return math.IsInf(f, 0) },
		"number":     func(f float64) bool { return !math.IsNaN(f) },
		"notanumber": math.IsNaN,
		"normal":     func(f float64) bool { return math.Abs(f) >= tiny && !math.IsInf(f, 0) },
		"subnormal":  func(f float64) bool { return f != 0 && math.Abs(f) < tiny },
	}[b.s.mods[0]]
	if test == nil {
		return nil
	}
	return func(w *warp, m uint32) {
		r := uint32(0)
		for left := m; left != 0; {
			l := lane(&left)
			var v float64
			if t == tF64 {
				v = view[float64](w, x)[l]
			} else {
				v = float64(view[float32](w, x)[l])
			}
			r |= bit(test(v)) << l
		}
		w.preds[d] = w.preds[d]&^m | r
	}
}
