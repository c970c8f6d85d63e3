package engine

import (
	"testing"

	"infer/runtime/devicemap"
	"infer/runtime/kernels"
	"infer/runtime/kernels/cpu"
	"infer/runtime/kernels/ref"
)

// What the planner is told is what loading takes: the prediction is not below
// what the stages really hold, and not much above.
func TestPlanAgainstReality(t *testing.T) {
	for name, b := range map[string]kernels.Backend{"ref": ref.Open(), "cpu": openCPU(t, cpu.Auto), "cpu f32": openCPU(t, cpu.F32)} {
		t.Run(name, func(t *testing.T) {
			e := openEngine(t, setup{backends: []kernels.Backend{b}, PlanOptions: PlanOptions{MaxContext: 512, MaxSeqs: 3, MaxTokens: 100}})
			r := e.c.Runner
			plan, real := r.Plan().Stages[0].Bytes, r.Bytes()[0]
			real.Activations += int64(4 * len(r.logits)) // the host's copy
			within := func(what string, plan, real int64) {
				if real > plan+plan/20 || plan > real+real/2 {
					t.Errorf("%s: planned %d bytes, holds %d", what, plan, real)
				}
			}
			within("weights and tables", plan.Weights+plan.Activations, real.Weights+real.Activations)
			within("weights", plan.Weights, real.Weights)
			if plan.KV != real.KV || plan.KV == 0 {
				t.Errorf("K/V: planned %d bytes, holds %d", plan.KV, real.KV)
			}
			if r.Plan().Blocks != 3*512/16 {
				t.Errorf("%d blocks", r.Plan().Blocks)
			}
		})
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
	in, err = PlanInput(m, ck, []kernels.Backend{ref.Open()}, PlanOptions{MaxSeqs: 600, Format: kernels.Q4})
	if err != nil || in.MaxTokens != 600 || in.MaxLogits != 600 {
		t.Errorf("%+v, %v", in, err)
	}
}
