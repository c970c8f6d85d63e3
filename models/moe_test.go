package models_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"infer/models"
	"infer/models/modelstest"
	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/kernels/ref"
	"infer/runtime/tensor"
)

// How the experts are stored does not matter: each by itself, or all of a layer
// in two tensors.
func TestStackedExperts(t *testing.T) {
	for family, names := range map[string][4]string{
		"mixtral":   {"block_sparse_moe", "w1", "w3", "w2"},
		"qwen3_moe": {"mlp", "gate_proj", "up_proj", "down_proj"},
	} {
		b := modelstest.FromGolden(t, family)
		want := logits(t, b.Open(t))
		for layer := range 2 {
			at := fmt.Sprintf("model.layers.%d.", layer)
			take := func(name string) modelstest.Blob {
				x, ok := b.Tensors[at+name]
				if !ok {
					t.Fatalf("%s: no %s", family, name)
				}
				delete(b.Tensors, at+name)
				return x
			}
			b.Tensors[at+"mlp.gate.weight"] = take(names[0] + ".gate.weight")
			var gateUp, down modelstest.Blob
			experts := 0
			for ; ; experts++ {
				name := fmt.Sprintf("%s.experts.%d.", names[0], experts)
				if _, ok := b.Tensors[at+name+names[1]+".weight"]; !ok {
					break
				}
				g, u, d := take(name+names[1]+".weight"), take(name+names[2]+".weight"), take(name+names[3]+".weight")
				gateUp.DType, down.DType = g.DType, d.DType
				gateUp.Data = slices.Concat(gateUp.Data, g.Data, u.Data)
				down.Data = slices.Concat(down.Data, d.Data)
				gateUp.Shape, down.Shape = []int{2 * g.Shape[0], g.Shape[1]}, d.Shape
			}
			gateUp.Shape, down.Shape = append([]int{experts}, gateUp.Shape...), append([]int{experts}, down.Shape...)
			b.Tensors[at+"mlp.experts.gate_up_proj"], b.Tensors[at+"mlp.experts.down_proj"] = gateUp, down
		}
		if !equal(logits(t, b.Open(t)), want) {
			t.Errorf("%s: stacked: other logits", family)
		}
	}
}

// A layer with one expert that every token takes with weight 1 is a layer with
// an MLP; which layers are which is read from the config.
func TestOneExpert(t *testing.T) {
	for name, c := range map[string]struct {
		config map[string]any
		dense  []int
	}{
		"all":               {nil, nil},
		"mlp_only_layers":   {map[string]any{"mlp_only_layers": []int{0, 2}}, []int{0, 2}},
		"every second":      {map[string]any{"decoder_sparse_step": 2}, []int{0, 2}},
		"both":              {map[string]any{"decoder_sparse_step": 2, "mlp_only_layers": []int{1, 77}}, []int{0, 1, 2}},
		"not normalized":    {map[string]any{"norm_topk_prob": false}, nil},
		"window":            {map[string]any{"use_sliding_window": true, "sliding_window": 7, "max_window_layers": 0}, nil},
		"window, last only": {map[string]any{"use_sliding_window": false, "sliding_window": 7}, []int{}},
	} {
		b := modelstest.FromGolden(t, "qwen3")
		for _, key := range []string{"use_sliding_window", "sliding_window", "max_window_layers", "layer_types"} {
			delete(b.Config, key)
			if v, ok := c.config[key]; ok {
				b.Config[key] = v
			}
		}
		want := logits(t, b.Open(t))
		maps.Copy(b.Config, map[string]any{
			"architectures": []string{"Qwen3MoeForCausalLM"}, "model_type": "qwen3_moe",
			"num_experts": 1, "num_experts_per_tok": 1, "norm_topk_prob": true, "moe_intermediate_size": b.Config["intermediate_size"],
		})
		maps.Copy(b.Config, c.config)
		for _, full := range slices.Collect(maps.Keys(b.Tensors)) {
			var layer int
			if n, _ := fmt.Sscanf(full, "model.layers.%d.mlp", &layer); n == 1 && strings.Contains(full, ".mlp.") && !slices.Contains(c.dense, layer) {
				x := b.Tensors[full]
				delete(b.Tensors, full)
				b.Tensors[strings.Replace(full, ".mlp.", ".mlp.experts.0.", 1)] = x
				b.Tensors[fmt.Sprintf("model.layers.%d.mlp.gate.weight", layer)] = modelstest.Zeros(x.DType, 1, 64)
			}
		}
		got := logits(t, b.Open(t))
		for i := range want {
			for j := range want[i] {
				if d := math.Abs(float64(got[i][j] - want[i][j])); !(d <= modelstest.Tolerance) {
					t.Fatalf("%s: row %d, logit %d is %g, want %g", name, i, j, got[i][j], want[i][j])
				}
			}
		}
	}
}

// A width that is no multiple of 16 leaves gaps in the stacks. Experts are cut
// to 21 of their 32 outputs by weights of 0, and then by the config.
func TestExpertGaps(t *testing.T) {
	const width = 21
	b := modelstest.FromGolden(t, "qwen3_moe")
	cut := modelstest.FromGolden(t, "qwen3_moe")
	cut.Config["moe_intermediate_size"] = width
	for name, x := range b.Tensors {
		if !strings.Contains(name, ".experts.") {
			continue
		}
		if strings.Contains(name, "down_proj") { // the columns from width on
			var kept []byte
			for r := range x.Shape[0] {
				row := x.Data[r*2*x.Shape[1] : (r+1)*2*x.Shape[1]]
				kept = append(kept, row[:2*width]...)
				clear(row[2*width:])
			}
			cut.Tensors[name] = modelstest.Blob{DType: x.DType, Shape: []int{x.Shape[0], width}, Data: kept}
			continue
		}
		cut.Tensors[name] = modelstest.Blob{DType: x.DType, Shape: []int{width, x.Shape[1]}, Data: x.Data[:2*width*x.Shape[1]]}
	}
	if !equal(logits(t, cut.Open(t)), logits(t, b.Open(t))) {
		t.Error("other logits")
	}
}

// A router that gives NaN for a token makes its logits NaN, and no other's: no
// id may come of it.
func TestRouterNaN(t *testing.T) {
	b := modelstest.FromGolden(t, "mixtral")
	want := logits(t, b.Open(t))
	// The embedding of the last token of the prompt is what its router sees.
	const hidden = 64
	embed := b.Tensors["model.embed_tokens.weight"]
	last := prompt[len(prompt)-1]
	if slices.Index(prompt, last) != len(prompt)-1 {
		t.Fatal("the last token is not the only one of its kind")
	}
	embed.Data[2*int(last)*hidden], embed.Data[2*int(last)*hidden+1] = 0xc0, 0x7f
	got := logits(t, b.Open(t))
	if !equal(got[:len(got)-1], want[:len(want)-1]) {
		t.Error("other rows change")
	}
	for i, v := range got[len(got)-1] {
		if v == v {
			t.Fatalf("logit %d is %g", i, v)
		}
	}
}

// What is on a place of its own is not on the stage's device.
func TestExpertBytes(t *testing.T) {
	ck := modelstest.OpenGolden(t, "qwen3_moe")
	m, err := models.Open(ck)
	if err != nil {
		t.Fatal(err)
	}
	var experts, rest int64
	for _, s := range m.Tensors() {
		x, _ := ck.Tensor(s.Name)
		n := x.Bytes
		if len(s.Shape) == 1 {
			n *= 2 // as F32
		}
		if s.Expert {
			experts += n
		} else {
			rest += n
		}
	}
	load := func(away bool) (own, there [2]int64) {
		b := ref.Open()
		s, err := b.Device().NewStream()
		if err != nil {
			t.Fatal(err)
		}
		ops, err := b.NewOps(s)
		if err != nil {
			t.Fatal(err)
		}
		o := models.LoadOptions{Hi: 2, Embed: true, Head: true, Checkpoint: ck, Backend: b, Stream: s, MaxTokens: 4, MaxLogits: 4, MaxPositions: 8}
		second := ref.Open()
		if away {
			o.Experts = &models.Place{Backend: second, Stream: s, Ops: ops}
		}
		st, err := m.Load(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		own[0], own[1] = st.Bytes()
		there[0], there[1] = st.ExpertBytes()
		if err := st.Close(); err != nil {
			t.Error(err)
		}
		for i, d := range []*ref.Backend{b, second} {
			if info := d.Device().Info(); info.FreeBytes != info.TotalBytes {
				t.Errorf("device %d: %d bytes stay", i, info.TotalBytes-info.FreeBytes)
			}
		}
		return own, there
	}
	const tables = 2 * 8 * 16 * 4 // cos and sin
	own, there := load(false)
	if own[0] != experts+rest+tables || there != [2]int64{} {
		t.Errorf("%d bytes of weights, %d on the place; want %d, 0", own[0], there[0], experts+rest+tables)
	}
	split, there := load(true)
	if split[0] != rest+tables || there[0] != experts || split[1] > own[1] || there[1] == 0 {
		t.Errorf("split: %d and %d bytes of weights, want %d and %d; %d and %d of scratch, %d in one", split[0], there[0], rest+tables, experts, split[1], there[1], own[1])
	}
}

// stillMoE does nothing, allocates nothing.
type stillMoE struct{ still }

func (stillMoE) Route(kernels.RouteArgs)     {}
func (stillMoE) Experts(kernels.ExpertsArgs) {}

// Whatever fails in a Load with two devices, nothing stays behind on either;
// and a step allocates nothing.
func TestExpertLoadFaults(t *testing.T) {
	ck := modelstest.OpenGolden(t, "mixtral")
	m, err := models.Open(ck)
	if err != nil {
		t.Fatal(err)
	}
	load := func(own, away *counting) (models.Stage, error) {
		return m.Load(t.Context(), models.LoadOptions{
			Hi: 2, Embed: true, Head: true, Checkpoint: ck, Backend: own, Stream: sink{}, MaxTokens: 4, MaxLogits: 4, MaxPositions: 8,
			Experts: &models.Place{
				Backend: away, Stream: sink{}, Ops: stillMoE{},
				There: func(tensor.Tensor, tensor.Tensor) {}, Back: func(tensor.Tensor, tensor.Tensor) {},
			},
		})
	}
	own, away := &counting{}, &counting{}
	s, err := load(own, away)
	if err != nil {
		t.Fatal(err)
	}
	b := &kernels.Batch{Tokens: make([]int32, 3), Logits: []int32{0, 2}}
	kv := make([]kernels.KVLayer, 2)
	if n := testing.AllocsPerRun(20, func() { s.Forward(stillMoE{}, b, kv, tensor.Tensor{}, tensor.Tensor{}) }); n != 0 {
		t.Errorf("%g allocations in a step", n)
	}
	if err := s.Close(); err != nil || own.live.Load() != 0 || away.live.Load() != 0 {
		t.Errorf("%d and %d left after Close, %v", own.live.Load(), away.live.Load(), err)
	}
	for i, calls := range []int64{own.calls.Load(), away.calls.Load()} {
		for n := range calls {
			two := [2]*counting{{}, {}}
			two[i].fail = n + 1
			if _, err := load(two[0], two[1]); !errors.Is(err, errFull) || two[0].live.Load() != 0 || two[1].live.Load() != 0 {
				t.Errorf("failure %d of device %d: %v, %d and %d left", n+1, i, err, two[0].live.Load(), two[1].live.Load())
			}
		}
	}
	_, err = m.Load(t.Context(), models.LoadOptions{
		Hi: 2, Embed: true, Head: true, Checkpoint: ck, Backend: own, Stream: sink{}, MaxTokens: 4, MaxLogits: 4, MaxPositions: 8,
		Experts: &models.Place{Backend: ref.Open(), Stream: sink{}, Ops: still{}},
	})
	if !errors.Is(err, device.ErrNotSupported) || own.live.Load() != 0 {
		t.Errorf("operations without mixtures: %v, %d left", err, own.live.Load())
	}
}
