package engine

import (
	"context"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"
)

// How long the garbage collector stops the program while four sequences
// decode: both stops of a collection together.
func BenchmarkGarbageCollection(b *testing.B) {
	e := openEngine(b, setup{PlanOptions: PlanOptions{MaxContext: 1024, MaxSeqs: 4}})
	ctx, cancel := context.WithCancel(b.Context())
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for ctx.Err() == nil {
				r := greedy(fakePrompt(20, i), 1000)
				r.Sampling.IgnoreEOS = true
				_, _, _ = answerTo(ctx, e, r) // until it is cut off
			}
		})
	}
	var pauses []time.Duration
	for b.Loop() {
		time.Sleep(time.Millisecond)
		runtime.GC()
		var s debug.GCStats
		debug.ReadGCStats(&s)
		pauses = append(pauses, s.Pause[0])
	}
	cancel()
	all.Wait()
	slices.Sort(pauses)
	b.ReportMetric(float64(pauses[len(pauses)/2].Microseconds()), "µs-stopped")
	b.ReportMetric(float64(pauses[len(pauses)*99/100].Microseconds()), "µs-stopped-p99")
	b.ReportMetric(float64(pauses[len(pauses)-1].Microseconds()), "µs-stopped-max")
}
