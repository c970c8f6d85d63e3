//go:build cuda && cgo && linux

package cuda

import (
	"runtime"
	"testing"

	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// Queueing a step of decoding allocates nothing once the lists have grown.
func TestQueueingAllocatesNothing(t *testing.T) {
	s := open(t, Options{})
	e := newEnd(t, s, 0)
	defer e.close()
	h := kernels.Heads{Q: 4, KV: 2, Dim: 32}
	const rows, width, inter = 2, 64, 96
	typed := func(d tensor.DType, dims ...int) tensor.Tensor {
		shape := tensor.Of(dims...)
		x := e.bytes(shape.Elems() * d.Bits() / 8)
		x.DType, x.Shape = d, shape
		e.ops.Fill(x, 0, 0)
		return x
	}
	pack := func(n, k int) kernels.Weight {
		return must(e.b.Pack(e.stream, &memMatrix{tensor.BF16, n, k, make([]byte, 2*n*k)}, kernels.AsStored))
	}
	weights := []kernels.Weight{pack(100, width), pack(h.Cols(), width), pack(width, h.Q*h.Dim), pack(2*inter, width), pack(width, inter)}
	defer func() {
		for _, w := range weights {
			if err := w.Free(); err != nil {
				t.Error(err)
			}
		}
	}()
	act := e.b.act
	x, n, qkv, out := typed(act, rows, width), typed(act, rows, width), typed(act, rows, h.Cols()), typed(act, rows, h.Q*h.Dim)
	gateUp, gated, norm := typed(act, rows, 2*inter), typed(act, rows, inter), typed(tensor.F32, width)
	logits, ids, cos := typed(tensor.F32, rows, 100), typed(tensor.I32, rows), typed(tensor.F32, 64, 16)
	kv := kernels.KVLayer{K: typed(e.b.kv, 8, h.KV, kernels.BlockSize, h.Dim), V: typed(e.b.kv, 8, h.KV, kernels.BlockSize, h.Dim)}
	batch := &kernels.Batch{
		Tokens: []int32{1, 2}, Positions: []int32{20, 33}, Slots: []int32{20, 4*16 + 1}, Starts: []int32{0, 1, 2}, Contexts: []int32{21, 34},
		BlockTables: [][]int32{{0, 1}, {2, 3, 4}}, Logits: []int32{0, 1},
	}
	host := make([]byte, 4*rows)
	var sum kernels.Digest
	queue := func() {
		e.ops.Begin(batch)
		e.ops.Embed(x, weights[0])
		for i := range 3 {
			e.ops.Layer(i)
			e.ops.RMSNorm(n, x, norm, 1e-5)
			e.ops.MatMul(kernels.MatMulArgs{Dst: qkv, X: n, W: weights[1]})
			e.ops.Rotary(kernels.RotaryArgs{QKV: qkv, Heads: h, Cos: cos, Sin: cos, KV: kv})
			e.ops.Attention(kernels.AttentionArgs{Dst: out, QKV: qkv, Heads: h, KV: kv, Scale: 1})
			e.ops.MatMul(kernels.MatMulArgs{Dst: x, X: out, W: weights[2], Add: true})
			e.ops.MatMul(kernels.MatMulArgs{Dst: gateUp, X: n, W: weights[3]})
			e.ops.GatedAct(gated, gateUp, kernels.SiLU)
			e.ops.MatMul(kernels.MatMulArgs{Dst: x, X: gated, W: weights[4], Add: true})
		}
		e.ops.GatherRows(n, x)
		e.ops.MatMul(kernels.MatMulArgs{Dst: logits, X: n, W: weights[0]})
		e.ops.Argmax(ids, logits)
		e.ops.Digest(&sum, x)
		e.stream.Download(host, ids)
	}
	var worst uint64
	for step := range 12 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		queue() // nothing goes to the owner before Sync
		runtime.ReadMemStats(&after)
		if err := e.stream.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if step >= 6 {
			worst = max(worst, after.Mallocs-before.Mallocs)
		}
	}
	if worst > 0 {
		t.Errorf("%d allocations while a step is queued", worst)
	}
}
