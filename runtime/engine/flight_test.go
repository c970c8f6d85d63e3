package engine

import (
	"fmt"
	"sync/atomic"
	"testing"

	"infer/runtime/device"
	"infer/runtime/devicemap"
	"infer/runtime/kernels"
	"infer/runtime/kernels/cpu"
	"infer/runtime/tensor"
)

// With several steps in flight every sequence gets the tokens it gets alone,
// whatever else comes, goes and is preempted.
func TestSeveralInFlight(t *testing.T) {
	for _, lanes := range []int{2, 3} {
		t.Run(fmt.Sprint(lanes, " lanes"), func(t *testing.T) {
			second := &wrapped{Backend: openCPU(t, cpu.Auto), id: device.ID{Kind: device.CPU, Index: 1}}
			alone := openEngine(t, setup{PlanOptions: PlanOptions{MaxContext: 256, MaxSeqs: 1}})
			var jobs []job
			for i := range 24 {
				prompt := fakePrompt(1+7*i%61, i)
				r := greedy(prompt, 20+5*i%40)
				r.Sampling.Logprobs, r.Sampling.IgnoreEOS = 2, true
				if i%3 == 1 {
					seed := int64(i)
					r.Sampling.Temperature, r.Sampling.Seed = 1, &seed
				}
				a, _, err := answerTo(t.Context(), alone, r)
				if err != nil {
					t.Fatal(err)
				}
				jobs = append(jobs, job{r, a})
			}
			for _, blocks := range []int{0, 12} { // 12: they take each other's
				e := openEngine(t, setup{
					PlanOptions: PlanOptions{MaxContext: 128, MaxSeqs: 16, MaxTokens: 70}, blocks: blocks, maps: "cpu=0-2,cpu:1=3-",
					backends: []kernels.Backend{openCPU(t, cpu.Auto), second}, change: func(p *devicemap.Plan) { p.MicroBatches = lanes },
				})
				runJobs(t, e, jobs)
				if e.c.Runner.Lanes() != lanes {
					t.Errorf("%d lanes", e.c.Runner.Lanes())
				}
				if st := e.Stats(); blocks > 0 && st.Preemptions == 0 {
					t.Error("nothing was preempted")
				}
			}
		})
	}
}

// A copy that arrives changed is made again while other steps are in flight,
// and those are none the worse for it.
func TestReplayWithOthersInFlight(t *testing.T) {
	alone := openEngine(t, setup{PlanOptions: PlanOptions{MaxContext: 128, MaxSeqs: 1}})
	var jobs []job
	for i := range 12 {
		r := greedy(fakePrompt(3+i, i), 24)
		r.Sampling.IgnoreEOS = true
		a, _, err := answerTo(t.Context(), alone, r)
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, job{r, a})
	}
	var copies atomic.Int64
	second := &wrapped{Backend: openCPU(t, cpu.Auto), id: device.ID{Kind: device.CPU, Index: 1}, stream: func(s device.Stream) device.Stream {
		return &faultStream{Stream: s, corrupt: func(dst tensor.Tensor) bool {
			return dst.Shape.Rank() == 2 && dst.Shape.Dim(1) == 192 && copies.Add(1)%9 == 0
		}}
	}}
	e := openEngine(t, setup{
		PlanOptions: PlanOptions{MaxContext: 128, MaxSeqs: 12, MaxTokens: 40}, maps: "cpu=0-2,cpu:1=3-",
		backends: []kernels.Backend{openCPU(t, cpu.Auto), second}, change: func(p *devicemap.Plan) { p.MicroBatches = 3 },
	})
	runJobs(t, e, jobs)
	if n := e.Stats().Replays; n < 3 {
		t.Errorf("%d replays of %d copies", n, copies.Load())
	}
}
