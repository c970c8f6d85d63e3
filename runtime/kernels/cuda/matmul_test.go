package cuda

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"infer/runtime/internal/cuda/ptx"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

var formats = []kernels.Format{kernels.BF16, kernels.F16, kernels.F32, kernels.Q8, kernels.Q4}

// packed is a weight in the layout of the kernels, and its exact values.
type packed struct {
	layout
	addr, scales uint64
	d            tensor.DType // of raw
	raw          []byte       // row-major
}

func (d *gpu) pack(f kernels.Format, rows, cols int, v []float32) packed {
	p := packed{layout: layout{f, rows, cols}}
	dst, scales := make([]byte, p.bytes()), make([]byte, p.scaleBytes())
	switch f {
	case kernels.Q8, kernels.Q4:
		p.d = tensor.F32
		for n := range rows {
			p.quantize(dst, scales, v[n*cols:(n+1)*cols], n)
		}
		p.raw = encode(p.d, p.values(dst, scales))
	default:
		p.d = map[kernels.Format]tensor.DType{kernels.BF16: tensor.BF16, kernels.F16: tensor.F16, kernels.F32: tensor.F32}[f]
		p.raw = encode(p.d, v)
		p.putRows(dst, p.raw, 0)
	}
	p.addr = d.put("weight", dst)
	if len(scales) > 0 {
		p.scales = d.put("scales", scales)
	}
	return p
}

// values reads quantised weights back.
func (p packed) values(dst, scales []byte) []float32 {
	v := make([]float32, 0, p.rows*p.cols)
	for n := range p.rows {
		for k := range p.cols {
			at := p.at(n, k)
			q := int(int8(dst[at]))
			if p.format == kernels.Q4 {
				j := k % laneCols
				q = int(binary.LittleEndian.Uint32(dst[at:])>>(4*(j/2)+16*(j%2))&15) - 8
			}
			v = append(v, float32(q)*tensor.F16ToF32(binary.LittleEndian.Uint16(scales[p.scaleAt(n, k):])))
		}
	}
	return v
}

// product launches the kernel for m rows.
func (d *gpu) product(p packed, act tensor.DType, m int, x, dst, bias uint64, flags int) ptx.Stats {
	d.t.Helper()
	return d.gatedProduct(p, act, m, x, dst, bias, flags, 0, 0)
}

// gatedProduct also gates the result where the flags say so.
func (d *gpu) gatedProduct(p packed, act tensor.DType, m int, x, dst, bias uint64, flags int, gated uint64, kind int) ptx.Stats {
	d.t.Helper()
	name := fmt.Sprintf("_%v_%s", p.format, suffix(act))
	k, grid := kernel(d.t, "gemv", "gemv"+name), [3]int{(p.rows + 31) / 32, 1, 1}
	if m > fewRows {
		k, grid = kernel(d.t, "gemm", "gemm"+name), [3]int{(p.rows + 127) / 128, (m + 63) / 64, 1}
	}
	return d.launch(k, grid, 256, p.addr, p.scales, x, dst, bias, m, p.rows, p.cols, flags, gated, kind)
}

const (
	flagAdd   = 1
	flagF32   = 2
	flagGates = 4
)

func TestMatMul(t *testing.T) {
	sizes := [][3]int{{1, 1, 1}, {3, 17, 33}, {8, 40, 514}, {9, 31, 72}, {70, 150, 136}, {200, 20, 600}}
	if sweep {
		for _, m := range []int{1, 2, 5, 7, 8, 9, 12, 63, 64, 65, 128, 200} {
			for _, s := range [][2]int{{15, 7}, {16, 64}, {64, 1}, {100, 250}, {130, 1025}, {33, 2050}, {260, 576}} {
				sizes = append(sizes, [3]int{m, s[0], s[1]})
			}
		}
	}
	for _, f := range formats {
		for _, act := range actTypes {
			t.Run(fmt.Sprintf("%v_%v", f, act), func(t *testing.T) {
				for i, s := range brief(sizes, 4) {
					testProduct(t, f, act, s[0], s[1], s[2], i)
				}
			})
		}
	}
}

func testProduct(t *testing.T, f kernels.Format, act tensor.DType, m, n, k, variant int) {
	d := newGPU(t)
	out, flags := act, variant%4
	if flags&flagF32 > 0 {
		out = tensor.F32
	}
	w := d.pack(f, n, k, d.random(n*k, 1))
	xb, bias := encode(act, d.random(m*k, 1)), d.random(n, 3)
	init := encode(out, d.random(m*n, 3))
	y := tensor.Tensor{}
	dst, _ := d.alloc("dst", len(init))
	if flags&flagAdd > 0 {
		dst = d.fill("dst", init)
	}
	y = d.tensor(out, tensor.Of(m, n), init)
	a := kernels.MatMulArgs{
		Dst: y, X: d.tensor(act, tensor.Of(m, k), xb), W: d.refWeight(w.d, n, k, w.raw), Add: flags&flagAdd > 0,
	}
	var biasAt uint64
	if variant%3 == 1 {
		biasAt = d.put("bias", encode(tensor.F32, bias))
		a.Bias = d.tensor(tensor.F32, tensor.Of(n), encode(tensor.F32, bias))
	}
	d.ref.MatMul(a)
	x := d.put("x", xb)
	d.product(w, act, m, x, dst, biasAt, flags)
	// The bound grows with the magnitudes that are added.
	wv, xv, iv := decode(w.d, w.raw), decode(act, xb), decode(out, init)
	what := fmt.Sprintf("%v·%v M=%d N=%d K=%d flags=%d", f, act, m, n, k, flags)
	got := d.floats(dst, out)
	near(t, what, got, d.refFloats(y), out, func(i int) float64 {
		sum := math.Abs(float64(iv[i])) + math.Abs(float64(bias[i%n]))
		for j := range k {
			sum += math.Abs(float64(xv[i/n*k+j]) * float64(wv[i%n*k+j]))
		}
		return (8 + 2*math.Sqrt(float64(k))) * epsilon * sum
	})
	// Each row alone gives the same bits.
	for _, r := range []int{0, m / 2, m - 1} {
		if m == 1 {
			break
		}
		size := out.Bits() / 8 * n
		one, _ := d.alloc("row", size)
		if flags&flagAdd > 0 {
			one = d.fill("row", init[r*size:(r+1)*size])
		}
		row := d.put("x row", xb[r*k*act.Bits()/8:(r+1)*k*act.Bits()/8])
		d.product(w, act, 1, row, one, biasAt, flags)
		sameBytes(t, fmt.Sprintf("%s: row %d alone", what, r), d.bytes(one), d.bytes(dst)[r*size:(r+1)*size])
	}
}

// A NaN or an infinity stays in its row, or in its output; and a weight widened
// to f32 gives the same bits.
func TestMatMulSpecial(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, act := range actTypes {
		for _, m := range []int{3, 10} {
			const n, k = 70, 66
			d := newGPU(t)
			wv, xv := d.random(n*k, 1), d.random(m*k, 1)
			wv[17*k+5], wv[69*k+65] = nan, inf
			xv[(m-1)*k+64], xv[k+3] = nan, -inf
			xb := encode(act, xv)
			x := d.put("x", xb)
			for _, f := range formats[:2] {
				w := d.pack(f, n, k, wv)
				y := d.tensor(act, tensor.Of(m, n), nil)
				d.ref.MatMul(kernels.MatMulArgs{Dst: y, X: d.tensor(act, tensor.Of(m, k), xb), W: d.refWeight(w.d, n, k, w.raw)})
				a, _ := d.alloc("dst", m*n*act.Bits()/8)
				b, _ := d.alloc("dst", m*n*act.Bits()/8)
				d.product(w, act, m, x, a, 0, 0)
				what := fmt.Sprintf("%v·%v M=%d", f, act, m)
				near(t, what, d.floats(a, act), d.refFloats(y), act, func(int) float64 { return 30 * k * epsilon })
				d.product(d.pack(kernels.F32, n, k, decode(w.d, w.raw)), act, m, x, b, 0, 0)
				sameBytes(t, what+" widened", d.bytes(b), d.bytes(a))
			}
		}
	}
}

// A product of one row reads its weight once, and little else.
func TestMatMulTraffic(t *testing.T) {
	const n, k = 128, 512
	for _, f := range formats {
		d := newGPU(t)
		w := d.pack(f, n, k, d.random(n*k, 1))
		x := d.put("x", encode(tensor.BF16, d.random(k, 1)))
		y, _ := d.alloc("y", n*2)
		s := d.product(w, tensor.BF16, 1, x, y, 0, 0)
		size := w.bytes() + w.scaleBytes()
		if extra := s.GlobalRead - size; extra < 0 || extra > n/32*k*2 {
			t.Errorf("%v: %d bytes read for a weight of %d", f, s.GlobalRead, size)
		}
		if f == kernels.BF16 && s.GlobalSectors*32 > (s.GlobalRead+s.GlobalWritten)*11/10 {
			t.Errorf("%d sectors for %d bytes", s.GlobalSectors, s.GlobalRead)
		}
	}
}

// The gates done with the product have the bits of those done after it.
func TestMatMulGates(t *testing.T) {
	for i, f := range formats {
		for j, act := range actTypes {
			for _, m := range []int{1 + (3*i+4*j)%8, 9 + 10*i} {
				const n, k = 80, 72
				d := newGPU(t)
				w := d.pack(f, 2*n, k, d.random(2*n*k, 1))
				x, bias := d.put("x", encode(act, d.random(m*k, 1))), d.put("bias", encode(tensor.F32, d.random(2*n, 1)))
				size := act.Bits() / 8
				plain, want := d.alloc("plain", 2*m*n*size)
				d.product(w, act, m, x, plain, bias, 0)
				gated, wantGated := d.alloc("gated", m*n*size)
				kind := (i + j) % 3
				d.launch(kernel(t, "rows", "gated_"+suffix(act)), [3]int{1, m, 1}, 256, plain, gated, n, kind)
				both, got := d.alloc("both", 2*m*n*size)
				one, gotGated := d.alloc("one", m*n*size)
				d.gatedProduct(w, act, m, x, both, bias, flagGates, one, kind)
				what := fmt.Sprintf("%v %v M=%d", f, act, m)
				sameBytes(t, what+" product", got, want)
				sameBytes(t, what+" gates", gotGated, wantGated)
			}
		}
	}
}
