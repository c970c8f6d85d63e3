package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"infer/runtime/engine"
)

// maxParallel is how many sequences of one request are with the engine at a
// time, so that one long list of prompts does not fill the queue alone.
const maxParallel = 128

// run generates all choices of a turn at once and hands their deltas to sink,
// one at a time, from one goroutine. It returns when every sequence has ended
// and sink is not called any more. An error of sink or of one sequence ends
// them all. idle, when not nil, is called after each period in which sink said
// that it wrote nothing.
func (s *Server) run(ctx context.Context, m *Model, t *turn, sink func(delta) (wrote bool, err error), idle func() error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	deltas := make(chan delta, 16)
	var generated error // to be read when deltas is closed
	go func() {
		defer close(deltas)
		generated = s.generate(ctx, m, t, deltas)
	}()

	tick := time.NewTicker(s.limits.KeepAlive)
	defer tick.Stop()
	var failed error
	try := func(err error) {
		if err != nil {
			failed = err
			cancel(err) // the rest is drained: the loop ends when all sequences have
		}
	}
	for {
		select {
		case d, ok := <-deltas:
			if !ok {
				if failed == nil {
					failed = generated
				}
				return failed
			}
			if failed == nil {
				wrote, err := sink(d)
				try(err)
				if wrote {
					tick.Reset(s.limits.KeepAlive)
				}
			}
		case <-tick.C:
			if idle != nil && failed == nil {
				try(idle())
			}
		}
	}
}

// generate runs the turn's sequences and sends their deltas.
func (s *Server) generate(ctx context.Context, m *Model, t *turn, out chan<- delta) error {
	deadline, _ := ctx.Deadline()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(maxParallel)
	for i, p := range t.prompts {
		for k := range t.bestOf {
			if ctx.Err() != nil {
				break
			}
			c := newChoice(t, p, i*t.bestOf+k)
			r := t.request(m, p, k, deadline)
			g.Go(func() error { return s.generateOne(ctx, m, t, p, r, c, out) })
		}
	}
	return g.Wait()
}

func (s *Server) generateOne(ctx context.Context, m *Model, t *turn, p prompt, r engine.Request, c *choice, out chan<- delta) (err error) {
	defer func() {
		// A fault in one sequence must not take the process down.
		if v := recover(); v != nil {
			s.log.Error().Str("request", t.id).Interface("panic", v).Bytes("stack", debug.Stack()).Msg("generating panicked")
			err = fmt.Errorf("generating choice %d: internal error", c.index)
		}
	}()
	// The prompt's text goes out with the first delta: before it, a failure
	// still has its own status.
	prefix := ""
	if t.echo {
		prefix = p.echo
	}
	send := func(d delta) error {
		if d.empty() {
			return nil
		}
		d.prefix, prefix = prefix, ""
		select {
		case out <- d:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	scoreOnly := t.maxAsked && t.sampling.MaxTokens == 0
	if scoreOnly {
		r.Sampling.MaxTokens = 1 // the engine reads 0 as "the rest"; the token is dropped
		if r.Sampling.PromptLogprobs < 0 {
			return send(c.end(engine.Result{Finish: engine.FinishLength}, false))
		}
	}
	stopped := false
	meter := m.metrics.sequence()
	result, err := m.Generator.Generate(ctx, r, func(ev engine.Event) error {
		if scoreOnly {
			if ev.HasToken && ev.Prompt == nil {
				return errScored
			}
			ev = engine.Event{Prompt: ev.Prompt}
		}
		meter.event(ev)
		d, stop := c.feed(ev)
		if err := send(d); err != nil {
			return err
		}
		if stop {
			stopped = true
			return errStopString
		}
		return nil
	})
	if stopped && (err == nil || errors.Is(err, errStopString)) {
		err = nil
		result.Finish = engine.FinishStop
	}
	if scoreOnly && (err == nil || errors.Is(err, errScored)) {
		err = nil
		result.Finish, result.Completion = engine.FinishLength, 0
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		} else if asAPIError(err, t.param, 0).Status == http.StatusInternalServerError {
			s.computed.Store(false) // not ready until it computes again
		}
		meter.failed(err)
		return fmt.Errorf("generating choice %d: %w", c.index, err)
	}
	last := c.end(result, stopped)
	meter.done(result, last)
	s.computed.Store(true)
	return send(last)
}

// outcome is a turn's whole answer.
type outcome struct {
	choices []chosen // prompts × n, in order
	usage   usage
}

// chosen is one whole choice.
type chosen struct {
	prompt int // place in the turn's prompts
	prefix string
	text   []byte
	reason []byte
	tokens []token
	plist  []engine.Logprob
	finish engine.Finish
	stop   string
	usage  usage
}

// collect runs a turn to its end.
func (s *Server) collect(ctx context.Context, m *Model, t *turn) (outcome, error) {
	all := make([]chosen, len(t.prompts)*t.bestOf)
	err := s.run(ctx, m, t, func(d delta) (bool, error) {
		c := &all[d.choice]
		c.prefix += d.prefix
		c.text = append(c.text, d.text...)
		c.reason = append(c.reason, d.reasoning...)
		c.tokens = append(c.tokens, d.tokens...)
		c.plist = append(c.plist, d.prompt...)
		if d.done {
			c.finish, c.stop, c.usage = d.finish, d.stop, d.usage
		}
		return false, nil
	}, nil)
	if err != nil {
		return outcome{}, err
	}
	var o outcome
	for i := range t.prompts {
		group := all[i*t.bestOf : (i+1)*t.bestOf]
		for k := range group {
			group[k].prompt = i
			o.usage.add(group[k].usage, k == 0)
		}
		o.choices = append(o.choices, likeliest(group, t.n)...)
	}
	return o, nil
}

// add sums up: the prompt of one group of choices counts once.
func (u *usage) add(v usage, first bool) {
	u.completion += v.completion
	u.reasoning += v.reasoning
	if first {
		u.prompt += v.prompt
		u.cached += v.cached
	}
}

// likeliest keeps the n choices of the highest mean log-probability, in that
// order; with no more than n there is nothing to choose.
func likeliest(group []chosen, n int) []chosen {
	if len(group) <= n {
		return group
	}
	mean := func(c chosen) float64 {
		sum := 0.0
		for _, t := range c.tokens {
			if t.logprob != nil {
				sum += float64(t.logprob.Logprob)
			}
		}
		return sum / float64(max(1, len(c.tokens)))
	}
	slices.SortStableFunc(group, func(a, b chosen) int {
		switch x, y := mean(a), mean(b); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	return group[:n]
}
