package engine

import (
	"slices"

	"infer/runtime/kernels"
	"infer/runtime/kvcache"
)

// Row is one sequence's part of a step: tokens Lo..Lo+N.
type Row struct {
	Seq   *Sequence
	Lo, N int
	// Logits rows of this part: first those of prompt positions
	// PromptLo..PromptLo+PromptN when the sequence has PromptRows. With Sample
	// the last row is the one to sample from; it may be the last of those.
	Logit, Logits     int // first, number
	PromptLo, PromptN int
	Sample            bool
	// The last Draft tokens of the part are guesses. Each has a row of logits,
	// behind that of the sequence's last token.
	Draft int
}

// Outcome of sampling one row: Accepted guesses that were right, then Token.
type Outcome struct {
	Token    int32
	Accepted int
	Stop     bool // Token is a stop id: the sequence ends with it
}

// Step is what is computed at once. It belongs to the Scheduler and is valid
// until its Apply or Abort.
type Step struct {
	Batch   kernels.Batch
	Rows    []Row // decoding sequences, then prefill; Rows[i] is Batch's sequence i
	Samples int   // rows with Sample
}

// lanes is how many steps may be open now: several when each has enough
// sequences that decode. share is how many of them one takes.
func (s *Scheduler) lanes() (n, share int) {
	decoding := 0
	for _, q := range s.running {
		if q.decoding() {
			decoding++
		}
	}
	if n = max(s.lim.InFlight, 1); decoding < 2*n {
		n = 1
	}
	return n, (decoding + n - 1) / n
}

// Next picks the next step, or returns nil when there is nothing to compute,
// or nothing more before an open step has ended.
// Decoding sequences come first, one token each; what is left of the token
// budget, at most LimitChunk's rows beside those, goes to prompts, in order, in
// chunks.
func (s *Scheduler) Next() *Step {
	lanes, share := s.lanes()
	if len(s.open) >= max(s.lim.InFlight, 1) {
		panic("engine: Next within a step")
	}
	if len(s.open) >= lanes {
		return nil
	}
	if n := len(s.spare); n > 0 {
		s.step, s.spare = s.spare[n-1], s.spare[:n-1]
	} else {
		s.step = new(Step)
	}
	st := s.step
	st.Rows, st.Samples = st.Rows[:0], 0
	tokens, logits := s.lim.MaxTokens, s.lim.MaxLogits
	spare := s.Spare()

	preempted := false
	for i := 0; i < len(s.running); i++ {
		q := s.running[i]
		if !q.decoding() || q.inStep {
			continue
		}
		if share--; share < 0 {
			break
		}
		for len(q.blocks) < kvcache.BlocksFor(len(q.Tokens)) {
			var ok bool
			if q.blocks, ok = s.blocks.Allocate(q.blocks, 1); ok {
				continue
			}
			// The last in order that is in no step is q or comes after q.
			last := s.running[len(s.running)-1]
			for k := len(s.running) - 2; last.inStep; k-- {
				last = s.running[k]
			}
			if preempted = true; last == q && len(s.open) > 0 {
				break // what others give back when their step ends may do
			}
			s.preempt(last)
			if last == q {
				break
			}
		}
		if q.status == statusRunning && len(q.blocks) >= kvcache.BlocksFor(len(q.Tokens)) {
			guesses := min(q.guessed, spare, q.limit-len(q.Tokens)-1)
			for guesses > 0 && len(q.blocks) < kvcache.BlocksFor(len(q.Tokens)+guesses) {
				var ok bool
				if q.blocks, ok = s.blocks.Allocate(q.blocks, 1); !ok {
					guesses = len(q.blocks)*kernels.BlockSize - len(q.Tokens)
				}
			}
			spare -= guesses
			s.add(q, 1, &tokens, &logits)
			s.guess(q, guesses, &tokens, &logits)
		}
	}
	if len(st.Rows) > 0 {
		tokens = min(tokens, s.chunk)
	}
	for _, q := range s.running {
		if !q.decoding() && !q.inStep {
			s.prefill(q, &tokens, &logits)
		}
	}
	for !preempted && tokens > 0 && len(s.waiting) > 0 && len(s.running) < s.lim.MaxSeqs {
		q := s.waiting[0]
		if !s.admit(q) {
			break
		}
		s.prefill(q, &tokens, &logits)
	}
	if len(st.Rows) == 0 {
		s.spare = append(s.spare, st)
		return nil
	}
	s.open = append(s.open, st)
	st.build()
	return st
}

// prefill gives q as much of the step as it can use.
func (s *Scheduler) prefill(q *Sequence, tokens, logits *int) {
	n := min(len(q.Tokens)-q.computed, *tokens)
	if q.PromptRows {
		// Only positions not delivered before need logits, and the last.
		n = min(n, max(0, q.rowsDone-q.computed)+*logits)
	}
	if *logits == 0 && q.computed+n == len(q.Tokens) {
		n--
	}
	if n > 0 {
		s.add(q, n, tokens, logits)
	}
}

// Spare is how many rows, with logits, the next step has beside one for each
// decoding sequence.
func (s *Scheduler) Spare() int {
	n := min(s.lim.MaxTokens, s.lim.MaxLogits)
	for _, q := range s.running {
		if q.decoding() {
			n--
		}
	}
	return n
}

// guess adds n guesses to the row that was added last, q's.
func (s *Scheduler) guess(q *Sequence, n int, tokens, logits *int) {
	r := &s.step.Rows[len(s.step.Rows)-1]
	q.Tokens = slices.Grow(q.Tokens, n+1) // for withDraft
	r.N, r.Logits, r.Draft = r.N+n, r.Logits+n, n
	*tokens -= n
	*logits -= n
}

func (s *Scheduler) add(q *Sequence, n int, tokens, logits *int) {
	r := Row{Seq: q, Lo: q.computed, N: n, Logit: s.lim.MaxLogits - *logits}
	hi := r.Lo + n
	if q.PromptRows {
		r.PromptLo = max(r.Lo, q.rowsDone)
		r.PromptN = max(0, min(hi, q.prompt)-r.PromptLo)
		r.Logits = r.PromptN
	}
	if hi == len(q.Tokens) && q.MaxNew > 0 {
		r.Sample = true
		s.step.Samples++
		if r.PromptN == 0 || hi > q.prompt {
			r.Logits++
		}
	}
	q.inStep = true
	*tokens -= n
	*logits -= r.Logits
	s.step.Rows = append(s.step.Rows, r)
}

// admit makes the first waiting sequence run if there are blocks for all of
// its tokens: from then on it needs more only while decoding. One block for
// each running sequence is left, so that admission does not cause preemption
// at once. Those behind q wait with it: the order is kept.
func (s *Scheduler) admit(q *Sequence) bool {
	need := kvcache.BlocksFor(len(q.Tokens))
	hit, free := 0, 0
	if !s.lim.NoPrefix && !q.PromptRows {
		// The last token is always computed: its logits are wanted.
		q.keys = kvcache.Extend(q.keys, q.Salt, q.Tokens)
		usable := q.keys[:(len(q.Tokens)-1)/kernels.BlockSize]
		hit, free = s.blocks.Lookup(usable)
		if hit < len(usable) && s.pending(hit, usable[hit]) {
			return false
		}
	}
	if need-hit+free+len(s.running) > s.blocks.Available() {
		return false
	}
	q.blocks = s.blocks.Acquire(q.blocks, q.keys[:hit])
	q.blocks, _ = s.blocks.Allocate(q.blocks, need-hit)
	q.computed, q.shared = hit*kernels.BlockSize, hit

	s.waiting = slices.Delete(s.waiting, 0, 1)
	s.running = insert(s.running, q)
	q.status = statusRunning
	if q.admitted {
		s.resumed--
		return true
	}
	q.admitted, q.cached = true, q.computed
	s.count.PromptTokens += uint64(q.prompt)
	if !s.lim.NoPrefix && !q.PromptRows {
		s.count.CacheQueries += uint64(q.prompt)
		s.count.CacheHits += uint64(q.cached)
	}
	return true
}

// pending tells whether some running sequence is about to compute the block
// of key k, the i-th of its prompt. A sequence that wants the same block waits
// for it, so that a prompt sent many times at once is computed once.
func (s *Scheduler) pending(i int, k kvcache.Key) bool {
	for _, q := range s.running {
		if !q.decoding() && q.shared <= i && i < len(q.keys) && q.keys[i] == k {
			return true
		}
	}
	return false
}

// preempt takes a running sequence's blocks; it waits in its old order and
// computes its tokens again, unless the prefix cache still has them.
func (s *Scheduler) preempt(q *Sequence) {
	s.running = remove(s.running, q)
	s.count.Preemptions++
	s.count.Recomputed += uint64(q.computed)
	q.preempts++
	s.release(q)
	s.enqueue(q)
}

// build lays the rows out as a Batch, in the memory of the step before.
func (st *Step) build() {
	b := &st.Batch
	b.Tokens, b.Positions, b.Slots = b.Tokens[:0], b.Positions[:0], b.Slots[:0]
	b.Contexts, b.BlockTables, b.Logits = b.Contexts[:0], b.BlockTables[:0], b.Logits[:0]
	b.Starts = append(b.Starts[:0], 0)
	for i := range st.Rows {
		r := &st.Rows[i]
		q := r.Seq
		hi, base := r.Lo+r.N, len(b.Tokens)-r.Lo
		b.Tokens = append(b.Tokens, q.Tokens[r.Lo:hi-r.Draft]...)
		b.Tokens = append(b.Tokens, q.draft[:r.Draft]...)
		for p := r.Lo; p < hi; p++ {
			b.Positions = append(b.Positions, int32(p))
			b.Slots = append(b.Slots, q.blocks[p/kernels.BlockSize]*kernels.BlockSize+int32(p%kernels.BlockSize))
		}
		b.Starts = append(b.Starts, int32(len(b.Tokens)))
		b.Contexts = append(b.Contexts, int32(hi))
		b.BlockTables = append(b.BlockTables, q.blocks)
		for p := r.PromptLo; p < r.PromptLo+r.PromptN; p++ {
			b.Logits = append(b.Logits, int32(base+p))
		}
		for p := hi - (r.Logits - r.PromptN); p < hi; p++ {
			b.Logits = append(b.Logits, int32(base+p))
		}
	}
}
