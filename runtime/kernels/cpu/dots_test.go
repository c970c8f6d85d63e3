package cpu

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"infer/runtime/kernels"
	"infer/runtime/kernels/kerneltest"
	"infer/runtime/tensor"
)

// mmGoDots is what the kernels for dot products of bfloat16 do, in Go. A product
// of two bfloat16 is a float32, so that only the sum is rounded.
func mmGoDots(a *mmArgs) {
	pairs := *a
	pairs.k, pairs.step = a.k*groupLen/2, 4*lanes
	mmGoPairs(&pairs)
}

// mmGoPairs is what those for K/V pages do.
func mmGoPairs(a *mmArgs) {
	for r := range a.rows {
		dst := (*[lanes]float32)(unsafe.Add(a.dst, r*a.ldd))
		if a.add == 0 {
			*dst = [lanes]float32{}
		}
		for k, v := range unsafe.Slice((*uint32)(unsafe.Add(a.x, r*a.ldx)), a.k) {
			for n, p := range (*[lanes]uint32)(unsafe.Add(a.w, uintptr(k)*a.step)) {
				odd := math.Float32frombits(v&^0xffff) * math.Float32frombits(p&^0xffff)
				even := math.Float32frombits(v<<16) * math.Float32frombits(p<<16)
				dst[n] = float32(dst[n]+odd) + even
			}
		}
	}
}

// Everything around the kernels for dot products, with kernels in Go, also where
// the processor has none.
func TestDots(t *testing.T) {
	every := 5
	if testing.Short() { // slow, and with no races of its own
		every = 60
	}
	kerneltest.Run(t, func(t testing.TB) kernels.Backend {
		b := openWith(t, fmtDots, [4]func(*mmArgs){mmGoDots})
		for r := range b.path.mm.kernels[fmtPairs] {
			b.path.mm.kernels[fmtPairs][r] = [4]func(*mmArgs){mmGoPairs}
		}
		return kerneltest.Sample(b, every)
	})
}

func TestDotRows(t *testing.T) {
	testRows(t, openWith(t, fmtDots, [4]func(*mmArgs){mmGoDots}))
	for _, p := range paths() {
		t.Run(p.name, func(t *testing.T) {
			if p.mm.kernels[fmtDots][1][0] == nil {
				t.Skip("not testable on this path: it has no dot products of bfloat16")
			}
			b := openWith(t, fmtDots, [4]func(*mmArgs){})
			p.dense, b.path = nil, &p
			testRows(t, b)
		})
	}
}

// The processor's dot products are, bit for bit, what Intel's manual says: so
// all processors give the same.
func TestDotsAreThoseOfTheManual(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	if !slices.ContainsFunc(paths(), func(p path) bool { return p.rounds() }) {
		t.Skip("not testable here: this processor has no dot products of bfloat16")
	}
	for _, p := range paths() {
		for at := range 2 * len(p.mm.kernels[fmtDots]) {
			format, rows := []int{fmtDots, fmtPairs}[at%2], at/2
			for log2p, kernel := range p.mm.kernels[format][rows] {
				if kernel == nil {
					continue
				}
				const groups = 3
				panels := 1 << log2p
				x, w := make([]byte, rows*groups*actDots), make([]byte, panels*groups*tileBytes+guard)
				for _, b := range [][]byte{x, w} {
					for i := range b {
						if b[i] = byte(rng.Uint32()); i%2 == 1 { // numbers from 2^-9 to 2^6
							b[i] = b[i]&0x83 | 0x3c
						}
					}
				}
				want, got := make([]float32, rows*panels*lanes), make([]float32, rows*panels*lanes)
				for i := range want {
					want[i] = float32(rng.NormFloat64())
					got[i] = want[i]
				}
				a := mmArgs{ldx: groups * actDots, ldw: groups * tileBytes, ldd: uintptr(panels * lanes * 4), k: groups, step: tileBytes, add: uintptr(rows % 2), rows: uintptr(rows)}
				inGo := mmGoDots
				if format == fmtPairs { // every other one
					a.k, a.step, inGo = groups*groupLen/4-1, 2*4*lanes, mmGoPairs
				}
				a.x, a.w, a.dst = unsafe.Pointer(&x[0]), unsafe.Pointer(&w[0]), unsafe.Pointer(&got[0])
				kernel(&a)
				for i := range panels {
					a.w, a.dst = unsafe.Pointer(&w[i*groups*tileBytes]), unsafe.Pointer(&want[i*lanes])
					inGo(&a)
				}
				for i, v := range want {
					if math.Float32bits(v) != math.Float32bits(got[i]) {
						t.Fatalf("%s, format %d, %d rows, %d panels: output %d is %g, want %g", p.name, format, rows, panels, i, got[i], v)
					}
				}
			}
		}
	}
}

// Activations are rounded to the nearest even; what is not finite stays so.
func TestRound(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	inf := float32(math.Inf(1))
	odd := []float32{0, float32(math.Copysign(0, -1)), 1, inf, -inf, math.Float32frombits(0x7fffffff), math.Float32frombits(0xff800001), 3.4e38, math.SmallestNonzeroFloat32, 1 + 1.0/256, 1 + 3.0/256}
	for range 300 {
		x := make([]float32, 3*groupLen)
		for i := range x {
			x[i] = float32(rng.NormFloat64() * math.Exp2(rng.Float64()*250-125))
			if rng.IntN(10) == 0 {
				x[i] = odd[rng.IntN(len(odd))]
			}
		}
		want := make([]byte, 3*actDots)
		roundGo(&want[0], &x[0], 3)
		for i, v := range x {
			got := math.Float32frombits(uint32(want[2*i])<<16 | uint32(want[2*i+1])<<24)
			if v != v {
				if got == got {
					t.Fatalf("%v becomes %v", v, got)
				}
				continue
			}
			if d := math.Abs(float64(got) - float64(v)); d > math.Abs(float64(v))/256+0x1p-126 && math.Abs(float64(v)) < 3.3e38 {
				t.Fatalf("%v becomes %v", v, got)
			}
		}
		for _, p := range paths() {
			got := make([]byte, len(want))
			p.quant.round(&got[0], &x[0], 3)
			if !bytes.Equal(got, want) {
				t.Fatalf("%s: %v gives %x, want %x", p.name, x, got, want)
			}
		}
	}
}

// Activations are not rounded beside GPUs, which don't, and with Precision F32.
func TestWhenActivationsAreRounded(t *testing.T) {
	for _, o := range []Options{{BesideGPUs: true}, {Precision: F32}, {}} {
		b, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		want := tensor.F32
		if o == (Options{}) && b.path.rounds() {
			want = tensor.BF16
		}
		if got := b.OperandType(tensor.BF16); got != want {
			t.Errorf("%+v: %v, want %v", o, got, want)
		}
		if got := b.OperandType(tensor.F16); got != tensor.F32 {
			t.Errorf("%+v: F16 weights with %v", o, got)
		}
		_ = b.Device().Close()
	}
}
