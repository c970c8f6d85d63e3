package llama

import (
	"infer/models"
	"infer/models/layers"
	"infer/runtime/loader"
)

func init() {
	models.Register(models.Family{
		Architectures: []string{"LlamaForCausalLM"},
		ModelTypes:    []string{"llama"},
		New:           New,
	})
}

// New reads a Llama config; defaults are those of transformers' LlamaConfig.
func New(c *models.ConfigFile, ck *loader.Checkpoint) (models.Model, error) {
	s := layers.ReadSpec(c, layers.Defaults{MaxPositions: 2048})
	bias := c.Bool("attention_bias", false)
	s.QKVBias, s.OBias = bias, bias
	s.MLPBias = c.Bool("mlp_bias", false)
	return s.New(c, ck)
}
