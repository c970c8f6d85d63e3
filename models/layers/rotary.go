package layers

import (
	"math"

	"infer/models"
)

// Rotary says how positions turn into angles (RoPE, and its scalings for
// longer contexts). Definitions are those of transformers'
// modeling_rope_utils, including its float32 rounding: models were trained
// with float32 tables.
type Rotary struct {
	Type      string  // default, linear, dynamic, llama3, yarn
	Dim       int     // elements of a head that rotate
	Theta     float64 // base of the wavelengths
	Factor    float64 // context extension
	Original  int     // context before the extension
	Attention float64 // factor on cos and sin; 1 but for yarn

	lowFreq, highFreq  float64 // llama3
	betaFast, betaSlow float64 // yarn
	truncate           bool    // yarn
}

// readRotary reads rope_parameters (transformers 5), or rope_theta and
// rope_scaling (the layout before). context is max_position_embeddings, theta
// the class's default.
func readRotary(c *models.ConfigFile, dim, context int, theta float64) Rotary {
	r := Rotary{Type: "default", Dim: dim, Original: context, Attention: 1}
	if theta == 0 {
		theta = 10000
	}
	r.Theta = c.Positive("rope_theta", theta)
	partial := c.Float("partial_rotary_factor", 1)
	p := c.Object("rope_scaling")
	if p == nil {
		p = c.Object("rope_parameters")
	}
	if p != nil {
		r.Type = p.String("rope_type", p.String("type", "default"))
		if p.Has("factor") && !p.Has("rope_type") && !p.Has("type") {
			p.Fail("rope_type", "is missing beside a factor")
		}
		r.Theta = p.Positive("rope_theta", r.Theta)
		partial = p.Float("partial_rotary_factor", partial)
		for _, key := range p.Objects() {
			p.Fail(key, "is an object: rotary settings for each layer type are not supported")
		}
		r.readScaling(c, p, context)
	}
	if partial != 1 {
		c.Fail("partial_rotary_factor", "is %g: only whole heads rotate in this family", partial)
	}
	return r
}

func (r *Rotary) readScaling(c, p *models.ConfigFile, context int) {
	need := func(key string) float64 {
		if !p.Has(key) {
			p.Fail(key, "is missing, which type %s needs", r.Type)
		}
		return p.Positive(key, 1)
	}
	original := func() int {
		if c.Has("original_max_position_embeddings") {
			return c.Int("original_max_position_embeddings", context, 1, maxPositions)
		}
		return p.Int("original_max_position_embeddings", context, 1, maxPositions)
	}
	switch r.Type {
	case "default", "mrope": // sections of mrope are equal for text
		r.Type = "default"
	case "linear":
		r.Factor = need("factor")
	case "dynamic":
		r.Factor = need("factor")
		if r.Dim <= 2 {
			p.Fail("rope_type", "dynamic needs a head_dim above 2")
		}
	case "llama3":
		r.Factor, r.lowFreq, r.highFreq = need("factor"), need("low_freq_factor"), need("high_freq_factor")
		r.Original = original()
		if r.highFreq <= r.lowFreq {
			p.Fail("high_freq_factor", "is %g, not above low_freq_factor %g", r.highFreq, r.lowFreq)
		}
	case "yarn":
		r.Original = original()
		r.Factor = float64(context) / float64(r.Original)
		r.Factor = p.Positive("factor", r.Factor)
		r.betaFast, r.betaSlow = p.Positive("beta_fast", 32), p.Positive("beta_slow", 1)
		r.truncate = p.Bool("truncate", true)
		r.Attention = mscale(r.Factor, 1)
		if a, b := p.Float("mscale", 0), p.Float("mscale_all_dim", 0); a != 0 && b != 0 {
			r.Attention = mscale(r.Factor, a) / mscale(r.Factor, b)
		}
		r.Attention = p.Positive("attention_factor", r.Attention)
		if r.Theta == 1 {
			p.Fail("rope_theta", "is 1, with which yarn is not defined")
		}
	default:
		p.Fail("rope_type", "is %.40q, which is not supported; supported are default, linear, dynamic, llama3, yarn", r.Type)
	}
}

// mscale is yarn's temperature on attention logits, by its square root.
func mscale(factor, m float64) float64 {
	if factor <= 1 {
		return 1
	}
	return 0.1*m*math.Log(factor) + 1
}

// reach is the context length that the scaling makes of the configured one.
// For the other types max_position_embeddings already includes it.
func (r *Rotary) reach(context int) int {
	switch r.Type {
	case "yarn":
		context = max(context, scaled(r.Original, r.Factor))
	case "dynamic":
		context = max(context, scaled(context, r.Factor))
	}
	return context
}

func scaled(n int, factor float64) int {
	return int(min(math.Round(float64(n)*factor), maxPositions))
}

// inverse wavelengths for a sequence of seq positions; only dynamic scaling
// depends on seq.
func (r *Rotary) inverse(seq int) []float32 {
	base, dim := r.Theta, float64(r.Dim)
	if r.Type == "dynamic" && seq > r.Original {
		base = float64(float32(base * math.Pow(r.Factor*float64(seq)/float64(r.Original)-(r.Factor-1), dim/(dim-2))))
	}
	inv := make([]float32, r.Dim/2)
	for i := range inv {
		inv[i] = 1 / float32(math.Pow(base, float64(float32(2*i)/float32(r.Dim))))
	}
	switch r.Type {
	case "linear":
		for i := range inv {
			inv[i] /= float32(r.Factor)
		}
	case "llama3":
		r.llama3(inv)
	case "yarn":
		r.yarn(inv)
	}
	return inv
}

// llama3 leaves short wavelengths as they are, stretches long ones by the
// factor, and goes smoothly from one to the other.
func (r *Rotary) llama3(inv []float32) {
	old, low, high, factor := float32(r.Original), float32(r.lowFreq), float32(r.highFreq), float32(r.Factor)
	for i, f := range inv {
		wave := float32(2*math.Pi) / f
		switch {
		case wave > float32(float64(r.Original)/r.lowFreq):
			inv[i] = f / factor
		case wave < float32(float64(r.Original)/r.highFreq):
		default:
			smooth := (old/wave - low) / (high - low)
			inv[i] = (1-smooth)*f/factor + smooth*f
		}
	}
}

// yarn interpolates wavelengths that do not turn often enough within the
// original context and leaves the others, with a linear ramp between.
// Peng et al., "YaRN: Efficient Context Window Extension of Large Language
// Models", section 3.2.
func (r *Rotary) yarn(inv []float32) {
	dim := float64(r.Dim)
	turns := func(n float64) float64 { // the dimension that turns n times
		return dim * math.Log(float64(r.Original)/(n*2*math.Pi)) / (2 * math.Log(r.Theta))
	}
	low, high := turns(r.betaFast), turns(r.betaSlow)
	if r.truncate {
		low, high = math.Floor(low), math.Ceil(high)
	}
	low, high = max(low, 0), min(high, dim-1)
	if low == high {
		high += 0.001
	}
	for i, f := range inv {
		ramp := min(max((float32(i)-float32(low))/float32(high-low), 0), 1)
		keep := 1 - ramp
		inv[i] = 1/(float32(r.Factor)/f)*(1-keep) + f*keep
	}
}

// fill writes rows lo.. of the tables: cos and sin are [n, Dim/2].
//
// With dynamic scaling the row of position p has the wavelengths of a sequence
// of p+1 positions. That is what decoding token by token with a cache does in
// transformers; it does not depend on how a prompt is cut into chunks, and is
// the unscaled table within the original context.
func (r *Rotary) fill(cos, sin []float32, lo int) {
	half := r.Dim / 2
	inv := r.inverse(0)
	for row := range len(cos) / half {
		pos := lo + row
		if r.Type == "dynamic" && pos >= r.Original {
			inv = r.inverse(pos + 1)
		}
		for i, f := range inv {
			s, c := math.Sincos(float64(float32(pos) * f))
			cos[row*half+i] = float32(c) * float32(r.Attention)
			sin[row*half+i] = float32(s) * float32(r.Attention)
		}
	}
}
