package faults

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"infer/models"
	_ "infer/models/llama"
	"infer/models/modelstest"
	"infer/runtime/loader"
	"infer/runtime/tensor"
)

// Models as small as kernels allow, with as many layers as the machine has
// places for them. Their answers depend on everything before them.
const (
	hidden = 64
	vocab  = 96
)

var (
	mu          sync.Mutex
	checkpoints = map[int]*modelstest.Build{} // by layers
)

func checkpoint(layers int) *modelstest.Build {
	mu.Lock()
	defer mu.Unlock()
	if checkpoints[layers] == nil {
		checkpoints[layers] = build(layers)
	}
	return checkpoints[layers]
}

func build(layers int) *modelstest.Build {
	rng := rand.New(rand.NewPCG(7, 7))
	b := &modelstest.Build{
		Config: map[string]any{
			"architectures": []string{"LlamaForCausalLM"}, "model_type": "llama", "hidden_size": hidden, "intermediate_size": hidden,
			"num_hidden_layers": layers, "num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": hidden, "vocab_size": vocab,
			"max_position_embeddings": 256, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": false,
			"torch_dtype": "bfloat16", "bos_token_id": 0, "eos_token_id": vocab - 1,
		},
		Tensors: map[string]modelstest.Blob{},
	}
	add := func(name string, scale float64, shape ...int) {
		n := 1
		for _, d := range shape {
			n *= d
		}
		data := make([]byte, 0, 2*n)
		for range n {
			v := rng.NormFloat64() * scale
			if len(shape) == 1 {
				v = 1
			}
			data = binary.LittleEndian.AppendUint16(data, tensor.F32ToBF16(float32(v)))
		}
		b.Tensors[name] = modelstest.Blob{DType: tensor.BF16, Shape: shape, Data: data}
	}
	add("model.embed_tokens.weight", 1, vocab, hidden)
	for i := range layers {
		p := fmt.Sprintf("model.layers.%d.", i)
		add(p+"input_layernorm.weight", 0, hidden)
		add(p+"post_attention_layernorm.weight", 0, hidden)
		for _, m := range []string{"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"} {
			add(p+m+".weight", 0.2, hidden, hidden)
		}
	}
	add("model.norm.weight", 0, hidden)
	add("lm_head.weight", 1, vocab, hidden)
	return b
}

func openModel(t testing.TB, layers int) (models.Model, *loader.Checkpoint) {
	t.Helper()
	ck := checkpoint(layers).Open(t)
	m, err := models.Open(ck)
	if err != nil {
		t.Fatal(err)
	}
	return m, ck
}
