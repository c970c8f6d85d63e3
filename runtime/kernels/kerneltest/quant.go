package kerneltest

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"testing"

	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// quantFormat is a format of integers in groups of 32 along the input.
type quantFormat struct {
	f kernels.Format
	// What the error of a weight may be, root of the mean square against that
	// of normally distributed weights: what the largest magnitude as 127, or
	// as −8 (the usual ways) would give.
	rms float64
}

var quantFormats = []quantFormat{{kernels.Q8, 0.00536}, {kernels.Q4, 0.0861}}

const groupLen = 32

// quantized packs a matrix, and skips the test where the backend cannot.
func (p *pair) quantized(t *testing.T, d tensor.DType, f kernels.Format, rows, cols int, v []float32) kernels.Weight {
	t.Helper()
	w, err := p.dev.b.Pack(p.dev.s, &matrix{d: d, rows: rows, cols: cols, raw: encode(d, v)}, f)
	if errors.Is(err, device.ErrNotSupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Free(); err != nil {
			t.Errorf("free a weight: %v", err)
		}
	})
	return w
}

// rows reads a weight back, by way of Embed.
func (p *pair) rows(w kernels.Weight) []float32 {
	b := &kernels.Batch{}
	for i := range w.Rows() {
		b.Tokens = append(b.Tokens, int32(i))
	}
	p.dev.ops.Begin(b)
	y := p.dev.tensor(p.dev.b.ActType(), tensor.Of(w.Rows(), w.Cols()))
	p.dev.ops.Embed(y, w)
	return p.dev.floats(y)
}

// quantPack: weights come back close to what they were, and exactly where
// they can.
func quantPack(t *testing.T, open Opener) {
	for _, q := range quantFormats {
		t.Run(q.f.String(), func(t *testing.T) {
			p := open2(t, open)
			for _, d := range weightTypes {
				rows, cols := 50, 1056
				v := p.random(rows*cols, 0.02)
				for i := range 64 { // two groups of zeros, in row 3
					v[3*cols+i] = 0
				}
				for i := range cols { // a whole row of them, and one whose groups differ widely
					v[7*cols+i] = 0
					v[8*cols+i] *= float32(math.Pow(10, float64(i/32%4)))
				}
				w := p.quantized(t, d, q.f, rows, cols, v)
				if w.Format() != q.f || w.Rows() != rows || w.Cols() != cols {
					t.Errorf("%v %d×%d, want %v %d×%d", w.Format(), w.Rows(), w.Cols(), q.f, rows, cols)
				}
				bits := map[kernels.Format]float64{kernels.Q8: 8.5, kernels.Q4: 4.5}[q.f]
				if most := 1.35 * bits / 8 * float64(rows*cols); float64(w.Bytes()) > most {
					t.Errorf("%d bytes, more than %.0f", w.Bytes(), most)
				}
				got, want := p.rows(w), p.ref.floats(p.ref.upload(d, tensor.Of(rows, cols), v))
				var sum, n float64
				for i := range got {
					row, g := i/cols, i%cols/groupLen
					if row == 7 || row == 3 && g < 2 {
						if got[i] != 0 {
							t.Fatalf("%v: weight %d of row %d is %g, want 0", d, i%cols, row, got[i])
						}
						continue
					}
					if row != 8 {
						sum += math.Pow(float64(got[i]-want[i])/0.02, 2)
						n++
					}
				}
				// A little for the rounding of the weights' own type and of scales,
				// and of what they are read back in.
				if rms := math.Sqrt(sum / n); !(rms <= q.rms+ulp(d)/4+ulp(p.dev.b.ActType())/8) {
					t.Errorf("%v: root mean square error %.5f, want %.5f or less", d, rms, q.rms)
				}
				for g := range cols / groupLen {
					var e, s float64
					for i := 8*cols + g*groupLen; i < 8*cols+(g+1)*groupLen; i++ {
						e += math.Pow(float64(got[i]-want[i]), 2)
						s += math.Pow(float64(want[i]), 2)
					}
					// Large groups must be as good as others, small ones may be worse
					// where a scale has few bits.
					if rel := math.Sqrt(e / s); g%4 == 3 && !(rel <= 1.5*q.rms+ulp(d)) {
						t.Errorf("%v: relative error %.4f of group %d in a row of different groups", d, rel, g)
					}
				}
			}
		})
	}
}

// exactActs are activations that 8 bits in groups of 32 hold exactly: integers
// up to 127, which every group has.
func (p *pair) exactActs(m, k int) []float32 {
	x := make([]float32, m*k)
	for i := range x {
		x[i] = float32(p.rng.IntN(255) - 127)
		if i%k%groupLen == 0 {
			x[i] = 127
		}
	}
	return x
}

// quantMatMul: the product with a packed weight is that with what Embed reads
// back of it.
func quantMatMul(t *testing.T, open Opener) {
	sizes := [][2]int{{1, 1}, {15, 7}, {16, 32}, {17, 33}, {64, 1}, {31, 512}, {100, 250}, {130, 544}, {33, 1025}, {40, 2050}, {33, 3300}, {150, 576}}
	rows := []int{1, 2, 3, 4, 5, 6, 7, 12, 13, 32, 97, 200}
	for _, q := range quantFormats {
		t.Run(q.f.String(), func(t *testing.T) {
			p := open2(t, open)
			check := func(m, n, k int, bias, add bool) {
				t.Helper()
				if p.skip() {
					return
				}
				w := p.quantized(t, tensor.F32, q.f, n, k, p.random(n*k, 1))
				held := p.rows(w)
				// Activations: exact ones, then any, whose own rounding to 8 bits shows.
				for _, exact := range []bool{true, false} {
					xv := p.exactActs(m, k)
					if !exact {
						xv = p.random(m*k, 50)
					}
					c := &product{p: p, m: m, n: n, k: k, init: p.random(m*n, 100)}
					c.w = p.pack(tensor.F32, kernels.AsStored, n, k, held)
					c.x = p.act(tensor.Of(m, k), xv)
					bv := p.random(n, 100)
					c.bias = p.f32(tensor.Of(n), bv)
					c.w.dev = w
					act := p.dev.b.ActType()
					y := c.run(act, bias, add)
					xs := p.ref.floats(c.x.ref)
					p.same(fmt.Sprintf("M=%d N=%d K=%d bias=%v add=%v exact=%v", m, n, k, bias, add, exact), y, func(i int) float64 {
						var terms, squares, noise float64
						for j := range k {
							a, b := float64(held[i%n*k+j]), float64(xs[i/n*k+j])
							terms += math.Abs(a * b)
							squares += a * b * a * b
							noise += a * a
						}
						// Float sums; integers of 16 bits; what reading the weights back
						// as activations rounds; integers of 8 bits of up to 5 standard
						// deviations.
						limit := 2*ulp(act)*math.Sqrt(squares) +
							(8+2*math.Sqrt(float64(k)))*epsilon*(terms+math.Abs(float64(bv[i%n]))+math.Abs(float64(c.init[i]))) +
							6*math.Sqrt(noise)*127/65536
						if !exact {
							limit += 6 * math.Sqrt(noise/12) * 250 / 127
						}
						return limit
					})
				}
			}
			for i, s := range sizes {
				for j, m := range rows {
					if m < 30 || (i+j)%3 == 0 {
						check(m, s[0], s[1], j%3 == 1, j%2 == 1)
					}
				}
			}
			for range 25 { // any shape
				check(1+p.rng.IntN(40), 1+p.rng.IntN(90), 1+p.rng.IntN(700), p.rng.IntN(2) > 0, p.rng.IntN(2) > 0)
			}
		})
	}
}

// quantSpecial: what is not finite spoils its own row or output, and nothing
// hides it.
func quantSpecial(t *testing.T, open Opener) {
	for _, q := range quantFormats {
		t.Run(q.f.String(), func(t *testing.T) {
			p := open2(t, open)
			nan, inf := float32(math.NaN()), float32(math.Inf(1))
			for _, m := range []int{1, 3, 4, 10, 40} {
				n, k := 70, 66
				wv, xv := p.random(n*k, 1), p.exactActs(m, k)
				wv[17*k+5], wv[69*k+65], wv[30*k+40] = nan, inf, -inf
				bad := make([]bool, m)
				for i, v := range []float32{nan, inf, -inf} {
					if r := m - 1 - 2*i; r > 0 {
						xv[r*k+20*i+3], bad[r] = v, true
					}
				}
				w := p.quantized(t, tensor.F32, q.f, n, k, wv)
				x, y := p.act(tensor.Of(m, k), xv), p.act(tensor.Of(m, n), nil)
				p.dev.ops.MatMul(kernels.MatMulArgs{Dst: y.dev, X: x.dev, W: w})
				for i, v := range p.dev.floats(y.dev) {
					finite := v-v == 0
					if want := !(bad[i/n] || i%n == 17 || i%n == 69 || i%n == 30); finite != want {
						t.Fatalf("M=%d: output %d of row %d is %g", m, i%n, i/n, v)
					}
				}
			}
		})
	}
}

// quantInvariance: a row's product has the same bits alone, in a batch, and in
// chunks.
func quantInvariance(t *testing.T, open Opener) {
	for _, q := range quantFormats {
		t.Run(q.f.String(), func(t *testing.T) {
			p := open2(t, open)
			d, act := p.dev, p.dev.b.ActType()
			const rows = 101
			for _, s := range [][2]int{{50, 66}, {192, 576}, {70, 1025}} {
				n, k := s[0], s[1]
				w := p.quantized(t, tensor.F32, q.f, n, k, p.random(n*k, 1))
				x := d.upload(act, tensor.Of(rows, k), p.random(rows*k, 1))
				bias := d.upload(tensor.F32, tensor.Of(n), p.random(n, 1))
				init := encode(act, p.random(rows*n, 1))
				size := len(init) / rows
				run := func(lo, hi int) []byte {
					y := d.tensor(act, tensor.Of(hi-lo, n))
					d.s.Upload(y, init[lo*size:hi*size])
					d.ops.MatMul(kernels.MatMulArgs{Dst: y, X: x.Rows(lo, hi), W: w, Bias: bias, Add: true})
					return d.bytes(y)
				}
				whole := run(0, rows)
				for _, step := range []int{1, 2, 3, 4, 5, 6, 7, 11, 13, 32, 97} {
					for lo := 0; lo < min(rows, 8*step); lo += step {
						hi := min(lo+step, rows)
						if p.skip() {
							continue
						}
						if !bytes.Equal(run(lo, hi), whole[lo*size:hi*size]) {
							t.Fatalf("N=%d K=%d: rows %d..%d alone differ from the same rows among %d", n, k, lo, hi, rows)
						}
					}
				}
			}
		})
	}
}
