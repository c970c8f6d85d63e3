package layers

import "infer/models"

// SetWindows makes layers from first on look at window positions only;
// window 0 means none.
func (s *Spec) SetWindows(window, first int) {
	if window == 0 || first >= s.Layers {
		return
	}
	s.Windows = make([]int, s.Layers)
	for i := max(first, 0); i < s.Layers; i++ {
		s.Windows[i] = window
	}
}

// ReadUpperWindows reads windows as Qwen configs give them: by layer_types, or
// for the layers from max_window_layers on; in both cases only with
// use_sliding_window.
func (s *Spec) ReadUpperWindows(c *models.ConfigFile) {
	window := 0
	if c.Bool("use_sliding_window", false) && !c.Null("sliding_window") {
		window = c.Int("sliding_window", 4096, 1, maxPositions)
	}
	first := c.Int("max_window_layers", 28, 0, maxLayers)
	if !s.setLayerTypes(c, window) {
		s.SetWindows(window, first)
	}
}

// setLayerTypes takes the windows from the key layer_types, if it is there,
// and tells whether it is.
func (s *Spec) setLayerTypes(c *models.ConfigFile, window int) bool {
	if !c.Has("layer_types") {
		return false
	}
	types := c.Strings("layer_types")
	if len(types) != s.Layers {
		c.Fail("layer_types", "has %d entries, but num_hidden_layers is %d", len(types), s.Layers)
		return true
	}
	s.Windows = make([]int, s.Layers)
	for i, t := range types {
		switch {
		case t == "full_attention":
		case t == "sliding_attention" && window > 0:
			s.Windows[i] = window
		case t == "sliding_attention":
			c.Fail("layer_types", "has sliding_attention at layer %d, but no sliding window is set", i)
		default:
			c.Fail("layer_types", "has %.40q at layer %d, which is not supported", t, i)
		}
	}
	return true
}
