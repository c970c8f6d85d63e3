package engine

import (
	"fmt"
	"slices"
	"time"

	"infer/runtime/kernels"
	"infer/runtime/kvcache"
)

// Limits of a Scheduler.
type Limits struct {
	Blocks     int // K/V pages, ≥ 1
	MaxContext int // prompt and output of one sequence together
	MaxSeqs    int // running at a time
	MaxTokens  int // rows of a step (the token budget), ≥ MaxSeqs
	MaxLogits  int // rows of logits of a step, ≥ MaxSeqs
	MaxQueue   int // waiting beyond the free places among the running
	NoPrefix   bool
	// InFlight is how many steps may be open at a time when enough sequences
	// decode: micro-batches, that keep the stages of a plan busy. 0: one.
	InFlight int
}

// Counters of a Scheduler since its start.
type Counters struct {
	Submitted    uint64
	PromptTokens uint64 // of admitted sequences, each counted once
	CacheQueries uint64 // prompt tokens looked up in the prefix cache
	CacheHits    uint64 // of those found there
	Preemptions  uint64
	Recomputed   uint64 // tokens computed again because of preemption
}

// Scheduler decides what each step computes. It starts no goroutine, reads no
// clock and touches no device; it is not safe for concurrent use.
//
//	Submit ─► waiting ──Next──► running ──Apply──► finished
//	             ▲                 │ out of blocks: the last in order
//	             └─── preempt ─────┘ gives all of its blocks back
//
// Order is priority, then arrival, for admission, for the token budget and,
// backwards, for preemption. The first in order never has to yield and fits
// alone (Submit refuses what does not), so that every step makes progress and
// every sequence ends.
//
// A step is the time from Next to Apply or Abort; Submit, Cancel and Expire
// may be called within it. With Limits.InFlight further steps may be made
// meanwhile, of other sequences; they end in the order in which they were made.
type Scheduler struct {
	lim     Limits
	blocks  *kvcache.BlockManager
	waiting []*Sequence // in order
	running []*Sequence // in order
	resumed int         // of waiting, those that were running before
	arrived uint64
	dated   int     // live sequences with a deadline
	chunk   int     // prompt rows of a step in which sequences decode, at most
	step    *Step   // being made
	open    []*Step // between Next and Apply, the oldest first
	spare   []*Step // for reuse
	expired []*Sequence
	count   Counters
}

// NewScheduler checks the limits.
func NewScheduler(l Limits) (*Scheduler, error) {
	switch {
	case l.Blocks < 1 || l.MaxSeqs < 1 || l.MaxContext < 1 || l.MaxQueue < 0:
		return nil, fmt.Errorf("scheduler: limits %+v: blocks, sequences and context must be at least 1, the queue at least 0", l)
	case l.MaxTokens < l.MaxSeqs:
		return nil, fmt.Errorf("scheduler: a step of %d tokens cannot serve %d sequences: raise the tokens of a step or lower the sequences", l.MaxTokens, l.MaxSeqs)
	case l.MaxLogits < l.MaxSeqs:
		return nil, fmt.Errorf("scheduler: a step of %d logit rows cannot serve %d sequences", l.MaxLogits, l.MaxSeqs)
	}
	l.MaxContext = min(l.MaxContext, l.Blocks*kernels.BlockSize)
	return &Scheduler{lim: l, blocks: kvcache.NewBlockManager(l.Blocks), chunk: noLimit}, nil
}

// Limits in force: MaxContext is cut to what the blocks hold.
func (s *Scheduler) Limits() Limits { return s.lim }

// LimitChunk sets how many rows of prompts the next steps may have when
// sequences decode in them.
func (s *Scheduler) LimitChunk(rows int) { s.chunk = rows }

// Counters so far.
func (s *Scheduler) Counters() Counters { return s.count }

// Waiting is the number of waiting sequences.
func (s *Scheduler) Waiting() int { return len(s.waiting) }

// Running is the number of running sequences.
func (s *Scheduler) Running() int { return len(s.running) }

// Unread is the number of sequences that wait or have more than one token to
// compute: those with prompts to be read.
func (s *Scheduler) Unread() int {
	n := len(s.waiting)
	for _, q := range s.running {
		if len(q.Tokens)-q.computed > 1 {
			n++
		}
	}
	return n
}

// BlocksUsed is the number of blocks that live sequences hold.
func (s *Scheduler) BlocksUsed() int { return s.blocks.Total() - s.blocks.Available() }

// Submit queues a new sequence. ErrQueueFull, or ErrTooLong when it would not
// fit alone, leave nothing changed.
func (s *Scheduler) Submit(q *Sequence) error {
	if q.status != statusNew || len(q.Tokens) == 0 || q.MaxNew < 0 {
		return fmt.Errorf("submit a sequence of %d tokens, %d to generate, %v: invalid", len(q.Tokens), q.MaxNew, q.status)
	}
	n := len(q.Tokens)
	if n+min(q.MaxNew, 1) > s.lim.MaxContext {
		return fmt.Errorf("%w: the prompt has %d tokens, the maximum context length is %d tokens", ErrTooLong, n, s.lim.MaxContext)
	}
	if fresh := len(s.waiting) - s.resumed; fresh >= s.lim.MaxQueue+max(0, s.lim.MaxSeqs-len(s.running)) {
		return fmt.Errorf("%w: %d requests wait, %d run", ErrQueueFull, fresh, len(s.running))
	}
	q.prompt = n
	q.limit = min(n+min(q.MaxNew, s.lim.MaxContext), s.lim.MaxContext)
	q.arrival = s.arrived
	s.arrived++
	s.count.Submitted++
	if !q.Deadline.IsZero() {
		s.dated++
	}
	s.enqueue(q)
	return nil
}

func (s *Scheduler) enqueue(q *Sequence) {
	q.status = statusWaiting
	if q.admitted {
		s.resumed++
	}
	s.waiting = insert(s.waiting, q)
}

func insert(list []*Sequence, q *Sequence) []*Sequence {
	i, _ := slices.BinarySearchFunc(list, q, before)
	return slices.Insert(list, i, q)
}

func remove(list []*Sequence, q *Sequence) []*Sequence {
	i, ok := slices.BinarySearchFunc(list, q, before)
	if !ok {
		panic("engine: a live sequence is not in its list")
	}
	return slices.Delete(list, i, i+1)
}

// Cancel ends a sequence. Its blocks are free at once, or, when the step under
// way computes it, at that step's Apply. A finished sequence is left alone.
func (s *Scheduler) Cancel(q *Sequence) {
	switch {
	case q.status != statusWaiting && q.status != statusRunning:
	case q.inStep:
		q.dropped = true
	default:
		s.end(q, FinishNone)
	}
}

// Expire cancels every sequence whose deadline is not after now and returns
// them; the slice is valid until the next call.
func (s *Scheduler) Expire(now time.Time) []*Sequence {
	s.expired = s.expired[:0]
	if s.dated == 0 {
		return nil
	}
	for _, list := range [2][]*Sequence{s.running, s.waiting} {
		for _, q := range list {
			if !q.Deadline.IsZero() && !q.Deadline.After(now) && !q.dropped {
				s.expired = append(s.expired, q)
			}
		}
	}
	for _, q := range s.expired {
		s.Cancel(q)
	}
	return s.expired
}

// end takes a live sequence out.
func (s *Scheduler) end(q *Sequence, why Finish) {
	if q.status == statusWaiting {
		s.waiting = remove(s.waiting, q)
		if q.admitted {
			s.resumed--
		}
	} else {
		s.running = remove(s.running, q)
	}
	s.release(q)
	q.status, q.finish, q.inStep = statusFinished, why, false
	if !q.Deadline.IsZero() {
		s.dated--
	}
}

func (s *Scheduler) release(q *Sequence) {
	s.blocks.Release(q.blocks)
	q.blocks = q.blocks[:0]
	q.computed, q.shared = 0, 0
}

// Apply commits the oldest step: the computed tokens count, full blocks enter the
// prefix cache, and outcomes[i] is what was sampled for the i-th row that has
// Sample set. Sequences that ended say why and have no blocks.
func (s *Scheduler) Apply(outcomes []Outcome) {
	st := s.oldest("Apply")
	for i := range st.Rows {
		r := &st.Rows[i]
		q := r.Seq
		q.inStep = false
		var out Outcome
		if r.Sample {
			out, outcomes = outcomes[0], outcomes[1:]
		}
		q.computed = r.Lo + r.N - r.Draft + out.Accepted
		q.Tokens = append(q.Tokens, q.draft[:out.Accepted]...)
		q.rowsDone = max(q.rowsDone, r.PromptLo+r.PromptN)
		s.publish(q)
		switch {
		case q.dropped:
			s.end(q, FinishNone)
		case r.Sample:
			q.Tokens = append(q.Tokens, out.Token)
			if out.Stop {
				s.end(q, FinishStop)
			} else if len(q.Tokens) >= q.limit {
				s.end(q, FinishLength)
			}
		case q.computed == q.prompt && q.MaxNew == 0:
			s.end(q, FinishLength)
		}
	}
	if len(outcomes) > 0 {
		panic(fmt.Sprintf("engine: %d outcomes too many for the step", len(outcomes)))
	}
}

// Abort ends the sequences of the oldest step, which was not committed: none of its
// blocks enters the prefix cache.
func (s *Scheduler) Abort() {
	st := s.oldest("Abort")
	for i := range st.Rows {
		s.end(st.Rows[i].Seq, FinishNone)
	}
}

// All live sequences, running ones first; for failing them together.
func (s *Scheduler) All() []*Sequence {
	return append(slices.Clone(s.running), s.waiting...)
}

// oldest takes the oldest open step, which ends.
func (s *Scheduler) oldest(what string) *Step {
	if len(s.open) == 0 {
		panic("engine: " + what + " without a step")
	}
	st := s.open[0]
	s.open = slices.Delete(s.open, 0, 1)
	s.spare = append(s.spare, st)
	return st
}

// publish offers the newly completed blocks to the prefix cache.
func (s *Scheduler) publish(q *Sequence) {
	full := q.computed / kernels.BlockSize
	if s.lim.NoPrefix || full <= q.shared {
		return
	}
	q.keys = kvcache.Extend(q.keys, q.Salt, q.Tokens[:q.computed])
	for ; q.shared < full; q.shared++ {
		s.blocks.Publish(q.blocks[q.shared], q.keys[q.shared])
	}
}

// Check verifies the books between steps; an error is a bug.
func (s *Scheduler) Check() error {
	var tables [][]int32
	for _, q := range s.running {
		if q.status != statusRunning {
			return fmt.Errorf("sequence %d among the running is %v", q.arrival, q.status)
		}
		if have, need := len(q.blocks), kvcache.BlocksFor(q.computed); have < need {
			return fmt.Errorf("sequence %d has %d blocks for %d computed tokens", q.arrival, have, q.computed)
		}
		tables = append(tables, q.blocks)
	}
	resumed := 0
	for _, q := range s.waiting {
		if q.status != statusWaiting || len(q.blocks) > 0 || q.computed > 0 {
			return fmt.Errorf("sequence %d among the waiting is %v with %d blocks, %d tokens computed", q.arrival, q.status, len(q.blocks), q.computed)
		}
		if q.admitted {
			resumed++
		}
	}
	if resumed != s.resumed {
		return fmt.Errorf("%d preempted sequences wait, %d counted", resumed, s.resumed)
	}
	if !slices.IsSortedFunc(s.running, before) || !slices.IsSortedFunc(s.waiting, before) {
		return fmt.Errorf("the running or the waiting are out of order")
	}
	return s.blocks.Check(tables)
}
