package models_test

import (
	"math"
	"slices"
	"testing"

	"infer/models/modelstest"
	"infer/runtime/kernels"
)

// Weights of 8 and 4 bits: logits near those of the weights as stored, the
// same in any chunks, and a smaller model.
func TestQuantizedCPU(t *testing.T) {
	ids := make([]int32, 60)
	for i := range ids {
		ids[i] = int32(i * 37 % 320)
	}
	for _, name := range []string{"llama", "qwen3", "qwen3_moe"} {
		t.Run(name, func(t *testing.T) {
			ck := modelstest.OpenGolden(t, name)
			run := func(f kernels.Format, chunk int) [][]float32 {
				r := modelstest.New(t, ck, openCPU(t), modelstest.Options{Format: f, MaxTokens: 64, Positions: 128, Blocks: 16})
				return r.Prefill(&modelstest.Seq{}, ids, chunk)
			}
			want := run(kernels.AsStored, 64)
			for _, c := range []struct {
				f    kernels.Format
				most float64
			}{{kernels.Q8, 0.05}, {kernels.Q4, 0.5}} {
				got := run(c.f, 64)
				for _, chunk := range []int{1, 7, 33} {
					if !slices.EqualFunc(run(c.f, chunk), got, slices.Equal) {
						t.Errorf("%v: chunks of %d give other logits", c.f, chunk)
					}
				}
				var e, s float64
				for i := range want {
					for j, w := range want[i] {
						e += math.Pow(float64(got[i][j]-w), 2)
						s += math.Pow(float64(w), 2)
					}
				}
				rel := math.Sqrt(e / s)
				if t.Logf("%v: relative error of the logits %.4f", c.f, rel); !(rel <= c.most) || rel == 0 {
					t.Errorf("%v: relative error of the logits %.4f, want up to %g", c.f, rel, c.most)
				}
			}
		})
	}
}
