package engine

import (
	"sync"
	"time"
)

// task is a sequence together with what its caller waits for. The step loop
// writes, the caller reads, neither waits for the other: what is not yet read
// is bounded by the sequence's own tokens.
type task struct {
	seq     *Sequence
	sampler *sampler // nil: scoring

	// Owned by the step loop.
	promptTop int       // alternatives per prompt token, −1: none
	prompt    []Logprob // as far as computed
	score     *scorer

	// Guarded by mu.
	mu      sync.Mutex
	news    []news
	ended   bool
	err     error // with ended
	finish  Finish
	cached  int
	times   Times
	arrived chan struct{} // holds one token while there is something to read
}

// news is what one step made of a sequence.
type news struct {
	token    int32
	hasToken bool
	stop     bool // the token is a stop id
	last     bool // the sequence ended with this step
	logprob  *Logprob
	prompt   []Logprob
}

func newTask(q *Sequence, now time.Time) *task {
	t := &task{seq: q, promptTop: -1, arrived: make(chan struct{}, 1), times: Times{Queued: now}}
	q.task = t
	return t
}

func (t *task) signal() {
	select {
	case t.arrived <- struct{}{}:
	default:
	}
}

// started notes the first step that computes the sequence.
func (t *task) started(now time.Time, cached int) {
	if t.times.Started.IsZero() { // only the step loop writes it
		t.mu.Lock()
		t.times.Started, t.cached = now, cached
		t.mu.Unlock()
	}
}

// push gives the caller a step's result.
func (t *task) push(list []news, now time.Time) {
	t.mu.Lock()
	for _, n := range list {
		if t.ended {
			break
		}
		t.news = append(t.news, n)
		if n.hasToken && t.times.FirstToken.IsZero() {
			t.times.FirstToken = now
		}
	}
	t.mu.Unlock()
	t.signal()
}

// end is the last thing the caller sees; only the first call counts.
func (t *task) end(why Finish, err error, now time.Time) {
	t.mu.Lock()
	if !t.ended {
		t.ended, t.finish, t.err = true, why, err
		t.times.Done = now
	}
	t.mu.Unlock()
	t.signal()
}

// take swaps the caller's empty slice for what has arrived.
func (t *task) take(empty []news) (got []news, ended bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	got, t.news = t.news, empty
	return got, t.ended
}
