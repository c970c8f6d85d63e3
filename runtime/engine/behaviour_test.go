package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// text is a Detokenizer: "<id>" each, one token late, and "." at the end.
type text struct {
	held string
	skip bool
}

func (d *text) Next(id int32) []byte {
	out := d.held
	if d.held = fmt.Sprintf("<%d>", id); d.skip && id%2 == 0 {
		d.held = ""
	}
	return []byte(out)
}

func (d *text) Flush() []byte { return []byte(d.held + ".") }

func newText(skip bool) Detokenizer { return &text{skip: skip} }

// Text is complete at the end, however the sequence ends, and a stop id has
// no text of its own.
func TestText(t *testing.T) {
	m := &fakeModel{layers: 2, vocab: 50}
	prompt := fakePrompt(9, 3)
	ids := m.continuation(prompt, 12, nil)
	stop := ids[8]
	first := slices.Index(ids, stop)
	e, _ := openFake(t, fakeSetup{c: Config{NewDetokenizer: newText, StopIDs: []int32{stop}}})
	for _, c := range []struct {
		name   string
		change func(*Request)
		n      int
		stopID int32
		keep   bool
	}{
		{"length", func(r *Request) { r.Sampling.IgnoreEOS, r.KeepSpecial = true, true }, 12, -1, true},
		{"length, special skipped", func(r *Request) { r.Sampling.IgnoreEOS = true }, 12, -1, false},
		{"model's stop id", func(r *Request) { r.KeepSpecial = true }, first + 1, stop, true},
		{"request's stop id", func(r *Request) {
			r.KeepSpecial, r.Sampling.IgnoreEOS, r.Sampling.StopIDs = true, true, []int32{ids[2]}
		}, slices.Index(ids, ids[2]) + 1, ids[2], true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := greedy(prompt, 12)
			c.change(&r)
			var got strings.Builder
			n := 0
			res, err := e.Generate(t.Context(), r, func(ev Event) error {
				if !ev.HasToken || ev.Token != ids[n] {
					t.Errorf("event %d: %+v, want token %d", n, ev, ids[n])
				}
				n++
				got.Write(ev.Bytes)
				return nil
			})
			want := ""
			for _, id := range ids[:c.n] {
				if id != c.stopID && (c.keep || id%2 == 1) {
					want += fmt.Sprintf("<%d>", id)
				}
			}
			finish := FinishLength
			if c.stopID >= 0 {
				finish = FinishStop
			}
			if err != nil || got.String() != want+"." || n != c.n || res.Completion != n || res.StopID != c.stopID || res.Finish != finish {
				t.Errorf("%v %+v: %d tokens %q, want %d %q", err, res, n, got.String(), c.n, want)
			}
		})
	}
	idle(t, e)
}

func TestTimesAndUsage(t *testing.T) {
	e, _ := openFake(t, fakeSetup{})
	prompt := fakePrompt(40, 1)
	for i, cached := range []int{0, 32} {
		_, res, err := collect(t.Context(), e, greedy(prompt, 5))
		x := res.Times
		if err != nil || res.Prompt != 40 || res.Completion != 5 || res.Cached != cached {
			t.Errorf("run %d: %v, %+v", i, err, res)
		}
		if x.Queued.After(x.Started) || x.Started.After(x.FirstToken) || x.FirstToken.After(x.Done) || x.Queued.IsZero() {
			t.Errorf("run %d: times %+v", i, x)
		}
	}
	r := greedy(prompt, 5)
	r.Salt = "other"
	if _, res, _ := collect(t.Context(), e, r); res.Cached != 0 {
		t.Errorf("another salt: %d cached", res.Cached)
	}
	s := e.Stats()
	if s.Generated != 15 || s.PromptTokens != 120 || s.CacheHits != 32 || s.FinishedLength != 3 || s.PrefillTokens != 40+8+40 || s.Steps != 15 || s.StepTime <= 0 {
		t.Errorf("%+v", s)
	}
}

// However a caller leaves, its blocks are free soon and others go on.
func TestLeaving(t *testing.T) {
	e, m := openFake(t, fakeSetup{context: fakeContext, blocks: 1024})
	sentinel := errors.New("enough")
	long := func() Request { return greedy(fakePrompt(5, 1), 4000) }
	stay := make(chan error)
	go func() {
		ids, _, err := collect(t.Context(), e, greedy(fakePrompt(30, 9), 3000))
		if err == nil && !slices.Equal(ids, m.continuation(fakePrompt(30, 9), 3000, nil)) {
			err = errors.New("other tokens")
		}
		stay <- err
	}()
	t.Run("emit's error", func(t *testing.T) {
		n := 0
		res, err := e.Generate(t.Context(), long(), func(Event) error {
			if n++; n == 5 {
				return sentinel
			}
			return nil
		})
		if !errors.Is(err, sentinel) || n != 5 || res.Completion != 5 || res.Finish != FinishNone || res.Prompt != 5 {
			t.Errorf("%v, %d events, %+v", err, n, res)
		}
	})
	t.Run("context", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		_, err := e.Generate(ctx, long(), func(Event) error { cancel(sentinel); return nil })
		if !errors.Is(err, sentinel) {
			t.Errorf("%v", err)
		}
	})
	t.Run("context before", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := collect(ctx, e, long()); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
	t.Run("deadline", func(t *testing.T) {
		r := long()
		r.Deadline = time.Now().Add(2 * time.Millisecond)
		// The caller is slow: the deadline frees the blocks all the same.
		_, err := e.Generate(t.Context(), r, func(Event) error { time.Sleep(2 * time.Millisecond); return nil })
		if !errors.Is(err, ErrDeadline) {
			t.Errorf("%v", err)
		}
		r.Deadline = time.Now().Add(-time.Second)
		if _, _, err := collect(t.Context(), e, r); !errors.Is(err, ErrDeadline) {
			t.Errorf("deadline in the past: %v", err)
		}
	})
	if err := <-stay; err != nil {
		t.Errorf("the one that stayed: %v", err)
	}
	idle(t, e)
}

// A consumer that does not read does not hold up others.
func TestSlowConsumer(t *testing.T) {
	e, _ := openFake(t, fakeSetup{})
	block, first := make(chan struct{}), make(chan struct{})
	slow := make(chan error, 1)
	go func() {
		n := 0
		_, err := e.Generate(t.Context(), greedy(fakePrompt(5, 1), 300), func(Event) error {
			if n++; n == 1 {
				close(first)
				<-block
			}
			return nil
		})
		if err == nil && n != 300 {
			err = fmt.Errorf("%d events", n)
		}
		slow <- err
	}()
	<-first
	for i := range 5 {
		if _, _, err := collect(t.Context(), e, greedy(fakePrompt(5, 10+i), 200)); err != nil {
			t.Fatal(err)
		}
	}
	idle(t, e) // the slow one has been computed to its end
	close(block)
	if err := <-slow; err != nil {
		t.Error(err)
	}
}

func TestRefusals(t *testing.T) {
	e, _ := openFake(t, fakeSetup{context: 64})
	for _, c := range []struct {
		r    Request
		want error
	}{
		{greedy(nil, 1), ErrInvalid},
		{greedy([]int32{50}, 1), ErrInvalid},
		{greedy(fakePrompt(64, 1), 1), ErrTooLong},
	} {
		if _, res, err := collect(t.Context(), e, c.r); !errors.Is(err, c.want) || res.StopID != -1 {
			t.Errorf("%v, want %v", err, c.want)
		}
	}
}

// The queue's limit counts what waits beside those that can run.
func TestQueueFull(t *testing.T) {
	e, _ := openFake(t, fakeSetup{seqs: 1, queue: 2, context: fakeContext})
	e.mu.Lock() // nothing is scheduled meanwhile
	var queued []*task
	for range 3 { // one place to run, two to wait
		r := greedy(fakePrompt(3, 1), 1)
		q := e.newTask(&r)
		q.sampler = newSampler(&r, 0, nil)
		if err := e.sched.Submit(q.seq); err != nil {
			t.Fatal(err)
		}
		e.tasks[q] = struct{}{}
		queued = append(queued, q)
	}
	err := e.sched.Submit(&Sequence{Tokens: fakePrompt(3, 1), MaxNew: 1})
	e.mu.Unlock()
	if !errors.Is(err, ErrQueueFull) {
		t.Errorf("the fourth: %v", err)
	}
	// They run when the loop is woken by the next request, which comes last.
	if _, _, err := collect(t.Context(), e, greedy(fakePrompt(3, 1), 1)); !errors.Is(err, ErrQueueFull) {
		t.Errorf("through Generate: %v", err)
	}
	for _, q := range queued[1:] {
		e.cancel(q, nil)
	}
	if _, _, err := collect(t.Context(), e, greedy(fakePrompt(3, 1), 1)); err != nil {
		t.Errorf("after two left: %v", err)
	}
	idle(t, e)
}

func TestDrain(t *testing.T) {
	e, _ := openFake(t, fakeSetup{})
	started := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		n := 0
		_, err := e.Generate(t.Context(), greedy(fakePrompt(5, 1), 300), func(Event) error {
			if n++; n == 1 {
				close(started)
			}
			return nil
		})
		done <- err
	}()
	<-started
	if err := e.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("what ran: %v", err)
	}
	if _, _, err := collect(t.Context(), e, greedy([]int32{1}, 1)); !errors.Is(err, ErrDraining) {
		t.Errorf("a new request: %v", err)
	}
	if err := e.Drain(t.Context()); err != nil {
		t.Errorf("again: %v", err)
	}
}

func TestDrainGivesUp(t *testing.T) {
	e, _ := openFake(t, fakeSetup{context: fakeContext, blocks: 300})
	started := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		n := 0
		_, err := e.Generate(t.Context(), greedy(fakePrompt(5, 1), 4000), func(Event) error {
			if n++; n == 1 {
				close(started)
			}
			time.Sleep(time.Millisecond)
			return nil
		})
		done <- err
	}()
	<-started
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	if err := e.Drain(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("drain: %v", err)
	}
	if err := <-done; err != nil && !errors.Is(err, ErrDraining) {
		t.Errorf("what ran: %v", err)
	}
	idle(t, e)
}

func TestLogprobs(t *testing.T) {
	e, m := openFake(t, fakeSetup{tokens: 32, seqs: 2})
	prompt := fakePrompt(40, 4)
	r := greedy(prompt, 6)
	r.Sampling.Logprobs, r.Sampling.PromptLogprobs = 3, 2
	for range 2 { // the second finds the prompt in the cache, and must not use it
		var events []Event
		res, err := e.Generate(t.Context(), r, func(ev Event) error { events = append(events, ev); return nil })
		if err != nil || len(events) != 7 || events[0].HasToken || len(events[0].Prompt) != 40 || res.Cached != 0 {
			t.Fatalf("%v, %d events, %+v", err, len(events), res)
		}
		for p, lp := range events[0].Prompt {
			if lp.ID != prompt[p] {
				t.Errorf("prompt position %d: id %d, want %d", p, lp.ID, prompt[p])
			}
			if p == 0 {
				if lp.Rank != 0 || lp.Top != nil {
					t.Errorf("position 0 has no probability: %+v", lp)
				}
				continue
			}
			want := wantLogprob(m, prompt[:p], prompt[p], 2)
			if fmt.Sprint(lp) != fmt.Sprint(want) {
				t.Errorf("prompt position %d: %+v, want %+v", p, lp, want)
			}
		}
		out := m.continuation(prompt, 6, nil)
		for i, ev := range events[1:] {
			want := wantLogprob(m, slices.Concat(prompt, out[:i]), out[i], 3)
			if fmt.Sprint(*ev.Logprob) != fmt.Sprint(want) || want.Rank != 1 {
				t.Errorf("token %d: %+v, want %+v", i, *ev.Logprob, want)
			}
		}
	}
	r.Sampling.Logprobs, r.Sampling.PromptLogprobs = 0, -1
	_, err := e.Generate(t.Context(), r, func(ev Event) error {
		if ev.Logprob == nil || ev.Logprob.Top != nil || ev.Prompt != nil {
			t.Errorf("logprobs 0: %+v", ev)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	idle(t, e)
}

// wantLogprob computes without the engine.
func wantLogprob(m *fakeModel, context []int32, id int32, n int) Logprob {
	var row []float32
	m.continuation(context, 1, func(r []float32, _ int) int32 { row = slices.Clone(r); return 0 })
	lp, err := logprob(row, id, n)
	if err != nil {
		panic(err)
	}
	return lp
}

func TestScore(t *testing.T) {
	e, m := openFake(t, fakeSetup{context: 64, tokens: 32, seqs: 2})
	ids := fakePrompt(64, 8) // fills the context
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			s, err := e.Score(t.Context(), ids, ScoreOptions{TopK: 4, LastLogits: true})
			if err != nil || len(s.Positions) != 64 || len(s.LastLogits) != 50 {
				t.Errorf("%v, %d positions", err, len(s.Positions))
				return
			}
			for p, x := range s.Positions {
				if x.ID != ids[p] || len(x.Top) != 4 {
					t.Errorf("position %d: %+v", p, x)
				}
				if p == 0 {
					continue
				}
				want := wantLogprob(m, ids[:p], ids[p], 4)
				before := s.Positions[p-1].Top
				for i := range before {
					if before[i].ID != want.Top[i].ID {
						t.Errorf("position %d: top %v, want %v", p-1, before, want.Top)
					}
				}
				if x.Logprob != want.Logprob {
					t.Errorf("position %d: %g, want %g", p, x.Logprob, want.Logprob)
				}
			}
			if i := slices.Index(s.LastLogits, slices.Max(s.LastLogits)); s.Positions[63].Top[0] != (TokenLogit{int32(i), s.LastLogits[i]}) {
				t.Errorf("last logits and last top disagree")
			}
		})
	}
	wg.Wait()
	if _, err := e.Score(t.Context(), fakePrompt(65, 1), ScoreOptions{}); !errors.Is(err, ErrTooLong) {
		t.Errorf("65 of 64: %v", err)
	}
	if _, err := e.Score(t.Context(), ids, ScoreOptions{TopK: 51}); !errors.Is(err, ErrInvalid) {
		t.Errorf("top 51 of 50: %v", err)
	}
	if _, err := e.Score(t.Context(), nil, ScoreOptions{}); !errors.Is(err, ErrInvalid) {
		t.Errorf("nothing: %v", err)
	}
	idle(t, e)
}
