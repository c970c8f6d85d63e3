package qwen2

import (
	"infer/models"
	"infer/models/layers"
	"infer/runtime/loader"
)

func init() {
	models.Register(models.Family{
		Architectures: []string{"Qwen2ForCausalLM"},
		ModelTypes:    []string{"qwen2"},
		New:           New,
	})
}

// New reads a Qwen2 config; defaults are those of transformers' Qwen2Config.
func New(c *models.ConfigFile, ck *loader.Checkpoint) (models.Model, error) {
	s := layers.ReadSpec(c, layers.Defaults{MaxPositions: 32768, KVHeads: 32})
	s.QKVBias = true
	s.ReadUpperWindows(c)
	if c.Bool("use_mrope", false) {
		c.Fail("use_mrope", "is true: multimodal rotary positions are not supported")
	}
	return s.New(c, ck)
}
