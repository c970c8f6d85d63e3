package tensor

import (
	"math"
	"testing"
)

// Every half goes to float32 and back unchanged, and rounding to half picks
// the nearest neighbour, ties to even: checked against exhaustive neighbours.
func TestHalfRoundTrip(t *testing.T) {
	for i := range 1 << 16 {
		h := uint16(i)
		f := F16ToF32(h)
		if f != f {
			if g := F32ToF16(f); F16ToF32(g) == F16ToF32(g) {
				t.Fatalf("NaN %#04x became %#04x", h, g)
			}
			continue
		}
		if g := F32ToF16(f); g != h {
			t.Fatalf("f16 %#04x -> %g -> %#04x", h, f, g)
		}
		if e := h & 0x7fff; e < 0x7bff { // midpoint to the next larger half
			mid := float32((float64(f) + float64(F16ToF32(h+1))) / 2)
			want := h + h&1
			if g := F32ToF16(mid); g != want {
				t.Fatalf("tie %g between %#04x and %#04x -> %#04x", mid, h, h+1, g)
			}
			if g := F32ToF16(math.Nextafter32(mid, f)); g != h {
				t.Fatalf("just below tie %g -> %#04x, want %#04x", mid, g, h)
			}
		}
		b := F32ToBF16(BF16ToF32(h))
		if x := BF16ToF32(h); x == x && b != h {
			t.Fatalf("bf16 %#04x -> %#04x", h, b)
		}
	}
	if got := F32ToBF16(math.Float32frombits(0x3f808000)); got != 0x3f80 {
		t.Fatalf("bf16 tie to even: %#04x", got)
	}
	if got := F32ToBF16(math.Float32frombits(0x3f818000)); got != 0x3f82 {
		t.Fatalf("bf16 tie to even: %#04x", got)
	}
}

func TestDTypeNames(t *testing.T) {
	for d := Bool; d < numDTypes; d++ {
		got, ok := ParseDType(d.String())
		if !ok || got != d || d.Bits() == 0 {
			t.Errorf("%v: parsed as %v, %v; %d bits", d, got, ok, d.Bits())
		}
	}
	if _, ok := ParseDType("INVALID"); ok {
		t.Error("INVALID is not a type a file may name")
	}
}

func TestRows(t *testing.T) {
	x := Tensor{Offset: 8, DType: BF16, Shape: Of(4, 3, 2)}
	v := x.Rows(1, 3)
	if v.Offset != 8+12 || v.Shape != Of(2, 3, 2) || v.Bytes() != 24 {
		t.Fatalf("%+v", v)
	}
}

var sink Shape

func TestShapesDoNotAllocate(t *testing.T) {
	n := 3
	if a := testing.AllocsPerRun(10, func() { sink = Of(n, 4) }); a != 0 {
		t.Fatalf("making a Shape allocates %v times", a)
	}
}
