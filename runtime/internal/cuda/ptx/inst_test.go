package ptx

import (
	"context"
	"math"
	"math/big"
	"math/bits"
	"strings"
	"testing"
)

// instKernel wraps one instruction: thread i reads the i-th 64-bit word of a, b
// and c, in registers %A %B %C (64 bits), %a %b %c (32) and %x %y %z (16), and
// writes %D, or %d or %w zero-extended to it.
func instKernel(inst string) string {
	out := "mov.b64 %D, {%d, 0};"
	switch {
	case strings.Contains(inst, "%D"):
		out = ""
	case strings.Contains(inst, "%w"):
		out = "cvt.u64.u16 %D, %w;"
	case strings.Contains(inst, "%q"):
		out = "selp.b64 %D, 1, 0, %q;"
	}
	return `.version 7.8
.target sm_80
.address_size 64
.visible .entry k(.param .u64 pd, .param .u64 pa, .param .u64 pb, .param .u64 pc) {
	.reg .b64 %A, %B, %C, %D, %E, %t<6>;
	.reg .b32 %a, %b, %c, %d, %e, %i;
	.reg .b16 %x, %y, %z, %w;
	.reg .pred %p, %q;
	mov.u32 %i, %tid.x;
	ld.param.u64 %t0, [pd];
	ld.param.u64 %t1, [pa];
	ld.param.u64 %t2, [pb];
	ld.param.u64 %t3, [pc];
	mad.wide.u32 %t0, %i, 8, %t0;
	mad.wide.u32 %t1, %i, 8, %t1;
	mad.wide.u32 %t2, %i, 8, %t2;
	mad.wide.u32 %t3, %i, 8, %t3;
	ld.global.b64 %A, [%t1];
	ld.global.b64 %B, [%t2];
	ld.global.b64 %C, [%t3];
	cvt.u32.u64 %a, %A;
	cvt.u32.u64 %b, %B;
	cvt.u32.u64 %c, %C;
	cvt.u16.u64 %x, %A;
	cvt.u16.u64 %y, %B;
	cvt.u16.u64 %z, %C;
	mov.b64 %D, 0;
	mov.b32 %d, 0;
	` + inst + `
	` + out + `
	st.global.b64 [%t0], %D;
	ret;
}
`
}

// evaluate runs an instruction on 64 triples of words: n threads, so that a
// full and a partial warp are seen.
func evaluate(t *testing.T, inst string, a, b, c []uint64) []uint64 {
	t.Helper()
	m, err := Parse(instKernel(inst))
	if err != nil {
		t.Errorf("%s: %v", inst, err)
		return nil
	}
	d := newDevice()
	out, _ := d.alloc("d", 8*len(a))
	_, err = m.Kernel("k").Launch(context.Background(), Config{Grid: grid(1, 1), Block: grid(len(a), 1)},
		pack(out, put(d, "a", a), put(d, "b", b), put(d, "c", c)), d.regions, Options{Workers: 1})
	if err != nil {
		t.Errorf("%s: %v", inst, err)
		return nil
	}
	return get[uint64](t, d, out, len(a))
}

// instCase says what an instruction computes. kind chooses the operands.
type instCase struct {
	inst string
	kind string // i32 i64 f32 f64 f16 bf16 shift
	want func(a, b, c uint64) uint64
}

func f32of(v uint64) float32 { return math.Float32frombits(uint32(v)) }
func of32(f float32) uint64  { return uint64(math.Float32bits(f)) }
func f64of(v uint64) float64 { return math.Float64frombits(v) }
func u32of(v uint64) uint64  { return v & 0xffffffff }
func i32of(v uint64) int64   { return int64(int32(v)) }

func yes(v bool) uint64 {
	if v {
		return 1
	}
	return 0
}

// operands gives values that matter to a kind, each against each, and random
// ones.
func operands(kind string) (a, b, c []uint64) {
	var edge []uint64
	switch kind {
	case "i32", "shift":
		edge = []uint64{0, 1, 2, 31, 32, 33, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffe, 0x12345678}
	case "i64":
		edge = []uint64{0, 1, 3, 63, 64, 1 << 31, 1 << 32, 1<<63 - 1, 1 << 63, math.MaxUint64, 0x123456789abcdef0, 0xfedcba9876543210}
	case "f32":
		for _, f := range []float32{0, float32(math.Copysign(0, -1)), 1, -1, 0.5, 1.5, 2.5, 3.49, -2.5, 1e-45, -1e-40, 0x1p-126, 1e10, -1e10, math.MaxFloat32, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 127.5, 300} {
			edge = append(edge, of32(f))
		}
	case "f64":
		for _, f := range []float64{0, 1, -1, 0.5, 2.5, 1e300, -1e-300, math.Inf(1), math.NaN(), 1e10} {
			edge = append(edge, math.Float64bits(f))
		}
	case "f16":
		edge = []uint64{0, 0x8000, 0x3c00, 0xbc00, 1, 0x3ff, 0x400, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x3555, 0x4248}
	case "bf16":
		edge = []uint64{0, 0x8000, 0x3f80, 0xbf80, 1, 0x7f, 0x80, 0x7f7f, 0x7f80, 0xff80, 0x7fc0, 0x3eab, 0x4049}
	}
	r := rng(99)
	for i := range 480 {
		pick := func(k int) uint64 {
			if i < 240 {
				return edge[(i*k+k)%len(edge)]
			}
			v := r.next()
			switch kind {
			case "f32":
				return of32(float32(math.Ldexp(float64(int64(v>>32))-0x1p31, int(v&63)-62)))
			case "f64":
				return math.Float64bits(math.Ldexp(float64(int64(v)), int(v&127)-126))
			case "shift":
				return v >> (v & 63)
			}
			return v
		}
		a = append(a, pick(1))
		b = append(b, pick(1+i/len(edge)))
		c = append(c, pick(7))
	}
	return a, b, c
}

func check(t *testing.T, cases []instCase) {
	t.Helper()
	for _, k := range cases {
		a, b, c := operands(k.kind)
		got := evaluate(t, k.inst, a, b, c)
		bad := 0
		for i, g := range got {
			want := k.want(a[i], b[i], c[i])
			same := g == want
			switch { // every NaN is as good as another
			case strings.HasPrefix(k.kind, "f32"), strings.Contains(k.inst, "f32 %d"):
				same = same || f32of(g) != f32of(g) && f32of(want) != f32of(want)
			case k.kind == "f64":
				same = same || f64of(g) != f64of(g) && f64of(want) != f64of(want)
			case k.kind == "f16":
				same = same || g&0x7fff > 0x7c00 && want&0x7fff > 0x7c00
			case k.kind == "bf16":
				same = same || g&0x7fff > 0x7f80 && want&0x7fff > 0x7f80
			}
			if !same {
				if bad++; bad <= 3 {
					t.Errorf("%s of %#x, %#x, %#x is %#x, want %#x", k.inst, a[i], b[i], c[i], g, want)
				}
			}
		}
	}
}

func TestIntegerArithmetic(t *testing.T) {
	big128 := func(a, b *big.Int) *big.Int { return new(big.Int).Mul(a, b) }
	hi := func(p *big.Int, n uint) uint64 {
		q := new(big.Int).Rsh(p, n) // floor: right for negative products
		return new(big.Int).And(q, new(big.Int).SetUint64(1<<n-1)).Uint64()
	}
	check(t, []instCase{
		{"add.u32 %d, %a, %b;", "i32", func(a, b, _ uint64) uint64 { return u32of(a + b) }},
		{"add.s64 %D, %A, %B;", "i64", func(a, b, _ uint64) uint64 { return a + b }},
		{"add.s16 %w, %x, %y;", "i32", func(a, b, _ uint64) uint64 { return (a + b) & 0xffff }},
		{"add.sat.s32 %d, %a, %b;", "i32", func(a, b, _ uint64) uint64 {
			return u32of(uint64(max(math.MinInt32, min(math.MaxInt32, i32of(a)+i32of(b)))))
		}},
		{"sub.s32 %d, %a, %b;", "i32", func(a, b, _ uint64) uint64 { return u32of(a - b) }},
		{"sub.u64 %D, %A, 7;", "i64", func(a, _, _ uint64) uint64 { return a - 7 }},
		{"mul.lo.s32 %d, %a, %b;", "i32", func(a, b, _ uint64) uint64 { return u32of(a * b) }},
		{"mul.hi.u32 %d, %a, %b;", "i32", func(a, b, _ uint64) uint64 { return u32of(a) * u32of(b) >> 32 }},
		{"mul.hi.s32 %d, %a, %b;", "i32", func(a, b, _ uint64) uint64 { return u32of(uint64(i32of(a) * i32of(b) >> 32)) }},
		{"mul.lo.u64 %D, %A, %B;", "i64", func(a, b, _ uint64) uint64 { return a * b }},
		{"mul.hi.u64 %D, %A, %B;", "i64", func(a, b, _ uint64) uint64 {
			return hi(big128(new(big.Int).SetUint64(a), new(big.Int).SetUint64(b)), 64)
		}},
		{"mul.hi.s64 %D, %A, %B;", "i64", func(a, b, _ uint64) uint64 {
			return hi(big128(big.NewInt(int64(a)), big.NewInt(int64(b))), 64)
		}},
		{"mul.wide.u32 %D, %a, %b;", "i32", func(a, b, _ uint64) uint64 { return u32of(a) * u32of(b) }},
		{"mul.wide.s32 %D, %a, %b;", "i32", func(a, b, _ uint64) uint64 { return uint64(i32of(a) * i32of(b)) }},
		{"mul.wide.s16 %d, %x, %y;", "i32", func(a, b, _ uint64) uint64 { return u32of(uint64(int64(int16(a)) * int64(int16(b)))) }},
		{"mul.wide.u16 %d, %x, %y;", "i32", func(a, b, _ uint64) uint64 { return a & 0xffff * (b & 0xffff) }},
		{"mad.lo.s32 %d, %a, %b, %c;", "i32", func(a, b, c uint64) uint64 { return u32of(a*b + c) }},
		{"mad.wide.s32 %D, %a, %b, %C;", "i64", func(a, b, c uint64) uint64 { return uint64(i32of(a)*i32of(b)) + c }},
		{"mad.wide.u32 %D, %a, 24, %C;", "i64", func(a, _, c uint64) uint64 { return u32of(a)*24 + c }},
		{"mad.hi.u32 %d, %a, %b, %c;", "i32", func(a, b, c uint64) uint64 { return u32of(u32of(a)*u32of(b)>>32 + c) }},
		{"mad.lo.u64 %D, %A, %B, %C;", "i64", func(a, b, c uint64) uint64 { return a*b + c }},
		{"mad.lo.u16 %w, %x, %y, %z;", "i32", func(a, b, c uint64) uint64 { return (a*b + c) & 0xffff }},
		{"mul24.lo.s32 %d, %a, %b;", "i32", func(a, b, _ uint64) uint64 {
			return u32of(uint64(int64(int32(a)<<8>>8) * int64(int32(b)<<8>>8)))
		}},
		{"div.s32 %d, %a, %b;", "i32", func(a, b, _ uint64) uint64 {
			if i32of(b) == 0 {
				return 0xffffffff
			}
			return u32of(uint64(i32of(a) / i32of(b)))
		}},
		{"div.u64 %D, %A, %B;", "i64", func(a, b, _ uint64) uint64 {
			if b == 0 {
				return math.MaxUint64
			}
			return a / b
		}},
		{"rem.u32 %d, %a, 7;", "i32", func(a, _, _ uint64) uint64 { return u32of(a) % 7 }},
		{"rem.s64 %D, %A, 13;", "i64", func(a, _, _ uint64) uint64 { return uint64(int64(a) % 13) }},
		{"min.s32 %d, %a, %b;", "i32", func(a, b, _ uint64) uint64 { return u32of(uint64(min(i32of(a), i32of(b)))) }},
		{"max.u32 %d, %a, %b;", "i32", func(a, b, _ uint64) uint64 { return max(u32of(a), u32of(b)) }},
		{"max.s64 %D, %A, %B;", "i64", func(a, b, _ uint64) uint64 { return uint64(max(int64(a), int64(b))) }},
		{"min.u16 %w, %x, %y;", "i32", func(a, b, _ uint64) uint64 { return min(a&0xffff, b&0xffff) }},
		{"abs.s32 %d, %a;", "i32", func(a, _, _ uint64) uint64 { return u32of(uint64(max(i32of(a), -i32of(a)))) }},
		{"neg.s64 %D, %A;", "i64", func(a, _, _ uint64) uint64 { return -a }},
		{"sad.u32 %d, %a, %b, %c;", "i32", func(a, b, c uint64) uint64 {
			return u32of(max(u32of(a), u32of(b)) - min(u32of(a), u32of(b)) + c)
		}},
		{"add.cc.u32 %d, %a, %b; addc.u32 %d, %c, 0;", "i32", func(a, b, c uint64) uint64 { return u32of(c + (u32of(a)+u32of(b))>>32) }},
		{"sub.cc.u64 %D, %A, %B; subc.u64 %D, %C, 0;", "i64", func(a, b, c uint64) uint64 {
			_, borrow := bits.Sub64(a, b, 0)
			return c - borrow
		}},
		{"mad.lo.cc.u32 %d, %a, %b, %c; madc.hi.u32 %d, %a, %b, 0;", "i32", func(a, b, c uint64) uint64 {
			return u32of((u32of(a)*u32of(b) + u32of(c)) >> 32)
		}},
		{"dp4a.s32.s32 %d, %a, %b, %c;", "i32", func(a, b, c uint64) uint64 {
			s := int64(int32(c))
			for i := range 4 {
				s += int64(int8(a>>(8*i))) * int64(int8(b>>(8*i)))
			}
			return u32of(uint64(s))
		}},
		{"dp4a.u32.s32 %d, %a, %b, %c;", "i32", func(a, b, c uint64) uint64 {
			s := int64(int32(c))
			for i := range 4 {
				s += int64(uint8(a>>(8*i))) * int64(int8(b>>(8*i)))
			}
			return u32of(uint64(s))
		}},
		{"dp2a.lo.s32.u32 %d, %a, %b, %c;", "i32", func(a, b, c uint64) uint64 {
			return u32of(uint64(int64(int32(c)) + int64(int16(a))*int64(uint8(b)) + int64(int16(a>>16))*int64(uint8(b>>8))))
		}},
	})
}

func TestShapesOfOperands(t *testing.T) {
	for inst, msg := range map[string]string{
		"add.u32 %d, %A, %b;":                      "not 32 bits",
		"add.u32 %D, %a, %b;":                      "not 32 bits",
		"add.u32 %d, %a;":                          "2 operands",
		"add.u32 %d, %a, %nope;":                   "not declared",
		"frob.u32 %d, %a, %b;":                     "frob is not supported",
		"bra nowhere;":                             "nowhere is not defined",
		"ld.global.v4.b64 %D, [%A];":               "not supported",
		"ld.global.v2.b32 {%d}, [%A];":             "vector of 2",
		"setp.lt.s32 %d, %a, %b;":                  "not a predicate",
		"@%a add.u32 %d, %a, %b;":                  "not a predicate",
		"lop3.b32 %d, %a, %b, %c, 256;":            "not a byte",
		"cp.async.cg.shared.global [%a], [%A], 8;": "16",
		"add.u32 %d, %a %b;":                       "comma",
		"call (%d), f, (%a);":                      "not declared",
		"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 %a, %b, %c, %d;": "registers",
		"shfl.sync.sideways.b32 %d, %a, 1, 31, -1;":                           "not supported",
	} {
		_, err := Parse(instKernel(inst))
		if err == nil || !strings.Contains(err.Error(), msg) {
			t.Errorf("%s: error is %v, want one with %q", inst, err, msg)
		}
		if err != nil && !strings.Contains(err.Error(), "line 29") {
			t.Errorf("%s: error does not name the line: %v", inst, err)
		}
	}
}
