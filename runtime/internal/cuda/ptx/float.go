package ptx

import "math"

// rounding is a PTX rounding modifier.
type rounding uint8

const (
	rndNearest rounding = iota // .rn: to nearest, ties to even
	rndZero                    // .rz
	rndDown                    // .rm
	rndUp                      // .rp
	rndAway                    // .rna: to nearest, ties away from zero
)

// format describes a binary float of at most 24 significant bits.
type format struct {
	mant int // explicit mantissa bits
	emin int // exponent of the smallest normal number
	max  float64
	inf  bool // whether it has infinities; else overflow is NaN
}

var (
	fmtF16  = format{10, -14, 65504, true}
	fmtBF16 = format{7, -126, math.MaxFloat32 * (2 - 0x1p-7) / (2 - 0x1p-23), true}
	fmtTF32 = format{10, -126, math.MaxFloat32 * (2 - 0x1p-10) / (2 - 0x1p-23), true}
	fmtF32  = format{23, -126, math.MaxFloat32, true}
	fmtE4M3 = format{3, -6, 448, false}
	fmtE5M2 = format{2, -14, 57344, true}
)

// round rounds f to the format, as a float64 that holds the result exactly.
// Overflow gives infinity, or the largest finite value where the rounding
// direction asks for it. f must carry enough bits: exact, or rounded to odd.
func (fm format) round(f float64, mode rounding) float64 {
	if f == 0 || math.IsNaN(f) || math.IsInf(f, 0) {
		return f
	}
	_, e := math.Frexp(f) // |f| in [2^(e-1), 2^e)
	ulp := math.Ldexp(1, max(e-1, fm.emin)-fm.mant)
	q := f / ulp // exact: a power of two
	switch mode {
	case rndNearest:
		q = math.RoundToEven(q)
	case rndZero:
		q = math.Trunc(q)
	case rndDown:
		q = math.Floor(q)
	case rndUp:
		q = math.Ceil(q)
	case rndAway:
		q = math.Round(q)
	}
	r := q * ulp
	if q == 0 {
		return math.Copysign(0, f)
	}
	if math.Abs(r) > fm.max {
		towards := mode == rndZero || mode == rndDown && f > 0 || mode == rndUp && f < 0
		if towards {
			return math.Copysign(fm.max, f)
		}
		return math.Inf(int(math.Copysign(1, f)))
	}
	return r
}

// pack gives the bit pattern of a value that round returned, for a format of
// mant+exp+1 bits.
func (fm format) pack(f float64, exp int) uint32 {
	sign := uint32(0)
	if math.Signbit(f) {
		sign = 1 << (fm.mant + exp)
	}
	f = math.Abs(f)
	if f == 0 {
		return sign
	}
	bias := 1<<(exp-1) - 1
	_, e := math.Frexp(f)
	if e-1 < fm.emin {
		return sign | uint32(math.Ldexp(f, fm.mant-fm.emin))
	}
	m := uint32(math.Ldexp(f, fm.mant-(e-1))) // with its leading one
	return sign | (uint32(e-1+bias)<<fm.mant + m - 1<<fm.mant)
}

func f16FromFloat(f float64, mode rounding) uint16 {
	if mode == rndNearest {
		return uint16(f16FromF32(f32Odd(f)))
	}
	switch {
	case math.IsNaN(f):
		return 0x7fff
	case math.IsInf(f, 0):
	default:
		f = fmtF16.round(f, mode)
	}
	if math.IsInf(f, 0) {
		return uint16(math.Float32bits(float32(f))>>16)&0x8000 | 0x7c00
	}
	return uint16(fmtF16.pack(f, 5))
}

func bf16FromFloat(f float64, mode rounding) uint16 {
	if mode == rndNearest {
		return uint16(bf16FromF32(f32Odd(f)))
	}
	if math.IsNaN(f) {
		return 0x7fff
	}
	return uint16(math.Float32bits(float32(fmtBF16.round(f, mode))) >> 16)
}

// f32Odd gives the bits of f as a float32, rounded to odd: it can be rounded
// again, to fewer bits, without error.
func f32Odd(f float64) uint32 {
	s := float32(f)
	b := math.Float32bits(s)
	if float64(s) == f || f != f {
		return b
	}
	if math.Abs(float64(s)) > math.Abs(f) {
		b-- // towards zero
	}
	return b | 1
}

// bf16FromF32 rounds to nearest even; NaN becomes the canonical one.
func bf16FromF32(bits uint32) uint32 {
	if bits&0x7fffffff > 0x7f800000 {
		return 0x7fff
	}
	return (bits + 0x7fff + bits>>16&1) >> 16
}

// f16FromF32 rounds to nearest even; NaN becomes the canonical one.
func f16FromF32(bits uint32) uint32 {
	sign := bits >> 16 & 0x8000
	abs := bits & 0x7fffffff
	switch {
	case abs > 0x7f800000:
		return 0x7fff
	case abs >= 0x47800000: // 65536 and above
		return sign | 0x7c00
	case abs >= 0x38800000: // normal
		abs += 0xfff + abs>>13&1
		return sign | (abs-0x38000000)>>13
	}
	// Subnormal: adding 0.5 aligns the mantissa so that the FPU rounds it.
	f := math.Float32frombits(abs) + 0.5
	return sign | (math.Float32bits(f) - 0x3f000000)
}

func f16ToF32(h uint32) float32 {
	sign := h & 0x8000 << 16
	switch e, m := h>>10&31, h&0x3ff; {
	case e == 31:
		return math.Float32frombits(sign | 0x7f800000 | m<<13)
	case e != 0:
		return math.Float32frombits(sign | (e+112)<<23 | m<<13)
	default:
		f := float32(m) * 0x1p-24
		return math.Float32frombits(sign | math.Float32bits(f))
	}
}

func bf16ToF32(h uint32) float32 { return math.Float32frombits(h << 16) }

func e4m3ToF32(b uint32) float32 {
	sign := float32(1)
	if b&0x80 != 0 {
		sign = -1
	}
	e, m := int(b>>3&15), b&7
	switch {
	case b&0x7f == 0x7f:
		return float32(math.NaN())
	case e == 0:
		return sign * float32(m) * 0x1p-9
	}
	return sign * float32(math.Ldexp(float64(8+m), e-7-3))
}

func e5m2ToF32(b uint32) float32 { return f16ToF32(b & 0xff << 8) }

// fp8FromF32 converts with saturation, as .satfinite does.
func fp8FromF32(f float32, fm format) uint32 {
	v := float64(f)
	exp := 7 - fm.mant
	if math.IsNaN(v) {
		return 0x7f
	}
	if v = fm.round(v, rndNearest); math.Abs(v) > fm.max {
		v = math.Copysign(fm.max, v)
	}
	return fm.pack(v, exp)
}

// roundOdd gives a+b rounded to odd where a is exact and s = a+b was rounded to
// nearest: the result can be rounded again, to fewer bits, without error.
func roundOdd(a, b, s float64) float64 {
	if math.IsInf(s, 0) || math.IsNaN(s) {
		return s
	}
	bb := s - a
	e := (a - (s - bb)) + (b - bb) // exact a+b minus s
	bits := math.Float64bits(s)
	if e == 0 || bits&1 == 1 {
		return s
	}
	if s == 0 {
		return e
	}
	if (e > 0) == (s > 0) {
		return math.Float64frombits(bits + 1)
	}
	return math.Float64frombits(bits - 1)
}

// fma32 is a*b+c with one rounding, as fma.rn.f32.
func fma32(a, b, c float32) float32 {
	p := float64(a) * float64(b) // exact: 48 bits
	s := p + float64(c)
	if doubleRounds(s) {
		s = roundOdd(p, float64(c), s)
	}
	return float32(s)
}

// doubleRounds says whether rounding s, itself rounded to float64, to float32
// can differ from rounding once: s is midway between two of them, or so small
// that the result may be subnormal.
func doubleRounds(s float64) bool {
	b := math.Float64bits(s)
	return b&0x1fffffff == 0x10000000 || b<<1 < 898<<53
}

// fmaOdd is a*b+c rounded to odd, where a*b is exact.
func fmaOdd(a, b, c float64) float64 {
	p := a * b
	return roundOdd(p, c, p+c)
}

// ftz32 replaces a subnormal number with a zero of its sign.
func ftz32(f float32) float32 {
	if b := math.Float32bits(f); b&0x7f800000 == 0 {
		return math.Float32frombits(b & 0x80000000)
	}
	return f
}

// canon32 makes every NaN the one the hardware produces.
func canon32(f float32) float32 {
	if f != f {
		return math.Float32frombits(0x7fffffff)
	}
	return f
}
