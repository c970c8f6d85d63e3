package devicemap

import (
	"testing"
	"time"

	"infer/runtime/device"
)

// machine has n GPUs, each of one of some kinds, or each unlike every other,
// and a CPU, with memory for a share of the model.
func machine(n, layers, kinds int, share float64, experts int64) Input {
	in := Input{BlockSize: 16, MaxContext: 4096, MaxSeqs: 16, MaxTokens: 512, MaxLogits: 64}
	in.Model = Model{Embed: 500 << 20, Head: 500 << 20, MaxContext: 1 << 17, Hidden: 8192, HeadMACs: 1 << 28, TableRow: 512}
	for range layers {
		y := Layer{Weights: 400 << 20, KVElems: 2048, MACs: 200 << 20}
		if experts > 0 {
			y.Experts, y.NumExperts, y.TopK, y.ExpertMACs = experts, 128, 8, experts/32
		}
		in.Model.Layers = append(in.Model.Layers, y)
	}
	total := int64(layers) * (400<<20 + experts)
	for i := range n {
		k := i % kinds
		d := Device{
			Info: device.Info{ID: device.ID{Kind: device.CUDA, Index: i}, FreeBytes: int64(share*float64(total)/float64(n)) + int64(k)<<24},
			GBps: 500 + 100*float64(k), TFlops: 100, KVBits: 16, ActBits: 32, LayerUS: 10,
			Scratch: Scratch{100 << 20, 80 << 20, 120 << 20, 140 << 20, 1 << 20}, Experts: 50 << 20,
		}
		in.Devices = append(in.Devices, d)
	}
	in.Devices = append(in.Devices, Device{
		Info: device.Info{ID: device.ID{Kind: device.CPU}, FreeBytes: 2 * total}, GBps: 60, TFlops: 1, KVBits: 16, ActBits: 32,
		Scratch: in.Devices[0].Scratch,
	})
	return in
}

var sizes = []struct {
	name                string
	gpus, layers, kinds int
	share               float64
	experts             int64
	limit               time.Duration
}{
	{"8 like GPUs × 128", 8, 128, 1, 1.2, 0, 10 * time.Millisecond},
	{"8 unlike GPUs × 128", 8, 128, 8, 1.2, 0, 10 * time.Millisecond},
	{"8 unlike GPUs × 128, CPU too", 8, 128, 8, 0.7, 0, 10 * time.Millisecond},
	{"16 like GPUs × 256 MoE, CPU too", 16, 256, 1, 0.5, 2 << 30, 100 * time.Millisecond},
	{"16 GPUs of 2 kinds × 256 MoE, CPU too", 16, 256, 2, 0.5, 2 << 30, 100 * time.Millisecond},
	{"16 unlike GPUs × 256 MoE, CPU too", 16, 256, 16, 0.5, 2 << 30, 100 * time.Millisecond},
}

func BenchmarkAuto(b *testing.B) {
	for _, s := range sizes {
		in := machine(s.gpus, s.layers, s.kinds, s.share, s.experts)
		b.Run(s.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Auto(in); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(s.limit.Milliseconds()), "ms-allowed")
		})
	}
}
