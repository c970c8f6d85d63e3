package qwen3moe

import (
	"infer/models"
	"infer/models/layers"
	"infer/runtime/loader"
)

func init() {
	models.Register(models.Family{
		Architectures: []string{"Qwen3MoeForCausalLM"},
		ModelTypes:    []string{"qwen3_moe"},
		New:           New,
	})
}

// New reads a Qwen3-MoE config; defaults are those of transformers'
// Qwen3MoeConfig. Unlike in the dense Qwen3, a window is one for all layers.
func New(c *models.ConfigFile, ck *loader.Checkpoint) (models.Model, error) {
	s := layers.ReadSpec(c, layers.Defaults{MaxPositions: 32768, KVHeads: 4})
	s.QKNorm = true
	bias := c.Bool("attention_bias", false)
	s.QKVBias, s.OBias = bias, bias
	if c.Bool("use_sliding_window", false) && !c.Null("sliding_window") {
		s.SetWindows(c.Int("sliding_window", 4096, 1, 1<<30), 0)
	}
	s.ReadExperts(c, layers.MoE{
		Block: "mlp", Gate: "gate_proj", Up: "up_proj", Down: "down_proj", Normalize: c.Bool("norm_topk_prob", false),
	}, 128, 8, "moe_intermediate_size", 768)
	dense(c, &s)
	return s.New(c, ck)
}

// dense reads which layers have an ordinary MLP: those of mlp_only_layers, and
// all but every decoder_sparse_step-th.
func dense(c *models.ConfigFile, s *layers.Spec) {
	only := c.Layers("mlp_only_layers")
	step := c.Int("decoder_sparse_step", 1, 1, 1<<20)
	if len(only) == 0 && step == 1 {
		return
	}
	s.MoE.Dense = make([]bool, s.Layers)
	for i := range s.Layers {
		s.MoE.Dense[i] = (i+1)%step != 0
	}
	for _, i := range only {
		if int(i) < s.Layers { // others name no layer, and transformers minds none
			s.MoE.Dense[i] = true
		}
	}
}
