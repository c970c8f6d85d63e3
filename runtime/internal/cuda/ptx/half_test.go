package ptx

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// The quick conversions to halves agree with rounding by arithmetic.
func TestHalvesRoundAsArithmeticSays(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	slow := func(f float64, fm format, exp int) uint32 {
		switch {
		case math.IsNaN(f):
			return 0x7fff
		case !math.IsInf(f, 0):
			f = fm.round(f, rndNearest)
		}
		if math.IsInf(f, 0) {
			inf := uint32(1<<exp-1) << fm.mant
			if f < 0 {
				inf |= 0x8000
			}
			return inf
		}
		return fm.pack(f, exp)
	}
	check := func(f float64) {
		t.Helper()
		if got, want := uint32(bf16FromFloat(f, rndNearest)), slow(f, fmtBF16, 8); got != want {
			t.Fatalf("bf16 of %g (%#x): %#x, not %#x", f, math.Float64bits(f), got, want)
		}
		if got, want := uint32(f16FromFloat(f, rndNearest)), slow(f, fmtF16, 5); got != want {
			t.Fatalf("f16 of %g (%#x): %#x, not %#x", f, math.Float64bits(f), got, want)
		}
	}
	for _, f := range []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat32, math.MaxFloat64, 65504, 65519.999, 65520, 0x1p-24, 0x1p-25, 0x1.8p-25, 0x1p-133, 0x1p-134, 0x1p-150, 5e-324} {
		check(f)
		check(-f)
	}
	for range 200000 {
		check(math.Float64frombits(r.Uint64()))
		e := r.IntN(330) - 180
		check(math.Ldexp(r.Float64()*2-1, e))
		// About midway between two halves, where rounding is hardest.
		h := float64(math.Float32frombits(r.Uint32() & 0xffff8000))
		check(h)
		check(math.Nextafter(h, math.Inf(1)))
		check(math.Nextafter(h, math.Inf(-1)))
		g := math.Ldexp(float64(2*r.IntN(2048)+1), r.IntN(45)-30)
		check(g)
		check(math.Nextafter(g, 0))
	}
}

// Minimum and maximum of halves agree with those of the floats they stand for.
func TestHalfOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	for range 200000 {
		x, y := r.Uint32()&0xffff, r.Uint32()&0xffff
		for _, widen := range []func(uint32) float32{bf16ToF32, f16ToF32} {
			a, b := widen(x), widen(y)
			if a != a || b != b || a == b {
				continue
			}
			if (halfOrder(x<<16|y) < halfOrder(y<<16)) != (a < b) {
				t.Fatalf("%#x and %#x are %g and %g", x, y, a, b)
			}
		}
	}
	if halfOrder(0x80000000) >= halfOrder(0xffff) {
		t.Error("-0 is not below +0")
	}
}

// A column of zeros is left out, but not where infinities make it NaN.
func TestMatrixProductWithZeroColumns(t *testing.T) {
	for bits, isNaN := range map[string]bool{"0x3f803f80": false, "0x7f803f80": true} { // ones; one and infinity
		out, err := execute(t, "", `
	.reg .f32 %d<4>; .reg .b32 %a<4>, %b<2>; .reg .f32 %z;
	mov.b32 %a0, `+bits+`; mov.b32 %a1, %a0; mov.b32 %a2, %a0; mov.b32 %a3, %a0;
	mov.f32 %z, 0f00000000;
	// Column 0 of B, of lanes 0 to 3, is one; all others are zero.
	setp.lt.u32 %p, %i, 4; selp.b32 %b0, 0x3f803f80, 0, %p; mov.b32 %b1, 0;
	mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%d0,%d1,%d2,%d3}, {%a0,%a1,%a2,%a3}, {%b0,%b1}, {%z,%z,%z,%z};
	st.global.f32 [%o], %d1;`, 32, Options{})
		if err != nil {
			t.Fatal(err)
		}
		// Register 1 is column 1, 3, 5 or 7: zero, or NaN.
		for l, v := range out {
			f := math.Float32frombits(v)
			if isNaN != (f != f) || !isNaN && v != 0 {
				t.Fatalf("%s: lane %d has %g", bits, l, f)
			}
		}
	}
}

// Minimum and maximum of pairs, against the definition.
func TestHalfMinMax(t *testing.T) {
	for _, c := range []struct {
		op   string
		x, y uint32
		want uint32
	}{
		{"min.bf16x2", 0x3f80c000, 0x4000bf80, 0x3f80c000},
		{"max.bf16x2", 0x3f80c000, 0x4000bf80, 0x4000bf80},
		{"min.bf16x2", 0x80000000, 0x00008000, 0x80008000},
		{"max.bf16x2", 0x80000000, 0x00008000, 0x00000000},
		{"min.bf16x2", 0x7fc03f80, 0x40007fc0, 0x40003f80},
		{"max.NaN.bf16x2", 0x7fc03f80, 0x4000ff81, 0x7fff7fff},
		{"min.bf16x2", 0x7fc1ff85, 0xffc17f85, 0x7fff7fff},
		{"max.bf16x2", 0x7f80ff80, 0x7f7fff7f, 0x7f80ff7f},
		{"min.f16x2", 0x3c007c01, 0xc0004000, 0xc0004000},
		{"max.f16x2", 0x7c00fc00, 0x7bff7e00, 0x7c00fc00},
	} {
		out, err := execute(t, "", fmt.Sprintf("\tmov.b32 %%r1, %#x; mov.b32 %%r2, %#x; %s %%r3, %%r1, %%r2; st.global.u32 [%%o], %%r3;", c.x, c.y, c.op), 1, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if out[0] != c.want {
			t.Errorf("%s of %#x and %#x: %#x, not %#x", c.op, c.x, c.y, out[0], c.want)
		}
	}
}
