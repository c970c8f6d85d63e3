package kerneltest

import (
	"fmt"
	"math"
	"testing"

	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// sequences is a set of sequences with K/V in shuffled pages on both sides.
type sequences struct {
	p      *pair
	h      kernels.Heads
	kv     [2]kernels.KVLayer // dev, ref
	tables [][]int32
	lens   []int // positions written so far
	cos    both
	sin    both
	norm   [2]both // Q, K; zero for none
	blocks int
}

// newSequences has room for these many positions of each sequence.
func newSequences(p *pair, h kernels.Heads, rot int, qkNorm bool, rooms ...int) *sequences {
	p.t.Helper()
	c := &sequences{p: p, h: h, lens: make([]int, len(rooms))}
	longest := 0
	for _, n := range rooms {
		c.blocks += (n+kernels.BlockSize-1)/kernels.BlockSize + 1
		longest = max(longest, n)
	}
	free := p.rng.Perm(c.blocks)
	for _, n := range rooms {
		var table []int32
		for range (n + kernels.BlockSize - 1) / kernels.BlockSize {
			table = append(table, int32(free[0]))
			free = free[1:]
		}
		c.tables = append(c.tables, table)
	}
	pages := func(s side, t tensor.DType) kernels.KVLayer {
		shape := tensor.Of(c.blocks, h.KV, kernels.BlockSize, kernels.KVDim(h.Dim, t))
		return kernels.KVLayer{K: s.tensor(t, shape), V: s.tensor(t, shape)}
	}
	of := p.dev.b.KVType()
	c.kv[0] = pages(p.dev, of)
	if of == tensor.I8 { // which the reference does not hold
		of = tensor.F32
	}
	c.kv[1] = pages(p.ref, of)
	cos, sin := make([]float32, longest*rot/2), make([]float32, longest*rot/2)
	for i := range cos {
		a := float64(i/(rot/2)) * math.Pow(10000, -float64(i%(rot/2))/float64(rot/2))
		cos[i], sin[i] = float32(math.Cos(a)), float32(math.Sin(a))
	}
	c.cos, c.sin = p.f32(tensor.Of(longest, rot/2), cos), p.f32(tensor.Of(longest, rot/2), sin)
	if qkNorm {
		c.norm = [2]both{p.f32(tensor.Of(h.Dim), p.random(h.Dim, 1)), p.f32(tensor.Of(h.Dim), p.random(h.Dim, 1))}
	}
	return c
}

// batch takes n[s] more tokens of each sequence; 0 leaves a sequence out.
func (c *sequences) batch(n ...int) *kernels.Batch {
	b := &kernels.Batch{Starts: []int32{0}}
	for s, count := range n {
		if count == 0 {
			continue
		}
		for range count {
			pos := c.lens[s]
			c.lens[s]++
			b.Positions = append(b.Positions, int32(pos))
			b.Slots = append(b.Slots, c.tables[s][pos/kernels.BlockSize]*kernels.BlockSize+int32(pos%kernels.BlockSize))
			b.Tokens = append(b.Tokens, 0)
		}
		b.Starts = append(b.Starts, int32(len(b.Positions)))
		b.Contexts = append(b.Contexts, int32(c.lens[s]))
		// Only the pages in use, so that reading on is an error.
		b.BlockTables = append(b.BlockTables, c.tables[s][:(c.lens[s]+kernels.BlockSize-1)/kernels.BlockSize])
	}
	return b
}

// step is Rotary on new random QKV; it checks the result against the reference.
func (c *sequences) step(b *kernels.Batch, qkv []float32) both {
	p := c.p
	p.t.Helper()
	x := p.act(tensor.Of(len(b.Positions), c.h.Cols()), qkv)
	p.begin(b)
	p.dev.ops.Rotary(kernels.RotaryArgs{
		QKV: x.dev, Heads: c.h, QNorm: c.norm[0].dev, KNorm: c.norm[1].dev, Eps: 1e-6,
		Cos: c.cos.dev, Sin: c.sin.dev, KV: c.kv[0],
	})
	p.ref.ops.Rotary(kernels.RotaryArgs{
		QKV: x.ref, Heads: c.h, QNorm: c.norm[0].ref, KNorm: c.norm[1].ref, Eps: 1e-6,
		Cos: c.cos.ref, Sin: c.sin.ref, KV: c.kv[1],
	})
	return x
}

// attend is Attention on both sides.
func (c *sequences) attend(x both, window int) both {
	p := c.p
	p.t.Helper()
	y := p.act(tensor.Of(x.dev.Shape.Dim(0), c.h.Q*c.h.Dim), nil)
	a := kernels.AttentionArgs{Heads: c.h, Window: window, Scale: float32(1 / math.Sqrt(float64(c.h.Dim)))}
	a.Dst, a.QKV, a.KV = y.dev, x.dev, c.kv[0]
	p.dev.ops.Attention(a)
	a.Dst, a.QKV, a.KV = y.ref, x.ref, c.kv[1]
	p.ref.ops.Attention(a)
	return y
}

// check compares an attention result. What both sides keep in the pages may
// differ by a rounding of the pages' type (they rotate in different
// precision), so that sets the bound.
func (c *sequences) check(what string, y both) {
	c.p.t.Helper()
	bound := 40 * epsilon
	switch d := c.kv[0].K.DType; d {
	case tensor.F32:
	case tensor.I8: // a step of 127 in a largest element of about 3: half of it by K, half by V
		bound = 3.0 / 127
	default:
		bound = ulp(d) / 8
		if c.p.operand(d) == d && y.dev.DType != d { // queries and probabilities are rounded too
			bound *= 2.5
		}
	}
	if d := y.dev.DType; d != tensor.F32 {
		bound = max(bound, ulp(d))
	}
	c.p.same(what, y, func(int) float64 { return 4 * bound })
}

func rotary(t *testing.T, open Opener) {
	p := open2(t, open)
	for _, h := range []kernels.Heads{{Q: 1, KV: 1, Dim: 16}, {Q: 9, KV: 3, Dim: 64}, {Q: 4, KV: 2, Dim: 80}, {Q: 8, KV: 1, Dim: 96}, {Q: 2, KV: 2, Dim: 128}, {Q: 2, KV: 1, Dim: 256}} {
		for _, rot := range []int{h.Dim, h.Dim / 2, h.Dim / 4 &^ 1} {
			for _, norm := range []bool{false, true} {
				if p.skip() {
					continue
				}
				c := newSequences(p, h, rot, norm, 40, 40, 300)
				for _, n := range [][]int{{1, 0, 0}, {7, 3, 1}, {1, 1, 90}} {
					b := c.batch(n...)
					before := p.random(len(b.Positions)*h.Cols(), 2)
					x := c.step(b, before)
					want := p.ref.floats(x.ref)
					top := 0.0
					for _, v := range want {
						top = max(top, math.Abs(float64(v)))
					}
					p.same(fmt.Sprintf("%+v rot=%d norm=%v", h, rot, norm), x, func(int) float64 { return 8 * epsilon * top })
				}
			}
		}
	}
}

func attention(t *testing.T, open Opener) {
	heads := []kernels.Heads{
		{Q: 9, KV: 3, Dim: 64},
		{Q: 4, KV: 4, Dim: 80},
		{Q: 8, KV: 2, Dim: 96},
		{Q: 8, KV: 1, Dim: 128},
		{Q: 2, KV: 1, Dim: 256},
		{Q: 36, KV: 2, Dim: 16},
		{Q: 2, KV: 2, Dim: 6},
		{Q: 3, KV: 1, Dim: 36},
	}
	for i, h := range heads {
		t.Run(fmt.Sprintf("Q%dKV%dD%d", h.Q, h.KV, h.Dim), func(t *testing.T) {
			p := open2(t, open)
			if !p.among(i, len(heads)) {
				return
			}
			c := newSequences(p, h, h.Dim/2&^1, h.Dim%32 == 0, 1, 440, 60, 257)
			// Prefill and decode mixed, chunks that end anywhere.
			for i, n := range [][]int{{1, 255, 0, 33}, {0, 1, 15, 1}, {0, 1, 1, 97}, {0, 30, 2, 1}, {0, 1, 16, 124}, {0, 70, 1, 1}} {
				b := c.batch(n...)
				x := c.step(b, p.random(len(b.Positions)*h.Cols(), 1))
				for _, window := range []int{0, []int{1, 16, 100, 256, 1000}[i%5]} {
					if p.skip() {
						continue
					}
					c.check(fmt.Sprintf("step %d %v window %d", i, n, window), c.attend(x, window))
				}
			}
		})
	}
	t.Run("Long", func(t *testing.T) { // decode at the end of long contexts
		p := open2(t, open)
		h := kernels.Heads{Q: 4, KV: 2, Dim: 32}
		c := newSequences(p, h, 32, false, 4096, 2100, 1)
		for _, n := range [][]int{{2048, 1030, 0}, {2047, 1069, 0}, {1, 1, 1}} {
			b := c.batch(n...)
			x := c.step(b, p.random(len(b.Positions)*h.Cols(), 1))
			if n[0] == 1 {
				c.check("full", c.attend(x, 0))
				c.check("window", c.attend(x, 1500))
			}
		}
	})
}

// attentionRandom tries shapes that nobody thought of.
func attentionRandom(t *testing.T, open Opener) {
	p := open2(t, open)
	for i := range 16 {
		if p.skip() {
			continue
		}
		kv := 1 + p.rng.IntN(4)
		h := kernels.Heads{Q: kv * (1 + p.rng.IntN(6)), KV: kv, Dim: 2 * (1 + p.rng.IntN(40))}
		rooms := make([]int, 1+p.rng.IntN(5))
		for s := range rooms {
			rooms[s] = 1 + p.rng.IntN(320)
		}
		c := newSequences(p, h, 2*(1+p.rng.IntN(h.Dim/2)), p.rng.IntN(2) == 0, rooms...)
		for range 3 {
			n, total := make([]int, len(rooms)), 0
			for s := range n {
				n[s] = p.rng.IntN(min(rooms[s]-c.lens[s], 150) + 1)
				total += n[s]
			}
			if total == 0 {
				continue
			}
			x := c.step(c.batch(n...), p.random(total*h.Cols(), 1))
			window := p.rng.IntN(2) * (1 + p.rng.IntN(300))
			c.check(fmt.Sprintf("case %d %+v %v window %d", i, h, n, window), c.attend(x, window))
		}
	}
}
