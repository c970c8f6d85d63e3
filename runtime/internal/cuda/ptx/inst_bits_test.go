package ptx

import (
	"math"
	"math/bits"
	"testing"
)

func TestBitOperations(t *testing.T) {
	check(t, []instCase{
		{"and.b32 %d, %a, %b;", "i32", func(a, b, _ uint64) uint64 { return u32of(a & b) }},
		{"or.b64 %D, %A, %B;", "i64", func(a, b, _ uint64) uint64 { return a | b }},
		{"xor.b32 %d, %a, -1;", "i32", func(a, _, _ uint64) uint64 { return u32of(^a) }},
		{"not.b64 %D, %A;", "i64", func(a, _, _ uint64) uint64 { return ^a }},
		{"not.b16 %w, %x;", "i32", func(a, _, _ uint64) uint64 { return ^a & 0xffff }},
		{"cnot.b32 %d, %a;", "i32", func(a, _, _ uint64) uint64 { return yes(u32of(a) == 0) }},
		{"lop3.b32 %d, %a, %b, %c, 0xE8;", "i32", func(a, b, c uint64) uint64 { return u32of(a&b | b&c | a&c) }},
		{"lop3.b32 %d, %a, %b, %c, 0x96;", "i32", func(a, b, c uint64) uint64 { return u32of(a ^ b ^ c) }},
		{"lop3.b32 %d, %a, %b, %c, 0xCA;", "i32", func(a, b, c uint64) uint64 { return u32of(a&b | ^a&c) }},
		{"shl.b32 %d, %a, %b;", "shift", func(a, b, _ uint64) uint64 { return u32of(u32of(a) << min(u32of(b), 64)) }},
		{"shr.u32 %d, %a, %b;", "shift", func(a, b, _ uint64) uint64 { return u32of(a) >> min(u32of(b), 64) }},
		{"shr.s32 %d, %a, %b;", "shift", func(a, b, _ uint64) uint64 { return u32of(uint64(i32of(a) >> min(u32of(b), 31))) }},
		{"shr.s64 %D, %A, %b;", "i64", func(a, b, _ uint64) uint64 { return uint64(int64(a) >> min(u32of(b), 63)) }},
		{"shl.b64 %D, %A, 40;", "i64", func(a, _, _ uint64) uint64 { return a << 40 }},
		{"shr.s16 %w, %x, 3;", "i32", func(a, _, _ uint64) uint64 { return uint64(int16(a)>>3) & 0xffff }},
		{"shf.l.wrap.b32 %d, %a, %b, %c;", "i32", func(a, b, c uint64) uint64 {
			n := u32of(c) & 31
			return u32of((u32of(b)<<32 | u32of(a)) << n >> 32)
		}},
		{"shf.r.clamp.b32 %d, %a, %b, %c;", "shift", func(a, b, c uint64) uint64 {
			return u32of((u32of(b)<<32 | u32of(a)) >> min(u32of(c), 32))
		}},
		{"popc.b64 %d, %A;", "i64", func(a, _, _ uint64) uint64 { return uint64(bits.OnesCount64(a)) }},
		{"clz.b32 %d, %a;", "i32", func(a, _, _ uint64) uint64 { return uint64(bits.LeadingZeros32(uint32(a))) }},
		{"clz.b64 %d, %A;", "i64", func(a, _, _ uint64) uint64 { return uint64(bits.LeadingZeros64(a)) }},
		{"brev.b32 %d, %a;", "i32", func(a, _, _ uint64) uint64 { return uint64(bits.Reverse32(uint32(a))) }},
		{"bfind.u32 %d, %a;", "i32", func(a, _, _ uint64) uint64 { return u32of(uint64(bits.Len32(uint32(a)) - 1)) }},
		{"bfind.s32 %d, %a;", "i32", func(a, _, _ uint64) uint64 {
			v := uint32(a)
			if int32(v) < 0 {
				v = ^v
			}
			return u32of(uint64(bits.Len32(v) - 1))
		}},
		{"bfe.u32 %d, %a, 5, 7;", "i32", func(a, _, _ uint64) uint64 { return a >> 5 & 127 }},
		{"bfe.s32 %d, %a, 5, 7;", "i32", func(a, _, _ uint64) uint64 { return u32of(uint64(int32(a) << 20 >> 25)) }},
		{"bfe.s32 %d, %a, 28, 9;", "i32", func(a, _, _ uint64) uint64 { return u32of(uint64(int32(a) >> 28)) }},
		{"bfe.u64 %D, %A, 60, 20;", "i64", func(a, _, _ uint64) uint64 { return a >> 60 }},
		{"bfe.u32 %d, %a, 40, 4;", "i32", func(uint64, uint64, uint64) uint64 { return 0 }},
		{"bfi.b32 %d, %a, %b, 8, 12;", "i32", func(a, b, _ uint64) uint64 { return u32of(b&^0xfff00 | a&0xfff<<8) }},
		{"bfi.b64 %D, %A, %B, 0, 64;", "i64", func(a, _, _ uint64) uint64 { return a }},
		{"prmt.b32 %d, %a, %b, 0x7531;", "i32", func(a, b, _ uint64) uint64 {
			return a>>8&0xff | a>>24&0xff<<8 | b>>8&0xff<<16 | b>>24&0xff<<24
		}},
		{"prmt.b32 %d, %a, %b, 0xBA98;", "i32", func(a, _, _ uint64) uint64 {
			r := uint64(0)
			for i := range 4 {
				if a>>(8*i+7)&1 != 0 {
					r |= 0xff << (8 * i)
				}
			}
			return r
		}},
		{"prmt.b32.rc16 %d, %a, %b, 1;", "i32", func(a, _, _ uint64) uint64 { return a>>16&0xffff | a>>16&0xffff<<16 }},
		{"bmsk.clamp.b32 %d, 4, 40;", "i32", func(uint64, uint64, uint64) uint64 { return 0xfffffff0 }},
		{"szext.clamp.s32 %d, %a, 5;", "i32", func(a, _, _ uint64) uint64 { return u32of(uint64(int32(a) << 27 >> 27)) }},
	})
}

func TestMovesAndCompares(t *testing.T) {
	check(t, []instCase{
		{"mov.b64 %D, {%a, %b};", "i32", func(a, b, _ uint64) uint64 { return u32of(a) | b<<32 }},
		{"mov.b64 {%a, %d}, %A;", "i64", func(a, _, _ uint64) uint64 { return a >> 32 }},
		{"mov.b32 %d, {%x, %y};", "i32", func(a, b, _ uint64) uint64 { return a&0xffff | b&0xffff<<16 }},
		{"mov.b32 {%x, %w}, %a;", "i32", func(a, _, _ uint64) uint64 { return u32of(a) >> 16 }},
		{"setp.lt.s32 %p, %a, %b; selp.b32 %d, %a, %b, %p;", "i32", func(a, b, _ uint64) uint64 { return u32of(uint64(min(i32of(a), i32of(b)))) }},
		{"setp.hi.u32 %q, %a, %b;", "i32", func(a, b, _ uint64) uint64 { return yes(u32of(a) > u32of(b)) }},
		{"setp.ge.s64 %q, %A, %B;", "i64", func(a, b, _ uint64) uint64 { return yes(int64(a) >= int64(b)) }},
		{"setp.le.u64 %q, %A, %B;", "i64", func(a, b, _ uint64) uint64 { return yes(a <= b) }},
		{"setp.ne.s16 %q, %x, %y;", "i32", func(a, b, _ uint64) uint64 { return yes(int16(a) != int16(b)) }},
		{"setp.gt.s32 %p, %c, 0; setp.eq.and.u32 %q, %a, %b, !%p;", "i32", func(a, b, c uint64) uint64 {
			return yes(u32of(a) == u32of(b) && i32of(c) <= 0)
		}},
		{"setp.lt.s32 %p|%q, %a, %b;", "i32", func(a, b, _ uint64) uint64 { return yes(i32of(a) >= i32of(b)) }},
		{"setp.lt.f32 %q, %a, %b;", "f32", func(a, b, _ uint64) uint64 { return yes(f32of(a) < f32of(b)) }},
		{"setp.ltu.f32 %q, %a, %b;", "f32", func(a, b, _ uint64) uint64 { return yes(!(f32of(a) >= f32of(b))) }},
		{"setp.ne.f32 %q, %a, %b;", "f32", func(a, b, _ uint64) uint64 { return yes(f32of(a) < f32of(b) || f32of(a) > f32of(b)) }},
		{"setp.neu.f32 %q, %a, %b;", "f32", func(a, b, _ uint64) uint64 { return yes(f32of(a) != f32of(b)) }},
		{"setp.nan.f32 %q, %a, %b;", "f32", func(a, b, _ uint64) uint64 {
			return yes(math.IsNaN(float64(f32of(a))+0*float64(0)) || f32of(b) != f32of(b))
		}},
		{"setp.num.f64 %q, %A, %B;", "f64", func(a, b, _ uint64) uint64 { return yes(!math.IsNaN(f64of(a)) && !math.IsNaN(f64of(b))) }},
		{"setp.ge.f16 %q, %x, %y;", "f16", func(a, b, _ uint64) uint64 { return yes(f16ref(a) >= f16ref(b)) }},
		{"set.gt.u32.s32 %d, %a, %b;", "i32", func(a, b, _ uint64) uint64 { return u32of(-yes(i32of(a) > i32of(b))) }},
		{"set.le.f32.f32 %d, %a, %b;", "f32", func(a, b, _ uint64) uint64 { return of32(float32(yes(f32of(a) <= f32of(b)))) }},
		{"slct.b32.s32 %d, %a, %b, %c;", "i32", func(a, b, c uint64) uint64 {
			if i32of(c) >= 0 {
				return u32of(a)
			}
			return u32of(b)
		}},
		{"setp.ne.u32 %p, %a, 0; not.pred %q, %p;", "i32", func(a, _, _ uint64) uint64 { return yes(u32of(a) == 0) }},
		{"setp.gt.s32 %p, %a, 0; setp.gt.s32 %q, %b, 0; xor.pred %q, %p, %q;", "i32", func(a, b, _ uint64) uint64 {
			return yes(i32of(a) > 0 != (i32of(b) > 0))
		}},
		{"setp.ne.u32 %p, %a, 0; xor.pred %q, %p, -1;", "i32", func(a, _, _ uint64) uint64 { return yes(u32of(a) == 0) }},
		{"setp.ne.u32 %p, %a, 0; and.pred %q, %p, 0;", "i32", func(_, _, _ uint64) uint64 { return 0 }},
		{"setp.gt.s32 %p, %a, 0; mov.b32 %d, 5; @!%p mov.b32 %d, 6;", "i32", func(a, _, _ uint64) uint64 { return 6 - yes(i32of(a) > 0) }},
		{"testp.subnormal.f32 %q, %a;", "f32", func(a, _, _ uint64) uint64 {
			f := math.Abs(float64(f32of(a)))
			return yes(f != 0 && f < 0x1p-126)
		}},
		{"copysign.f32 %d, %a, %b;", "f32", func(a, b, _ uint64) uint64 { return u32of(a)&0x80000000 | b&0x7fffffff }},
	})
}

// f16ref widens a half by its definition.
func f16ref(v uint64) float64 {
	m, e := float64(v&0x3ff), int(v>>10&31)
	f := math.Ldexp(1024+m, e-25)
	switch {
	case e == 31 && m != 0:
		return math.NaN()
	case e == 31:
		f = math.Inf(1)
	case e == 0:
		f = math.Ldexp(m, -24)
	}
	if v&0x8000 != 0 {
		return -f
	}
	return f
}
