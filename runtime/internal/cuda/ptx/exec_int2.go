package ptx

// Integer division by zero is undefined in PTX; the hardware gives all ones,
// and the dividend as the remainder.

func buildDiv(b *builder) exec {
	b.args(3)
	t := b.s.typ()
	if t.float() {
		return buildFloat2(b)
	}
	if t.signed() {
		return b.int2(t, func(x, y uint32) uint32 {
			if y == 0 {
				return allLanes
			}
			return uint32(int64(int32(x)) / int64(int32(y)))
		}, func(x, y uint64) uint64 {
			switch y {
			case 0:
				return 1<<64 - 1
			case 1<<64 - 1:
				return -x
			}
			return uint64(int64(x) / int64(y))
		})
	}
	return b.int2(t, func(x, y uint32) uint32 {
		if y == 0 {
			return allLanes
		}
		return x / y
	}, func(x, y uint64) uint64 {
		if y == 0 {
			return 1<<64 - 1
		}
		return x / y
	})
}

func buildRem(b *builder) exec {
	b.args(3)
	t := b.s.typ()
	if t.signed() {
		return b.int2(t, func(x, y uint32) uint32 {
			if y == 0 {
				return x
			}
			return uint32(int64(int32(x)) % int64(int32(y)))
		}, func(x, y uint64) uint64 {
			switch y {
			case 0:
				return x
			case 1<<64 - 1:
				return 0
			}
			return uint64(int64(x) % int64(y))
		})
	}
	return b.int2(t, func(x, y uint32) uint32 {
		if y == 0 {
			return x
		}
		return x % y
	}, func(x, y uint64) uint64 {
		if y == 0 {
			return x
		}
		return x % y
	})
}

func buildMinMax(b *builder) exec {
	t, isMax := b.s.typ(), b.s.op == "max"
	if t.float() {
		return buildFloatMinMax(b)
	}
	b.args(3)
	if t == tS16x2 || t == tU16x2 {
		f := func(x, y uint32) uint32 { return pick(uint32(uint16(x)), uint32(uint16(y)), isMax) }
		if t == tS16x2 {
			f = func(x, y uint32) uint32 { return uint32(uint16(pick(int32(int16(x)), int32(int16(y)), isMax))) }
		}
		return map2(b.dst(0, t), b.src(1, t), b.src(2, t), func(x, y uint32) uint32 { return f(x, y) | f(x>>16, y>>16)<<16 })
	}
	if t.signed() {
		return b.int2(t, func(x, y uint32) uint32 { return uint32(pick(int32(x), int32(y), isMax)) },
			func(x, y uint64) uint64 { return uint64(pick(int64(x), int64(y), isMax)) })
	}
	return b.int2(t, func(x, y uint32) uint32 { return pick(x, y, isMax) }, func(x, y uint64) uint64 { return pick(x, y, isMax) })
}

func pick[T integer](x, y T, larger bool) T {
	if larger {
		return max(x, y)
	}
	return min(x, y)
}

// int1 is int2 for one operand.
func (b *builder) int1(t typ, f32 func(x uint32) uint32, f64 func(x uint64) uint64) exec {
	b.args(2)
	d, x := b.dst(0, t), b.src(1, t)
	switch {
	case t.wide():
		return map1(d, x, f64)
	case t.size() == 2:
		ext := word(t)
		return map1(d, x, func(x uint32) uint32 { return f32(ext(x)) & 0xffff })
	}
	return map1(d, x, f32)
}

func buildAbs(b *builder) exec {
	t := b.s.typ()
	if t.float() {
		return buildFloatSign(b)
	}
	return b.int1(t, func(x uint32) uint32 { return uint32(max(int32(x), -int32(x))) },
		func(x uint64) uint64 { return uint64(max(int64(x), -int64(x))) })
}

func buildNeg(b *builder) exec {
	t := b.s.typ()
	if t.float() {
		return buildFloatSign(b)
	}
	return b.int1(t, func(x uint32) uint32 { return -x }, func(x uint64) uint64 { return -x })
}

// buildSad is |a-b| + c.
func buildSad(b *builder) exec {
	b.args(4)
	t := b.s.typ()
	d, x, y, z := b.dst(0, t), b.src(1, t), b.src(2, t), b.src(3, t)
	if t.wide() {
		return map3(d, x, y, z, func(x, y, z uint64) uint64 {
			if less := x < y; t.signed() && int64(x) < int64(y) || !t.signed() && less {
				return y - x + z
			}
			return x - y + z
		})
	}
	ext := word(t)
	mask := uint32(1<<(8*t.size()) - 1)
	return map3(d, x, y, z, func(x, y, z uint32) uint32 {
		x, y = ext(x), ext(y)
		if t.signed() && int32(x) < int32(y) || !t.signed() && x < y {
			x, y = y, x
		}
		return (x - y + z) & mask
	})
}

// buildMul24 is mul24 and mad24: 24-bit factors, low or high 32 bits of 48.
func buildMul24(b *builder) exec {
	t, hi, mad := b.s.typ(), b.s.has("hi"), b.s.op == "mad24"
	f := func(x, y uint32) uint32 {
		var p uint64
		if t.signed() {
			p = uint64(int64(int32(x<<8)>>8) * int64(int32(y<<8)>>8))
		} else {
			p = uint64(x&0xffffff) * uint64(y&0xffffff)
		}
		if hi {
			p >>= 16
		}
		return uint32(p)
	}
	if !mad {
		b.args(3)
		return map2(b.dst(0, t), b.src(1, t), b.src(2, t), f)
	}
	b.args(4)
	return map3(b.dst(0, t), b.src(1, t), b.src(2, t), b.src(3, t), func(x, y, z uint32) uint32 { return f(x, y) + z })
}

// bytesOf splits a register into four bytes, extended by sign.
func bytesOf(v uint32, signed bool) [4]int32 {
	var out [4]int32
	for i := range out {
		if signed {
			out[i] = int32(int8(v >> (8 * i)))
		} else {
			out[i] = int32(v >> (8 * i) & 0xff)
		}
	}
	return out
}

// buildDp4a is the dot product of four bytes with four bytes, plus c.
func buildDp4a(b *builder) exec {
	b.args(4)
	ts := b.s.typs()
	if len(ts) != 2 {
		return nil
	}
	as, bs := ts[0].signed(), ts[1].signed()
	d, x, y, z := b.dst(0, tU32), b.src(1, tB32), b.src(2, tB32), b.src(3, tU32)
	if as && bs {
		return func(w *warp, m uint32) {
			d, x, y, z := view[int32](w, d), view[uint32](w, x), view[uint32](w, y), view[int32](w, z)
			for m != 0 {
				l := lane(&m)
				p, q := x[l], y[l]
				d[l] = z[l] + int32(int8(p))*int32(int8(q)) + int32(int8(p>>8))*int32(int8(q>>8)) +
					int32(int8(p>>16))*int32(int8(q>>16)) + int32(int8(p>>24))*int32(int8(q>>24))
			}
		}
	}
	return map3(d, x, y, z, func(x, y, z uint32) uint32 {
		p, q := bytesOf(x, as), bytesOf(y, bs)
		for i := range p {
			z += uint32(p[i] * q[i])
		}
		return z
	})
}

// buildDp2a is the dot product of two 16-bit values with two bytes, plus c.
func buildDp2a(b *builder) exec {
	b.args(4)
	ts := b.s.typs()
	if len(ts) != 2 {
		return nil
	}
	as, bs, hi := ts[0].signed(), ts[1].signed(), b.s.has("hi")
	return map3(b.dst(0, tU32), b.src(1, tB32), b.src(2, tB32), b.src(3, tU32), func(x, y, z uint32) uint32 {
		q := bytesOf(y, bs)
		k := 0
		if hi {
			k = 2
		}
		for i := range 2 {
			p := int32(x >> (16 * i) & 0xffff)
			if as {
				p = int32(int16(p))
			}
			z += uint32(p * q[k+i])
		}
		return z
	})
}
