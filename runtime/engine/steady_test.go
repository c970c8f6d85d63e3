package engine

import (
	"fmt"
	"sync"
	"testing"
)

// A decode step allocates nothing of its own, whatever is asked of sampling.
func TestDecodeStepDoesNotAllocate(t *testing.T) {
	for name, ask := range map[string]func(i int) Request{
		"greedy":  func(i int) Request { return greedy(fakePrompt(20, i), 3000) },
		"sampled": func(i int) Request { return sampled(fakePrompt(20, i), 3000, i) },
	} {
		t.Run(name, func(t *testing.T) {
			e, _ := openFake(t, fakeSetup{still: true, context: fakeContext, blocks: 8 * 300, seqs: 8})
			var tasks []*task
			for i := range 8 {
				r := ask(i)
				q := e.newTask(&r)
				q.sampler = newSampler(&r, 1, nil)
				if err := e.submit(q); err != nil {
					t.Fatal(err)
				}
				tasks = append(tasks, q)
			}
			step := func() {
				e.run(e.next())
				for _, q := range tasks { // as a caller that keeps up
					got, _ := q.take(nil)
					q.news = got[:0]
				}
			}
			for range 1100 { // to where the growing slices are large
				step()
			}
			const steps = 900
			if n := testing.AllocsPerRun(steps, step); n > 0 {
				t.Errorf("%g allocations a step", n)
			}
			if s := e.Stats(); s.Running != 8 || s.Steps < 2000 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// What a step costs beside the devices.
func BenchmarkStep(b *testing.B) {
	for name, ask := range map[string]func(i int) Request{
		"greedy":  func(i int) Request { return greedy(fakePrompt(20, i), 4000) },
		"sampled": func(i int) Request { return sampled(fakePrompt(20, i), 4000, i) },
	} {
		b.Run(name+"/32", func(b *testing.B) {
			n := 0
			b.ReportAllocs()
			for n < b.N {
				b.StopTimer()
				e, _ := openFake(b, fakeSetup{still: true, context: fakeContext, blocks: 32 * 300, model: fakeModel{vocab: 1000}})
				for i := range 32 {
					r := ask(i)
					q := e.newTask(&r)
					q.sampler = newSampler(&r, 1, nil)
					if err := e.submit(q); err != nil {
						b.Fatal(err)
					}
				}
				b.StartTimer()
				for ; n < b.N; n++ {
					st := e.next()
					if st == nil {
						break
					}
					e.run(st)
				}
			}
		})
	}
}

// Whole answers through Generate on the embedded model, n streams at a time;
// ns/op is for one token of each.
func BenchmarkGenerate(b *testing.B) {
	for _, n := range []int{1, 8, 32} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			e := openEngine(b, setup{c: Config{NoPrefixCache: true}})
			var wg sync.WaitGroup
			for i := range n {
				wg.Go(func() {
					for left := b.N; left > 0; left -= 500 {
						r := greedy([]int32{1, 312, int32(i)}, min(left, 500))
						r.Sampling.IgnoreEOS = true
						if _, _, err := collect(b.Context(), e, r); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}
