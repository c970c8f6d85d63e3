package devicemap

import (
	"reflect"
	"strings"
	"testing"

	"infer/runtime/device"
)

func TestParseModules(t *testing.T) {
	gpu1 := device.ID{Kind: device.CUDA, Index: 1}
	for in, want := range map[string][]Part{
		`{"": 0}`:                    {{Device: gpu0, Hi: 3}},
		`{"": "cpu"}`:                {{Device: cpu0, Hi: 3}},
		`{"model": 0, "lm_head": 0}`: {{Device: gpu0, Hi: 3}},
		`{"model.embed_tokens": 0, "model.layers.0": 0, "model.layers.1": 1, "model.layers.2": 1, "model.norm": 1, "model.rotary_emb": 0, "lm_head": 1}`: {
			{Device: gpu0, Hi: 1}, {Device: gpu1, Lo: 1, Hi: 3},
		},
		// A longer name wins; the head and the embedding may be away from layers.
		`{"model": 0, "model.layers.2": "cuda:1", "lm_head": "cpu", "model.embed_tokens": "cpu"}`: {
			{Device: cpu0}, {Device: gpu0, Hi: 2}, {Device: gpu1, Lo: 2, Hi: 3}, {Device: cpu0, Lo: 3, Hi: 3},
		},
		`{"": 0, "model.layers.1.mlp.experts": "cpu", "model.layers.2.mlp": "cpu"}`: {
			{Device: gpu0, Hi: 1}, {Device: gpu0, Lo: 1, Hi: 3, ExpertsOn: cpu0},
		},
		`{"": 0, "model.layers.0.block_sparse_moe.experts.0": "cpu", "model.layers.0.block_sparse_moe.experts.1": "cpu"}`: {
			{Device: gpu0, Hi: 1, ExpertsOn: cpu0}, {Device: gpu0, Lo: 1, Hi: 3},
		},
		`{"": 0, "model.layers.1.self_attn": 0}`: {{Device: gpu0, Hi: 3}},
		`{"model.embed_tokens": 0, "model.layers.0.self_attn": 0, "model.layers.0.mlp": 0, "model.layers.1": 0, "model.layers.2": 0, "lm_head": 0}`: {
			{Device: gpu0, Hi: 3},
		},
		// Layer 10 is not below layer 1.
		`{"": "0", "model.layers.1": "1"}`: {{Device: gpu0, Hi: 1}, {Device: gpu1, Lo: 1, Hi: 2}, {Device: gpu0, Lo: 2, Hi: 3}},
	} {
		got, err := ParseModules([]byte(in), 3, false, true)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%v, %v, want\n%v", in, got, err, want)
		}
		if err == nil {
			if err := covers(got, 3); err != nil {
				t.Errorf("%s: %v", in, err)
			}
		}
	}
	if got, err := ParseModules([]byte(`{"model": 0}`), 3, true, false); err != nil || len(got) != 1 {
		t.Errorf("tied: %v, %v", got, err)
	}
	for in, want := range map[string]string{
		`[]`:                            "not a JSON object",
		`{"": "disk"}`:                  `module "": on disk`,
		`{"": 1.5}`:                     `module "": device 1.5`,
		`{"": -1}`:                      `module "": device -1`,
		`{"": null}`:                    `module "": device <nil>`,
		`{"": "tpu"}`:                   `module "": unknown device "tpu"`,
		`{"model": 0}`:                  `module "lm_head" is placed by no entry`,
		`{"lm_head": 0}`:                `module "model.embed_tokens" is placed by no entry`,
		`{"": 0, "model.lyers.1": 0}`:   `module "model.lyers.1" is unknown`,
		`{"": 0, "model.layers.3": 0}`:  `module "model.layers.3": the model's last layer is 2`,
		`{"": 0, "model.layers.01": 0}`: `module "model.layers.01" is unknown`,
		`{"model.embed_tokens": 0, "lm_head": 0, "model.layers.0": 0, "model.layers.2": 0}`: `module "model.layers.1" is placed by no entry`,
		`{"": 0, "model.layers.1.self_attn": 1}`:                                            `module "model.layers.1.self_attn" is on cuda:1, but layer 1 is on cuda:0`,
		`{"": 0, "model.layers.1.mlp.experts.0": "cpu", "model.layers.1.mlp.experts.1": 1}`: `module "model.layers.1.mlp.experts.1" is on cuda:1, but other experts of layer 1 are on cpu`,
	} {
		if got, err := ParseModules([]byte(in), 3, false, true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want %q", in, got, err, want)
		}
	}
	if _, err := ParseModules([]byte(`{"": 0, "model.layers.1.mlp": "cpu"}`), 3, false, false); err == nil || !strings.Contains(err.Error(), `module "model.layers.1.mlp" is on cpu`) {
		t.Errorf("%v", err)
	}
}
