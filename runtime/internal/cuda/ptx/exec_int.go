package ptx

import "math/bits"

// builders makes the executable form of each opcode.
var builders map[string]func(*builder) exec

func init() {
	builders = map[string]func(*builder) exec{
		"add": buildAdd, "sub": buildSub, "mul": buildMul, "mad": buildMad, "fma": buildFma,
		"addc": buildCarry, "subc": buildCarry, "madc": buildMadc,
		"div": buildDiv, "rem": buildRem, "min": buildMinMax, "max": buildMinMax,
		"abs": buildAbs, "neg": buildNeg, "sad": buildSad, "mul24": buildMul24, "mad24": buildMul24,
		"and": buildLogic, "or": buildLogic, "xor": buildLogic, "not": buildNot, "cnot": buildNot,
		"lop3": buildLop3, "shl": buildShift, "shr": buildShift, "shf": buildFunnel,
		"popc": buildCount, "clz": buildCount, "bfind": buildBfind, "brev": buildBrev,
		"bfe": buildBfe, "bfi": buildBfi, "prmt": buildPrmt, "bmsk": buildBmsk, "szext": buildSzext, "fns": buildFns,
		"dp4a": buildDp4a, "dp2a": buildDp2a,
		"mov": buildMov, "selp": buildSelp, "slct": buildSlct, "setp": buildSetp, "set": buildSet,
		"cvta": buildCvta, "isspacep": buildIsspacep, "cvt": buildCvt,
		"rcp": buildUnaryFloat, "sqrt": buildUnaryFloat, "rsqrt": buildUnaryFloat, "ex2": buildUnaryFloat,
		"lg2": buildUnaryFloat, "sin": buildUnaryFloat, "cos": buildUnaryFloat, "tanh": buildUnaryFloat,
		"copysign": buildCopysign, "testp": buildTestp,
		"ld": buildLd, "ldu": buildLd, "st": buildSt, "atom": buildAtom, "red": buildAtom,
		"cp": buildCp, "prefetch": buildNop, "prefetchu": buildNop, "membar": buildFence, "fence": buildFence,
		"discard": buildNop, "applypriority": buildNop, "createpolicy": buildPolicy, "nanosleep": buildNop,
		"pmevent": buildNop, "griddepcontrol": buildNop,
		"bar": buildBarrier, "barrier": buildBarrier,
		"shfl": buildShfl, "vote": buildVote, "match": buildMatch, "redux": buildRedux,
		"activemask": buildActivemask, "elect": buildElect,
		"mma": buildMma, "ldmatrix": buildLdmatrix, "stmatrix": buildStmatrix, "movmatrix": buildMovmatrix,
		"trap": buildTrap, "brkpt": buildTrap,
	}
}

// word extends the low 16 bits of a lane as type t says; wider types pass.
func word(t typ) func(uint32) uint32 {
	switch t {
	case tS16:
		return func(v uint32) uint32 { return uint32(int32(int16(v))) }
	case tU16, tB16:
		return func(v uint32) uint32 { return v & 0xffff }
	}
	return func(v uint32) uint32 { return v }
}

// int2 builds a two-operand integer instruction from its 32- and 64-bit
// definitions; 16-bit operands are extended before and cut after.
func (b *builder) int2(t typ, f32 func(x, y uint32) uint32, f64 func(x, y uint64) uint64) exec {
	d, x, y := b.dst(0, t), b.src(1, t), b.src(2, t)
	switch {
	case t.wide():
		return map2(d, x, y, f64)
	case t.size() == 2:
		ext := word(t)
		return map2(d, x, y, func(x, y uint32) uint32 { return f32(ext(x), ext(y)) & 0xffff })
	}
	return map2(d, x, y, f32)
}

func buildAdd(b *builder) exec {
	b.args(3)
	t := b.s.typ()
	if t.float() {
		return buildFloat2(b)
	}
	if b.s.has("cc") {
		return buildCarry(b)
	}
	if b.s.has("sat") {
		return b.int2(t, func(x, y uint32) uint32 { return saturate32(int64(int32(x)) + int64(int32(y))) }, nil)
	}
	switch t {
	case tU32, tS32, tB32:
		return opAdd[uint32](b.dst(0, t), b.src(1, t), b.src(2, t))
	case tU64, tS64, tB64:
		return opAdd[uint64](b.dst(0, t), b.src(1, t), b.src(2, t))
	case tU16, tS16:
		return b.int2(t, func(x, y uint32) uint32 { return x + y }, nil)
	case tU16x2, tS16x2:
		return map2(b.dst(0, t), b.src(1, t), b.src(2, t), func(x, y uint32) uint32 {
			return (x+y)&0xffff | (x&^0xffff+y&^0xffff)&0xffff0000
		})
	}
	return nil
}

func buildSub(b *builder) exec {
	b.args(3)
	t := b.s.typ()
	if t.float() {
		return buildFloat2(b)
	}
	if b.s.has("cc") {
		return buildCarry(b)
	}
	if b.s.has("sat") {
		return b.int2(t, func(x, y uint32) uint32 { return saturate32(int64(int32(x)) - int64(int32(y))) }, nil)
	}
	switch t {
	case tU32, tS32, tB32:
		return opSub[uint32](b.dst(0, t), b.src(1, t), b.src(2, t))
	case tU64, tS64, tB64:
		return opSub[uint64](b.dst(0, t), b.src(1, t), b.src(2, t))
	case tU16, tS16:
		return b.int2(t, func(x, y uint32) uint32 { return x - y }, nil)
	}
	return nil
}

func saturate32(v int64) uint32 { return uint32(int32(max(min(v, 1<<31-1), -1<<31))) }

// buildCarry handles add.cc, addc, sub.cc and subc: one carry flag a lane.
func buildCarry(b *builder) exec {
	b.args(3)
	t, sub := b.s.typ(), b.s.op == "sub" || b.s.op == "subc"
	in, out := b.s.op == "addc" || b.s.op == "subc", b.s.has("cc")
	d, x, y := b.dst(0, t), b.src(1, t), b.src(2, t)
	if t.size() < 4 {
		return nil
	}
	return func(w *warp, m uint32) {
		for m != 0 {
			l := lane(&m)
			c := uint64(0)
			if in {
				c = uint64(w.cc >> l & 1)
			}
			var sum, carry uint64
			switch {
			case t.wide() && sub:
				sum, carry = bits.Sub64(view[uint64](w, x)[l], view[uint64](w, y)[l], c)
			case t.wide():
				sum, carry = bits.Add64(view[uint64](w, x)[l], view[uint64](w, y)[l], c)
			case sub:
				s, k := bits.Sub32(view[uint32](w, x)[l], view[uint32](w, y)[l], uint32(c))
				sum, carry = uint64(s), uint64(k)
			default:
				s, k := bits.Add32(view[uint32](w, x)[l], view[uint32](w, y)[l], uint32(c))
				sum, carry = uint64(s), uint64(k)
			}
			if t.wide() {
				view[uint64](w, d)[l] = sum
			} else {
				view[uint32](w, d)[l] = uint32(sum)
			}
			if out {
				w.cc = w.cc&^(1<<l) | uint32(carry)<<l
			}
		}
	}
}

// mulPart is the half of an integer product that an instruction asks for.
func mulPart(t typ, hi bool) (func(x, y uint32) uint32, func(x, y uint64) uint64) {
	switch {
	case !hi:
		return func(x, y uint32) uint32 { return x * y }, func(x, y uint64) uint64 { return x * y }
	case t.size() == 2:
		return func(x, y uint32) uint32 { return x * y >> 16 }, nil
	case t.signed():
		return func(x, y uint32) uint32 { return uint32(int64(int32(x)) * int64(int32(y)) >> 32) },
			func(x, y uint64) uint64 {
				h, _ := bits.Mul64(x, y)
				return h - y&uint64(int64(x)>>63) - x&uint64(int64(y)>>63)
			}
	}
	return func(x, y uint32) uint32 { return uint32(uint64(x) * uint64(y) >> 32) },
		func(x, y uint64) uint64 { h, _ := bits.Mul64(x, y); return h }
}

func buildMul(b *builder) exec {
	b.args(3)
	t := b.s.typ()
	switch {
	case t.float():
		return buildFloat2(b)
	case b.s.has("wide"):
		return buildWide(b, t, false)
	case b.s.has("lo") && t.size() == 4:
		return opMul[uint32](b.dst(0, t), b.src(1, t), b.src(2, t))
	case b.s.has("lo") && t.size() == 8:
		return opMul[uint64](b.dst(0, t), b.src(1, t), b.src(2, t))
	}
	f32, f64 := mulPart(t, b.s.has("hi"))
	return b.int2(t, f32, f64)
}

// buildWide is mul.wide and mad.wide: the product is twice as wide.
func buildWide(b *builder, t typ, add bool) exec {
	two := map[typ]typ{tU16: tU32, tS16: tS32, tU32: tU64, tS32: tS64}[t]
	if two == tNone {
		return nil
	}
	d, x, y, c := b.dst(0, two), b.src(1, t), b.src(2, t), uintptr(0)
	if add {
		c = b.src(3, two)
	}
	switch t {
	case tU32:
		return opMulWide[uint64, uint32](d, x, y, c, add)
	case tS32:
		return opMulWide[int64, int32](d, x, y, c, add)
	}
	ext := word(t)
	if add {
		return map3(d, x, y, c, func(x, y, c uint32) uint32 { return ext(x)*ext(y) + c })
	}
	return map2(d, x, y, func(x, y uint32) uint32 { return ext(x) * ext(y) })
}

func buildMad(b *builder) exec {
	b.args(4)
	t := b.s.typ()
	switch {
	case t.float():
		return buildFma(b)
	case b.s.has("wide"):
		return buildWide(b, t, true)
	case b.s.has("cc"):
		return buildMadc(b)
	}
	hi := b.s.has("hi")
	if !hi && t.size() == 4 {
		return opMad[uint32](b.dst(0, t), b.src(1, t), b.src(2, t), b.src(3, t))
	}
	if !hi && t.size() == 8 {
		return opMad[uint64](b.dst(0, t), b.src(1, t), b.src(2, t), b.src(3, t))
	}
	f32, f64 := mulPart(t, hi)
	d, x, y, z := b.dst(0, t), b.src(1, t), b.src(2, t), b.src(3, t)
	switch {
	case t.wide():
		return map3(d, x, y, z, func(x, y, z uint64) uint64 { return f64(x, y) + z })
	case t.size() == 2:
		ext := word(t)
		return map3(d, x, y, z, func(x, y, z uint32) uint32 { return (f32(ext(x), ext(y)) + z) & 0xffff })
	case b.s.has("sat"):
		return map3(d, x, y, z, func(x, y, z uint32) uint32 { return saturate32(int64(int32(f32(x, y))) + int64(int32(z))) })
	}
	return map3(d, x, y, z, func(x, y, z uint32) uint32 { return f32(x, y) + z })
}

// buildMadc is mad.cc and madc: a product half plus an addend, with carries.
func buildMadc(b *builder) exec {
	b.args(4)
	t, in, out := b.s.typ(), b.s.op == "madc", b.s.has("cc")
	if t.size() < 4 {
		return nil
	}
	f32, f64 := mulPart(t, b.s.has("hi"))
	d, x, y, z := b.dst(0, t), b.src(1, t), b.src(2, t), b.src(3, t)
	return func(w *warp, m uint32) {
		for m != 0 {
			l := lane(&m)
			c := uint32(0)
			if in {
				c = w.cc >> l & 1
			}
			var carry uint64
			if t.wide() {
				p := f64(view[uint64](w, x)[l], view[uint64](w, y)[l])
				view[uint64](w, d)[l], carry = bits.Add64(p, view[uint64](w, z)[l], uint64(c))
			} else {
				p := f32(view[uint32](w, x)[l], view[uint32](w, y)[l])
				s, k := bits.Add32(p, view[uint32](w, z)[l], c)
				view[uint32](w, d)[l], carry = s, uint64(k)
			}
			if out {
				w.cc = w.cc&^(1<<l) | uint32(carry)<<l
			}
		}
	}
}
