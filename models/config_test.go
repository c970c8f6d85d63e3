package models_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"infer/models"
	"infer/models/modelstest"
	"infer/runtime/loader"
	"infer/runtime/tensor"
)

// testdata/published.json has the configs of published models as they are, and
// the parameters that transformers counts for each.
func TestPublishedConfigs(t *testing.T) {
	var list []struct {
		ID          string
		Params      int64
		Tied        bool
		Layers      int
		HeadDim     int   `json:"head_dim"`
		KVHeads     int   `json:"kv_heads"`
		LayerParams int64 `json:"layer_params"`
		Active      int64 `json:"active_params"` // of a mixture of experts; else 0
		Vocab       int
		Config      json.RawMessage
	}
	b, err := os.ReadFile("testdata/published.json")
	if err == nil {
		err = json.Unmarshal(b, &list)
	}
	if err != nil || len(list) < 23 {
		t.Fatalf("%d configs, %v", len(list), err)
	}
	for _, c := range list {
		t.Run(c.ID, func(t *testing.T) {
			ck := emptyCheckpoint(t, c.Config)
			m, err := models.FromConfig(ck)
			if err != nil {
				t.Fatal(err)
			}
			cfg := m.Config()
			if cfg.Tied != c.Tied || cfg.Layers != c.Layers || cfg.Heads.Dim != c.HeadDim || cfg.Heads.KV != c.KVHeads || cfg.VocabSize != c.Vocab {
				t.Errorf("%+v", cfg)
			}
			var total, layer0, experts int64
			for _, s := range m.Tensors() {
				n := int64(1)
				for _, d := range s.Shape {
					n *= int64(d)
				}
				total += n
				if strings.Contains(s.Name, ".experts.") {
					experts += n
				}
				if s.Layer == 0 {
					layer0 += n
				}
			}
			if total != c.Params || layer0 != c.LayerParams {
				t.Errorf("%d parameters, %d in a layer; want %d, %d", total, layer0, c.Params, c.LayerParams)
			}
			if c.Active > 0 && total-experts+experts/int64(cfg.Experts)*int64(cfg.ExpertsPerToken) != c.Active {
				t.Errorf("%d of %d experts of a token: %d parameters of all experts, want %d active", cfg.ExpertsPerToken, cfg.Experts, experts, c.Active)
			}
			if len(cfg.StopIDs) == 0 || cfg.MaxPositions < 2048 {
				t.Errorf("stop ids %v, %d positions", cfg.StopIDs, cfg.MaxPositions)
			}
		})
	}
}

func emptyCheckpoint(t testing.TB, config []byte) *loader.Checkpoint {
	t.Helper()
	ck, err := loader.OpenFS(fstest.MapFS{
		"config.json":       {Data: config},
		"model.safetensors": {Data: []byte("\x02\x00\x00\x00\x00\x00\x00\x00{}")},
	}, "m")
	if err != nil {
		t.Fatal(err)
	}
	return ck
}

// Values of one key that must be refused, with what the error must say.
func TestConfigFaults(t *testing.T) {
	for _, c := range []struct {
		golden, key string
		value       any // nil: leave the key out
		err         string
	}{
		{"llama", "vocab_size", nil, "vocab_size is missing"},
		{"llama", "hidden_size", nil, "hidden_size is missing"},
		{"llama", "intermediate_size", json.RawMessage("null"), "intermediate_size is missing"},
		{"llama", "num_attention_heads", nil, "num_attention_heads is missing"},
		{"llama", "num_hidden_layers", 0, "num_hidden_layers is 0, outside 1 to"},
		{"llama", "num_hidden_layers", -3, "num_hidden_layers is -3, outside"},
		{"llama", "num_hidden_layers", 2.5, "num_hidden_layers is 2.5, want an integer"},
		{"llama", "num_hidden_layers", json.RawMessage("3.0"), "num_hidden_layers is 3.0, want an integer"},
		{"llama", "num_hidden_layers", true, "num_hidden_layers is true, want an integer"},
		{"llama", "num_hidden_layers", []int{3}, "num_hidden_layers is [3], want an integer"},
		{"llama", "num_hidden_layers", 4000, "num_hidden_layers is 4000, but the checkpoint has only 30 tensors"},
		{"llama", "num_hidden_layers", 4, `tensor "model.layers.3.input_layernorm.weight" of shape [64] is missing`},
		{"llama", "num_hidden_layers", 2, `"model.layers.2.input_layernorm.weight" is of layer 2, but num_hidden_layers is 2`},
		{"llama", "hidden_size", json.RawMessage("1e3"), "hidden_size is 1e3, want an integer"},
		{"llama", "vocab_size", json.RawMessage("99999999999999999999999999"), "vocab_size is 99999999999999999999999999, outside 1 to"},
		{"llama", "head_dim", 15, "head_dim is 15: rotary positions need an even number"},
		{"llama", "head_dim", 32, "has shape [64 64], but config.json calls for [128 64]"},
		{"llama", "max_position_embeddings", 0, "max_position_embeddings is 0, outside"},
		{"llama", "max_position_embeddings", "512", `max_position_embeddings is "512", want an integer`},
		{"llama", "rms_norm_eps", -1e-5, "rms_norm_eps is -1e-05, outside 0 to 1"},
		{"llama", "rms_norm_eps", "1e-5", `rms_norm_eps is "1e-5", want a number`},
		{"llama", "tie_word_embeddings", "yes", `tie_word_embeddings is "yes", want true or false`},
		{"llama", "tie_word_embeddings", 1, "tie_word_embeddings is 1, want true or false"},
		{"llama", "hidden_act", 7, "hidden_act is 7, want a string"},
		{"llama", "hidden_act", "relu", `hidden_act is "relu", which is not supported`},
		{"llama", "eos_token_id", -1, "eos_token_id has the value -1, want a token id"},
		{"llama", "eos_token_id", "eos", `eos_token_id has the value "eos", want a token id`},
		{"llama", "attention_bias", true, `tensor "model.layers.0.self_attn.q_proj.bias" of shape [64] is missing`},
		{"llama_tied", "attention_bias", false, `k_proj.bias" has no place in the model that config.json describes`},
		{"llama_tied", "mlp_bias", false, `down_proj.bias" has no place in the model`},
		{"llama", "quantization_config", map[string]any{"quant_method": "fp8"}, `quantization_config has quant_method "fp8"`},
		{"llama", "architectures", []string{"GemmaForCausalLM"}, `architecture "GemmaForCausalLM" (model_type "llama") is not supported; supported are LlamaForCausalLM, MistralForCausalLM, MixtralForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM, Qwen3MoeForCausalLM`},
		{"llama", "architectures", []string{"MistralForCausalLM"}, `model_type is "llama", but architectures[0] "MistralForCausalLM" is of type mistral`},
		{"llama", "architectures", []int{1}, "architectures has the entry 1, want a string"},
		{"llama", "model_type", "frob", `model_type is "frob", but architectures[0] "LlamaForCausalLM" is of type llama`},
		{"qwen3", "architectures", []string{"LlamaForCausalLM"}, `model_type is "qwen3", but`},
		{"mistral", "sliding_window", 0, "sliding_window is 0, outside"},
		{"mistral", "layer_types", []string{"full_attention", "sliding_attention", "full_attention"}, "layer_types has full_attention beside a sliding_window of 16"},
		{"qwen2", "layer_types", []string{"full_attention"}, "layer_types has 1 entries, but num_hidden_layers is 3"},
		{"qwen2", "layer_types", []string{"full_attention", "full_attention", "linear_attention"}, `layer_types has "linear_attention" at layer 2`},
		{"qwen2", "layer_types", []string{"full_attention", "sliding_attention", "full_attention"}, "layer_types has sliding_attention at layer 1, but no sliding window is set"},
		{"qwen2", "use_mrope", true, "use_mrope is true"},
		{"mixtral", "num_local_experts", 0, "num_local_experts is 0, outside 1 to"},
		{"mixtral", "num_local_experts", 5000, "num_local_experts is 5000, outside 1 to 1024"},
		{"mixtral", "num_local_experts", 3, `block_sparse_moe.gate.weight" has shape [4 64], but config.json calls for [3 64]`},
		{"mixtral", "num_local_experts", 5, `tensor "model.layers.0.block_sparse_moe.experts.4.w1.weight" of shape [96 64] is missing`},
		{"mixtral", "num_experts_per_tok", 5, "num_experts_per_tok is 5, but num_local_experts is 4"},
		{"mixtral", "num_experts_per_tok", 0, "num_experts_per_tok is 0, outside 1 to 32"},
		{"mixtral", "intermediate_size", 64, `experts.0.w1.weight" has shape [96 64], but config.json calls for [64 64]`},
		{"qwen3_moe", "moe_intermediate_size", -1, "moe_intermediate_size is -1, outside 1 to"},
		{"qwen3_moe", "decoder_sparse_step", 0, "decoder_sparse_step is 0, outside 1 to"},
		{"qwen3_moe", "decoder_sparse_step", 2, `tensor "model.layers.0.mlp.gate_proj.weight" of shape [128 64] is missing`},
		{"qwen3_moe", "mlp_only_layers", []int{1}, `tensor "model.layers.1.mlp.gate_proj.weight" of shape [128 64] is missing`},
		{"qwen3_moe", "mlp_only_layers", []string{"one"}, `mlp_only_layers has the value "one", want a layer's number`},
	} {
		b := modelstest.FromGolden(t, c.golden)
		if b.Config[c.key] = c.value; c.value == nil {
			delete(b.Config, c.key)
		}
		_, err := models.Open(b.Open(t))
		if err == nil || !strings.Contains(err.Error(), c.err) || !strings.HasPrefix(err.Error(), "golden") {
			t.Errorf("%s, %s = %v: want an error with %q, got %v", c.golden, c.key, c.value, c.err, err)
		}
	}
}

func TestConfigSyntax(t *testing.T) {
	for text, want := range map[string]string{
		``:                       "invalid JSON at byte 0",
		`[]`:                     "is not a JSON object",
		`{"a":1}{}`:              "more text after the object",
		`{"a":1,"a":2}`:          `in "/a": duplicate`,
		`{"a":Infinity}`:         `in "/a": invalid character 'I'`,
		"{\"\xff\":1}":           "UTF-8",
		`{}`:                     "architectures and model_type are missing",
		`{"model_type":"t5"}`:    `model_type "t5" is not supported, and architectures is missing`,
		`{"architectures":[]}`:   "architectures and model_type are missing",
		"\xef\xbb\xbf{\"a\":1}":  "invalid JSON at byte 0",
		`{"architectures":null,`: "unexpected EOF",
	} {
		_, err := models.Open(emptyCheckpoint(t, []byte(text)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: want an error with %q, got %v", text, want, err)
		}
	}
}

// Tensors beside the ones in use that do no harm, and types that cannot be
// computed with.
func TestOtherTensors(t *testing.T) {
	b := modelstest.FromGolden(t, "llama")
	b.Tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = modelstest.Zeros(tensor.F32, 8)
	b.Tensors["score.weight"] = modelstest.Zeros(tensor.I8, 2, 64)
	if _, err := models.Open(b.Open(t)); err != nil {
		t.Error(err)
	}
	b.Tensors["model.layers.1.self_attn.q_norm.weight"] = modelstest.Zeros(tensor.F32, 16)
	if _, err := models.Open(b.Open(t)); err == nil || !strings.Contains(err.Error(), "q_norm.weight\" has no place in the model") {
		t.Errorf("error %v", err)
	}
	b = modelstest.FromGolden(t, "llama")
	b.Tensors["model.layers.1.mlp.up_proj.weight"] = modelstest.Zeros(tensor.F8E4M3, 128, 64)
	if _, err := models.Open(b.Open(t)); err == nil || !strings.Contains(err.Error(), `up_proj.weight" is F8_E4M3: cannot compute with it`) {
		t.Errorf("error %v", err)
	}
}

func TestGeneration(t *testing.T) {
	for text, want := range map[string]string{
		`{"eos_token_id":[1,2],"do_sample":true,"temperature":0.7,"top_k":40,"top_p":0.9,"repetition_penalty":1.1,"max_new_tokens":9}`: "[1 2] true 0.7 40 0.9 - 1.1 9",
		`{"eos_token_id":null}`:    "[7] - - - - - - -",
		`{"eos_token_id":0}`:       "[0] - - - - - - -",
		`{"eos_token_id":[1,8]}`:   "m/generation_config.json: eos_token_id is 8, outside the vocabulary of 8",
		`{"temperature":-1}`:       "temperature is -1, outside 0 to",
		`{"top_p":1.5}`:            "top_p is 1.5, outside 0 to 1",
		`{"top_p":0}`:              "[7] - - - 1e-09 - - -",
		`{"top_k":-1}`:             "[7] - - 0 - - - -",
		`{"top_k":-2}`:             "top_k is -2, outside -1 to",
		`{"repetition_penalty":0}`: "repetition_penalty is 0, outside",
		`[]`:                       "generation_config.json: is not a JSON object",
	} {
		ck := &loader.Checkpoint{Name: "m", GenerationConfig: []byte(text)}
		g, err := models.ReadGeneration(ck, models.Config{StopIDs: []int32{7}, VocabSize: 8})
		got := fmt.Sprintf("%v %s %s %s %s %s %s %s", g.StopIDs, show(g.DoSample), show(g.Temperature), show(g.TopK), show(g.TopP), show(g.MinP), show(g.Repetition), show(g.MaxNew))
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	g, err := models.ReadGeneration(&loader.Checkpoint{}, models.Config{StopIDs: []int32{7}, VocabSize: 8})
	if err != nil || !slices.Equal(g.StopIDs, []int32{7}) {
		t.Error(g, err)
	}
	for _, text := range []string{"", "{}"} {
		ck := &loader.Checkpoint{Name: "m"}
		if text != "" {
			ck.GenerationConfig = []byte(text)
		}
		if _, err := models.ReadGeneration(ck, models.Config{StopIDs: []int32{9}, VocabSize: 8}); err == nil || !strings.HasPrefix(err.Error(), "m/config.json: eos_token_id is 9,") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func show[T any](p *T) string {
	if p == nil {
		return "-"
	}
	return fmt.Sprint(*p)
}

// Whatever the config, opening it ends with a model or an error that names the
// file, and takes no memory for what it claims.
func FuzzConfig(f *testing.F) {
	for _, g := range []string{"llama", "llama_tied", "mistral", "qwen2", "qwen2_yarn", "qwen3"} {
		ck := modelstest.OpenGolden(f, g)
		f.Add(ck.Config)
	}
	full := modelstest.FromGolden(f, "llama").Open(f)
	f.Fuzz(func(t *testing.T, config []byte) {
		ck := *full
		ck.Config = config
		m, err := models.Open(&ck)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "golden") || len(err.Error()) > 2000 {
				t.Fatalf("error %q", err)
			}
			return
		}
		if c := m.Config(); c.Layers != 3 || c.Hidden != 64 || c.VocabSize != 320 {
			t.Fatalf("%+v", c)
		}
	})
}
