//go:build cuda && cgo && linux

package cuda

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"infer/models/modelstest"
	"infer/models/tiny"
	"infer/runtime/internal/cuda/sim"
	"infer/runtime/kernels"
	"infer/runtime/loader"
	"infer/runtime/tensor"
)

func openTiny(t testing.TB) *loader.Checkpoint {
	t.Helper()
	ck := must(loader.OpenFS(tiny.FS, tiny.Name))
	t.Cleanup(func() {
		if err := ck.Close(); err != nil {
			t.Error(err)
		}
	})
	return ck
}

// work is what a machine's first device did since another time.
func work(m *sim.Machine, before sim.Stats) (d sim.DeviceStats, global int64) {
	now := m.Stats()
	d = now.Devices[0]
	if len(before.Devices) > 0 {
		b := before.Devices[0]
		d.Launches -= b.Launches
		d.GraphLaunches -= b.GraphLaunches
		d.Kernels -= b.Kernels
		d.Copies -= b.Copies
		d.Syncs -= b.Syncs
		d.Allocations -= b.Allocations
	}
	for _, k := range now.Kernels {
		global += k.Stats.GlobalRead + k.Stats.GlobalWritten
	}
	for _, k := range before.Kernels {
		global -= k.Stats.GlobalRead + k.Stats.GlobalWritten
	}
	return d, global
}

// A step of decoding, counted: a roofline on paper. Its launches are replayed
// at once, the host is asked to wait but at its end, and little is read but the
// weights and the context, once.
func TestDecodeIsCounted(t *testing.T) {
	const layers = 2
	if testing.Short() {
		return // see brief
	}
	for _, c := range []struct {
		p                     Precision
		f                     kernels.Format
		hidden, seqs, context int
		excess                float64
	}{
		// An activation is read for each 32 outputs: of a weight of 2 bytes a
		// value that is a 16th for f32, of q8 in bf16 too; more rows read more of them.
		// 140 positions are two splits of attention.
		{BF16, kernels.AsStored, 256, 1, 140, 1.07},
		{Auto, kernels.AsStored, 256, 1, 140, 1.10},
		{BF16, kernels.Q8, 512, 1, 20, 1.10},
		{Auto, kernels.AsStored, 256, 3, 140, 1.35},
		{BF16, kernels.AsStored, 256, 12, 20, 1.70},
	} {
		t.Run(fmt.Sprintf("%s %v %d sequences", c.p, c.f, c.seqs), func(t *testing.T) {
			s := open(t, Options{Precision: c.p})
			b := must(s.Backend(0))
			r := modelstest.New(t, modelstest.Wide(t, c.hidden), b, modelstest.Options{Format: c.f, MaxTokens: 300, Positions: 512, Blocks: 160})
			var runs []modelstest.Run
			rng := rand.New(rand.NewPCG(2, 2))
			for range c.seqs {
				seq := &modelstest.Seq{}
				ids := make([]int32, c.context)
				for i := range ids {
					ids[i] = rng.Int32N(500)
				}
				r.Step(modelstest.Run{Seq: seq, IDs: ids})
				runs = append(runs, modelstest.Run{Seq: seq, IDs: []int32{7}})
			}
			l := Layout{Act: b.act, KV: b.kv}
			var weights int64
			h := c.hidden
			for _, w := range [][3]int{{layers, h + 256, h}, {layers, h, h}, {layers, 11 * h / 2, h}, {layers, h, 11 * h / 4}, {1, 512, h}} {
				weights += int64(w[0]) * must(l.WeightBytes(w[1], w[2], tensor.BF16, c.f))
			}
			for step := range 5 {
				before := s.Machine().Stats()
				r.Step(runs...)
				d, global := work(s.Machine(), before)
				if want := int64(8*layers + 6); d.Kernels > want {
					t.Errorf("step %d: %d kernels, want at most %d", step, d.Kernels, want)
				}
				if d.Syncs != 0 || d.Copies != 2 {
					t.Errorf("step %d: %d waits in the driver and %d copies, want 0 and 2: the batch and the logits", step, d.Syncs, d.Copies)
				}
				if step >= 3 && (d.Launches != 0 || d.GraphLaunches != 1 || d.Allocations != 0) {
					t.Errorf("step %d: %d launches, %d graphs, %d allocations", step, d.Launches, d.GraphLaunches, d.Allocations)
				}
				read := weights + int64(c.seqs*layers*2*2*64*(c.context+step+1)*b.kv.Bits()/8)
				if ratio := float64(global) / float64(read); ratio > c.excess {
					t.Errorf("step %d: %d bytes read and written, %.3f of weights and K/V; at most %.2f", step, global, ratio, c.excess)
				}
			}
		})
	}
}

// Replayed steps give the bits of steps launched one by one, in batches and
// alone.
func TestReplay(t *testing.T) {
	ck := openTiny(t)
	for _, p := range brief([]Precision{BF16, Auto}, 2) {
		var want [][]float32
		for _, c := range brief([]struct {
			graphs, together bool
		}{{false, false}, {true, false}, {true, true}}, 2) {
			var got [][]float32
			t.Run(fmt.Sprintf("%s graphs %v together %v", p, c.graphs, c.together), func(t *testing.T) {
				got = decodeTiny(t, ck, Options{Precision: p, NoGraphs: !c.graphs}, c.together)
			})
			if want == nil {
				want = got
			}
			for i := range want {
				if !slices.Equal(got[i], want[i]) || math.IsNaN(float64(got[i][0])) {
					t.Fatalf("%s, graphs %v, together %v: row %d differs from that of single launches", p, c.graphs, c.together, i)
				}
			}
		}
	}
}

// decodeTiny gives the logits of three sequences' steps.
func decodeTiny(t *testing.T, ck *loader.Checkpoint, o Options, together bool) (got [][]float32) {
	s := open(t, o)
	r := modelstest.New(t, ck, must(s.Backend(0)), modelstest.Options{MaxTokens: 64, Positions: 256, Blocks: 64})
	seqs, steps := []*modelstest.Seq{{}, {}, {}}, int32(6)
	if testing.Short() {
		seqs, steps = seqs[:2], 4
	}
	for i, q := range seqs {
		r.Step(modelstest.Run{Seq: q, IDs: []int32{1, 5, 9, int32(20 + i)}})
	}
	for step := range steps {
		var runs []modelstest.Run
		for i, q := range seqs {
			run := modelstest.Run{Seq: q, IDs: []int32{100*step + int32(i)}}
			if !together {
				got = append(got, r.Step(run)...)
				continue
			}
			runs = append(runs, run)
		}
		if together {
			got = append(got, r.Step(runs...)...)
		}
	}
	if d, _ := work(s.Machine(), sim.Stats{}); (d.GraphLaunches > 0) == o.NoGraphs {
		t.Errorf("%d graphs", d.GraphLaunches)
	}
	return got
}
