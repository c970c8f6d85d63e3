package ptx

import "math"

// halfCodec reads and writes one 16-bit float. Arithmetic is done in float64,
// where sums and products of halves are exact or can be rounded to odd, and
// rounded once.
type halfCodec struct {
	widen  func(uint32) float32
	narrow func(float64) uint32
}

func codecOf(t typ) halfCodec {
	if t == tBF16 || t == tBF16x2 {
		return halfCodec{bf16ToF32, func(f float64) uint32 { return uint32(bf16FromFloat(f, rndNearest)) }}
	}
	return halfCodec{f16ToF32, func(f float64) uint32 { return uint32(f16FromFloat(f, rndNearest)) }}
}

// halves says how many values a register of the type holds.
func halves(t typ) int {
	if t == tF16x2 || t == tBF16x2 {
		return 2
	}
	return 1
}

// finishHalf applies .ftz (f16 only), .sat and .relu.
func (b *builder) finishHalf(t typ) func(float64) float64 {
	ftz, sat, relu := b.s.has("ftz") && (t == tF16 || t == tF16x2), b.s.has("sat"), b.s.has("relu")
	if !ftz && !sat && !relu {
		return func(f float64) float64 { return f }
	}
	return func(f float64) float64 {
		if ftz && math.Abs(f) < 0x1p-14 {
			f = math.Copysign(0, f)
		}
		switch {
		case sat && f != f:
			return 0
		case sat:
			return max(0, min(1, f))
		case relu && f < 0:
			return 0
		}
		return f
	}
}

func (b *builder) half1(t typ, f func(float64) float64) exec {
	b.args(2)
	c, n, fin := codecOf(t), halves(t), b.finishHalf(t)
	return map1(b.dst(0, t), b.src(1, t), func(x uint32) uint32 {
		r := uint32(0)
		for i := range n {
			s := 16 * i
			r |= c.narrow(fin(f(float64(c.widen(x>>s&0xffff))))) << s
		}
		return r
	})
}

func (b *builder) half2(t typ, f func(x, y float64) float64) exec {
	c, n, fin := codecOf(t), halves(t), b.finishHalf(t)
	return map2(b.dst(0, t), b.src(1, t), b.src(2, t), func(x, y uint32) uint32 {
		r := uint32(0)
		for i := range n {
			s := 16 * i
			r |= c.narrow(fin(f(float64(c.widen(x>>s&0xffff)), float64(c.widen(y>>s&0xffff))))) << s
		}
		return r
	})
}

// halfMinMax is min and max without arithmetic: the bits of halves, their sign
// turned, are in the order of their values.
func (b *builder) halfMinMax(t typ, larger, nan bool) exec {
	inf := uint32(0x7c00)
	if t == tBF16 || t == tBF16x2 {
		inf = 0x7f80
	}
	number := func(x, y uint32) uint32 { // where x or y is NaN
		xn, yn := x&0x7fff > inf, y&0x7fff > inf
		switch {
		case xn && yn, nan:
			return 0x7fff
		case xn:
			return y
		}
		return x
	}
	turn := uint32(0) // so that the lesser is always the one to take
	if larger {
		turn = math.MaxUint32
	}
	d, a, c, two := b.dst(0, t), b.src(1, t), b.src(2, t), halves(t) == 2
	return func(w *warp, m uint32) {
		z, x, y := view[uint32](w, d), view[uint32](w, a), view[uint32](w, c)
		for m != 0 {
			l := lane(&m)
			u, v := x[l], y[l]
			r := u
			if u&0x7fff > inf || v&0x7fff > inf {
				r = number(u&0xffff, v&0xffff)
			} else if halfOrder(v<<16)^turn < halfOrder(u<<16)^turn {
				r = v
			}
			r &= 0xffff
			if two {
				h := u
				if u>>16&0x7fff > inf || v>>16&0x7fff > inf {
					h = number(u>>16, v>>16) << 16
				} else if halfOrder(v)^turn < halfOrder(u)^turn {
					h = v
				}
				r |= h & 0xffff0000
			}
			z[l] = r
		}
	}
}

// halfOrder numbers the 16-bit floats in the upper half of a register from the
// least to the greatest. The lower half does not matter.
func halfOrder(h uint32) uint32 {
	h &= 0xffff0000
	return h ^ (uint32(int32(h)>>31) | 1<<31)
}

// buildHalf2 is add, sub and mul.
func buildHalf2(b *builder) exec {
	switch b.s.op {
	case "add":
		return b.half2(b.s.typ(), func(x, y float64) float64 { return fmaOdd(1, x, y) })
	case "sub":
		return b.half2(b.s.typ(), func(x, y float64) float64 { return fmaOdd(1, x, -y) })
	case "mul":
		return b.half2(b.s.typ(), func(x, y float64) float64 { return x * y })
	}
	return nil
}

func buildHalfFma(b *builder) exec {
	t := b.s.typ()
	c, n, fin := codecOf(t), halves(t), b.finishHalf(t)
	return map3(b.dst(0, t), b.src(1, t), b.src(2, t), b.src(3, t), func(x, y, z uint32) uint32 {
		r := uint32(0)
		for i := range n {
			s := 16 * i
			v := fmaOdd(float64(c.widen(x>>s&0xffff)), float64(c.widen(y>>s&0xffff)), float64(c.widen(z>>s&0xffff)))
			r |= c.narrow(fin(v)) << s
		}
		return r
	})
}
