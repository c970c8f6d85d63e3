package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
		r := greedy(fakePrompt(3, 1), fakeContext-3) // runs for as long as the test
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
	if _, _, err := collect(t.Context(), e, greedy(fakePrompt(3, 1), 1)); !errors.Is(err, ErrQueueFull) {
		t.Errorf("through Generate: %v", err)
	}
	for _, q := range queued {
		e.cancel(q, nil)
	}
	if _, _, err := collect(t.Context(), e, greedy(fakePrompt(3, 1), 1)); err != nil {
		t.Errorf("after they left: %v", err)
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
	if err := errors.Join(e.Close(), e.Close()); err != nil {
		t.Errorf("close twice: %v", err)
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

// Leaving frees the blocks at once, or with the step under way.
func TestLeavingFreesWithinAStep(t *testing.T) {
	e, _ := openFake(t, fakeSetup{still: true})
	add := func() *task {
		r := greedy(fakePrompt(40, 1), 100)
		q := e.newTask(&r)
		q.sampler = newSampler(&r, 1, nil)
		if err := e.submit(q); err != nil {
			t.Fatal(err)
		}
		return q
	}
	gone := errors.New("gone")
	waiting, running := add(), add()
	e.cancel(waiting, gone)
	e.run(e.next())
	if n := e.Stats().BlocksUsed; n != 3 {
		t.Fatalf("%d blocks in use", n)
	}
	e.cancel(running, gone)
	if s := e.Stats(); s.BlocksUsed != 0 || s.Running != 0 {
		t.Errorf("between steps: %d blocks in use", s.BlocksUsed)
	}
	inStep := add()
	st := e.next()
	e.cancel(inStep, gone)
	e.run(st)
	if s := e.Stats(); s.BlocksUsed != 0 || s.Running != 0 || e.next() != nil {
		t.Errorf("within a step: %d blocks in use", s.BlocksUsed)
	}
	for _, q := range []*task{waiting, running, inStep} {
		if _, ended := q.take(nil); !ended || !errors.Is(q.err, gone) {
			t.Errorf("ended %v with %v", ended, q.err)
		}
	}
	idle(t, e)
}
