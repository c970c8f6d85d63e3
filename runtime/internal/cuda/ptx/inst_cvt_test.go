package ptx

import (
	"math"
	"math/big"
	"testing"
)

func clampRef(f float64, lo, hi int64) uint64 {
	switch {
	case math.IsNaN(f):
		return 0
	case f <= float64(lo):
		return uint64(lo)
	case f >= float64(hi):
		return uint64(hi)
	}
	return uint64(int64(f))
}

func TestConversions(t *testing.T) {
	half := func(kind string) func(a, _, _ uint64) uint64 {
		return func(a, _, _ uint64) uint64 {
			f := float64(f32of(a))
			if math.IsNaN(f) {
				return 0x7fff
			}
			if math.IsInf(f, 0) {
				f = math.Copysign(1e300, f)
			}
			e := new(big.Float).SetFloat64(f)
			return nearestHalf(kind, e)
		}
	}
	check(t, []instCase{
		{"cvt.u32.u64 %d, %A;", "i64", func(a, _, _ uint64) uint64 { return u32of(a) }},
		{"cvt.u64.u32 %D, %a;", "i32", func(a, _, _ uint64) uint64 { return u32of(a) }},
		{"cvt.s64.s32 %D, %a;", "i32", func(a, _, _ uint64) uint64 { return uint64(i32of(a)) }},
		{"cvt.s32.s16 %d, %x;", "i32", func(a, _, _ uint64) uint64 { return u32of(uint64(int16(a))) }},
		{"cvt.u32.u16 %d, %x;", "i32", func(a, _, _ uint64) uint64 { return a & 0xffff }},
		{"cvt.u16.u32 %w, %a;", "i32", func(a, _, _ uint64) uint64 { return a & 0xffff }},
		{"cvt.s32.s8 %d, %a;", "i32", func(a, _, _ uint64) uint64 { return u32of(uint64(int8(a))) }},
		{"cvt.u32.u8 %d, %x;", "i32", func(a, _, _ uint64) uint64 { return a & 0xff }},
		{"cvt.s64.s8 %D, %A;", "i64", func(a, _, _ uint64) uint64 { return uint64(int8(a)) }},
		{"cvt.sat.s8.s32 %d, %a;", "i32", func(a, _, _ uint64) uint64 { return u32of(uint64(max(-128, min(127, i32of(a))))) }},
		{"cvt.sat.u16.s32 %w, %a;", "i32", func(a, _, _ uint64) uint64 { return uint64(max(0, min(65535, i32of(a)))) }},
		{"cvt.sat.s32.u64 %d, %A;", "i64", func(a, _, _ uint64) uint64 { return min(a, math.MaxInt32) }},
		{"cvt.rn.f32.s32 %d, %a;", "i32", func(a, _, _ uint64) uint64 { return of32(float32(int32(a))) }},
		{"cvt.rn.f32.u32 %d, %a;", "i32", func(a, _, _ uint64) uint64 { return of32(float32(uint32(a))) }},
		{"cvt.rn.f32.s64 %d, %A;", "i64", func(a, _, _ uint64) uint64 { return of32(float32(int64(a))) }},
		{"cvt.rn.f32.u64 %d, %A;", "i64", func(a, _, _ uint64) uint64 { return of32(float32(a)) }},
		{"cvt.rn.f32.s8 %d, %x;", "i32", func(a, _, _ uint64) uint64 { return of32(float32(int8(a))) }},
		{"cvt.rn.f32.u16 %d, %x;", "i32", func(a, _, _ uint64) uint64 { return of32(float32(uint16(a))) }},
		{"cvt.rz.f32.u64 %d, %A;", "i64", func(a, _, _ uint64) uint64 {
			f, _ := new(big.Float).SetPrec(24).SetMode(big.ToZero).SetUint64(a).Float32()
			return of32(f)
		}},
		{"cvt.rn.f64.u64 %D, %A;", "i64", func(a, _, _ uint64) uint64 { return math.Float64bits(float64(a)) }},
		{"cvt.f64.f32 %D, %a;", "f32", func(a, _, _ uint64) uint64 {
			if f := f32of(a); f != f {
				return math.Float64bits(float64(f))
			}
			return math.Float64bits(float64(f32of(a)))
		}},
		{"cvt.rn.f32.f64 %d, %A;", "f64", func(a, _, _ uint64) uint64 {
			if f := f64of(a); f != f {
				return 0x7fffffff
			}
			return of32(float32(f64of(a)))
		}},
		{"cvt.rni.s32.f32 %d, %a;", "f32", func(a, _, _ uint64) uint64 {
			return u32of(clampRef(math.RoundToEven(float64(f32of(a))), math.MinInt32, math.MaxInt32))
		}},
		{"cvt.rzi.s32.f32 %d, %a;", "f32", func(a, _, _ uint64) uint64 {
			return u32of(clampRef(math.Trunc(float64(f32of(a))), math.MinInt32, math.MaxInt32))
		}},
		{"cvt.rmi.s64.f32 %D, %a;", "f32", func(a, _, _ uint64) uint64 {
			return clampRef(math.Floor(float64(f32of(a))), math.MinInt64, math.MaxInt64)
		}},
		{"cvt.rzi.u32.f32 %d, %a;", "f32", func(a, _, _ uint64) uint64 {
			return clampRef(math.Trunc(float64(f32of(a))), 0, math.MaxUint32)
		}},
		{"cvt.rni.sat.s8.f32 %d, %a;", "f32", func(a, _, _ uint64) uint64 {
			return u32of(clampRef(math.RoundToEven(float64(f32of(a))), -128, 127))
		}},
		{"cvt.rpi.f32.f32 %d, %a;", "f32", func(a, _, _ uint64) uint64 { return of32(float32(math.Ceil(float64(f32of(a))))) }},
		{"cvt.rmi.f32.f32 %d, %a;", "f32", func(a, _, _ uint64) uint64 { return of32(float32(math.Floor(float64(f32of(a))))) }},
		{"cvt.rn.f16.f32 %w, %a;", "f32", half("f16")},
		{"cvt.rn.bf16.f32 %w, %a;", "f32", half("bf16")},
		{"cvt.rn.bf16x2.f32 %d, %b, %a; cvt.u16.u32 %w, %d;", "f32", half("bf16")},
		{"cvt.rn.f16x2.f32 %d, %a, %b; mov.b32 {%x, %w}, %d;", "f32", half("f16")},
		{"cvt.rn.relu.bf16.f32 %w, %a;", "f32", func(a, _, _ uint64) uint64 {
			if f32of(a) < 0 {
				return 0
			}
			return half("bf16")(a, 0, 0)
		}},
		{"cvt.rz.bf16.f32 %w, %a;", "f32", func(a, _, _ uint64) uint64 {
			if f := f32of(a); f != f {
				return 0x7fff
			}
			return u32of(a) >> 16
		}},
		{"cvt.f32.f16 %d, %x;", "f16", func(a, _, _ uint64) uint64 {
			if f := f16ref(a & 0xffff); !math.IsNaN(f) {
				return of32(float32(f))
			}
			return of32(f32of(a&0x8000<<16 | 0x7f800000 | a&0x3ff<<13))
		}},
		{"cvt.f32.bf16 %d, %x;", "bf16", func(a, _, _ uint64) uint64 { return a & 0xffff << 16 }},
		{"cvt.rn.f16.s32 %w, %a;", "i32", func(a, _, _ uint64) uint64 { return nearestHalf("f16", big.NewFloat(float64(int32(a)))) }},
		{"cvt.rni.s32.f16 %d, %x;", "f16", func(a, _, _ uint64) uint64 {
			return u32of(clampRef(math.RoundToEven(f16ref(a&0xffff)), math.MinInt32, math.MaxInt32))
		}},
		{"cvt.rna.tf32.f32 %d, %a;", "f32", func(a, _, _ uint64) uint64 {
			f := f32of(a)
			if f != f {
				return u32of(a)
			}
			if math.IsInf(float64(f), 0) {
				return u32of(a)
			}
			return u32of(a+0x1000) &^ 0x1fff // ties away: half a unit, cut
		}},
		{"cvt.pack.sat.s8.s32.b32 %d, %a, %b, %c;", "i32", func(a, b, c uint64) uint64 {
			sat := func(v uint64) uint64 { return uint64(max(-128, min(127, i32of(v)))) & 0xff }
			return u32of(c<<16 | sat(a)<<8 | sat(b))
		}},
	})
}

// TestEightBitFloats converts every e4m3 and e5m2 value both ways.
func TestEightBitFloats(t *testing.T) {
	for _, k := range []struct {
		name      string
		mant, exp int
		inf       bool
	}{{"e4m3", 3, 4, false}, {"e5m2", 2, 5, true}} {
		var a []uint64
		for v := range uint64(256) {
			a = append(a, v)
		}
		zero := make([]uint64, 256)
		bias := 1<<(k.exp-1) - 1
		value := func(v uint64) float64 {
			m, e := int(v)&(1<<k.mant-1), int(v)>>k.mant&(1<<k.exp-1)
			sign := 1 - 2*float64(v>>7)
			switch {
			case k.inf && e == 31 && m == 0:
				return sign * math.Inf(1)
			case k.inf && e == 31, !k.inf && v&0x7f == 0x7f:
				return math.NaN()
			case e == 0:
				return sign * math.Ldexp(float64(m), 1-bias-k.mant)
			}
			return sign * math.Ldexp(float64(m+1<<k.mant), e-bias-k.mant)
		}
		got := evaluate(t, "cvt.rn.f16x2."+k.name+"x2 %d, %x;", a, zero, zero)
		for i, g := range got {
			if f, want := f16ref(g&0xffff), value(uint64(i)); f != want && !(math.IsNaN(f) && math.IsNaN(want)) {
				t.Errorf("%s %#x is %g, want %g", k.name, i, f, want)
			}
		}
		f32s := make([]uint64, 256)
		for i := range f32s {
			f32s[i] = of32(float32(value(uint64(i))))
		}
		back := evaluate(t, "cvt.rn.satfinite."+k.name+"x2.f32 %w, %b, %a;", f32s, zero, zero)
		for i, g := range back {
			want := uint64(i)
			switch v := value(uint64(i)); {
			case math.IsNaN(v):
				want = 0x7f
			case math.IsInf(v, 0):
				want-- // the largest finite value
			}
			if g != want {
				t.Errorf("%s of %g is %#x, want %#x", k.name, value(uint64(i)), g, want)
			}
		}
	}
}
