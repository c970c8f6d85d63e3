package ptx

import (
	"errors"
	"math"
	"math/bits"
	"strings"
	"testing"
)

// TestRarerInstructions has forms that kernels use seldom.
func TestRarerInstructions(t *testing.T) {
	pairs := func(f func(x, y uint64) uint64) func(a, b, _ uint64) uint64 {
		return func(a, b, _ uint64) uint64 {
			return f(a&0xffff, b&0xffff)&0xffff | f(a>>16&0xffff, b>>16&0xffff)&0xffff<<16
		}
	}
	prmt := func(pick func(n uint64) [4]uint64, n uint64) func(a, b, _ uint64) uint64 {
		return func(a, b, _ uint64) uint64 {
			v, r := u32of(a)|b<<32, uint64(0)
			for i, p := range pick(n) {
				r |= v >> (8 * p) & 0xff << (8 * i)
			}
			return r
		}
	}
	check(t, []instCase{
		{"sub.s16 %w, %x, %y;", "i32", func(a, b, _ uint64) uint64 { return (a - b) & 0xffff }},
		{"sub.sat.s32 %d, %a, %b;", "i32", func(a, b, _ uint64) uint64 {
			return u32of(uint64(max(math.MinInt32, min(math.MaxInt32, i32of(a)-i32of(b)))))
		}},
		{"mul.hi.u16 %w, %x, %y;", "i32", func(a, b, _ uint64) uint64 { return a & 0xffff * (b & 0xffff) >> 16 }},
		{"mad.hi.s32 %d, %a, %b, %c;", "i32", func(a, b, c uint64) uint64 { return u32of(uint64(i32of(a)*i32of(b)>>32) + c) }},
		{"mad.hi.sat.s32 %d, %a, %b, %c;", "i32", func(a, b, c uint64) uint64 {
			return u32of(uint64(max(math.MinInt32, min(math.MaxInt32, i32of(a)*i32of(b)>>32+i32of(c)))))
		}},
		{"mad.hi.u64 %D, %A, %B, %C;", "i64", func(a, b, c uint64) uint64 { h, _ := bits.Mul64(a, b); return h + c }},
		{"mad24.lo.u32 %d, %a, %b, %c;", "i32", func(a, b, c uint64) uint64 { return u32of((a&0xffffff)*(b&0xffffff) + c) }},
		{"mul24.hi.u32 %d, %a, %b;", "i32", func(a, b, _ uint64) uint64 { return u32of((a & 0xffffff) * (b & 0xffffff) >> 16) }},
		{"add.u16x2 %d, %a, %b;", "i32", pairs(func(x, y uint64) uint64 { return x + y })},
		{"max.s16x2 %d, %a, %b;", "i32", pairs(func(x, y uint64) uint64 { return uint64(max(int16(x), int16(y))) })},
		{"min.u16x2 %d, %a, %b;", "i32", pairs(func(x, y uint64) uint64 { return min(x, y) })},
		{"min.u64 %D, %A, %B;", "i64", func(a, b, _ uint64) uint64 { return min(a, b) }},
		{"abs.s64 %D, %A;", "i64", func(a, _, _ uint64) uint64 { return uint64(max(int64(a), -int64(a))) }},
		{"neg.s16 %w, %x;", "i32", func(a, _, _ uint64) uint64 { return -a & 0xffff }},
		{"sad.s64 %D, %A, %B, %C;", "i64", func(a, b, c uint64) uint64 { return uint64(max(int64(a), int64(b))-min(int64(a), int64(b))) + c }},
		{"rem.s32 %d, %a, 5;", "i32", func(a, _, _ uint64) uint64 { return u32of(uint64(i32of(a) % 5)) }},
		{"rem.u64 %D, %A, %B;", "i64", func(a, b, _ uint64) uint64 {
			if b == 0 {
				return a
			}
			return a % b
		}},
		{"div.s64 %D, %A, %B;", "i64", func(a, b, _ uint64) uint64 {
			switch b {
			case 0:
				return math.MaxUint64
			case math.MaxUint64:
				return -a
			}
			return uint64(int64(a) / int64(b))
		}},
		{"div.u16 %w, %x, 7;", "i32", func(a, _, _ uint64) uint64 { return a & 0xffff / 7 }},
		{"dp2a.hi.u32.s32 %d, %a, %b, %c;", "i32", func(a, b, c uint64) uint64 {
			return u32of(c + a&0xffff*uint64(int8(b>>16)) + a>>16&0xffff*uint64(int8(b>>24)))
		}},
		{"shl.b16 %w, %x, 5;", "i32", func(a, _, _ uint64) uint64 { return a << 5 & 0xffff }},
		{"shr.u16 %w, %x, 5;", "i32", func(a, _, _ uint64) uint64 { return a & 0xffff >> 5 }},
		{"shr.u64 %D, %A, %b;", "i64", func(a, b, _ uint64) uint64 { return a >> min(u32of(b), 64) }},
		{"bfind.shiftamt.u64 %d, %A;", "i64", func(a, _, _ uint64) uint64 {
			if a == 0 {
				return 0xffffffff
			}
			return uint64(bits.LeadingZeros64(a))
		}},
		{"bmsk.wrap.b32 %d, %a, %b;", "i32", func(a, b, _ uint64) uint64 { return u32of((1<<(b&31) - 1) << (a & 31)) }},
		{"szext.wrap.u32 %d, %a, %b;", "i32", func(a, b, _ uint64) uint64 { return a & (1<<(b&31) - 1) }},
		{"fns.b32 %d, %a, 0, 2;", "i32", func(a, _, _ uint64) uint64 {
			v := uint32(a)
			v &= v - 1
			if v == 0 {
				return 0xffffffff
			}
			return uint64(bits.TrailingZeros32(v))
		}},
		{"prmt.b32.f4e %d, %a, %b, 3;", "i32", prmt(func(n uint64) [4]uint64 { return [4]uint64{n, n + 1, n + 2, n + 3} }, 3)},
		{"prmt.b32.b4e %d, %a, %b, 2;", "i32", prmt(func(n uint64) [4]uint64 { return [4]uint64{n, (n - 1) & 7, (n - 2) & 7, (n - 3) & 7} }, 2)},
		{"prmt.b32.rc8 %d, %a, %b, 2;", "i32", prmt(func(n uint64) [4]uint64 { return [4]uint64{n, n, n, n} }, 2)},
		{"prmt.b32.ecl %d, %a, %b, 1;", "i32", prmt(func(n uint64) [4]uint64 { return [4]uint64{max(n, 0), max(n, 1), max(n, 2), max(n, 3)} }, 1)},
		{"prmt.b32.ecr %d, %a, %b, 1;", "i32", prmt(func(n uint64) [4]uint64 { return [4]uint64{0, min(1, n), min(2, n), min(3, n)} }, 1)},
		{"setp.gt.s32 %p, %c, 0; setp.lt.or.s32 %q, %a, %b, %p;", "i32", func(a, b, c uint64) uint64 { return yes(i32of(a) < i32of(b) || i32of(c) > 0) }},
		{"setp.gt.s32 %p, %c, 0; setp.lt.xor.s32 %q|%p, %a, %b, %p;", "i32", func(a, b, c uint64) uint64 { return yes(i32of(a) < i32of(b) != (i32of(c) > 0)) }},
		{"setp.eq.f16x2 %p|%q, %a, %b;", "i32", func(a, b, _ uint64) uint64 { return yes(f16ref(a>>16&0xffff) == f16ref(b>>16&0xffff)) }},
		{"setp.lt.bf16x2 %q|%p, %a, %b;", "i32", func(a, b, _ uint64) uint64 { return yes(halfRef("bf16", a&0xffff) < halfRef("bf16", b&0xffff)) }},
		{"set.eq.f16.f16 %w, %x, %y;", "f16", func(a, b, _ uint64) uint64 { return 0x3c00 * yes(f16ref(a&0xffff) == f16ref(b&0xffff)) }},
		{"setp.gt.s32 %p, %c, 0; set.lt.and.u32.u32 %d, %a, %b, %p;", "i32", func(a, b, c uint64) uint64 {
			return u32of(-yes(u32of(a) < u32of(b) && i32of(c) > 0))
		}},
		{"slct.f32.f32 %d, %a, %b, %c;", "f32", func(a, b, c uint64) uint64 {
			if f32of(c) >= 0 {
				return u32of(a)
			}
			return u32of(b)
		}},
		{"copysign.f64 %D, %A, %B;", "f64", func(a, b, _ uint64) uint64 { return a&(1<<63) | b&^(1<<63) }},
		{"abs.f64 %D, %A;", "f64", func(a, _, _ uint64) uint64 { return a &^ (1 << 63) }},
		{"max.f64 %D, %A, %B;", "f64", func(a, b, _ uint64) uint64 {
			switch x, y := f64of(a), f64of(b); {
			case x != x:
				return b
			case y != y:
				return a
			default:
				return math.Float64bits(math.Max(x, y))
			}
		}},
		{"neg.f16x2 %d, %a;", "i32", func(a, _, _ uint64) uint64 { return u32of(a ^ 0x80008000) }},
		{"testp.finite.f64 %q, %A;", "f64", func(a, _, _ uint64) uint64 { f := f64of(a); return yes(f-f == 0) }},
		{"testp.notanumber.f32 %q, %a;", "f32", func(a, _, _ uint64) uint64 { f := f32of(a); return yes(f != f) }},
		{"cvt.rn.satfinite.f16.f32 %w, %a;", "f32", func(a, _, _ uint64) uint64 {
			f := float64(f32of(a))
			if f != f {
				return 0x7fff
			}
			return uint64(f16FromFloat(max(-65504, min(65504, f)), rndNearest))
		}},
		{"cvt.sat.f32.f32 %d, %a;", "f32", func(a, _, _ uint64) uint64 {
			if f := f32of(a); f > 0 {
				return of32(min(f, 1))
			}
			return 0
		}},
		{"cvt.rzi.u64.f32 %D, %a;", "f32", func(a, _, _ uint64) uint64 {
			switch f := f32of(a); {
			case !(f >= 1):
				return 0
			case f >= 1<<64:
				return math.MaxUint64
			default:
				return uint64(f)
			}
		}},
		{"cvt.sat.u8.s64 %d, %A;", "i64", func(a, _, _ uint64) uint64 { return uint64(max(0, min(255, int64(a)))) }},
		{"cvt.pack.sat.u16.s32 %d, %a, %b;", "i32", func(a, b, _ uint64) uint64 {
			sat := func(v uint64) uint64 { return uint64(max(0, min(65535, i32of(v)))) }
			return sat(a)<<16 | sat(b)
		}},
		{"createpolicy.fractional.L2::evict_last.b64 %E, 0f3F800000; prefetch.global.L2 [%t1]; discard.global.L2 [%t1], 128; nanosleep.u32 20; ld.global.L1::no_allocate.L2::cache_hint.b64 %D, [%t1], %E;", "i64", func(a, _, _ uint64) uint64 { return a }},
		{"ldu.global.u32 %d, [%t1];", "i32", func(a, _, _ uint64) uint64 { return u32of(a) }},
		{"ld.acquire.gpu.global.u32 %d, [%t1+4];", "i64", func(a, _, _ uint64) uint64 { return a >> 32 }},
		{"ld.relaxed.sys.global.u64 %D, [%t1];", "i64", func(a, _, _ uint64) uint64 { return a }},
		{"st.release.gpu.global.u64 [%t2], %A; ld.global.v2.u32 {_, %d}, [%t2];", "i64", func(a, _, _ uint64) uint64 { return a >> 32 }},
		{"ld.global.v4.u16 {%x, %y, %z, %w}, [%t1];", "i64", func(a, _, _ uint64) uint64 { return a >> 48 }},
		{"ld.global.v4.s8 {%a, %b, %c, %d}, [%t1+4];", "i64", func(a, _, _ uint64) uint64 { return u32of(uint64(int8(a >> 56))) }},
	})
	half := []struct {
		inst string
		kind string
		f    func(float64) float64
		rel  float64
	}{
		{"tanh.approx.f16 %w, %x;", "f16", math.Tanh, 0x1p-10},
		{"ex2.approx.f16 %w, %x;", "f16", math.Exp2, 0x1p-9},
		{"tanh.approx.bf16 %w, %x;", "bf16", math.Tanh, 0x1p-7},
		{"ex2.approx.ftz.bf16 %w, %x;", "bf16", math.Exp2, 0x1p-7},
	}
	for _, h := range half {
		a, b, c := operands(h.kind)
		for i, g := range evaluate(t, h.inst, a, b, c) {
			x := halfRef(h.kind, a[i]&0xffff)
			want, got := h.f(x), halfRef(h.kind, g)
			if math.IsNaN(x) || math.Abs(want) < 0x1p-14 || math.Abs(want) > 65504 {
				continue
			}
			if math.Abs(got-want) > h.rel*math.Abs(want) {
				t.Errorf("%s of %g is %g, want %g", h.inst, x, got, want)
			}
		}
	}
}

// TestAsyncCopies: sizes, zero filling, groups, and data that lands only when
// it is waited for.
func TestAsyncCopies(t *testing.T) {
	const setup = `
	.shared .align 16 .b8 s[4096];
	mov.u32 %r1, s; shl.b32 %r2, %i, 5; add.u32 %r1, %r1, %r2;
	mad.wide.u32 %A, %i, 16, %out;
	mul.lo.u32 %r3, %i, 1000; add.u32 %r4, %r3, 1; add.u32 %r5, %r3, 2; add.u32 %r6, %r3, 3;
	st.global.v4.u32 [%A], {%r3, %r4, %r5, %r6};
	mov.u32 %r7, 7; st.shared.v4.u32 [%r1], {%r7, %r7, %r7, %r7}; st.shared.v4.u32 [%r1+16], {%r7, %r7, %r7, %r7};
`
	for _, c := range []struct {
		name, body string
		want       func(i uint32) uint32
	}{
		{"16 bytes", "cp.async.cg.shared.global [%r1], [%A], 16; cp.async.wait_all; ld.shared.u32 %r8, [%r1+12];", func(i uint32) uint32 { return i*1000 + 3 }},
		{"8 bytes", "cp.async.ca.shared.global [%r1], [%A], 8; cp.async.wait_all; ld.shared.u32 %r8, [%r1+4]; ld.shared.u32 %r9, [%r1+8]; add.u32 %r8, %r8, %r9;", func(i uint32) uint32 { return i*1000 + 1 + 7 }},
		{"4 bytes with hints", "cp.async.ca.shared.global.L2::128B [%r1+4], [%A+8], 4; cp.async.wait_all; ld.shared.u32 %r8, [%r1+4];", func(i uint32) uint32 { return i*1000 + 2 }},
		{"a part, the rest zero", "cp.async.cg.shared.global [%r1], [%A], 16, 6; cp.async.wait_all; ld.shared.v4.u32 {%r8, %r9, %r10, %r11}, [%r1]; add.u32 %r8, %r9, %r10; add.u32 %r8, %r8, %r11;", func(i uint32) uint32 { return (i*1000 + 1) & 0xffff }},
		{"none of it, from nowhere", "mov.u64 %B, 0; cp.async.cg.shared.global [%r1], [%B], 16, 0; cp.async.wait_all; ld.shared.u32 %r8, [%r1];", func(uint32) uint32 { return 0 }},
		{"none of it, by predicate", "setp.eq.u32 %p, %r7, 7; cp.async.cg.shared.global [%r1], [%A], 16, %p; cp.async.wait_all; ld.shared.u32 %r8, [%r1+4];", func(uint32) uint32 { return 0 }},
		{
			"the older of two groups", `cp.async.cg.shared.global [%r1], [%A], 16; cp.async.commit_group;
			cp.async.cg.shared.global [%r1+16], [%A], 16; cp.async.commit_group;
			cp.async.wait_group 1; ld.shared.u32 %r8, [%r1]; cp.async.wait_group 0; ld.shared.u32 %r9, [%r1+20]; add.u32 %r8, %r8, %r9;`,
			func(i uint32) uint32 { return 2000*i + 1 },
		},
		{
			"lanes with different numbers of groups", `and.b32 %r9, %i, 1; setp.eq.u32 %p, %r9, 0;
			@%p cp.async.cg.shared.global [%r1], [%A], 16; @%p cp.async.commit_group;
			cp.async.cg.shared.global [%r1+16], [%A], 16; cp.async.commit_group;
			cp.async.wait_group 0; ld.shared.u32 %r8, [%r1+4]; ld.shared.u32 %r9, [%r1+20]; add.u32 %r8, %r8, %r9;`,
			func(i uint32) uint32 { return i*1000 + 1 + []uint32{i*1000 + 1, 7}[i%2] },
		},
		{
			"the data is that of the copy's time", `cp.async.cg.shared.global [%r1], [%A], 16; st.global.u32 [%A], 5; cp.async.wait_all; ld.shared.u32 %r8, [%r1];`,
			func(i uint32) uint32 { return i * 1000 },
		},
	} {
		body := setup + c.body + " bar.sync 0; st.global.u32 [%o], %r8;"
		m, err := Parse(program("", body))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		d := newDevice()
		out, _ := d.alloc("out", 64*16)
		if err := try(m.Kernel("k"), d, Options{Workers: 1, Checks: CheckShared}, Config{Grid: grid(1, 1), Block: grid(64, 1)}, pack(out)); err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for i, g := range get[uint32](t, d, out, 64) {
			if want := c.want(uint32(i)); g != want {
				t.Errorf("%s: thread %d has %d, want %d", c.name, i, g, want)
				break
			}
		}
	}
	for name, c := range map[string]struct {
		body string
		kind FaultKind
		text string
	}{
		"a read before the wait":          {"cp.async.cg.shared.global [%r1], [%A], 16; ld.shared.u32 %r8, [%r1];", FaultInFlight, "ld.shared"},
		"a read that waits for a group":   {"cp.async.cg.shared.global [%r1], [%A], 16; cp.async.wait_group 0; ld.shared.u32 %r8, [%r1];", FaultInFlight, "ld.shared"},
		"a write before the wait":         {"cp.async.cg.shared.global [%r1], [%A], 16; st.shared.u32 [%r1], %r8;", FaultInFlight, "st.shared"},
		"a neighbour's before a barrier":  {"cp.async.cg.shared.global [%r1], [%A], 16; cp.async.wait_all; xor.b32 %r1, %r1, 32; ld.shared.u32 %r8, [%r1];", FaultRace, "ld.shared"},
		"a source outside every region":   {"add.u64 %A, %A, 1024; cp.async.cg.shared.global [%r1], [%A], 16;", FaultIllegal, "cp.async"},
		"a part of a source outside":      {"add.u64 %A, %A, 1024; cp.async.cg.shared.global [%r1], [%A], 16, 3;", FaultIllegal, "cp.async"},
		"a misaligned source":             {"cp.async.cg.shared.global [%r1], [%A+8], 16;", FaultMisaligned, "cp.async"},
		"a misaligned part":               {"cp.async.cg.shared.global [%r1], [%A+8], 16, 4;", FaultMisaligned, "cp.async"},
		"a destination outside":           {"add.u32 %r1, %r1, 4096; cp.async.cg.shared.global [%r1], [%A], 16;", FaultIllegal, "shared"},
		"one place for two lanes' copies": {"and.b32 %r1, %r1, 4032; cp.async.cg.shared.global [%r1], [%A], 16;", FaultInFlight, "cp.async"},
	} {
		m := parse(t, program("", setup+c.body))
		d := newDevice()
		out, _ := d.alloc("out", 64*16)
		err := try(m.Kernel("k"), d, Options{Workers: 1, Checks: CheckShared}, Config{Grid: grid(1, 1), Block: grid(64, 1)}, pack(out))
		var f *Fault
		if !errors.As(err, &f) || f.Kind != c.kind || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Without checks the destination still holds the old value until the wait.
	body := setup + "cp.async.cg.shared.global [%r1], [%A], 16; ld.shared.u32 %r8, [%r1]; cp.async.wait_all; bar.sync 0; st.global.u32 [%o], %r8;"
	d := newDevice()
	out, _ := d.alloc("out", 64*16)
	if err := try(parse(t, program("", body)).Kernel("k"), d, Options{}, Config{Grid: grid(1, 1), Block: grid(64, 1)}, pack(out)); err != nil {
		t.Fatal(err)
	}
	if got := get[uint32](t, d, out, 64)[5]; got != 7 {
		t.Errorf("before the wait shared memory holds %d, want the old 7", got)
	}
}
