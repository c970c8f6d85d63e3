package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"infer/runtime/device"
	"infer/runtime/devicemap"
)

// Detokenizer turns one sequence's ids into text.
type Detokenizer interface {
	// Next gives the bytes that id made certain; valid until the next call.
	Next(id int32) []byte
	// Flush gives what was held back.
	Flush() []byte
}

// Config of an Engine.
type Config struct {
	Runner *Runner // the Engine closes it
	// MaxQueue is how many requests may wait beside those that run; more are
	// ErrQueueFull.
	MaxQueue int
	// StopIDs are the model's own: generation_config.json's eos_token_id.
	StopIDs []int32
	// NewDetokenizer makes a text stream; nil: Events have no Bytes.
	NewDetokenizer func(skipSpecial bool) Detokenizer
	NoPrefixCache  bool
	// MaxGap is about how long a sequence waits for its next token while others'
	// prompts are read; their chunks are cut for it. 0: they are not cut.
	MaxGap time.Duration
	// NoSpeculation computes no guessed tokens; see speculate.go.
	NoSpeculation bool
	// Scrub is the pause between two looks at weights on GPUs while there is
	// nothing to compute, and a tenth of how often under load; 0: none.
	Scrub time.Duration
	// Recover gives a Runner that does without the lost devices, loaded anew;
	// the one before is closed. nil: losing a device ends everything.
	Recover func(ctx context.Context, lost []device.ID, cause error) (*Runner, error)
	Events  Events
}

// Events report what happens, for logs; funcs may be nil. They are called by
// the step loop and must return soon.
type Events struct {
	Stepped    func(tokens int) // after each committed step; must not call the Engine
	StepFailed func(err error, sequences int)
	Failed     func(err error) // nothing can be computed any more
	// WeightsChanged: the model is loaded again; sequences that were running
	// have been failed.
	WeightsChanged func(err error)
	// Replayed: a step is computed again, since a copy of it arrived changed.
	Replayed func(cause error)
	// Rewound: all K/V is computed again.
	Rewound func(cause error)
	// DeviceLost: sequences pause; then Recovered, or Failed. left is what
	// could not be freed.
	DeviceLost func(lost []device.ID, cause error)
	Recovered  func(p devicemap.Plan, pause time.Duration, left error)
}

// Engine runs sequences. All methods are safe for concurrent use.
type Engine struct {
	c       Config
	vocab   int
	workers *workers

	mu       sync.Mutex // guards what follows; never held while a device computes
	sched    *Scheduler
	tasks    map[*task]struct{}
	draining bool
	failed   error
	// recovering is why a device was lost, until the rest goes on.
	recovering error
	idle       chan struct{} // closed when draining and no task is left
	stats      Stats

	wake    chan struct{}
	life    context.Context // until Close
	quit    context.CancelFunc
	done    chan struct{}
	closing sync.Once
	closed  error

	// Of the step loop.
	flights  []flight // steps under way, the oldest first
	scrubber scrubber
	step     *Step
	whole    bool // the step's logits are on the host, not only their maxima
	pace     pace
	spec     *speculator
	rewinds  int       // since the last good step
	made     []made    // by row
	outs     []Outcome // of the rows that sample
}

// made is what one row of a step came to: a guess that held and the token
// behind it are one piece of news each.
type made struct {
	news []news
	err  error
}

// outcome of a row that samples.
func (m *made) outcome() Outcome {
	last := m.news[len(m.news)-1]
	return Outcome{Token: last.token, Accepted: len(m.news) - 1, Stop: last.stop}
}

// New starts the step loop over a loaded Runner.
func New(c Config) (*Engine, error) {
	e, err := prepare(c)
	if err != nil {
		return nil, err
	}
	go e.loop(e.life)
	return e, nil
}

// prepare makes an Engine whose loop does not run yet.
func prepare(c Config) (*Engine, error) {
	p := c.Runner.Plan()
	sched, err := NewScheduler(limitsOf(p, c))
	if err != nil {
		return nil, err
	}
	e := &Engine{
		c: c, vocab: c.Runner.model.VocabSize, sched: sched, tasks: make(map[*task]struct{}),
		idle: make(chan struct{}), wake: make(chan struct{}, 1), done: make(chan struct{}), pace: pace{target: c.MaxGap}, spec: newSpeculator(c.NoSpeculation),
	}
	for _, id := range c.StopIDs {
		if id < 0 || int(id) >= e.vocab {
			return nil, fmt.Errorf("stop id %d is not in the model's vocabulary of %d", id, e.vocab)
		}
	}
	c.Runner.replayed = c.Events.Replayed
	e.life, e.quit = context.WithCancel(context.Background())
	e.workers = newWorkers(min(runtime.GOMAXPROCS(0), 8), e.choose)
	return e, nil
}

func limitsOf(p devicemap.Plan, c Config) Limits {
	return Limits{
		Blocks: p.Blocks, MaxContext: p.MaxContext, MaxSeqs: p.MaxSeqs,
		MaxTokens: p.MaxTokens, MaxLogits: p.MaxLogits, MaxQueue: c.MaxQueue, NoPrefix: c.NoPrefixCache,
		InFlight: p.MicroBatches,
	}
}

// Plan that is computed by now.
func (e *Engine) Plan() devicemap.Plan {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.c.Runner.Plan()
}

// MaxContext is the tokens that a prompt and its answer may have together.
func (e *Engine) MaxContext() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sched.Limits().MaxContext
}

// submit queues a task, which loop or cancel will end.
func (e *Engine) submit(t *task) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.failed != nil:
		return e.failed
	case e.draining:
		return ErrDraining
	}
	if err := e.sched.Submit(t.seq); err != nil {
		return err
	}
	e.tasks[t] = struct{}{}
	select {
	case e.wake <- struct{}{}:
	default:
	}
	return nil
}

// cancel ends a task whose caller has left.
func (e *Engine) cancel(t *task, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sched.Cancel(t.seq)
	e.finish(t, FinishNone, err, time.Now())
}

// finish ends a task; e.mu is held.
func (e *Engine) finish(t *task, why Finish, err error, now time.Time) {
	if _, live := e.tasks[t]; !live {
		return
	}
	t.end(why, err, now)
	delete(e.tasks, t)
	e.stats.count(why, err)
	if e.draining && len(e.tasks) == 0 {
		close(e.idle)
	}
}

// Drain refuses new requests and waits for those accepted. When ctx ends
// first, they are cancelled and ctx's error is returned.
func (e *Engine) Drain(ctx context.Context) error {
	e.mu.Lock()
	e.drain()
	e.mu.Unlock()
	select {
	case <-e.idle:
		return nil
	case <-ctx.Done():
		e.failAll(ErrDraining)
		return context.Cause(ctx)
	}
}

// drain refuses new requests from now on; e.mu is held.
func (e *Engine) drain() {
	if !e.draining {
		e.draining = true
		if len(e.tasks) == 0 {
			close(e.idle)
		}
	}
}

// failAll ends every task; e.mu is not held.
func (e *Engine) failAll(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	for _, q := range e.sched.All() {
		e.sched.Cancel(q)
	}
	for t := range e.tasks {
		e.finish(t, FinishNone, err, now)
	}
}

// Close ends what runs with ErrDraining, stops the step loop and closes the
// Runner. Later calls return what the first did.
func (e *Engine) Close() error {
	e.closing.Do(func() {
		e.mu.Lock()
		e.drain()
		e.mu.Unlock()
		e.failAll(ErrDraining)
		e.quit()
		<-e.done
		e.workers.close()
		e.closed = e.c.Runner.Close()
	})
	return e.closed
}

// loop computes step after step, and sleeps while there is nothing to do.
func (e *Engine) loop(ctx context.Context) {
	defer close(e.done)
	e.c.Runner.bindThread()
	defer func() { // nothing comes of what is still under way
		for _, f := range e.flights {
			_ = e.c.Runner.Finish(f.lane)
		}
	}()
	for ctx.Err() == nil {
		if len(e.flights) < e.c.Runner.Lanes() {
			if st := e.next(); st != nil {
				e.start(st)
				if len(e.flights) < e.c.Runner.Lanes() {
					continue // another beside it, if there is one
				}
			}
		}
		if len(e.flights) > 0 {
			e.finishStep()
			if e.scrubber.overdue(10 * e.c.Scrub) {
				for len(e.flights) > 0 {
					e.finishStep()
				}
				e.scrub(ctx)
			}
			continue
		}
		select {
		case <-e.wake:
		case <-ctx.Done():
		case <-e.scrubber.due(e.c.Scrub):
			e.scrub(ctx)
		}
	}
}

// next expires deadlines and picks a step.
func (e *Engine) next() *Step {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	for _, q := range e.sched.Expire(now) {
		e.finish(q.task, FinishNone, ErrDeadline, now)
	}
	e.sched.LimitChunk(e.pace.rows(e.sched.Unread()))
	e.spec.draft(e.sched)
	st := e.sched.Next()
	if st == nil {
		return nil
	}
	for i := range st.Rows {
		q := st.Rows[i].Seq
		q.task.started(now, q.cached)
	}
	return st
}

// learn takes a committed step's measure; e.mu is held.
func (e *Engine) learn(st *Step, d time.Duration) {
	prompt := e.stats.step(st, e.outs, d)
	e.pace.observe(prompt, len(st.Batch.Tokens)-prompt, d)
	if prompt > 0 {
		return
	}
	e.spec.cost.observe(len(st.Batch.Tokens), d.Seconds())
	for i := range st.Rows {
		st.Rows[i].Seq.learn(st.Rows[i].Lo + 1)
	}
}

// fail ends the sequences of a step that could not be computed, and all of
// them when the device is gone.
func (e *Engine) fail(err error) {
	err = fmt.Errorf("%w: %w", ErrFault, err)
	rows := e.step.Rows
	if f := e.c.Events.StepFailed; f != nil {
		f(err, len(rows))
	}
	broken := e.c.Runner.Broken()
	if broken != nil {
		broken = fmt.Errorf("%w: %w", ErrFault, broken)
		if f := e.c.Events.Failed; f != nil {
			f(broken)
		}
	}
	now := time.Now()
	e.mu.Lock()
	e.sched.Abort()
	for i := range rows {
		e.finish(rows[i].Seq.task, FinishNone, err, now)
	}
	e.stats.FailedSteps++
	e.failed = broken
	e.mu.Unlock()
	if broken != nil {
		e.failAll(broken)
	}
}

// choose samples row i of the step and tells its caller. Rows are independent:
// workers call it at the same time for different rows. Guesses are followed as
// far as they are what is sampled.
func (e *Engine) choose(c *candidates, i int) {
	r, m := &e.step.Rows[i], &e.made[i]
	m.news, m.err = m.news[:0], nil
	if r.PromptN > 0 {
		prompt, err := e.promptRows(r)
		if err != nil {
			m.err = err
			return
		}
		if prompt != nil {
			m.news = append(m.news, news{prompt: prompt})
		}
	}
	if !r.Sample {
		return
	}
	q, t := r.Seq, r.Seq.task
	for k := 0; ; k++ {
		n, err := e.sample(c, r, k)
		if err != nil {
			m.err = classify(err, len(q.Output())+k)
			return
		}
		if len(m.news) > 0 && !m.news[0].hasToken { // the prompt's
			n.prompt, m.news = m.news[0].prompt, m.news[:0]
		}
		n.stop = t.sampler.accept(n.token)
		m.news = append(m.news, n)
		if n.stop || k == r.Draft || n.token != q.draft[k] {
			return
		}
	}
}

// sample chooses the token behind the first k guesses of r.
func (e *Engine) sample(c *candidates, r *Row, k int) (news, error) {
	q, t := r.Seq, r.Seq.task
	at := r.Logit + r.Logits - 1 - r.Draft + k
	n := news{hasToken: true}
	var err error
	if e.whole {
		n.token, err = t.sampler.choose(c, e.c.Runner.Row(at), q.withDraft(k), q.prompt)
	} else if n.token = e.c.Runner.Largest(at); n.token < 0 {
		err = errBadLogits
	}
	if err == nil && t.sampler.s.Logprobs >= 0 {
		n.logprob = new(Logprob)
		*n.logprob, err = logprob(e.c.Runner.Row(at), n.token, t.sampler.s.Logprobs)
	}
	return n, err
}

// classify tells the request's faults from the machine's.
func classify(err error, n int) error {
	kind := ErrInvalid
	if errors.Is(err, errBadLogits) {
		kind = ErrFault
	}
	return fmt.Errorf("%w: output token %d: %w", kind, n, err)
}

// resize gives n elements of undefined content.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, max(n, 2*cap(s)))
	}
	return s[:n]
}
