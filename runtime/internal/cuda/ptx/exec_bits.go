package ptx

import "math/bits"

// buildLogic is and, or, xor, on integers and on predicates.
func buildLogic(b *builder) exec {
	b.args(3)
	t, op := b.s.typ(), b.s.op
	if t == tPred {
		d, _ := b.pred(b.arg(0))
		x, xi := b.srcPred(b.arg(1))
		y, yi := b.srcPred(b.arg(2))
		return func(w *warp, m uint32) {
			p, q := w.preds[x]^xi, w.preds[y]^yi
			switch op {
			case "and":
				p &= q
			case "or":
				p |= q
			default:
				p ^= q
			}
			w.preds[d] = w.preds[d]&^m | p&m
		}
	}
	d, x, y := b.dst(0, t), b.src(1, t), b.src(2, t)
	switch {
	case t.wide() && op == "and":
		return opAnd[uint64](d, x, y)
	case t.wide() && op == "or":
		return opOr[uint64](d, x, y)
	case t.wide():
		return opXor[uint64](d, x, y)
	case op == "and":
		return opAnd[uint32](d, x, y)
	case op == "or":
		return opOr[uint32](d, x, y)
	}
	return opXor[uint32](d, x, y)
}

// buildNot is not (each bit) and cnot (1 for zero).
func buildNot(b *builder) exec {
	t := b.s.typ()
	if b.s.op == "cnot" {
		return b.int1(t, func(x uint32) uint32 { return bit(x == 0) }, func(x uint64) uint64 { return uint64(bit(x == 0)) })
	}
	if t == tPred {
		b.args(2)
		d, _ := b.pred(b.arg(0))
		x, xi := b.pred(b.arg(1))
		return func(w *warp, m uint32) { w.preds[d] = w.preds[d]&^m | ^(w.preds[x]^xi)&m }
	}
	return b.int1(t, func(x uint32) uint32 { return ^x }, func(x uint64) uint64 { return ^x })
}

// constImm is operand i as a number known now.
func (b *builder) constImm(i int) uint64 {
	o := b.arg(i)
	if o.kind != opImm || o.imk != immInt {
		b.fail("operand %d must be a constant", i+1)
	}
	return o.imm
}

// buildLop3 is any function of three bits, by truth table.
func buildLop3(b *builder) exec {
	if b.s.typ() != tB32 || len(b.s.mods) != 1 {
		return nil
	}
	b.args(5)
	lut := uint32(b.constImm(4))
	if lut > 255 {
		b.fail("truth table %d is not a byte", lut)
	}
	d, x, y, z := b.dst(0, tB32), b.src(1, tB32), b.src(2, tB32), b.src(3, tB32)
	var term [8]uint32
	for i := range term {
		term[i] = -(lut >> i & 1)
	}
	return func(w *warp, m uint32) {
		d, x, y, z := view[uint32](w, d), view[uint32](w, x), view[uint32](w, y), view[uint32](w, z)
		for m != 0 {
			l := lane(&m)
			a, b, c := x[l], y[l], z[l]
			d[l] = ^a&(^b&(^c&term[0]|c&term[1])|b&(^c&term[2]|c&term[3])) |
				a&(^b&(^c&term[4]|c&term[5])|b&(^c&term[6]|c&term[7]))
		}
	}
}

func buildShift(b *builder) exec {
	b.args(3)
	t := b.s.typ()
	left := b.s.op == "shl"
	d, x, y := b.dst(0, t), b.src(1, t), b.src(2, tU32)
	switch {
	case t.size() == 2:
		ext := word(t)
		return map2(d, x, y, func(x, n uint32) uint32 {
			switch {
			case left:
				return x << n & 0xffff
			case t.signed():
				return uint32(int32(ext(x))>>n) & 0xffff
			}
			return ext(x) >> n
		})
	case t.wide() && left:
		return opShl[uint64](d, x, y)
	case left:
		return opShl[uint32](d, x, y)
	case t == tS64:
		return opShr[int64](d, x, y)
	case t == tS32:
		return opShr[int32](d, x, y)
	case t.wide():
		return opShr[uint64](d, x, y)
	}
	return opShr[uint32](d, x, y)
}

// buildFunnel is shf: a shift of the 64 bits of b:a, upper or lower half.
func buildFunnel(b *builder) exec {
	b.args(4)
	left, clamp := b.s.has("l"), b.s.has("clamp")
	return map3(b.dst(0, tB32), b.src(1, tB32), b.src(2, tB32), b.src(3, tU32), func(lo, hi, n uint32) uint32 {
		if clamp {
			n = min(n, 32)
		} else {
			n &= 31
		}
		v := uint64(hi)<<32 | uint64(lo)
		if left {
			return uint32(v << n >> 32)
		}
		return uint32(v >> n)
	})
}

// buildCount is popc and clz: a 32-bit count of either width.
func buildCount(b *builder) exec {
	b.args(2)
	t := b.s.typ()
	d, x := b.dst(0, tU32), b.src(1, t)
	switch {
	case b.s.op == "popc" && t.wide():
		return map1(d, x, func(x uint64) uint32 { return uint32(bits.OnesCount64(x)) })
	case b.s.op == "popc":
		return map1(d, x, func(x uint32) uint32 { return uint32(bits.OnesCount32(x)) })
	case t.wide():
		return map1(d, x, func(x uint64) uint32 { return uint32(bits.LeadingZeros64(x)) })
	}
	return map1(d, x, func(x uint32) uint32 { return uint32(bits.LeadingZeros32(x)) })
}

// buildBfind finds the highest bit that differs from the sign; all ones if none.
func buildBfind(b *builder) exec {
	b.args(2)
	t, shift := b.s.typ(), b.s.has("shiftamt")
	find := func(x uint64, width int) uint32 {
		n := bits.Len64(x) - 1
		switch {
		case n < 0:
			return allLanes
		case shift:
			return uint32(width - 1 - n)
		}
		return uint32(n)
	}
	d, x := b.dst(0, tU32), b.src(1, t)
	if t.wide() {
		return map1(d, x, func(x uint64) uint32 {
			if t.signed() && int64(x) < 0 {
				x = ^x
			}
			return find(x, 64)
		})
	}
	return map1(d, x, func(x uint32) uint32 {
		if t.signed() && int32(x) < 0 {
			x = ^x
		}
		return find(uint64(x), 32)
	})
}

func buildBrev(b *builder) exec { return b.int1(b.s.typ(), bits.Reverse32, bits.Reverse64) }

// bitField extracts len bits at pos; a signed field is extended with its top
// bit, which is the value's own if the field reaches beyond it.
func bitField(x uint64, pos, n uint32, width uint32, signed bool) uint64 {
	pos, n = pos&0xff, n&0xff
	if n == 0 {
		return 0
	}
	top := min(pos+n-1, width-1)
	sign := signed && x>>top&1 != 0
	v := x >> pos
	keep := uint32(0)
	if pos < width {
		keep = min(n, width-pos)
	} else {
		v = 0
	}
	if keep < 64 {
		v &= 1<<keep - 1
		if sign {
			v |= ^uint64(0) << keep
		}
	}
	return v
}

func buildBfe(b *builder) exec {
	b.args(4)
	t := b.s.typ()
	d, x, pos, n := b.dst(0, t), b.src(1, t), b.src(2, tU32), b.src(3, tU32)
	if t.wide() {
		return map3(d, x, pos, n, func(x uint64, pos, n uint32) uint64 { return bitField(x, pos, n, 64, t.signed()) })
	}
	return map3(d, x, pos, n, func(x, pos, n uint32) uint32 {
		return uint32(bitField(uint64(x), pos, n, 32, t.signed()))
	})
}

// buildBfi inserts the low len bits of a into b at pos.
func buildBfi(b *builder) exec {
	b.args(5)
	t := b.s.typ()
	d, x, y, pos, n := b.dst(0, t), b.src(1, t), b.src(2, t), b.src(3, tU32), b.src(4, tU32)
	insert := func(x, y uint64, pos, n uint32) uint64 {
		pos, n = pos&0xff, n&0xff
		mask := (uint64(1)<<n - 1) << pos
		return y&^mask | x<<pos&mask
	}
	return func(w *warp, m uint32) {
		p, k := view[uint32](w, pos), view[uint32](w, n)
		for m != 0 {
			l := lane(&m)
			if t.wide() {
				view[uint64](w, d)[l] = insert(view[uint64](w, x)[l], view[uint64](w, y)[l], p[l], k[l])
			} else {
				view[uint32](w, d)[l] = uint32(insert(uint64(view[uint32](w, x)[l]), uint64(view[uint32](w, y)[l]), p[l], k[l]))
			}
		}
	}
}

// prmtModes gives the four byte selectors of prmt's special modes, by the two
// low bits of the control.
var prmtModes = map[string][4]uint32{
	"f4e": {0x3210, 0x4321, 0x5432, 0x6543}, "b4e": {0x5670, 0x6701, 0x7012, 0x0123},
	"rc8": {0x0000, 0x1111, 0x2222, 0x3333}, "ecl": {0x3210, 0x3211, 0x3222, 0x3333},
	"ecr": {0x0000, 0x1110, 0x2210, 0x3210}, "rc16": {0x1010, 0x3232, 0x1010, 0x3232},
}

// buildPrmt picks four of the eight bytes of b:a.
func buildPrmt(b *builder) exec {
	b.args(4)
	var mode *[4]uint32
	for _, s := range b.s.mods {
		if sel, ok := prmtModes[s]; ok {
			mode = &sel
		}
	}
	return map3(b.dst(0, tB32), b.src(1, tB32), b.src(2, tB32), b.src(3, tB32), func(x, y, c uint32) uint32 {
		if mode != nil {
			c = mode[c&3]
		}
		v := uint64(y)<<32 | uint64(x)
		r := uint32(0)
		for i := range 4 {
			sel := c >> (4 * i)
			by := uint32(v >> (8 * (sel & 7)) & 0xff)
			if mode == nil && sel&8 != 0 { // the byte's sign, eight times
				by = -(by >> 7) & 0xff
			}
			r |= by << (8 * i)
		}
		return r
	})
}

// buildBmsk makes a mask of n bits from pos.
func buildBmsk(b *builder) exec {
	b.args(3)
	clamp := b.s.has("clamp")
	return map2(b.dst(0, tB32), b.src(1, tU32), b.src(2, tU32), func(pos, n uint32) uint32 {
		if !clamp {
			pos, n = pos&31, n&31
		}
		return uint32(uint64(1)<<min(n, 32)-1) << pos
	})
}

// buildSzext extends the low n bits by sign or with zeros.
func buildSzext(b *builder) exec {
	b.args(3)
	t, clamp := b.s.typ(), b.s.has("clamp")
	return map2(b.dst(0, t), b.src(1, t), b.src(2, tU32), func(x, n uint32) uint32 {
		if !clamp {
			n &= 31
		}
		if n >= 32 {
			return x
		}
		if n == 0 {
			return 0
		}
		if t.signed() {
			return uint32(int32(x<<(32-n)) >> (32 - n))
		}
		return x & (1<<n - 1)
	})
}

// buildFns finds the n-th set bit from a base, counted in n's direction.
func buildFns(b *builder) exec {
	b.args(4)
	return map3(b.dst(0, tB32), b.src(1, tB32), b.src(2, tU32), b.src(3, tS32), func(mask, base uint32, n int32) uint32 {
		if n == 0 {
			if mask>>base&1 != 0 {
				return base
			}
			return allLanes
		}
		step := int32(1)
		if n < 0 {
			step, n = -1, -n
		}
		for i := int32(base); i >= 0 && i < 32; i += step {
			if mask>>i&1 != 0 {
				if n--; n == 0 {
					return uint32(i)
				}
			}
		}
		return allLanes
	})
}
