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

var weightTypes = []tensor.DType{tensor.BF16, tensor.F16, tensor.F32}

// product is a matrix product's operands, and what bounds its error.
type product struct {
	p       *pair
	m, n, k int
	w       weights
	x       both
	bias    both
	init    []float32
	limit   []float32 // Σ|x·w| + |bias| + |init|
}

func (p *pair) product(d tensor.DType, m, n, k int) *product {
	p.t.Helper()
	c := &product{p: p, m: m, n: n, k: k}
	wv, xv, bv := p.random(n*k, 1), p.factors(d, m*k), p.random(n, 3)
	c.init = p.random(m*n, 3)
	c.w = p.pack(d, kernels.AsStored, n, k, wv)
	c.x = p.act(tensor.Of(m, k), xv)
	c.bias = p.f32(tensor.Of(n), bv)
	// The bound by the reference itself, on absolute values.
	m2 := &matrix{d: d, rows: n, cols: k, raw: encode(d, abs(wv))}
	w, err := p.ref.b.Pack(p.ref.s, m2, kernels.AsStored)
	if err != nil {
		p.t.Fatal(err)
	}
	y := p.ref.upload(tensor.F32, tensor.Of(m, n), abs(c.init))
	p.ref.ops.MatMul(kernels.MatMulArgs{
		Dst: y, X: p.ref.upload(tensor.F32, tensor.Of(m, k), abs(p.ref.floats(c.x.ref))), W: w,
		Bias: p.ref.upload(tensor.F32, tensor.Of(n), abs(bv)), Add: true,
	})
	c.limit = p.ref.floats(y)
	return c
}

// run multiplies into a new tensor.
func (c *product) run(out tensor.DType, bias, add bool) both {
	p := c.p
	init := c.init
	if !add {
		init = nil
	}
	y := p.typed(out, tensor.Of(c.m, c.n), init)
	a := kernels.MatMulArgs{Dst: y.dev, X: c.x.dev, W: c.w.dev, Add: add}
	b := kernels.MatMulArgs{Dst: y.ref, X: c.x.ref, W: c.w.ref, Add: add}
	if bias {
		a.Bias, b.Bias = c.bias.dev, c.bias.ref
	}
	p.dev.ops.MatMul(a)
	p.ref.ops.MatMul(b)
	return y
}

func (c *product) check(what string, y both) {
	c.p.t.Helper()
	// A sum of K terms in parts: its error grows like a random walk; four
	// standard deviations and some.
	f := (8 + 2*math.Sqrt(float64(c.k))) * epsilon
	c.p.same(what, y, func(i int) float64 { return f * float64(c.limit[i]) })
}

func matMul(t *testing.T, open Opener) {
	sizes := [][2]int{{1, 1}, {15, 7}, {16, 16}, {17, 33}, {64, 1}, {31, 512}, {100, 250}, {130, 514}, {33, 1025}, {40, 2050}, {150, 576}, {24, 2048}, {40, 4128}}
	rows := []int{1, 2, 3, 4, 5, 6, 7, 12, 13, 32, 97, 200}
	for _, d := range weightTypes {
		t.Run(d.String(), func(t *testing.T) {
			p := open2(t, open)
			for _, s := range sizes {
				for i, m := range rows {
					if p.skip() {
						continue
					}
					c := p.product(d, m, s[0], s[1])
					bias, add := i%3 == 1, i%2 == 1
					c.check(fmt.Sprintf("M=%d N=%d K=%d bias=%v add=%v", m, s[0], s[1], bias, add), c.run(p.dev.b.ActType(), bias, add))
				}
			}
			for m := range 201 { // all of them at a small size, bias and add in all ways
				if p.skip() {
					continue
				}
				c := p.product(d, max(m, 1), 50, 60)
				c.check(fmt.Sprintf("M=%d", c.m), c.run(p.dev.b.ActType(), m&1 > 0, m&2 > 0))
			}
			for range 40 { // any shape
				if p.skip() {
					continue
				}
				c := p.product(d, 1+p.rng.IntN(120), 1+p.rng.IntN(150), 1+p.rng.IntN(1200))
				bias, add := p.rng.IntN(2) > 0, p.rng.IntN(2) > 0
				c.check(fmt.Sprintf("M=%d N=%d K=%d bias=%v add=%v", c.m, c.n, c.k, bias, add), c.run(p.dev.b.ActType(), bias, add))
			}
			c := p.product(d, 3, 1000, 96)
			c.check("logits", c.run(tensor.F32, false, false))
		})
	}
}

// matMulSpecial: a NaN or an infinity stays in its row, or in its output.
func matMulSpecial(t *testing.T, open Opener) {
	p := open2(t, open)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, d := range weightTypes {
		for _, m := range []int{1, 3, 4, 10, 40} {
			n, k := 70, 66
			wv, xv := p.random(n*k, 1), p.random(m*k, 1)
			wv[17*k+5], wv[69*k+65] = nan, inf
			xv[(m-1)*k+64] = nan
			if m > 2 {
				xv[k+3] = -inf
			}
			w := p.pack(d, kernels.AsStored, n, k, wv)
			x := p.act(tensor.Of(m, k), xv)
			y := p.act(tensor.Of(m, n), nil)
			p.dev.ops.MatMul(kernels.MatMulArgs{Dst: y.dev, X: x.dev, W: w.dev})
			p.ref.ops.MatMul(kernels.MatMulArgs{Dst: y.ref, X: x.ref, W: w.ref})
			p.same(fmt.Sprintf("%v M=%d", d, m), y, func(int) float64 { return 30 * 66 * epsilon })
		}
	}
}

func pack(t *testing.T, open Opener) {
	p := open2(t, open)
	if _, err := p.dev.b.Pack(p.dev.s, &matrix{d: tensor.F8E4M3, rows: 4, cols: 4, raw: make([]byte, 16)}, kernels.AsStored); !errors.Is(err, device.ErrNotSupported) {
		t.Errorf("F8 weights: %v, want ErrNotSupported", err)
	}
	broken := errors.New("broken")
	m := &matrix{d: tensor.BF16, rows: 100, cols: 40, raw: make([]byte, 8000), err: broken}
	before := p.dev.b.Device().Info().FreeBytes
	if _, err := p.dev.b.Pack(p.dev.s, m, kernels.AsStored); !errors.Is(err, broken) {
		t.Errorf("a reader's error came back as %v", err)
	}
	if after := p.dev.b.Device().Info().FreeBytes; after != before {
		t.Errorf("a failed Pack kept %d bytes", before-after)
	}
	for _, s := range [][2]int{{0, 4}, {4, 0}, {-1, 4}, {1 << 31, 1 << 31}, {1 << 62, 1 << 62}} {
		if _, err := p.dev.b.Pack(p.dev.s, &matrix{d: tensor.F32, rows: s[0], cols: s[1]}, kernels.AsStored); err == nil {
			t.Errorf("packed a %d×%d matrix", s[0], s[1])
		}
	}
	for _, d := range weightTypes {
		w := p.pack(d, kernels.AsStored, 33, 20, p.random(660, 1)).dev
		if w.Rows() != 33 || w.Cols() != 20 || w.Bytes() < 660*int64(d.Bits())/8 ||
			w.Format() != map[tensor.DType]kernels.Format{tensor.F32: kernels.F32, tensor.F16: kernels.F16, tensor.BF16: kernels.BF16}[d] {
			t.Errorf("%v: %d×%d, %d bytes, %v", d, w.Rows(), w.Cols(), w.Bytes(), w.Format())
		}
		// Resident as F32: the same values.
		v := p.random(50*70, 1)
		a, b := p.pack(d, kernels.AsStored, 50, 70, v), p.pack(d, kernels.F32, 50, 70, v)
		if b.dev.Format() != kernels.F32 {
			t.Errorf("asked for F32, got %v", b.dev.Format())
		}
		x := p.act(tensor.Of(3, 70), p.random(210, 1))
		y, z := p.act(tensor.Of(3, 50), nil), p.act(tensor.Of(3, 50), nil)
		p.dev.ops.MatMul(kernels.MatMulArgs{Dst: y.dev, X: x.dev, W: a.dev})
		p.dev.ops.MatMul(kernels.MatMulArgs{Dst: z.dev, X: x.dev, W: b.dev})
		if !bytes.Equal(p.dev.bytes(y.dev), p.dev.bytes(z.dev)) {
			t.Errorf("%v widened to F32 multiplies differently", d)
		}
	}
	func() { // operands that do not fit together
		defer func() {
			if recover() == nil {
				t.Error("a product of operands that do not fit together did not panic")
			}
		}()
		w := p.pack(tensor.BF16, kernels.AsStored, 4, 8, p.random(32, 1))
		x, y := p.act(tensor.Of(2, 7), p.random(14, 1)), p.act(tensor.Of(2, 4), nil)
		p.dev.ops.MatMul(kernels.MatMulArgs{Dst: y.dev, X: x.dev, W: w.dev})
	}()
}
