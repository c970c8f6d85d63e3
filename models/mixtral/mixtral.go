package mixtral

import (
	"infer/models"
	"infer/models/layers"
	"infer/runtime/loader"
)

func init() {
	models.Register(models.Family{
		Architectures: []string{"MixtralForCausalLM"},
		ModelTypes:    []string{"mixtral"},
		New:           New,
	})
}

// New reads a Mixtral config; defaults are those of transformers'
// MixtralConfig. The weights of a token's experts always add up to 1.
func New(c *models.ConfigFile, ck *loader.Checkpoint) (models.Model, error) {
	s := layers.ReadSpec(c, layers.Defaults{MaxPositions: 131072, KVHeads: 8, Eps: 1e-5, Theta: 1e6})
	s.ReadExperts(c, layers.MoE{Block: "block_sparse_moe", Gate: "w1", Up: "w3", Down: "w2", Normalize: true}, 8, 2, "intermediate_size", 14336)
	s.SetWindows(c.Int("sliding_window", 0, 1, 1<<30), 0)
	return s.New(c, ck)
}
