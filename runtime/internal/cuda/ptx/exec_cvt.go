package ptx

import "math"

// buildCvt converts between types. With three type words or two sources it is
// one of the packing forms.
func buildCvt(b *builder) exec {
	ts := b.s.typs()
	if b.s.has("pack") {
		return buildCvtPack(b, ts)
	}
	if len(ts) != 2 {
		return nil
	}
	d, a := ts[0], ts[1]
	switch {
	case len(b.s.args) == 3:
		return buildCvtPair(b, d, a)
	case a == tE4M3x2 || a == tE5M2x2:
		return buildCvtFP8(b, d, a)
	}
	b.args(2)
	dst, dwide := b.anyDst(b.arg(0), d)
	src, swide := b.anySrc(b.arg(1), a)
	if f := fastCvt(b, d, a, dst, src, dwide, swide); f != nil {
		return f
	}
	load, store := b.cvtSource(a), b.cvtResult(d, a)
	if load == nil || store == nil {
		return nil
	}
	return func(w *warp, m uint32) {
		for m != 0 {
			l := lane(&m)
			var bits uint64
			if swide {
				bits = view[uint64](w, src)[l]
			} else {
				bits = uint64(view[uint32](w, src)[l])
			}
			i, f := load(bits)
			bits = store(i, f)
			if dwide {
				view[uint64](w, dst)[l] = bits
			} else {
				view[uint32](w, dst)[l] = uint32(bits)
			}
		}
	}
}

// fastCvt has the conversions that fill kernels, as loops of their own.
func fastCvt(b *builder, d, a typ, dst, src uintptr, dwide, swide bool) exec {
	for _, m := range b.s.mods {
		if m == "sat" || m == "ftz" || m == "relu" || m == "satfinite" {
			return nil
		}
	}
	mode := b.rounding()
	unsigned := func(t typ) bool { return t == tU16 || t == tU32 || t == tU64 || t == tB16 || t == tB32 || t == tB64 }
	switch {
	case a == tU32 && !swide && d.wide() && dwide && d.integer():
		return opWiden[uint64, uint32](dst, src)
	case a == tS32 && !swide && d.wide() && dwide && d.integer():
		return opWiden[int64, int32](dst, src)
	case (a == tU64 || a == tS64) && (d == tU32 || d == tS32) && !dwide && swide:
		return opWiden[uint32, uint64](dst, src)
	case unsigned(a) && a.size() >= d.size() && d == tU16 && !dwide && !swide:
		return opAnd[uint32](dst, src, b.constant(0xffff, false))
	case a == tU16 && d.size() == 4 && d.integer() && !dwide && !swide:
		return opAnd[uint32](dst, src, b.constant(0xffff, false))
	case a == tS32 && d == tF32 && mode == rndNearest && !swide:
		return opWiden[float32, int32](dst, src)
	case a == tU32 && d == tF32 && mode == rndNearest && !swide:
		return opWiden[float32, uint32](dst, src)
	case a == tF32 && d == tBF16 && mode == rndNearest:
		return map1(dst, src, bf16FromF32)
	case a == tF32 && d == tF16 && mode == rndNearest:
		return map1(dst, src, f16FromF32)
	case a == tF16 && d == tF32:
		return map1(dst, src, func(h uint32) float32 { return f16ToF32(h & 0xffff) })
	case a == tBF16 && d == tF32:
		return map1(dst, src, func(h uint32) float32 { return bf16ToF32(h & 0xffff) })
	}
	return nil
}

// cvtSource reads a value of type t: integers as int64 (u64 by its bits),
// floats as float64, which holds every one of them exactly.
func (b *builder) cvtSource(t typ) func(uint64) (int64, float64) {
	switch t {
	case tU8, tB8:
		return func(v uint64) (int64, float64) { return int64(v & 0xff), 0 }
	case tU16, tB16:
		return func(v uint64) (int64, float64) { return int64(v & 0xffff), 0 }
	case tU32, tB32:
		return func(v uint64) (int64, float64) { return int64(v & 0xffffffff), 0 }
	case tU64, tS64, tB64:
		return func(v uint64) (int64, float64) { return int64(v), 0 }
	case tS8:
		return func(v uint64) (int64, float64) { return int64(int8(v)), 0 }
	case tS16:
		return func(v uint64) (int64, float64) { return int64(int16(v)), 0 }
	case tS32:
		return func(v uint64) (int64, float64) { return int64(int32(v)), 0 }
	case tF16:
		return func(v uint64) (int64, float64) { return 0, float64(f16ToF32(uint32(v & 0xffff))) }
	case tBF16:
		return func(v uint64) (int64, float64) { return 0, float64(bf16ToF32(uint32(v & 0xffff))) }
	case tF32:
		ftz := b.s.has("ftz")
		return func(v uint64) (int64, float64) {
			f := math.Float32frombits(uint32(v))
			if ftz {
				f = ftz32(f)
			}
			return 0, float64(f)
		}
	case tF64:
		return func(v uint64) (int64, float64) { return 0, math.Float64frombits(v) }
	}
	return nil
}

// cvtResult writes a value that came from type a as type d.
func (b *builder) cvtResult(d, a typ) func(int64, float64) uint64 {
	sat := b.s.has("sat")
	switch {
	case d.integer() && a.integer():
		return func(i int64, _ float64) uint64 {
			if sat {
				i = clampInt(i, a == tU64, d)
			}
			return cutInt(i, d)
		}
	case d.integer():
		whole := b.wholeRounding()
		return func(_ int64, f float64) uint64 { return floatToInt(whole(f), d) }
	case a.integer():
		mode := b.rounding()
		return func(i int64, _ float64) uint64 {
			if d == tF64 {
				if a == tU64 {
					return math.Float64bits(float64(uint64(i)))
				}
				return math.Float64bits(float64(i))
			}
			return b.packFloat(intToOdd(i, a == tU64), d, mode, false)
		}
	}
	mode := b.rounding()
	whole := func(f float64) float64 { return f }
	if b.s.has("rni") || b.s.has("rzi") || b.s.has("rmi") || b.s.has("rpi") {
		whole = b.wholeRounding()
	}
	relu, finite := b.s.has("relu"), b.s.has("satfinite")
	return func(_ int64, f float64) uint64 {
		f = whole(f)
		switch {
		case sat && f != f:
			f = 0
		case sat:
			f = max(0, min(1, f))
		case relu && f < 0:
			f = 0
		}
		return b.packFloat(f, d, mode, finite)
	}
}

// packFloat rounds f to type d and gives its bits.
func (b *builder) packFloat(f float64, d typ, mode rounding, finite bool) uint64 {
	clamp := func(fm format) {
		if finite && math.Abs(f) > fm.max {
			f = math.Copysign(fm.max, f)
		}
	}
	switch d {
	case tF64:
		return math.Float64bits(f)
	case tF32:
		v := canon32(round32(f, mode))
		if b.s.has("ftz") {
			v = ftz32(v)
		}
		return uint64(math.Float32bits(v))
	case tF16:
		clamp(fmtF16)
		return uint64(f16FromFloat(f, mode))
	case tBF16:
		clamp(fmtBF16)
		return uint64(bf16FromFloat(f, mode))
	case tTF32:
		clamp(fmtTF32)
		return uint64(math.Float32bits(float32(fmtTF32.round(f, mode))))
	}
	b.fail("conversion to %s is not supported", d)
	return 0
}

// intToOdd makes a float64 of an integer, rounded to odd so that it can be
// rounded again.
func intToOdd(i int64, unsigned bool) float64 {
	if unsigned && i < 0 {
		u := uint64(i)
		return float64(u>>12<<12 | uint64(bit(u<<52 != 0))<<12)
	}
	f := float64(i)
	if i < 1<<53 && i > -(1<<53) {
		return f
	}
	u, sign := uint64(i), 1.0
	if i < 0 {
		u, sign = uint64(-i), -1
	}
	return sign * float64(u>>11<<11|uint64(bit(u<<53 != 0))<<11)
}

// wholeRounding is the rounding of .rni, .rzi, .rmi and .rpi.
func (b *builder) wholeRounding() func(float64) float64 {
	switch {
	case b.s.has("rzi"):
		return math.Trunc
	case b.s.has("rmi"):
		return math.Floor
	case b.s.has("rpi"):
		return math.Ceil
	}
	return math.RoundToEven
}

// intRange is the range of an integer type; the top of u64 is left out.
func intRange(t typ) (lo, hi int64) {
	n := 8 * t.size()
	if t.signed() {
		return -1 << (n - 1), 1<<(n-1) - 1
	}
	if n == 64 {
		return 0, math.MaxInt64
	}
	return 0, 1<<n - 1
}

func clampInt(i int64, unsigned bool, d typ) int64 {
	lo, hi := intRange(d)
	if unsigned && i < 0 { // above every signed range
		if d == tU64 {
			return i
		}
		return hi
	}
	return max(lo, min(hi, i))
}

// cutInt keeps the bits of type d; a register wider than d gets the value
// extended by its sign.
func cutInt(i int64, d typ) uint64 {
	switch d {
	case tU8, tB8:
		return uint64(i) & 0xff
	case tU16, tB16, tS16:
		return uint64(i) & 0xffff
	case tS8:
		return uint64(int64(int8(i)))
	case tU32, tB32:
		return uint64(i) & 0xffffffff
	case tS32:
		return uint64(int64(int32(i)))
	}
	return uint64(i)
}

// floatToInt clamps, as the hardware does; NaN becomes 0.
func floatToInt(f float64, d typ) uint64 {
	if f != f {
		return 0
	}
	if d == tU64 {
		switch {
		case f <= 0:
			return 0
		case f >= 1<<64:
			return math.MaxUint64
		}
		return uint64(f)
	}
	lo, hi := intRange(d)
	switch {
	case f <= float64(lo):
		return cutInt(lo, d)
	case f >= float64(hi):
		return cutInt(hi, d)
	}
	return cutInt(int64(f), d)
}

// buildCvtPair packs two f32 values; the first source goes to the upper half.
func buildCvtPair(b *builder, d, a typ) exec {
	if a != tF32 {
		return nil
	}
	mode, relu, finite := b.rounding(), b.s.has("relu"), b.s.has("satfinite")
	var narrow func(float32) uint32
	shift := 16
	dt := tB32
	switch d {
	case tBF16x2:
		narrow = func(f float32) uint32 { return uint32(b.packFloat(float64(f), tBF16, mode, finite)) }
		if mode == rndNearest && !finite {
			narrow = func(f float32) uint32 { return bf16FromF32(math.Float32bits(f)) }
		}
	case tF16x2:
		narrow = func(f float32) uint32 { return uint32(b.packFloat(float64(f), tF16, mode, finite)) }
		if mode == rndNearest && !finite {
			narrow = func(f float32) uint32 { return f16FromF32(math.Float32bits(f)) }
		}
	case tE4M3x2:
		shift, dt, narrow = 8, tB16, func(f float32) uint32 { return fp8FromF32(f, fmtE4M3) }
	case tE5M2x2:
		shift, dt, narrow = 8, tB16, func(f float32) uint32 { return fp8FromF32(f, fmtE5M2) }
	default:
		return nil
	}
	return map2(b.dst(0, dt), b.src(1, tF32), b.src(2, tF32), func(hi, lo float32) uint32 {
		if relu {
			hi, lo = max(hi, 0), max(lo, 0)
		}
		return narrow(hi)<<shift | narrow(lo)
	})
}

// buildCvtFP8 widens two 8-bit floats to f16x2.
func buildCvtFP8(b *builder, d, a typ) exec {
	if d != tF16x2 {
		return nil
	}
	widen := e4m3ToF32
	if a == tE5M2x2 {
		widen = e5m2ToF32
	}
	return map1(b.dst(0, tB32), b.src(1, tB16), func(v uint32) uint32 {
		return f16FromF32(math.Float32bits(widen(v&0xff))) | f16FromF32(math.Float32bits(widen(v>>8&0xff)))<<16
	})
}

// buildCvtPack saturates two integers to a narrow type and packs them, before
// what c holds.
func buildCvtPack(b *builder, ts []typ) exec {
	if len(ts) < 2 || ts[1] != tS32 {
		return nil
	}
	d := ts[0]
	n := 8 * d.size()
	narrow := func(v int32) uint32 { return uint32(cutInt(clampInt(int64(v), false, d), d)) & (1<<n - 1) }
	if len(ts) == 2 && n == 16 {
		b.args(3)
		return map2(b.dst(0, tB32), b.src(1, tS32), b.src(2, tS32), func(x, y int32) uint32 { return narrow(x)<<16 | narrow(y) })
	}
	b.args(4)
	return map3(b.dst(0, tB32), b.src(1, tS32), b.src(2, tS32), b.src(3, tB32), func(x, y int32, c uint32) uint32 {
		return c<<(2*n) | narrow(x)<<n | narrow(y)
	})
}
