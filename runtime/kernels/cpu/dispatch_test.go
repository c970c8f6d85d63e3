package cpu

import (
	"testing"

	"infer/models/modelstest"
	"infer/runtime/kernels"
)

// A step of decoding wakes the workers five times a layer at most: for the four
// products and attention. What else there is to do of one row costs less than a
// wake, and the caller does it.
func TestDispatches(t *testing.T) {
	const layers = 2
	for _, f := range []kernels.Format{kernels.AsStored, kernels.Q8, kernels.Q4} {
		b := openFor(t, Options{Threads: 2})
		r := modelstest.New(t, modelstest.Wide(t, 640), b, modelstest.Options{Format: f, MaxTokens: 64, Positions: 256, Blocks: 64})
		seq := &modelstest.Seq{}
		ids := make([]int32, 60)
		r.Step(modelstest.Run{Seq: seq, IDs: ids})
		for range 3 {
			before := b.dev.pool.epoch.Load()
			r.Step(modelstest.Run{Seq: seq, IDs: ids[:1]})
			if n := b.dev.pool.epoch.Load() - before; n < 4*layers || n > 5*layers+1 {
				t.Errorf("%v: workers were woken %d times in a step of %d layers, want 4 to 5 a layer and one for the head", f, n, layers)
			}
		}
	}
}
