package faults

import (
	"testing"

	"infer/runtime/internal/cuda/sim"
)

// Losing a GPU in the middle of 16 streams: all 16 end with the text they would
// have had.
func TestSixteenStreams(t *testing.T) {
	needSim(t)
	if raceEnabled {
		t.Skip("interpreted kernels take too long under the race detector, which runs over them elsewhere")
	}
	warmUp(t)
	l := load{name: "sixteen", tokens: 6}
	for i := range 16 {
		l.prompts = append(l.prompts, 2+i%5)
	}
	c := cell(topology(t, "4xa100-sxm-mesh"), "", fault{inject: on(sim.Fault{Kind: sim.Lost, After: 150})}, l, false)
	c.probe = false
	o := run(t, c.setup)
	if text, ok := c.verdict(o, truth(t, c.setup)); !ok || o.errs > 0 || o.stats.DevicesLost != 1 {
		t.Errorf("%s, %d errors, %d devices lost", text, o.errs, o.stats.DevicesLost)
	}
}
