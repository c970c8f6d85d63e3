package mistral

import (
	"slices"

	"infer/models"
	"infer/models/layers"
	"infer/runtime/loader"
)

func init() {
	models.Register(models.Family{
		Architectures: []string{"MistralForCausalLM"},
		ModelTypes:    []string{"mistral"},
		New:           New,
	})
}

// New reads a Mistral config; defaults are those of transformers'
// MistralConfig. A sliding_window of null means full attention, but one that is
// left out means the class's 4096.
func New(c *models.ConfigFile, ck *loader.Checkpoint) (models.Model, error) {
	s := layers.ReadSpec(c, layers.Defaults{MaxPositions: 131072, KVHeads: 8})
	window := 4096
	if c.Null("sliding_window") {
		window = 0
	}
	window = c.Int("sliding_window", window, 1, 1<<30)
	s.SetWindows(window, 0)
	if types := c.Strings("layer_types"); window > 0 && slices.Contains(types, "full_attention") {
		c.Fail("layer_types", "has full_attention beside a sliding_window of %d: Mistral has one kind for all layers", window)
	}
	return s.New(c, ck)
}
