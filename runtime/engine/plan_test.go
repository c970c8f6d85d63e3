package engine

import (
	"testing"

	"infer/runtime/device"
	"infer/runtime/devicemap"
	"infer/runtime/kernels"
	"infer/runtime/kernels/cpu"
	"infer/runtime/kernels/ref"
)

// What the planner is told is what loading takes, to the byte: as one stage,
// and as several. Of bfloat16 weights a CPU may need a quarter less, as only their
// values tell (not with F32).
func TestPlanIsExact(t *testing.T) {
	second := func(b kernels.Backend) kernels.Backend {
		return &wrapped{Backend: b, id: device.ID{Kind: device.CPU, Index: 1}}
	}
	for name, open := range map[string]func() kernels.Backend{
		"ref":     func() kernels.Backend { return ref.Open() },
		"cpu":     func() kernels.Backend { return openCPU(t, cpu.Auto) },
		"cpu f32": func() kernels.Backend { return openCPU(t, cpu.F32) },
	} {
		for _, maps := range []string{"", "cpu=0-2,cpu:1=3-", "cpu=0,cpu:1=1-3,cpu=4-"} {
			t.Run(name+" "+maps, func(t *testing.T) {
				e := openEngine(t, setup{
					backends: []kernels.Backend{open(), second(open())}, maps: maps,
					PlanOptions: PlanOptions{MaxContext: 509, MaxSeqs: 3, MaxTokens: 100},
				})
				r := e.c.Runner
				for i, s := range r.Plan().Stages {
					want := s.Bytes
					want.Reserve, want.Workspace = 0, 0
					got := r.Bytes()[i]
					if name == "cpu" && got.Weights < want.Weights && got.Weights >= want.Weights*3/4 {
						got.Weights = want.Weights
					}
					if got != want || got.KV == 0 {
						t.Errorf("%v: planned %+v, holds %+v", s, want, got)
					}
				}
				if r.Plan().Blocks != 3*512/16 {
					t.Errorf("%d blocks", r.Plan().Blocks)
				}
			})
		}
	}
}

func TestPlanInputDefaults(t *testing.T) {
	m, ck := tinyModel(t)
	in, err := PlanInput(m, ck, []kernels.Backend{ref.Open()}, PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if in.MaxSeqs != 32 || in.MaxTokens != 512 || in.MaxLogits != 512 || in.MaxContext != 0 || len(in.Model.Layers) != 6 || !in.Model.Tied {
		t.Errorf("%+v", in)
	}
	if d := in.Devices[0]; d.Reserve != d.Info.FreeBytes/8 || d.Reserve == 0 {
		t.Errorf("reserve %d of %d", d.Reserve, d.Info.FreeBytes)
	}
	p, err := devicemap.Auto(in)
	if err != nil || p.MaxContext != 1024 || p.Blocks != 32*64 {
		t.Errorf("%+v, %v", p, err)
	}
	in, err = PlanInput(m, ck, []kernels.Backend{ref.Open()}, PlanOptions{MaxSeqs: 600})
	if err != nil || in.MaxTokens != 600 || in.MaxLogits != 600 {
		t.Errorf("%+v, %v", in, err)
	}
}
