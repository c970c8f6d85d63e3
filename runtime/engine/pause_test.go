package engine

import (
	"context"
	"runtime"
	"runtime/metrics"
	"sync"
	"testing"
	"time"
)

// How long the garbage collector stops the program while four sequences
// decode: each of a collection's two stops by itself.
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
	before := stops()
	for b.Loop() {
		time.Sleep(time.Millisecond)
		runtime.GC()
	}
	after := stops()
	cancel()
	all.Wait()
	for i := range after.Counts {
		after.Counts[i] -= before.Counts[i]
	}
	b.ReportMetric(quantile(after, 0.5), "µs-stopped")
	b.ReportMetric(quantile(after, 0.99), "µs-stopped-p99")
	b.ReportMetric(quantile(after, 0.999), "µs-stopped-p999")
}

// stops counts the stops of all collections so far by their length in seconds.
func stops() *metrics.Float64Histogram {
	s := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(s)
	return s[0].Value.Float64Histogram()
}

// quantile is, in microseconds, what a share p of the stops is at most.
func quantile(h *metrics.Float64Histogram, p float64) float64 {
	var all, sum uint64
	for _, n := range h.Counts {
		all += n
	}
	for i, n := range h.Counts {
		if sum += n; float64(sum) >= p*float64(all) {
			return h.Buckets[i+1] * 1e6
		}
	}
	return 0
}
