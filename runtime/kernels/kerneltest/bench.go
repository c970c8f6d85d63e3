package kerneltest

import (
	"errors"
	"fmt"
	"testing"

	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// Bench times the operations at the sizes of a small model (SmolLM2 135M) and
// of a larger one; rates are weight bytes a second and operations a second.
func Bench(b *testing.B, open Opener) {
	for _, f := range []kernels.Format{kernels.BF16, kernels.F16, kernels.F32, kernels.Q8, kernels.Q4} {
		for _, m := range []int{1, 2, 3, 4, 8, 16, 32, 128, 512} {
			for _, s := range [][2]int{{3072, 576}, {576, 1536}, {2048, 2048}} {
				b.Run(fmt.Sprintf("MatMul/%v/M=%d/N=%d/K=%d", f, m, s[0], s[1]), func(b *testing.B) { benchMatMul(b, open, f, m, s[0], s[1]) })
			}
		}
	}
	for _, rows := range []int{1, 8, 64, 512} {
		b.Run(fmt.Sprintf("Experts/rows=%d", rows), func(b *testing.B) { benchExperts(b, open, rows) })
	}
	for _, ctx := range []int{128, 1024, 4000} {
		for _, rows := range []int{1, 64} {
			b.Run(fmt.Sprintf("Attention/rows=%d/ctx=%d", rows, ctx), func(b *testing.B) { benchAttention(b, open, rows, ctx) })
		}
	}
	for _, rows := range []int{1, 64} {
		b.Run(fmt.Sprintf("RMSNorm/rows=%d", rows), func(b *testing.B) { benchNorm(b, open, rows) })
		b.Run(fmt.Sprintf("GatedAct/rows=%d", rows), func(b *testing.B) { benchGate(b, open, rows) })
		b.Run(fmt.Sprintf("Argmax/rows=%d", rows), func(b *testing.B) { benchArgmax(b, open, rows) })
	}
	b.Run("Digest", func(b *testing.B) {
		p := open2(b, open)
		x := p.dev.tensor(tensor.U8, tensor.Of(4<<20))
		var d kernels.Digest
		b.SetBytes(4 << 20)
		for b.Loop() {
			p.dev.ops.Digest(&d, x)
			p.dev.sync()
		}
	})
}

// benchMatMul goes round several weights that no cache holds together, as the
// layers of a model do.
func benchMatMul(b *testing.B, open Opener, f kernels.Format, m, n, k int) {
	p := open2(b, open)
	d := p.dev
	v := p.random(n*k, 1)
	stored := tensor.BF16
	if f == kernels.F16 {
		stored = tensor.F16
	}
	mat := &matrix{d: stored, rows: n, cols: k, raw: encode(stored, v)}
	var ws []kernels.Weight
	var bytes int64
	for bytes < 128<<20 {
		w, err := d.b.Pack(d.s, mat, f)
		if errors.Is(err, device.ErrNotSupported) {
			b.Skip(err)
		}
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = w.Free() })
		ws = append(ws, w)
		bytes += w.Bytes()
	}
	x := d.upload(d.b.ActType(), tensor.Of(m, k), p.random(m*k, 1))
	y := d.tensor(d.b.ActType(), tensor.Of(m, n))
	i := 0
	b.SetBytes(ws[0].Bytes())
	for b.Loop() {
		d.ops.MatMul(kernels.MatMulArgs{Dst: y, X: x, W: ws[i%len(ws)]})
		i++
		if i%len(ws) == 0 {
			d.sync()
		}
	}
	d.sync()
	b.ReportMetric(2*float64(m)*float64(n)*float64(k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}

// benchExperts goes round the experts of a layer like Qwen3-30B-A3B's, with an
// eighth of its experts; bytes are those of the experts in use.
func benchExperts(b *testing.B, open Opener, rows int) {
	p := open2(b, open)
	const e, k, h, n = 16, 8, 2048, 768
	m := p.mixture(tensor.BF16, rows, e, k, h, n, func(int) []int32 { return p.chosen(e, k) })
	d, act := p.dev, p.dev.b.ActType()
	pairs := rows * k
	a := kernels.ExpertsArgs{
		Dst: d.upload(act, tensor.Of(rows, h), m.init), X: m.x.dev, Weights: m.w.dev,
		GateUp: m.gateUp.dev, Down: m.down.dev, Experts: e, Inter: n,
		Scratch: kernels.ExpertsScratch{
			Hidden: d.tensor(act, tensor.Of(pairs, 2*n)), Gated: d.tensor(act, tensor.Of(pairs, n)),
			Out: d.tensor(tensor.F32, tensor.Of(pairs, h)), Order: d.tensor(tensor.I32, tensor.Of(kernels.ExpertsOrder(rows, k, e))),
		},
	}
	var ids []tensor.Tensor
	used := map[int32]bool{}
	for range 8 { // so that a single row meets all experts
		var v []int32
		for range rows {
			v = append(v, p.chosen(e, k)...)
		}
		for _, id := range v {
			used[id] = true
		}
		ids = append(ids, d.uploadInts(tensor.Of(rows, k), v))
	}
	active := len(used)
	if rows == 1 {
		active = k
	}
	i := 0
	b.SetBytes(int64(active * 3 * h * n * 2))
	for b.Loop() {
		a.IDs = ids[i%len(ids)]
		d.ops.(kernels.MoEOps).Experts(a)
		d.sync()
		i++
	}
	b.ReportMetric(6*float64(pairs)*h*n*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}

func benchAttention(b *testing.B, open Opener, rows, ctx int) {
	p := open2(b, open)
	h := kernels.Heads{Q: 9, KV: 3, Dim: 64}
	c := newSequences(p, h, 64, false, ctx)
	d := p.dev
	var x, y tensor.Tensor
	for _, n := range []int{ctx - rows, rows} {
		t := c.batch(n)
		x = d.upload(d.b.ActType(), tensor.Of(n, h.Cols()), p.random(n*h.Cols(), 1))
		y = d.tensor(d.b.ActType(), tensor.Of(n, h.Q*h.Dim))
		d.ops.Begin(t)
		d.ops.Rotary(kernels.RotaryArgs{QKV: x, Heads: h, Cos: c.cos.dev, Sin: c.sin.dev, KV: c.kv[0]})
	}
	a := kernels.AttentionArgs{Dst: y, QKV: x, Heads: h, KV: c.kv[0], Scale: 0.125}
	b.SetBytes(int64(2 * ctx * h.KV * h.Dim * d.b.KVType().Bits() / 8))
	for b.Loop() {
		d.ops.Attention(a)
		d.sync()
	}
	work := 4 * float64(rows) * (float64(ctx) - float64(rows-1)/2) * float64(h.Q*h.Dim)
	b.ReportMetric(work*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}

func benchNorm(b *testing.B, open Opener, rows int) {
	p := open2(b, open)
	d := p.dev
	x := d.upload(d.b.ActType(), tensor.Of(rows, 576), p.random(rows*576, 1))
	w := d.upload(tensor.F32, tensor.Of(576), p.random(576, 1))
	y := d.tensor(d.b.ActType(), tensor.Of(rows, 576))
	for b.Loop() {
		d.ops.RMSNorm(y, x, w, 1e-5)
		d.sync()
	}
}

func benchGate(b *testing.B, open Opener, rows int) {
	p := open2(b, open)
	d := p.dev
	x := d.upload(d.b.ActType(), tensor.Of(rows, 3072), p.random(rows*3072, 1))
	y := d.tensor(d.b.ActType(), tensor.Of(rows, 1536))
	for b.Loop() {
		d.ops.GatedAct(y, x, kernels.SiLU)
		d.sync()
	}
}

func benchArgmax(b *testing.B, open Opener, rows int) {
	p := open2(b, open)
	d := p.dev
	x := d.upload(tensor.F32, tensor.Of(rows, 49152), p.random(rows*49152, 1))
	y := d.tensor(tensor.I32, tensor.Of(rows))
	for b.Loop() {
		d.ops.Argmax(y, x)
		d.sync()
	}
}
