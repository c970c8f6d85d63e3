package cpu

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"infer/runtime/kernels"
	"infer/runtime/kernels/kerneltest"
	"infer/runtime/tensor"
)

// mmGoTile is what the kernels for tiles do, in Go.
func mmGoTile(a *mmArgs) {
	for r := range a.rows {
		dst := (*[lanes]float32)(unsafe.Add(a.dst, r*a.ldd))
		if a.add == 0 {
			*dst = [lanes]float32{}
		}
		x, w := unsafe.Add(a.x, r*a.ldx), a.w
		for range a.k {
			for _, part := range *(*[2][groupLen / 2]uint32)(x) {
				for n := range dst {
					var even, odd float32
					for k, v := range part {
						p := *(*uint32)(unsafe.Add(w, 4*(k*lanes+n)))
						even += math.Float32frombits(v<<16) * math.Float32frombits(p<<16)
						odd += math.Float32frombits(v&^0xffff) * math.Float32frombits(p&^0xffff)
					}
					dst[n] += even + odd
				}
			}
			x, w = unsafe.Add(x, actTile), unsafe.Add(w, tileBytes)
		}
	}
}

// mmGoTile4 is the same for four panels.
func mmGoTile4(a *mmArgs) {
	w, dst := a.w, a.dst
	for p := range 4 {
		a.w, a.dst = unsafe.Add(w, uintptr(p)*a.ldw), unsafe.Add(dst, p*lanes*4)
		mmGoTile(a)
	}
	a.w, a.dst = w, dst
}

// openWith is a backend with other kernels of one format.
func openWith(t testing.TB, format int, widths [4]func(*mmArgs)) *Backend {
	t.Helper()
	b, err := Open(Options{Threads: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Device().Close() })
	p, mm := *b.path, *b.path.mm
	p.dense = nil
	for _, f := range []int{fmtTile, fmtDots, fmtPairs, fmtDense, fmtFlip} {
		mm.kernels[f] = [amxRows + 1][4]func(*mmArgs){}
	}
	for r := 1; r <= amxRows; r++ {
		mm.kernels[format][r] = widths
	}
	p.mm, b.path = &mm, &p
	return b
}

// openTiles is a backend with kernels for tiles in Go.
func openTiles(t testing.TB) *Backend {
	t.Helper()
	return openWith(t, fmtTile, [4]func(*mmArgs){mmGoTile, nil, mmGoTile4})
}

// No machine of ours has tiles: everything around their kernels is tested with
// kernels in Go that do the same.
func TestTiles(t *testing.T) {
	every := 5
	if testing.Short() { // slow, and with no races of its own
		every = 60
	}
	kerneltest.Run(t, func(t testing.TB) kernels.Backend { return kerneltest.Sample(openTiles(t), every) })
}

// A row has the same bits among any others, and what is not finite stays in its
// row or output and is not finite there.
func TestTileRows(t *testing.T) { testRows(t, openTiles(t)) }

func testRows(t *testing.T, b *Backend) {
	ops, err := b.NewOps(nil)
	if err != nil {
		t.Fatal(err)
	}
	floatsOf := func(dims ...int) tensor.Tensor {
		x := tensor.Tensor{DType: tensor.F32, Shape: tensor.Of(dims...)}
		if x.Buf, err = b.dev.Alloc(x.Bytes()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = x.Buf.(*buffer).Free() })
		return x
	}
	rng := rand.New(rand.NewPCG(4, 4))
	const rows, badRow, badOut = 97, 40, 7
	for _, k := range []int{32, 64, 544, 1024} {
		if testing.Short() && k > 64 {
			continue
		}
		for _, n := range []int{16, 50, 80} {
			w, err := b.Pack(nil, counted{n, k}, kernels.AsStored)
			if err != nil {
				t.Fatal(err)
			}
			panel := unsafe.Slice((*byte)(w.(*weight).at(0)), 64)
			panel[4*badOut], panel[4*badOut+1] = 0x80, 0x7f // infinity
			x, y := floatsOf(rows, k), floatsOf(rows, n)
			for i := range floats(x) {
				floats(x)[i] = float32(rng.NormFloat64())
			}
			floats(x)[badRow*k+k-1] = float32(math.Inf(-1))
			ops.MatMul(kernels.MatMulArgs{Dst: y, X: x, W: w})
			for i, v := range floats(y) {
				if finite := v-v == 0; finite != (i/n != badRow && i%n != badOut) {
					t.Fatalf("K=%d N=%d: output %d of row %d is %g", k, n, i%n, i/n, v)
				}
			}
			for _, m := range []int{1, 2, 15, 16, 17, 33} {
				part, out := floatsOf(m, k), floatsOf(m, n)
				for from := 0; from+m <= rows; from += m {
					copy(floats(part), floats(x)[from*k:])
					ops.MatMul(kernels.MatMulArgs{Dst: out, X: part, W: w})
					if !bytes.Equal(mem(out), mem(y)[4*from*n:][:4*m*n]) {
						t.Fatalf("K=%d N=%d: rows %d.. have other bits among %d", k, n, from, m)
					}
				}
			}
			_ = w.Free()
		}
	}
}

// The two parts of an activation have its first 16 bits; what is not finite
// makes a product that is not.
func TestSplit(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	inf := float32(math.Inf(1))
	odd := []float32{0, float32(math.Copysign(0, -1)), 1, inf, -inf, math.Float32frombits(0x7fffffff), math.Float32frombits(0xff800001), 1e38, math.SmallestNonzeroFloat32}
	for range 300 {
		x := make([]float32, 3*groupLen)
		for i := range x {
			x[i] = float32(rng.NormFloat64() * math.Exp2(rng.Float64()*60-30))
			if rng.IntN(10) == 0 {
				x[i] = odd[rng.IntN(len(odd))]
			}
		}
		want := make([]byte, 3*actTile)
		splitGo(&want[0], &x[0], 3)
		for _, p := range paths() {
			got := make([]byte, len(want))
			p.quant.split(&got[0], &x[0], 3)
			if !bytes.Equal(got, want) {
				t.Fatalf("%s: %v gives %x, want %x", p.name, x, got, want)
			}
		}
		for i, v := range x {
			part := func(n int) float32 {
				at := i/groupLen*actTile + n*actTile/2 + i%groupLen*2
				return math.Float32frombits(uint32(want[at])<<16 | uint32(want[at+1])<<24)
			}
			sum := part(0) + part(1)
			if math.Abs(float64(v)) < 1e-35 { // the rest may have no place
				continue
			}
			if finite := v-v == 0; finite != (sum-sum == 0) || finite && math.Abs(float64(sum-v)) > math.Abs(float64(v))/(1<<16) {
				t.Fatalf("%v is %v and %v", v, part(0), part(1))
			}
		}
	}
}
