//go:build cuda && cgo && linux && !race

package engine

import (
	"testing"
	"time"

	"infer/runtime/devicemap"
	"infer/runtime/internal/cuda/sim"
	"infer/runtime/kernels"
	"infer/runtime/kernels/cuda"
)

// busy decodes 16 sequences on two simulated GPUs and gives the part of the
// modelled time that each computes, between the first token of the last
// sequence and the last of the first.
func busy(t *testing.T, lanes int) (each []float64, ids [][]int32) {
	spec, err := sim.Preset("2xRTX-4090")
	if err != nil {
		t.Fatal(err)
	}
	// As fast for the small model as GPUs are for a large one, and as their shares
	// of it need to be done at the same time: the second has the head too.
	spec.Devices[0].MemoryGBps, spec.Devices[1].MemoryGBps = 1.5, 2
	machine, err := sim.New(spec, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sys, err := cuda.Open(cuda.Options{Machine: machine})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sys.Close(); err != nil {
			t.Error(err)
		}
	})
	var backends []kernels.Backend
	for i := range 2 {
		b, err := sys.Backend(i)
		if err != nil {
			t.Fatal(err)
		}
		backends = append(backends, b)
	}
	const seqs, tokens = 16, 8
	var from, to time.Duration
	steps := 0
	e := openEngine(t, setup{
		PlanOptions: PlanOptions{MaxContext: 64, MaxSeqs: seqs, MaxTokens: 64}, maps: "cuda:0=0-2,cuda:1=3-",
		backends: backends, change: func(p *devicemap.Plan) { p.MicroBatches = lanes },
		c: Config{NoSpeculation: true, Events: Events{Stepped: func(rows int) {
			// Past the prompts and before the first ends.
			if steps++; steps == 3*lanes {
				from = machine.Time()
			}
			if steps <= (tokens-2)*lanes {
				to = machine.Time()
			}
		}}},
	})
	done := make(chan []int32, seqs)
	ids = make([][]int32, seqs)
	for i := range seqs {
		go func() {
			r := greedy(fakePrompt(2, i), tokens)
			r.Sampling.IgnoreEOS = true
			a, _, err := answerTo(t.Context(), e, r)
			if err != nil {
				t.Error(err)
			}
			ids[i] = a.ids
			done <- a.ids
		}()
	}
	for range seqs {
		<-done
	}
	for i := range 2 {
		each = append(each, machine.Busy(i, "compute", from, to))
	}
	t.Logf("%d in flight: %v to %v of modelled time in %d steps: GPUs compute %.0f %% and %.0f %% of it", lanes, from, to, steps, 100*each[0], 100*each[1])
	return each, ids
}

// With micro-batches both GPUs compute nearly all the time; without, each waits
// for the other.
func TestMicroBatchesKeepDevicesBusy(t *testing.T) {
	var one, two []float64
	var want, got [][]int32
	t.Run("without", func(t *testing.T) { one, want = busy(t, 1) })
	t.Run("with", func(t *testing.T) { two, got = busy(t, 2) })
	if t.Failed() {
		return
	}
	for i := range want {
		for k := range want[i] {
			if got[i][k] != want[i][k] {
				t.Fatalf("sequence %d: %v, want %v", i, got[i], want[i])
			}
		}
	}
	for i := range 2 {
		if one[i] > 0.55 || two[i] < 0.85 {
			t.Errorf("GPU %d computes %.0f %% of the time, %.0f %% with micro-batches", i, 100*one[i], 100*two[i])
		}
	}
}
