package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Generate runs one sequence and calls emit, on the caller's goroutine, for
// every Event in order. It returns when the sequence has ended: with its
// Result, or with an error and what was known until then.
//
// When ctx ends, the deadline passes, or emit returns an error, the sequence
// is cancelled and its memory is free within one step; that error is
// returned. emit may be slow: nobody else waits for it.
func (e *Engine) Generate(ctx context.Context, r Request, emit func(Event) error) (Result, error) {
	if err := r.check(e.vocab); err != nil {
		return Result{StopID: -1}, err
	}
	t := e.newTask(&r)
	g := &generation{t: t, emit: emit, result: Result{StopID: -1, Prompt: len(r.Prompt), Seed: seedOf(&r)}}
	t.sampler = newSampler(&r, uint64(g.result.Seed)+uint64(r.Choice), e.c.StopIDs)
	if e.c.NewDetokenizer != nil {
		g.text = e.c.NewDetokenizer(!r.KeepSpecial)
	}
	if err := e.submit(t); err != nil {
		return g.result, err
	}
	err := e.follow(ctx, t, g.pass)
	t.mu.Lock()
	defer t.mu.Unlock()
	g.result.Finish, g.result.Cached, g.result.Times = t.finish, t.cached, t.times
	return g.result, err
}

// seedOf is the request's seed, or a random one of 53 bits, so that it survives
// clients that keep JSON numbers as doubles.
func seedOf(r *Request) int64 {
	if r.Sampling.Seed != nil {
		return *r.Sampling.Seed
	}
	return rand.Int64N(1 << 53)
}

func (e *Engine) newTask(r *Request) *task {
	q := &Sequence{
		Tokens: slices.Clone(r.Prompt), MaxNew: r.Sampling.MaxTokens, Priority: r.Priority, Salt: r.Salt,
		Deadline: r.Deadline, PromptRows: r.Sampling.PromptLogprobs >= 0,
	}
	if q.MaxNew == 0 {
		q.MaxNew = e.MaxContext()
	}
	t := newTask(q, time.Now())
	t.promptTop = r.Sampling.PromptLogprobs
	return t
}

// follow passes a submitted task's news on until it has ended.
func (e *Engine) follow(ctx context.Context, t *task, pass func(*news) error) error {
	var expired <-chan time.Time
	if d := t.seq.Deadline; !d.IsZero() {
		timer := time.NewTimer(time.Until(d))
		defer timer.Stop()
		expired = timer.C
	}
	var got []news
	for {
		select {
		case <-t.arrived:
		case <-expired:
			e.cancel(t, ErrDeadline)
		case <-ctx.Done():
			err := context.Cause(ctx)
			e.cancel(t, err)
			return err
		}
		var ended bool
		got, ended = t.take(got[:0])
		for i := range got {
			err := pass(&got[i])
			got[i] = news{}
			if err == nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			if err != nil {
				e.cancel(t, err)
				return err
			}
		}
		if ended {
			return t.err
		}
	}
}

// generation turns news into Events.
type generation struct {
	t      *task
	emit   func(Event) error
	text   Detokenizer // nil: no Bytes
	result Result
}

func (g *generation) pass(n *news) error {
	if n.prompt != nil {
		if err := g.emit(Event{Prompt: n.prompt}); err != nil {
			return err
		}
	}
	if !n.hasToken {
		return nil
	}
	ev := Event{HasToken: true, Token: n.token, Logprob: n.logprob}
	if n.stop {
		g.result.StopID = n.token
	} else if g.text != nil {
		ev.Bytes = g.text.Next(n.token)
	}
	if n.last && g.text != nil {
		// Next's bytes are valid until Flush only.
		ev.Bytes = append(slices.Clone(ev.Bytes), g.text.Flush()...)
	}
	g.result.Completion++
	return g.emit(ev)
}

// promptRows reads the logits of a row's prompt positions. It returns the
// prompt's log-probabilities once all are known.
func (e *Engine) promptRows(r *Row) ([]Logprob, error) {
	q, t := r.Seq, r.Seq.task
	for k := range r.PromptN {
		p, row := r.PromptLo+k, e.c.Runner.Row(r.Logit+k)
		if t.score != nil {
			if err := t.score.add(q.Tokens, p, row); err != nil {
				return nil, fmt.Errorf("%w: position %d of the prompt: %w", ErrFault, p, err)
			}
			continue
		}
		if p == 0 {
			t.prompt = append(t.prompt, Logprob{ID: q.Tokens[0]})
		}
		if p+1 < q.prompt {
			lp, err := logprob(row, q.Tokens[p+1], t.promptTop)
			if err != nil {
				return nil, fmt.Errorf("%w: position %d of the prompt: %w", ErrFault, p, err)
			}
			t.prompt = append(t.prompt, lp)
		}
	}
	if t.score == nil && r.PromptLo+r.PromptN == q.prompt {
		return t.prompt, nil
	}
	return nil, nil
}
