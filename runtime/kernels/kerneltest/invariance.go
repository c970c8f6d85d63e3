package kerneltest

import (
	"bytes"
	"fmt"
	"testing"

	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// invariance: a row of every row-wise operation has the same bits alone, in a
// batch, and in chunks.
func invariance(t *testing.T, open Opener) {
	p := open2(t, open)
	d := p.dev
	act := d.b.ActType()
	const rows = 101
	for _, wt := range weightTypes {
		for _, s := range [][2]int{{50, 66}, {192, 576}, {70, 1025}} {
			n, k := s[0], s[1]
			w := p.pack(wt, kernels.AsStored, n, k, p.random(n*k, 1)).dev
			norm := d.upload(tensor.F32, tensor.Of(k), p.random(k, 1))
			bias := d.upload(tensor.F32, tensor.Of(n), p.random(n, 1))
			x := d.upload(act, tensor.Of(rows, k), p.random(rows*k, 1))
			init := encode(act, p.random(rows*n, 1))
			// What a chunk of rows gives; every operation's bytes in turn.
			run := func(lo, hi int) []byte {
				h, y := d.tensor(act, tensor.Of(hi-lo, k)), d.tensor(act, tensor.Of(hi-lo, n))
				z := d.tensor(act, tensor.Of(hi-lo, n/2))
				d.ops.RMSNorm(h, x.Rows(lo, hi), norm, 1e-5)
				size := len(init) / rows
				d.s.Upload(y, init[lo*size:hi*size])
				d.ops.MatMul(kernels.MatMulArgs{Dst: y, X: h, W: w, Bias: bias, Add: true})
				d.ops.GatedAct(z, y, kernels.SiLU)
				var all []byte
				for i := range hi - lo {
					for _, o := range []tensor.Tensor{h, y, z} {
						b := d.bytes(o)
						all = append(all, b[i*len(b)/(hi-lo):(i+1)*len(b)/(hi-lo)]...)
					}
				}
				return all
			}
			whole := run(0, rows)
			for _, size := range []int{1, 2, 3, 4, 5, 6, 7, 11, 13, 32, 97} {
				for lo := 0; lo < rows; lo += size {
					hi := min(lo+size, rows)
					if p.skip() {
						continue
					}
					if !bytes.Equal(run(lo, hi), whole[lo*len(whole)/rows:hi*len(whole)/rows]) {
						t.Fatalf("%v N=%d K=%d: rows %d..%d alone differ from the same rows among %d", wt, n, k, lo, hi, rows)
					}
					if size < 8 && lo > 40 { // enough of these
						break
					}
				}
			}
		}
	}
}

// attentionInvariance: a sequence's attention has the same bits alone and
// among 7 or 32 others, in one chunk and in any chunks, wherever its pages are.
func attentionInvariance(t *testing.T, open Opener) {
	cases := []struct {
		h         kernels.Heads
		n, window int
	}{
		{kernels.Heads{Q: 4, KV: 2, Dim: 32}, 1100, 700}, // of many parts, where a context is cut
		{kernels.Heads{Q: 9, KV: 3, Dim: 64}, 300, 100},
		{kernels.Heads{Q: 4, KV: 1, Dim: 128}, 300, 100},
		{kernels.Heads{Q: 2, KV: 2, Dim: 36}, 300, 100},
	}
	for i, c := range cases {
		h, n := c.h, c.n
		for _, window := range []int{0, c.window} {
			t.Run(fmt.Sprintf("Q%dKV%dD%d window %d", h.Q, h.KV, h.Dim, window), func(t *testing.T) {
				p := open2(t, open)
				if window == 0 && p.every > 1 || !p.among(i, len(cases)) {
					return
				}
				qkv := p.random(n*h.Cols(), 1)
				run := func(others int, chunks func(at int) int) []byte {
					rooms := []int{n}
					for i := range others {
						rooms = append(rooms, 40+11*i)
					}
					// The others' rows lie around this sequence's: it is in the
					// middle of the batch.
					self := others / 2
					rooms[0], rooms[self] = rooms[self], rooms[0]
					c := newSequences(p, h, h.Dim, false, rooms...)
					var all []byte
					for at := 0; at < n; {
						take := make([]int, len(rooms))
						before := 0
						for s := range take {
							if s != self {
								take[s] = min(p.rng.IntN(4), rooms[s]-c.lens[s])
							} else {
								take[s] = min(chunks(at), n-at)
							}
							if s < self {
								before += take[s]
							}
						}
						b := c.batch(take...)
						rows := len(b.Positions)
						x := p.random(rows*h.Cols(), 1)
						copy(x[before*h.Cols():], qkv[at*h.Cols():(at+take[self])*h.Cols()])
						d := p.dev
						q := d.upload(d.b.ActType(), tensor.Of(rows, h.Cols()), x)
						y := d.tensor(d.b.ActType(), tensor.Of(rows, h.Q*h.Dim))
						d.ops.Begin(b)
						d.ops.Rotary(kernels.RotaryArgs{QKV: q, Heads: h, Cos: c.cos.dev, Sin: c.sin.dev, KV: c.kv[0]})
						d.ops.Attention(kernels.AttentionArgs{Dst: y, QKV: q, Heads: h, KV: c.kv[0], Window: window, Scale: 0.2})
						out := d.bytes(y)
						size := len(out) / rows
						all = append(all, out[before*size:(before+take[self])*size]...)
						at += take[self]
					}
					return all
				}
				whole := run(0, func(int) int { return n })
				for _, c := range []struct {
					what   string
					others int
					chunk  func(at int) int
				}{
					{"alone, token by token at the end", 0, func(at int) int {
						if at < n-20 {
							return (n - 20) / 2
						}
						return 1
					}},
					{"among 7, in chunks of 1..60", 7, func(int) int { return 1 + p.rng.IntN(60) }},
					{"among 32, in chunks of 33", 32, func(int) int { return 33 }},
				} {
					got := run(c.others, c.chunk)
					if !bytes.Equal(got, whole) {
						for i := range got {
							if got[i] != whole[i] {
								t.Fatalf("%s: differs from the whole at position %d", c.what, i*n/len(got))
							}
						}
					}
				}
			})
		}
	}
}
