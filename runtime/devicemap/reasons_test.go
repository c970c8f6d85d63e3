package devicemap

import (
	"strings"
	"testing"

	"infer/runtime/device"
)

// withGPUs is a model of 4 layers, some GPUs with so much memory, and a CPU
// that has enough.
func withGPUs(room ...int64) Input {
	in := Input{BlockSize: 16, MaxContext: 64, MaxSeqs: 1, MaxTokens: 32, MaxLogits: 4}
	in.Model = Model{Embed: 50 << 20, Head: 50 << 20, MaxContext: 128, Hidden: 1024}
	for range 4 {
		in.Model.Layers = append(in.Model.Layers, Layer{Weights: 100 << 20, KVElems: 1024})
	}
	for i, n := range room {
		in.Devices = append(in.Devices, Device{Info: device.Info{ID: device.ID{Kind: device.CUDA, Index: i}, FreeBytes: n}, Reserve: 1 << 20, GBps: 1000, KVBits: 16})
	}
	in.Devices = append(in.Devices, Device{Info: device.Info{ID: cpu0, FreeBytes: 1 << 30}, GBps: 40, KVBits: 16})
	return in
}

// What is said of a plan is so: of GPUs without room for a layer it is not said
// that they would be no faster, nor of layers that the user put on the CPU that
// the GPUs have no memory for them.
func TestWhy(t *testing.T) {
	layers := func(n int) func(*Input) { return func(in *Input) { in.GPULayers = &n } }
	for _, c := range []struct {
		name      string
		room      []int64
		change    func(*Input)
		want, not []string
	}{
		{"one GPU", []int64{1 << 30}, nil, []string{"cuda:0 alone has memory for the model"}, []string{"not used", "cpu"}},
		{"an idle GPU", []int64{1 << 30, 1 << 30}, nil, []string{"cuda:0 alone has memory", "not used: cuda:1: more devices"}, nil},
		{"no room for a layer", []int64{50 << 20, 101 << 20}, nil, []string{
			"cpu alone: the GPUs have no memory for a layer",
			"not used: cuda:0: a layer with its K/V and workspace needs 100.1 MiB, 49.0 MiB may be used", "not used: cuda:1: ",
		}, []string{"faster", "no memory is reported"}},
		{"reserved", []int64{1 << 20}, nil, []string{"0 B may be used"}, []string{"faster"}},
		{"reports no memory", []int64{0}, nil, []string{"cpu alone: the GPUs have no memory", "not used: cuda:0: no memory is reported"}, []string{"faster"}},
		{"slow", []int64{1 << 30}, func(in *Input) { in.Devices[0].GBps = 4 }, []string{"cpu alone: with layers on GPUs a step is predicted to be no faster"}, []string{"no memory"}},
		{"too small", []int64{260 << 20}, nil, []string{"no GPU alone has memory for the model and K/V for 64 tokens", "cpu computes layers 0-1, which the GPUs have no memory for"}, []string{"not used"}},
		{"slower alone", []int64{1 << 30, 310 << 20}, func(in *Input) { in.Devices[0].GBps, in.Devices[1].GBps = 100, 4000 }, []string{"one GPU alone would be slower"}, []string{"not used", "no memory"}},
		{"one is too small", []int64{360 << 20, 20 << 20}, nil, []string{"not used: cuda:1: a layer"}, []string{"more devices"}},
		{"as asked", []int64{1 << 30}, layers(3), []string{"3 layers were to be on GPUs"}, []string{"no memory", "need", "cpu computes"}},
		{"none, as asked", []int64{1 << 30}, layers(0), []string{"cpu alone: no layers were to be on GPUs"}, []string{"not used", "faster"}},
		{"all, as asked", []int64{1 << 30}, layers(99), []string{"cuda:0 alone has memory"}, []string{"were to be"}},
	} {
		in := withGPUs(c.room...)
		if c.change != nil {
			c.change(&in)
		}
		p, err := Auto(in)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		said := strings.Join(p.Reasons, "\n")
		for _, text := range c.want {
			if !strings.Contains(said, text) {
				t.Errorf("%s: %v\n%s\nwant %q", c.name, p.Stages, said, text)
			}
		}
		for _, text := range c.not {
			if strings.Contains(strings.SplitN(said, "K/V blocks:", 2)[0], text) {
				t.Errorf("%s: %v\n%s\nsays %q", c.name, p.Stages, said, text)
			}
		}
	}
}

// Sums of more sequences than anybody has overflow: they are refused.
func TestTooManySequences(t *testing.T) {
	for _, change := range []func(*Input){
		func(in *Input) { in.FullSeqs = MaxSeqs + 1 },
		func(in *Input) { in.FullSeqs = 1<<63 - 1 },
		func(in *Input) { in.MaxSeqs = 1<<63 - 1 },
	} {
		in := withGPUs(1 << 30)
		change(&in)
		if _, err := Auto(in); err == nil || !strings.Contains(err.Error(), "out of range") {
			t.Errorf("%v", err)
		}
	}
}

// Experts of a model that has none cannot be put anywhere.
func TestExpertsOfADenseModel(t *testing.T) {
	parts, err := Parse("cuda:0=0-,experts=cpu", 4)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Fixed(withGPUs(1<<30), parts); err == nil || !strings.Contains(err.Error(), "no routed experts") {
		t.Errorf("%v", err)
	}
}
