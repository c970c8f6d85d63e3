package ref

import (
	"encoding/binary"
	"math"
	"testing"

	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

func (f fixture) i32(s tensor.Shape, v ...int32) tensor.Tensor {
	x := f.f32(s)
	x.DType = tensor.I32
	raw := make([]byte, x.Bytes())
	for i, a := range v {
		binary.LittleEndian.PutUint32(raw[4*i:], uint32(a))
	}
	f.s.Upload(x, raw)
	return x
}

// Logits ln 1, ln 2, ln 5, ln 2: softmax 0.1, 0.2, 0.5, 0.2, and of the equal
// ones the first is chosen.
func TestRoute(t *testing.T) {
	f := open(t)
	logits := f.f32(tensor.Of(1, 4), 0, math.Ln2, 1.6094379124341003, math.Ln2)
	ids, w := f.i32(tensor.Of(1, 2)), f.f32(tensor.Of(1, 2))
	a := kernels.RouteArgs{IDs: ids, Weights: w, Logits: logits}
	o := f.ops.(kernels.MoEOps)
	o.Route(a)
	if b := mem(ids); b[0] != 1 || b[4] != 2 {
		t.Fatalf("ids %v", b)
	}
	f.want("weights", w, 0.2, 0.5)
	a.Normalize = true
	o.Route(a)
	f.want("normalized", w, 2.0/7, 5.0/7)
}

// Two experts of width 1 on rows of 2: gate·x, up·x and down are numbers that
// can be multiplied by hand.
func TestExperts(t *testing.T) {
	f := open(t)
	stack := func(rows, cols int, experts ...[]float32) kernels.Weight {
		v := make([]float32, len(experts)*kernels.ExpertRows(rows)*cols)
		for e, x := range experts {
			copy(v[e*kernels.ExpertRows(rows)*cols:], x)
		}
		return f.weight(len(experts)*kernels.ExpertRows(rows), cols, v...)
	}
	gateUp := stack(2, 2, []float32{1, 0, 0, 2}, []float32{-1, 1, 3, 0}) // gate, then up
	down := stack(2, 1, []float32{1, 2}, []float32{4, -1})
	x, dst := f.f32(tensor.Of(2, 2), 1, 3, 2, 4), f.f32(tensor.Of(2, 2), 100, 200, 300, 400)
	f.ops.(kernels.MoEOps).Experts(kernels.ExpertsArgs{
		Dst: dst, X: x, IDs: f.i32(tensor.Of(2, 2), 0, 1, 0, 1), Weights: f.f32(tensor.Of(2, 2), 0.5, 2, 1, 0),
		GateUp: gateUp, Down: down, Experts: 2, Inter: 1, Act: kernels.SiLU,
		Scratch: kernels.ExpertsScratch{
			Hidden: f.f32(tensor.Of(4, 2)), Gated: f.f32(tensor.Of(4, 1)), Out: f.f32(tensor.Of(4, 2)),
			Order: f.i32(tensor.Of(kernels.ExpertsOrder(2, 2, 2))),
		},
	})
	// Row 0: expert 0 has silu(1)·6, expert 1 silu(2)·3; row 1: silu(2)·8.
	one, two := 0.7310585786300049, 2*0.8807970779778823
	f.want("experts", dst,
		100+0.5*6*one+2*3*two*4, 200+0.5*6*one*2-2*3*two,
		300+8*two, 400+8*two*2)
}
