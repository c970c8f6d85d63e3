package engine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"infer/runtime/kernels"
)

// hash of a context: what a page slot should hold, whatever computed it.
func hashTokens(salt string, ids []int32) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range []byte(salt) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	for _, id := range ids {
		h = (h ^ uint64(uint32(id))) * 1099511628211
	}
	return h
}

// memory plays the device: it writes each step's slots and verifies that every
// position a sequence attends to holds that very context.
type memory struct {
	slots []uint64
}

func (m *memory) compute(st *Step) error {
	b := &st.Batch
	if n := len(b.Starts) - 1; n != len(st.Rows) || n != len(b.Contexts) || n != len(b.BlockTables) || len(b.Tokens) != int(b.Starts[n]) {
		return fmt.Errorf("malformed batch: %d rows, %+v", len(st.Rows), b)
	}
	all := make([][]int32, len(st.Rows)) // tokens and guesses of each row
	for i, r := range st.Rows {
		all[i] = slices.Concat(r.Seq.Tokens, r.Seq.draft[:r.Draft])
	}
	for i, r := range st.Rows {
		for t := b.Starts[i]; t < b.Starts[i+1]; t++ {
			p := int(b.Positions[t])
			if b.Tokens[t] != all[i][p] {
				return fmt.Errorf("row %d: token %d at position %d is not the sequence's", t, b.Tokens[t], p)
			}
			m.slots[b.Slots[t]] = hashTokens(r.Seq.Salt, all[i][:p+1])
		}
	}
	want := 0
	for i, r := range st.Rows {
		h := hashTokens(r.Seq.Salt, nil)
		for p := range int(b.Contexts[i]) {
			h = (h ^ uint64(uint32(all[i][p]))) * 1099511628211
			if got := m.slots[int(b.BlockTables[i][p/kernels.BlockSize])*kernels.BlockSize+p%kernels.BlockSize]; got != h {
				return fmt.Errorf("sequence %d attends to a wrong page at position %d of %d", r.Seq.arrival, p, b.Contexts[i])
			}
		}
		if r.Logit != want {
			return fmt.Errorf("row %d: first logits row %d, want %d", i, r.Logit, want)
		}
		want += r.Logits
		for k := range r.Draft {
			if b.Logits[want-2-k] != b.Starts[i+1]-2-int32(k) {
				return fmt.Errorf("row %d: the logits of %d guesses are those of rows %v", i, r.Draft, b.Logits[want-r.Logits:want])
			}
		}
		if r.Sample && b.Logits[want-1] != b.Starts[i+1]-1 {
			return fmt.Errorf("row %d samples from row %d, its last is %d", i, b.Logits[want-1], b.Starts[i+1]-1)
		}
	}
	if want != len(b.Logits) || !slices.IsSorted(b.Logits) {
		return fmt.Errorf("logits rows %v, want %d ascending", b.Logits, want)
	}
	return nil
}

// Unread are those that wait and those whose prompt is not read to its end.
func TestSchedulerCountsPrompts(t *testing.T) {
	s, err := NewScheduler(Limits{Blocks: 9, MaxContext: 64, MaxSeqs: 2, MaxTokens: 20, MaxLogits: 2, MaxQueue: 9})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{8, 30, 2} { // in steps of 20 rows: 8 + 12, then 1 + 18
		if err := s.Submit(&Sequence{Tokens: make([]int32, n), MaxNew: 4}); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []int{3, 2, 1} { // the third waits, as two run
		if got := s.Unread(); got != want {
			t.Errorf("before step %d: %d, want %d", i, got, want)
		}
		st := s.Next()
		s.Apply(make([]Outcome, len(st.Batch.Logits)))
	}
}

// Long random runs: limits hold, no block is leaked or shared wrongly, every
// sequence ends, the first in order is never preempted, and admission keeps
// the order.
func TestSchedulerRandomRuns(t *testing.T) {
	runs := 60
	if testing.Short() {
		runs = 10
	}
	for seed := range runs {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { randomRun(t, uint64(seed)) })
	}
}

func randomRun(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 3))
	lim := Limits{
		Blocks: 4 + rng.IntN(40), MaxContext: 20 + rng.IntN(300), MaxSeqs: 1 + rng.IntN(9),
		MaxQueue: rng.IntN(20), NoPrefix: rng.IntN(4) == 0,
	}
	lim.MaxTokens = lim.MaxSeqs + rng.IntN(60)
	lim.MaxLogits = lim.MaxSeqs + rng.IntN(8)
	s, err := NewScheduler(lim)
	if err != nil {
		t.Fatal(err)
	}
	lim = s.Limits()
	mem := &memory{slots: make([]uint64, lim.Blocks*kernels.BlockSize)}
	var live []*Sequence
	delivered := map[*Sequence]int{} // prompt rows
	now, idle := int64(0), 0
	done, refused, guessedRows := 0, 0, 0
	const total = 150
	for step := 0; done+refused < total; step++ {
		if step > 200000 {
			t.Fatalf("%d sequences of %d have not ended after %d steps", len(live), total, step)
		}
		now++
		for done+refused+len(live) < total && rng.IntN(3) == 0 {
			q := &Sequence{
				Tokens: make([]int32, 1+rng.IntN(lim.MaxContext)), MaxNew: rng.IntN(60),
				Priority: rng.IntN(3) / 2, Salt: []string{"", "x"}[rng.IntN(2)], PromptRows: rng.IntN(6) == 0,
			}
			if q.MaxNew == 0 {
				q.PromptRows = true
			}
			if rng.IntN(5) == 0 {
				q.Deadline = time.Unix(now+int64(rng.IntN(300)), 0)
			}
			fork := rng.IntN(100)
			for i := range q.Tokens {
				if i >= fork {
					q.Tokens[i] = int32(rng.IntN(2))
				}
			}
			if err := s.Submit(q); err == nil {
				live = append(live, q)
			} else if errors.Is(err, ErrQueueFull) || errors.Is(err, ErrTooLong) {
				refused++
			} else {
				t.Fatal(err)
			}
		}
		var head *Sequence
		if len(s.running) > 0 {
			head = s.running[0]
		}
		chunk := max(0, rng.IntN(50)-10)
		if chunk == 0 && rng.IntN(2) > 0 {
			chunk = noLimit
		}
		s.LimitChunk(chunk)
		decoding := map[*Sequence]bool{}
		for _, q := range s.running {
			decoding[q] = q.decoding()
			q.draft, q.guessed = q.draft[:0], 0
			for range rng.IntN(6) {
				q.draft = append(q.draft, int32(rng.IntN(2)))
				q.guessed = rng.IntN(len(q.draft) + 1)
			}
			if q.PromptRows {
				q.guessed = 0
			}
		}
		st := s.Next()
		if st == nil {
			if len(live) > 0 {
				t.Fatalf("nothing to do, with %d waiting and %d running", s.Waiting(), s.Running())
			}
			if idle++; done+refused+len(live) < total && idle > 1000 {
				t.Fatal("the test does not submit")
			}
			continue
		}
		if head != nil && head.status != statusRunning {
			t.Fatalf("step %d: the first in order was preempted", step)
		}
		if len(s.waiting) > 0 && s.waiting[0].Priority == 0 {
			for _, q := range s.running {
				if !q.admitted || q.preempts > 0 || s.waiting[0].preempts > 0 {
					continue
				}
				if q.Priority == 0 && before(s.waiting[0], q) < 0 {
					t.Fatalf("step %d: sequence %d runs, %d waits before it", step, q.arrival, s.waiting[0].arrival)
				}
			}
		}
		if n := len(st.Batch.Tokens); n > lim.MaxTokens || len(st.Rows) > lim.MaxSeqs || len(st.Batch.Logits) > lim.MaxLogits {
			t.Fatalf("step %d: %d tokens, %d sequences, %d logits rows exceed %+v", step, n, len(st.Rows), len(st.Batch.Logits), lim)
		}
		others, prompt := 0, 0
		for _, r := range st.Rows {
			if decoding[r.Seq] {
				others++
			} else {
				prompt += r.N
			}
		}
		if others > 0 && prompt > chunk {
			t.Fatalf("step %d: %d prompt rows beside %d decoding sequences, %d are allowed", step, prompt, others, chunk)
		}
		if err := mem.compute(st); err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		for range rng.IntN(2) { // within the step
			if q := live[rng.IntN(len(live))]; rng.IntN(15) == 0 {
				s.Cancel(q)
			}
			s.Expire(time.Unix(now, 0))
		}
		if rng.IntN(80) == 0 {
			for i := range st.Rows { // the device failed: its pages hold anything
				r := &st.Rows[i]
				for p := r.Lo; p < r.Lo+r.N; p++ {
					mem.slots[r.Seq.blocks[p/kernels.BlockSize]*kernels.BlockSize+int32(p%kernels.BlockSize)] = 0
				}
			}
			s.Abort()
		} else {
			var outs []Outcome
			for i := range st.Rows {
				r := &st.Rows[i]
				if r.PromptN > 0 {
					if r.PromptLo != delivered[r.Seq] {
						t.Fatalf("step %d: prompt rows from %d, %d were delivered", step, r.PromptLo, delivered[r.Seq])
					}
					delivered[r.Seq] += r.PromptN
				}
				if r.Sample {
					accepted := rng.IntN(r.Draft + 1)
					guessedRows += r.Draft
					outs = append(outs, Outcome{Token: int32(rng.IntN(2)), Accepted: accepted, Stop: rng.IntN(60) == 0})
				}
			}
			s.Apply(outs)
		}
		if err := s.Check(); err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
		live = slices.DeleteFunc(live, func(q *Sequence) bool {
			if q.status != statusFinished {
				return false
			}
			switch n := len(q.Output()); {
			case n > q.MaxNew || len(q.Tokens) > lim.MaxContext:
				t.Fatalf("sequence %d generated %d tokens", q.arrival, n)
			case q.finish == FinishLength && n != q.MaxNew && len(q.Tokens) != lim.MaxContext:
				t.Fatalf("sequence %d ended with %d of %d tokens", q.arrival, n, q.MaxNew)
			case q.finish == FinishLength && q.PromptRows && delivered[q] != q.prompt:
				t.Fatalf("sequence %d: %d of %d prompt rows", q.arrival, delivered[q], q.prompt)
			}
			done++
			return true
		})
	}
	if guessedRows == 0 && lim.MaxLogits > lim.MaxSeqs && lim.MaxTokens > lim.MaxSeqs {
		t.Fatal("no step had guesses")
	}
	if s.BlocksUsed() != 0 || s.Waiting() != 0 || s.Running() != 0 || s.dated != 0 {
		t.Fatalf("idle with %d blocks used, %d waiting, %d running, %d dated", s.BlocksUsed(), s.Waiting(), s.Running(), s.dated)
	}
}

// What the random runs are meant to reach is reached by them together.
func TestSchedulerPreemptsUnderPressure(t *testing.T) {
	s, err := NewScheduler(Limits{Blocks: 20, MaxContext: 200, MaxSeqs: 8, MaxTokens: 64, MaxLogits: 8, MaxQueue: 100})
	if err != nil {
		t.Fatal(err)
	}
	var qs []*Sequence
	for i := range 16 {
		q := &Sequence{Tokens: []int32{int32(i)}, MaxNew: 150}
		if err := s.Submit(q); err != nil {
			t.Fatal(err)
		}
		qs = append(qs, q)
	}
	mem := &memory{slots: make([]uint64, 20*kernels.BlockSize)}
	for st := s.Next(); st != nil; st = s.Next() {
		if err := mem.compute(st); err != nil {
			t.Fatal(err)
		}
		s.Apply(make([]Outcome, st.Samples))
	}
	for i, q := range qs {
		if q.finish != FinishLength || len(q.Output()) != 150 {
			t.Errorf("sequence %d: %q after %d tokens", i, q.finish, len(q.Output()))
		}
	}
	if c := s.Counters(); c.Preemptions == 0 {
		t.Errorf("no preemption: %+v", c)
	}
}

func decodeBatch(tb testing.TB, n int) *Scheduler {
	s, err := NewScheduler(Limits{Blocks: n * 5000, MaxContext: 1 << 20, MaxSeqs: n, MaxTokens: 512, MaxLogits: n, MaxQueue: n})
	if err != nil {
		tb.Fatal(err)
	}
	for i := range n {
		q := &Sequence{Tokens: make([]int32, 100, 1<<16), MaxNew: 1 << 16}
		q.Tokens[0] = int32(i)
		if err := s.Submit(q); err != nil {
			tb.Fatal(err)
		}
	}
	for s.Running() < n || !s.running[n-1].decoding() {
		s.Apply(make([]Outcome, s.Next().Samples))
	}
	return s
}

func BenchmarkSchedulerDecodeStep(b *testing.B) {
	for _, n := range []int{1, 32, 256} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := decodeBatch(b, n)
			outs := make([]Outcome, n)
			b.ReportAllocs()
			for b.Loop() {
				if s.running[0].computed > 60000 {
					b.StopTimer()
					s = decodeBatch(b, n)
					b.StartTimer()
				}
				s.Next()
				s.Apply(outs)
			}
		})
	}
}
