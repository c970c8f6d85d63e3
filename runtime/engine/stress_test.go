package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stressTime is one second, or what INFER_STRESS says (a duration like 60s).
func stressTime(t *testing.T) time.Duration {
	v := os.Getenv("INFER_STRESS")
	if v == "" {
		return time.Second
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		t.Fatalf("INFER_STRESS: %v", err)
	}
	return d
}

// 200 streams at a time, leaving at random in every way there is: what stays
// gets its single-run answer, and nothing is left behind.
func TestStress(t *testing.T) {
	t.Run("fake model", func(t *testing.T) {
		e, m := openFake(t, fakeSetup{blocks: 24, context: 300, seqs: 24, tokens: 80, queue: 170, c: Config{NewDetokenizer: newText}})
		stress(t, e, fakeJobs(m, 60))
		if e.Stats().Preemptions == 0 {
			t.Error("no preemption: the run was too tame")
		}
	})
	t.Run("tiny model", func(t *testing.T) {
		jobs := tinyJobs(t, 40)
		e := openEngine(t, setup{PlanOptions: PlanOptions{MaxContext: 256, MaxSeqs: 24, MaxTokens: 80}, blocks: 40, c: Config{MaxQueue: 170}})
		stress(t, e, jobs)
	})
}

func stress(t *testing.T, e *Engine, jobs []job) {
	var before, after runtime.MemStats
	var completed, left, refused atomic.Int64
	end := time.Now().Add(stressTime(t))
	round := func(streams int, until time.Time) {
		var wg sync.WaitGroup
		for s := range streams {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(s), 9))
				for n := 0; n == 0 || time.Now().Before(until); n++ {
					stream(t, e, jobs[rng.IntN(len(jobs))], rng, &completed, &left, &refused)
				}
			})
		}
		wg.Wait()
		idle(t, e)
	}
	round(200, time.Now()) // warm: scratch memory and pools are there
	runtime.GC()
	runtime.ReadMemStats(&before)
	round(200, end)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	s := e.Stats()
	t.Logf("%d completed, %d left, %d refused; %d steps, %d preemptions, %d of %d prompt tokens cached",
		completed.Load(), left.Load(), refused.Load(), s.Steps, s.Preemptions, s.CacheHits, s.CacheQueries)
	if completed.Load() == 0 || left.Load() == 0 {
		t.Error("the run was too tame to mean anything")
	}
}

// stream is one client.
func stream(t *testing.T, e *Engine, j job, rng *rand.Rand, completed, left, refused *atomic.Int64) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	gone := errors.New("gone")
	r := j.r
	leaveAt := -1
	switch rng.IntN(8) {
	case 0: // while queued, or anywhere
		time.AfterFunc(time.Duration(rng.IntN(3000))*time.Microsecond, cancel)
	case 1:
		leaveAt = rng.IntN(len(j.want.ids))
	case 2:
		r.Deadline = time.Now().Add(time.Duration(rng.IntN(3000)) * time.Microsecond)
	}
	var got answer
	_, err := e.Generate(ctx, r, func(ev Event) error {
		if len(got.ids) == leaveAt {
			return gone
		}
		if ev.HasToken {
			got.ids = append(got.ids, ev.Token)
		}
		if ev.Logprob != nil {
			got.logprobs = append(got.logprobs, *ev.Logprob)
		}
		got.logprobs = append(got.logprobs, ev.Prompt...)
		if rng.IntN(200) == 0 {
			time.Sleep(time.Millisecond)
		}
		return nil
	})
	switch {
	case err == nil:
		completed.Add(1)
		if !got.equal(j.want) {
			t.Errorf("got  %v\nwant %v", got, j.want)
		}
		return
	case errors.Is(err, ErrQueueFull):
		refused.Add(1)
		time.Sleep(time.Millisecond)
	case errors.Is(err, gone), errors.Is(err, context.Canceled), errors.Is(err, ErrDeadline):
		left.Add(1)
	default:
		t.Errorf("%v", err)
	}
	if n := len(got.ids); n > len(j.want.ids) || !slices.Equal(got.ids, j.want.ids[:n]) {
		t.Errorf("before leaving: got %v, want a beginning of %v", got.ids, j.want.ids)
	}
}
