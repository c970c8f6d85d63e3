package modelstest

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"infer/runtime/loader"
	"infer/runtime/tensor"
)

// Wide is a Llama model whose weights are what a step reads, as they are in
// models of use: two layers, heads of 64, and random values. hidden is a multiple
// of 64.
func Wide(t testing.TB, hidden int) *loader.Checkpoint {
	t.Helper()
	const vocab, kv, dim = 512, 2, 64
	inter, heads := 11*hidden/4, hidden/dim
	b := FromGolden(t, "llama")
	for k, v := range map[string]any{
		"hidden_size": hidden, "intermediate_size": inter, "vocab_size": vocab, "num_hidden_layers": 2,
		"num_attention_heads": heads, "num_key_value_heads": kv, "head_dim": dim, "max_position_embeddings": 4096,
	} {
		b.Config[k] = v
	}
	rng := rand.New(rand.NewPCG(1, 1))
	clear(b.Tensors)
	put := func(name string, scale float64, shape ...int) {
		n := 1
		for _, d := range shape {
			n *= d
		}
		var data []byte
		for range n {
			data = binary.LittleEndian.AppendUint16(data, tensor.F32ToBF16(float32(rng.NormFloat64()*scale+1-min(1, 1e3*scale))))
		}
		b.Tensors[name] = Blob{DType: tensor.BF16, Shape: shape, Data: data}
	}
	put("model.embed_tokens.weight", 0.5, vocab, hidden)
	put("lm_head.weight", 0.1, vocab, hidden)
	put("model.norm.weight", 0, hidden)
	for l := range 2 {
		at := fmt.Sprintf("model.layers.%d.", l)
		put(at+"input_layernorm.weight", 0, hidden)
		put(at+"post_attention_layernorm.weight", 0, hidden)
		put(at+"self_attn.q_proj.weight", 0.05, heads*dim, hidden)
		put(at+"self_attn.k_proj.weight", 0.05, kv*dim, hidden)
		put(at+"self_attn.v_proj.weight", 0.05, kv*dim, hidden)
		put(at+"self_attn.o_proj.weight", 0.05, hidden, heads*dim)
		put(at+"mlp.gate_proj.weight", 0.05, inter, hidden)
		put(at+"mlp.up_proj.weight", 0.05, inter, hidden)
		put(at+"mlp.down_proj.weight", 0.05, hidden, inter)
	}
	return b.Open(t)
}
