package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/kernels/cpu"
	"infer/runtime/tensor"
)

// job is one request with the answer it must get.
type job struct {
	r    Request
	want answer
}

// runJobs runs all at the same time and compares.
func runJobs(t *testing.T, e *Engine, jobs []job) {
	t.Helper()
	var wg sync.WaitGroup
	for i, j := range jobs {
		wg.Go(func() {
			got, _, err := answerTo(t.Context(), e, j.r)
			if err != nil || !got.equal(j.want) {
				t.Errorf("job %d of %d: %v\ngot  %v\nwant %v", i, len(jobs), err, got, j.want)
			}
		})
	}
	wg.Wait()
	idle(t, e)
}

// sampled asks for sampling with every processor that can matter.
func sampled(prompt []int32, n, seed int) Request {
	r := greedy(prompt, n)
	s := int64(seed)
	r.Sampling.Seed = &s
	r.Sampling.Temperature, r.Sampling.TopK, r.Sampling.TopP = 1.1, 30, 0.95
	r.Sampling.Repetition, r.Sampling.Frequency = 1.1, 0.1
	return r
}

// fakeJobs have shared beginnings, odd lengths, greedy and sampled choices.
func fakeJobs(m *fakeModel, n int) []job {
	var jobs []job
	for i := range n {
		prompt := append(fakePrompt(10+16*(i%3), 1), fakePrompt(1+i*7%40, 100+i)...)
		length := 5 + i*11%60
		if i%2 == 0 {
			jobs = append(jobs, job{greedy(prompt, length), answer{ids: m.continuation(prompt, length, nil)}})
			continue
		}
		r := sampled(prompt, length, i)
		smp := newSampler(&r, uint64(i), nil)
		ids := slices.Clone(prompt)
		want := m.continuation(prompt, length, func(row []float32, _ int) int32 {
			id, err := smp.choose(new(candidates), row, ids, len(prompt))
			if err != nil {
				panic(err)
			}
			smp.accept(id)
			ids = append(ids, id)
			return id
		})
		jobs = append(jobs, job{r, answer{ids: want}})
	}
	return jobs
}

// The same tokens whatever the batch, the chunks, the cache, the stages, and
// preemption.
func TestSameTokensWhateverTheBatch(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for _, n := range []int{1, 7, 32, 100} {
		for _, c := range []struct {
			name string
			s    fakeSetup
		}{
			{"plain", fakeSetup{}},
			{"small chunks", fakeSetup{tokens: 32 + rng.IntN(10)}},
			{"token by token", fakeSetup{seqs: 3, tokens: 3}},
			{"no cache", fakeSetup{c: Config{NoPrefixCache: true}}},
			{"few blocks", fakeSetup{blocks: 12, context: 192}},
			{"few blocks, no cache", fakeSetup{blocks: 12, context: 192, c: Config{NoPrefixCache: true}}},
			{"one at a time", fakeSetup{seqs: 1, tokens: 1 + rng.IntN(20)}},
			{"two stages", fakeSetup{stages: 2}},
			{"four stages, few blocks", fakeSetup{stages: 4, blocks: 14, context: 192, tokens: 33}},
		} {
			t.Run(fmt.Sprintf("%d/%s", n, c.name), func(t *testing.T) {
				e, m := openFake(t, c.s)
				runJobs(t, e, fakeJobs(m, n))
				runJobs(t, e, fakeJobs(m, n)) // now with a warm cache
				s := e.Stats()
				if c.s.blocks > 0 && n >= 32 && s.Preemptions == 0 {
					t.Errorf("no preemption: %+v", s)
				}
				if hits := s.CacheHits > 0; n >= 7 && hits == c.s.c.NoPrefixCache {
					t.Errorf("cache hits: %v", hits)
				}
			})
		}
	}
}

// tinyJobs are requests of every kind for the embedded model, with the answers
// they get alone, each prompt in one chunk, with nothing cached.
func tinyJobs(t *testing.T, n int) []job {
	t.Helper()
	return tinyJobsIn(t, n, kernels.AsStored, tensor.Invalid)
}

// tinyJobsIn has weights and K/V of a format.
func tinyJobsIn(t *testing.T, n int, format kernels.Format, kv tensor.DType) []job {
	t.Helper()
	_, cases := expected(t)
	alone := openEngine(t, setup{
		PlanOptions: PlanOptions{MaxContext: 256, MaxSeqs: 1, Format: format}, backends: []kernels.Backend{openKV(t, kv)},
		c: Config{NoPrefixCache: true},
	})
	var jobs []job
	for i := range n {
		prompt := slices.Concat(cases[i%len(cases)].PromptIDs, cases[(i/3)%len(cases)].IDs[:i%17])
		r := greedy(prompt, 12)
		if i%2 == 1 {
			r = sampled(prompt, 12, i)
		}
		if i%3 == 0 {
			r.Sampling.Logprobs = i % 4
		}
		if i%5 == 0 {
			r.Sampling.PromptLogprobs = 1
		}
		r.Sampling.IgnoreEOS = true
		a, _, err := answerTo(t.Context(), alone, r)
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, job{r, a})
	}
	return jobs
}

// The same on the embedded model: tokens and log-probabilities bit for bit.
func TestSameTokensOnTheTinyModel(t *testing.T) {
	jobs := tinyJobs(t, 32)
	second := func() []kernels.Backend {
		return []kernels.Backend{openCPU(t, cpu.Auto), &wrapped{Backend: openCPU(t, cpu.Auto), id: device.ID{Kind: device.CPU, Index: 1}}}
	}
	setups := map[string]setup{
		"together":     {PlanOptions: PlanOptions{MaxContext: 256, MaxSeqs: 32}},
		"small chunks": {PlanOptions: PlanOptions{MaxContext: 256, MaxSeqs: 7, MaxTokens: 11}},
		"few blocks":   {PlanOptions: PlanOptions{MaxContext: 256, MaxSeqs: 32}, blocks: 16},
		"two devices":  {PlanOptions: PlanOptions{MaxContext: 256, MaxSeqs: 16, MaxTokens: 50}, maps: "cpu=0-1,cpu:1=2-5", backends: second()},
	}
	rng := rand.New(rand.NewPCG(7, 7))
	for _, n := range []int{1, 7, 32} {
		o := PlanOptions{MaxContext: 256, MaxSeqs: n, MaxTokens: n + rng.IntN(50)}
		setups[fmt.Sprintf("%d streams, chunks of %d", n, o.MaxTokens)] = setup{PlanOptions: o}
		o.MaxTokens = n + rng.IntN(50)
		setups[fmt.Sprintf("%d streams, chunks of %d, no cache", n, o.MaxTokens)] = setup{PlanOptions: o, c: Config{NoPrefixCache: true}}
	}
	for name, s := range setups {
		t.Run(name, func(t *testing.T) { runJobs(t, openEngine(t, s), jobs) })
	}
}

// Weights and K/V of integers too.
func TestSameTokensInEveryFormat(t *testing.T) {
	for _, c := range []struct {
		format kernels.Format
		kv     tensor.DType
	}{{kernels.Q8, tensor.I8}, {kernels.Q8, tensor.Invalid}, {kernels.Q4, tensor.Invalid}, {kernels.AsStored, tensor.I8}} {
		if testing.Short() && c.format != kernels.Q4 { // the threads do the same
			continue
		}
		t.Run(fmt.Sprintf("%v, K/V %v", c.format, c.kv), func(t *testing.T) {
			jobs := tinyJobsIn(t, 32, c.format, c.kv)
			for _, o := range []PlanOptions{
				{MaxContext: 256, MaxSeqs: 32},
				{MaxContext: 256, MaxSeqs: 7, MaxTokens: 11},
				{MaxContext: 256, MaxSeqs: 1, MaxTokens: 5},
			} {
				o.Format = c.format
				runJobs(t, openEngine(t, setup{PlanOptions: o, backends: []kernels.Backend{openKV(t, c.kv)}}), jobs)
			}
		})
	}
}

// A seed gives the same tokens, another choice or none gives others, and the
// result's seed repeats them.
func TestSeeds(t *testing.T) {
	e, _ := openFake(t, fakeSetup{})
	ask := func(seed *int64, choice int) ([]int32, int64) {
		r := greedy(fakePrompt(5, 1), 40)
		r.Sampling.Temperature, r.Sampling.Seed, r.Choice = 1, seed, choice
		ids, res, err := collect(context.Background(), e, r)
		if err != nil {
			t.Fatal(err)
		}
		return ids, res.Seed
	}
	seven := int64(7)
	a, seed := ask(&seven, 0)
	if b, _ := ask(&seven, 0); !slices.Equal(a, b) || seed != 7 {
		t.Errorf("seed 7 gave %v, then %v", a, b)
	}
	if b, _ := ask(&seven, 1); slices.Equal(a, b) {
		t.Error("choice 1 is choice 0")
	}
	c, seed := ask(nil, 0)
	if d, other := ask(nil, 0); slices.Equal(c, d) || other == seed {
		t.Error("no seed, twice the same")
	}
	if d, _ := ask(&seed, 0); !slices.Equal(c, d) {
		t.Errorf("the reported seed %d gave %v, was %v", seed, d, c)
	}
}
