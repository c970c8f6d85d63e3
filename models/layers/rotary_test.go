package layers

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"strings"
	"testing"

	"infer/models"
)

// testdata/rotary.json is what transformers 5.24.0's modeling_rope_utils
// computes: inverse wavelengths in float32, and the factor on cos and sin.
type rotaryCase struct {
	HeadDim   int            `json:"head_dim"`
	Context   int            `json:"max_position_embeddings"`
	Rope      map[string]any `json:"rope"`
	Seq       int            `json:"seq"`
	Inverse   []float32      `json:"inverse"`
	Attention float64        `json:"attention"`
}

func parse(t *testing.T, keys map[string]any) *models.ConfigFile {
	t.Helper()
	b, err := json.Marshal(keys)
	if err != nil {
		t.Fatal(err)
	}
	c, err := models.ParseConfig("config.json", b)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestRotary(t *testing.T) {
	b, err := os.ReadFile("testdata/rotary.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []rotaryCase
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		legacy := maps.Clone(c.Rope)
		theta := legacy["rope_theta"]
		delete(legacy, "rope_theta")
		older := maps.Clone(legacy)
		older["type"] = older["rope_type"]
		delete(older, "rope_type")
		for layout, keys := range map[string]map[string]any{
			"rope_parameters": {"rope_parameters": c.Rope},
			"rope_scaling":    {"rope_scaling": legacy, "rope_theta": theta},
			"type":            {"rope_scaling": older, "rope_theta": theta},
		} {
			cfg := parse(t, keys)
			r := readRotary(cfg, c.HeadDim, c.Context, 0)
			if err := cfg.Err(); err != nil {
				t.Errorf("%v: %v", c.Rope, err)
				continue
			}
			if math.Abs(r.Attention-c.Attention) > 1e-12 {
				t.Errorf("%s %v: factor %g, want %g", layout, c.Rope, r.Attention, c.Attention)
			}
			for i, got := range r.inverse(c.Seq) {
				if want := c.Inverse[i]; math.Abs(float64(got-want)) > 4e-7*float64(want) {
					t.Errorf("%s %v, seq %d: entry %d is %g, want %g", layout, c.Rope, c.Seq, i, got, want)
				}
			}
		}
	}
}

// Row p of dynamic scaling is that of a sequence of p+1 positions, however the
// table is filled.
func TestDynamicRows(t *testing.T) {
	cfg := parse(t, map[string]any{"rope_scaling": map[string]any{"rope_type": "dynamic", "factor": 2}})
	r := readRotary(cfg, 8, 16, 0)
	if got := r.reach(16); got != 32 {
		t.Errorf("context %d, want 32", got)
	}
	const n = 32
	cos, sin := make([]float32, n*4), make([]float32, n*4)
	r.fill(cos, sin, 0)
	for _, p := range []int{0, 15, 16, 31} {
		c, s := make([]float32, 4), make([]float32, 4)
		r.fill(c, s, p)
		for i, f := range r.inverse(p + 1) {
			a := float64(float32(p) * f)
			if c[i] != cos[p*4+i] || s[i] != sin[p*4+i] || c[i] != float32(math.Cos(a)) || s[i] != float32(math.Sin(a)) {
				t.Errorf("row %d, entry %d: %g %g", p, i, c[i], s[i])
			}
		}
	}
	if plain := (&Rotary{Type: "default", Dim: 8, Theta: 10000, Attention: 1}).inverse(0); r.inverse(16)[1] != plain[1] || r.inverse(17)[1] == plain[1] {
		t.Error("scaling must begin behind the original context")
	}
}

func TestReach(t *testing.T) {
	for _, c := range []struct {
		rope map[string]any
		want int
	}{
		{nil, 4096},
		{map[string]any{"rope_type": "linear", "factor": 4}, 4096},
		{map[string]any{"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 4096}, 16384},
		{map[string]any{"rope_type": "yarn", "factor": 2, "original_max_position_embeddings": 1024}, 4096},
		{map[string]any{"rope_type": "dynamic", "factor": 2.5}, 10240},
		{map[string]any{"rope_type": "dynamic", "factor": 1e30}, maxPositions},
	} {
		cfg := parse(t, map[string]any{"rope_scaling": c.rope})
		r := readRotary(cfg, 64, 4096, 0)
		if got := r.reach(4096); got != c.want || cfg.Err() != nil {
			t.Errorf("%v: %d, want %d; %v", c.rope, got, c.want, cfg.Err())
		}
	}
}

func TestRotaryFaults(t *testing.T) {
	for _, c := range []struct {
		keys map[string]any
		err  string
	}{
		{map[string]any{"rope_theta": 0}, "rope_theta is 0, want a number above 0"},
		{map[string]any{"rope_theta": -1.5}, "rope_theta is -1.5, want"},
		{map[string]any{"rope_theta": "1e4"}, `rope_theta is "1e4", want a number`},
		{map[string]any{"rope_scaling": "linear"}, `rope_scaling is "linear", want an object`},
		{map[string]any{"rope_scaling": map[string]any{"factor": 2}}, "rope_scaling.rope_type is missing beside a factor"},
		{map[string]any{"rope_scaling": map[string]any{"type": "linear"}}, "rope_scaling.factor is missing, which type linear needs"},
		{map[string]any{"rope_scaling": map[string]any{"type": "linear", "factor": -2}}, "rope_scaling.factor is -2, want"},
		{map[string]any{"rope_scaling": map[string]any{"type": "linear", "factor": 1e-60}}, "rope_scaling.factor is 1e-60, want"},
		{map[string]any{"rope_scaling": map[string]any{"type": "su", "factor": 2}}, `rope_scaling.rope_type is "su", which is not supported`},
		{map[string]any{"rope_scaling": map[string]any{"type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 4}}, "high_freq_factor is 4, not above low_freq_factor 4"},
		{map[string]any{"rope_scaling": map[string]any{"type": "llama3", "factor": 8, "low_freq_factor": 4}}, "high_freq_factor is missing"},
		{map[string]any{"rope_parameters": map[string]any{"rope_type": "yarn", "factor": 8, "original_max_position_embeddings": 0}}, "original_max_position_embeddings is 0, outside 1 to"},
		{map[string]any{"rope_parameters": map[string]any{"rope_type": "yarn", "factor": 8}, "rope_theta": 1}, "rope_theta is 1, with which yarn"},
		{map[string]any{"rope_parameters": map[string]any{"full_attention": map[string]any{"rope_theta": 1}}}, "rope_parameters.full_attention is an object"},
		{map[string]any{"rope_parameters": map[string]any{"partial_rotary_factor": 0.5}}, "partial_rotary_factor is 0.5"},
	} {
		cfg := parse(t, c.keys)
		readRotary(cfg, 64, 4096, 0)
		if err := cfg.Err(); err == nil || !strings.Contains(err.Error(), c.err) {
			t.Errorf("%v: want an error with %q, got %v", c.keys, c.err, err)
		}
	}
}
