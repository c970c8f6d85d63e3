package engine

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"testing"

	"infer/models"
	"infer/runtime/device"
	"infer/runtime/devicemap"
	"infer/runtime/kernels"
	"infer/runtime/kernels/cpu"
	"infer/runtime/kernels/cuda"
	"infer/runtime/loader"
	"infer/runtime/tensor"
)

// randomConfig is a small model of some family.
func randomConfig(r *rand.Rand) map[string]any {
	heads := []int{2, 4, 6}[r.IntN(3)]
	c := map[string]any{
		"vocab_size": 50 + r.IntN(3000), "hidden_size": 8 * (2 + r.IntN(20)), "intermediate_size": 8 * (2 + r.IntN(40)),
		"num_hidden_layers": 1 + r.IntN(9), "num_attention_heads": heads, "num_key_value_heads": 2,
		"head_dim": []int{16, 24, 64}[r.IntN(3)], "max_position_embeddings": 200 + r.IntN(3000),
		"tie_word_embeddings": r.IntN(2) == 0,
	}
	switch r.IntN(3) {
	case 0:
		c["architectures"], c["model_type"] = []string{"LlamaForCausalLM"}, "llama"
		c["attention_bias"], c["mlp_bias"] = r.IntN(2) == 0, r.IntN(2) == 0
	case 1:
		c["architectures"], c["model_type"] = []string{"MixtralForCausalLM"}, "mixtral"
		c["num_local_experts"], c["num_experts_per_tok"] = 4, 2
	default:
		c["architectures"], c["model_type"] = []string{"Qwen3MoeForCausalLM"}, "qwen3_moe"
		c["num_experts"], c["num_experts_per_tok"], c["moe_intermediate_size"] = 3+r.IntN(20), 3, 8*(1+r.IntN(10))
		c["decoder_sparse_step"] = 1 + r.IntN(2)
	}
	return c
}

// A plan is loaded on devices that have no byte more than it says: nothing may
// be refused. The K/V that is planned is loaded too.
func TestPlansKeepTheirLimits(t *testing.T) {
	count := 10_000
	if testing.Short() {
		count = 500
	}
	layouts := []kernels.Layout{cpu.Layout{}, cuda.Layout{}, cuda.Layout{Act: tensor.F32, KV: tensor.F32}}
	formats := []kernels.Format{kernels.AsStored, kernels.F32, kernels.BF16}
	loaded, several, elsewhere := 0, 0, 0
	var in devicemap.Input
	var m models.Model
	var places []Place
	var ck *loader.Checkpoint
	var f kernels.Format
	for seed := range count {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		if seed%20 == 0 { // another model; else another machine
			raw, err := json.Marshal(randomConfig(r))
			if err != nil {
				t.Fatal(err)
			}
			bare, err := loader.OpenFS(zeroFS{"config.json": {raw, int64(len(raw))}, "model.safetensors": {[]byte("\x02\x00\x00\x00\x00\x00\x00\x00{}"), 10}}, "m")
			if err != nil {
				t.Fatal(err)
			}
			if m, err = models.FromConfig(bare); err != nil {
				t.Fatal(err)
			}
			places, f = nil, formats[r.IntN(len(formats))]
			for i := range 4 {
				p := Place{Layout: layouts[1+i%2*r.IntN(2)]}
				p.Info.ID = device.ID{Kind: device.CUDA, Index: i}
				p.GBps, p.TFlops = 1000, 50
				places = append(places, p)
			}
			last := Place{Layout: layouts[0]}
			last.Info.ID = device.ID{Kind: device.CPU}
			if places = append(places, last); in.Model.Layers != nil {
				ck.Close()
			}
			if in, err = Measure(m, nil, places, PlanOptions{
				Format: f, Stored: tensor.BF16, MaxContext: 16 + r.IntN(180), MaxSeqs: 1 + r.IntN(5), MaxTokens: 5 + r.IntN(40),
			}); err != nil {
				t.Fatal(err)
			}
			var all []int
			for l := range m.Config().Layers {
				all = append(all, l)
			}
			if ck, err = zeros(m, func(models.TensorSpec) (tensor.DType, error) { return tensor.BF16, nil }, all); err != nil {
				t.Fatal(err)
			}
		}
		some := in
		some.Devices = append([]devicemap.Device(nil), in.Devices[r.IntN(4):]...)
		var total int64
		for _, l := range in.Devices[0].Model.Layers {
			total += l.Weights + l.Experts
		}
		total += in.Devices[0].Model.Embed + in.Devices[0].Model.Head
		n := int64(len(some.Devices))
		for i := range some.Devices {
			d := &some.Devices[i]
			d.Reserve = r.Int64N(1000)
			d.Info.FreeBytes = d.Workspace + d.Scratch.Only + d.Reserve + total/(2*n) + r.Int64N(2*total/n)
		}
		p, err := devicemap.Auto(some)
		if errors.Is(err, devicemap.ErrDoesNotFit) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		var backends []kernels.Backend
		used := map[device.ID]*counting{}
		for i, d := range some.Devices {
			c := &counting{info: d.Info, layout: places[len(places)-len(some.Devices)+i].Layout, limit: d.Info.FreeBytes - d.Reserve}
			used[d.Info.ID] = c
			backends = append(backends, c)
		}
		run, err := Load(t.Context(), RunnerConfig{Model: m, Checkpoint: ck, Plan: p, Backends: backends, Format: f, sizesOnly: true})
		if err != nil {
			t.Fatalf("seed %d: %v\n%v", seed, err, p.Stages)
		}
		for i, s := range p.Stages {
			want, away := s.Bytes, s.Away
			want.Workspace, want.Reserve, away.Workspace, away.Reserve = 0, 0, 0, 0
			if got := run.Bytes()[i]; got.Weights != want.Weights || got.KV < want.KV || got.KV > want.KV+int64(1024*(s.Hi-s.Lo)) || got.Activations > want.Activations {
				t.Fatalf("seed %d: %v: planned %+v, holds %+v", seed, s, want, got)
			}
			if got := run.Away()[i]; got.Activations > away.Activations || got.Weights < away.Weights-1024 || got.Weights > away.Weights+1024 {
				t.Fatalf("seed %d: %v: planned %+v elsewhere, holds %+v", seed, s, away, got)
			}
		}
		loaded++
		if len(p.Devices()) > 1 {
			several++
		}
		for _, s := range p.Stages {
			if s.Split() {
				elsewhere++
				break
			}
		}
		if err := run.Close(); err != nil {
			t.Fatal(err)
		}
		for id, c := range used {
			if n := c.used.Load(); n != 0 {
				t.Fatalf("seed %d: %v: %d bytes stay behind", seed, id, n)
			}
		}
	}
	ck.Close()
	t.Logf("%d of %d loaded, %d on several devices, %d with experts elsewhere", loaded, count, several, elsewhere)
	if loaded < count/3 || several < count/5 || elsewhere < count/100 {
		t.Error("the machines are not varied enough to test anything")
	}
}
