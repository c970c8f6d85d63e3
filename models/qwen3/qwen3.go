package qwen3

import (
	"infer/models"
	"infer/models/layers"
	"infer/runtime/loader"
)

func init() {
	models.Register(models.Family{
		Architectures: []string{"Qwen3ForCausalLM"},
		ModelTypes:    []string{"qwen3"},
		New:           New,
	})
}

// New reads a Qwen3 config; defaults are those of transformers' Qwen3Config.
func New(c *models.ConfigFile, ck *loader.Checkpoint) (models.Model, error) {
	s := layers.ReadSpec(c, layers.Defaults{MaxPositions: 32768, KVHeads: 32, HeadDim: 128})
	s.QKNorm = true
	bias := c.Bool("attention_bias", false)
	s.QKVBias, s.OBias = bias, bias
	s.ReadUpperWindows(c)
	return s.New(c, ck)
}
