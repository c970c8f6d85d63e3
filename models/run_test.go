package models_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"infer/models"
	"infer/models/modelstest"
	"infer/runtime/kernels/ref"
	"infer/runtime/loader"
	"infer/runtime/tensor"
)

// prompt is longer than the goldens' windows.
var prompt = []int32{5, 17, 250, 3, 99, 42, 42, 7, 201, 13, 77, 180, 260, 31, 8, 119, 64, 2, 300, 11, 150, 45, 6}

func logits(t *testing.T, ck *loader.Checkpoint) [][]float32 {
	t.Helper()
	r := modelstest.New(t, ck, ref.Open(), modelstest.Options{MaxTokens: 64, Positions: 64, Blocks: 8})
	return r.Step(modelstest.Run{Seq: &modelstest.Seq{}, IDs: prompt})
}

func equal(a, b [][]float32) bool {
	return slices.EqualFunc(a, b, slices.Equal[[]float32])
}

// How a checkpoint stores the embedding and the head of a tied model does not
// matter, unless it has both and they differ: then it is not tied.
func TestTied(t *testing.T) {
	const embed, head = "model.embed_tokens.weight", "lm_head.weight"
	b := modelstest.FromGolden(t, "llama_tied")
	want := logits(t, b.Open(t))

	b.Tensors[head] = b.Tensors[embed]
	if !equal(logits(t, b.Open(t)), want) {
		t.Error("both, equal: other logits")
	}
	if m, err := models.Open(b.Open(t)); err != nil || !m.Config().Tied {
		t.Errorf("both, equal: not tied, %v", err)
	}
	delete(b.Tensors, embed)
	if !equal(logits(t, b.Open(t)), want) {
		t.Error("only the head: other logits")
	}

	untied := modelstest.FromGolden(t, "llama")
	want = logits(t, untied.Open(t))
	untied.Config["tie_word_embeddings"] = true
	if !equal(logits(t, untied.Open(t)), want) {
		t.Error("both, different: other logits than untied")
	}
	if m, err := models.Open(untied.Open(t)); err != nil || m.Config().Tied {
		t.Errorf("both, different: tied, %v", err)
	}
	delete(untied.Tensors, embed)
	delete(untied.Tensors, head)
	if _, err := models.Open(untied.Open(t)); err == nil || !strings.Contains(err.Error(), embed) {
		t.Errorf("neither: %v", err)
	}
}

// Weights may be stored in any type that holds the values, and in different
// ones within a fused matrix.
func TestStoredTypes(t *testing.T) {
	for name, pick := range map[string]func(string) bool{
		"all":    func(string) bool { return true },
		"k, up":  func(n string) bool { return strings.Contains(n, "k_proj") || strings.Contains(n, "up_proj") },
		"norms":  func(n string) bool { return strings.Contains(n, "norm") },
		"o only": func(n string) bool { return strings.Contains(n, "o_proj") },
	} {
		for _, to := range []tensor.DType{tensor.F32, tensor.F64} {
			b := modelstest.FromGolden(t, "qwen2")
			want := logits(t, b.Open(t))
			b.Convert(t, to, pick)
			if !equal(logits(t, b.Open(t)), want) {
				t.Errorf("%s as %v: other logits", name, to)
			}
		}
	}
}

// A Qwen2 with a window on all layers, and with biases of 0, is a Mistral.
func TestUpperWindows(t *testing.T) {
	mistral := modelstest.FromGolden(t, "mistral")
	want := logits(t, mistral.Open(t))
	b := modelstest.FromGolden(t, "mistral")
	b.Config["architectures"], b.Config["model_type"] = []string{"Qwen2ForCausalLM"}, "qwen2"
	for _, name := range slices.Collect(maps.Keys(b.Tensors)) {
		base, _ := strings.CutSuffix(name, ".weight")
		if p := base[max(0, len(base)-6):]; p == "q_proj" || p == "k_proj" || p == "v_proj" {
			b.Tensors[base+".bias"] = modelstest.Zeros(tensor.F16, b.Tensors[name].Shape[0])
		}
	}
	b.Config["use_sliding_window"], b.Config["max_window_layers"] = true, 0
	if !equal(logits(t, b.Open(t)), want) {
		t.Error("windows from layer 0: other logits than Mistral")
	}
	b.Config["layer_types"] = []string{"sliding_attention", "sliding_attention", "sliding_attention"}
	b.Config["max_window_layers"] = 28
	if !equal(logits(t, b.Open(t)), want) {
		t.Error("windows by layer_types: other logits than Mistral")
	}
	delete(b.Config, "layer_types")
	mistral.Config["sliding_window"] = nil
	full := logits(t, mistral.Open(t))
	if equal(full, want) {
		t.Fatal("the window makes no difference")
	}
	if !equal(logits(t, b.Open(t)), full) {
		t.Error("windows from layer 28: other logits than full attention")
	}
	b.Config["max_window_layers"] = 2
	some := logits(t, b.Open(t))
	b.Config["layer_types"] = []string{"full_attention", "full_attention", "sliding_attention"}
	if equal(some, full) || equal(some, want) || !equal(logits(t, b.Open(t)), some) {
		t.Error("a window on the last layer only")
	}
}
