package engine

import (
	"fmt"
	"slices"
	"testing"
)

func TestLookup(t *testing.T) {
	for _, c := range []struct {
		ids, want []int32
		match     int
	}{
		{ids: []int32{1}},
		{ids: []int32{1, 2, 3, 4}},
		{ids: []int32{7, 1, 2, 9, 3, 1, 2}, want: []int32{9, 3, 1, 2}, match: 2},
		{ids: []int32{7, 2, 9, 3, 1, 2}},                                                           // one token that agrees is not enough
		{ids: []int32{1, 2, 3, 8, 1, 2, 9, 2, 3, 5, 1, 2, 3}, want: []int32{8, 1, 2, 9}, match: 3}, // the longest
		{ids: []int32{1, 2, 8, 1, 2, 9, 1, 2}, want: []int32{9, 1, 2, 9}, match: 2},                // the latest
		{ids: []int32{5, 5, 5, 5, 5, 5, 5}, want: []int32{5, 5, 5, 5}, match: 5},                   // goes on with its period
		{ids: []int32{4, 5, 6, 4, 5, 6, 4}, want: []int32{5, 6, 4, 5}, match: 4},
	} {
		got, match := lookup(nil, c.ids, 4)
		if !slices.Equal(got, c.want) || match != c.match {
			t.Errorf("%v: %v by %d, want %v by %d", c.ids, got, match, c.want, c.match)
		}
	}
	far := make([]int32, draftReach+100)
	for i := range far {
		far[i] = int32(i)
	}
	far = append(far, 3, 4)
	if got, _ := lookup(nil, far, 4); len(got) > 0 {
		t.Errorf("looked back further than allowed: %v", got)
	}
}

// Guesses are computed as long as they bring more tokens for their time.
func TestGuessesThatPay(t *testing.T) {
	seqs := func(n int, hits, tries float64) *Scheduler {
		s, err := NewScheduler(Limits{Blocks: 1000, MaxContext: 1000, MaxSeqs: 32, MaxTokens: 64, MaxLogits: 64, MaxQueue: 9})
		if err != nil {
			t.Fatal(err)
		}
		for range n {
			q := &Sequence{Tokens: []int32{1, 2, 3, 1, 2, 3, 1, 2}, MaxNew: 90}
			if err := s.Submit(q); err != nil {
				t.Fatal(err)
			}
			for i := range q.guesses.hits {
				q.guesses.hits[i], q.guesses.tries[i] = hits, tries
			}
		}
		for s.Running() < n || !s.running[n-1].decoding() {
			st := s.Next()
			outs := make([]Outcome, st.Samples)
			for i := range outs {
				outs[i].Token = 3
			}
			s.Apply(outs)
		}
		return s
	}
	line := func(fixed, perRow float64) func(int) float64 {
		return func(rows int) float64 { return fixed + perRow*float64(rows) }
	}
	for name, c := range map[string]struct {
		s        *Scheduler
		price    func(int) float64
		min, max int
	}{
		"memory-bound, sure":   {seqs(1, 50, 50), line(10, 0.1), draftMost, draftMost},
		"memory-bound, unsure": {seqs(1, 10, 50), line(10, 0.1), 1, 3},
		"memory-bound, wrong":  {seqs(1, 0, 200), line(10, 0.1), 0, 0},
		"compute-bound":        {seqs(1, 50, 50), line(0, 1), 0, 0},
		"many, memory-bound":   {seqs(8, 50, 50), line(10, 0.1), 32, 56},
		"many, at their best":  {seqs(32, 50, 50), line(0, 1), 0, 0},
	} {
		sp := newSpeculator(false)
		sp.price = c.price
		sp.draft(c.s)
		n := 0
		for _, q := range c.s.running {
			n += q.guessed
		}
		if n < c.min || n > c.max {
			t.Errorf("%s: %d guesses, want %d to %d", name, n, c.min, c.max)
		}
		sp.off = true
		sp.draft(c.s)
		for _, q := range c.s.running {
			if q.guessed > 0 {
				t.Errorf("%s: guesses when off", name)
			}
		}
	}
}

// A guess counts when it is the token that was made, whether it was computed
// or not; those behind the first that is not do not count.
func TestGuessesAreCompared(t *testing.T) {
	for _, c := range []struct {
		draft, made []int32
		hits, tries float64
	}{
		{[]int32{5, 6, 7}, []int32{5, 6, 7}, 3, 3},
		{[]int32{5, 6, 7}, []int32{5, 9}, 1, 2},
		{[]int32{5, 6, 7}, []int32{5, 9, 7}, 1, 2},
		{[]int32{5, 6, 7}, []int32{8}, 0, 1},
		{[]int32{5, 6, 7}, []int32{5}, 1, 1}, // the others are not known
		{[]int32{5}, []int32{5, 6}, 1, 1},
		{nil, []int32{5}, 0, 0},
		{[]int32{5}, nil, 0, 0},
	} {
		q := &Sequence{Tokens: append([]int32{1, 2}, c.made...), draft: c.draft}
		q.guesses.match = 2
		q.learn(2)
		if h, n := q.guesses.hits[2], q.guesses.tries[2]; h != c.hits || n != c.tries {
			t.Errorf("guesses %v, then %v: %g of %g held, want %g of %g", c.draft, c.made, h, n, c.hits, c.tries)
		}
	}
}

// Where guesses do not hold they end by themselves; where they do they go on.
func TestGuessesEndWhereTheyDoNotHold(t *testing.T) {
	drafted := func(loops bool) uint64 {
		e, _ := openFake(t, fakeSetup{model: fakeModel{vocab: 5, loops: loops}}) // of so few tokens many repeat
		// At first, when a half is thought to hold, a guess pays; a fifth does not.
		e.spec.price = func(rows int) float64 { return 6 + 4*float64(rows) }
		if _, _, err := collect(t.Context(), e, greedy([]int32{1, 2, 3, 4, 0}, 400)); err != nil {
			t.Fatal(err)
		}
		return e.Stats().Drafted
	}
	if n := drafted(false); n == 0 || n > 60 {
		t.Errorf("%d guesses in 400 tokens of chance", n)
	}
	if n := drafted(true); n < 150 {
		t.Errorf("%d guesses in 400 tokens of a text that repeats", n)
	}
}

func TestStepCost(t *testing.T) {
	var c stepCost
	if a, b := c.at(1), c.at(2); b <= a || b > 1.2*a {
		t.Errorf("unknown: %g, %g", a, b)
	}
	for range 10 {
		c.observe(1, 0.020)
	}
	if b := c.at(2); b <= 0.020 || b > 0.022 {
		t.Errorf("one number of rows known: %g", b)
	}
	for i := range 100 {
		c.observe(1+i%5, 0.020+0.003*float64(i%5))
	}
	for rows := 1; rows < 12; rows++ {
		if got, want := c.at(rows), 0.017+0.003*float64(rows); got < 0.95*want || got > 1.05*want {
			t.Errorf("%d rows: %g, want %g", rows, got, want)
		}
	}
	for range 300 {
		c.observe(8, 0.001)
		c.observe(4, 0.002)
	}
	if c.at(1) <= 0 || c.at(30) <= 0 {
		t.Errorf("nonsense from nonsense: %g, %g", c.at(1), c.at(30))
	}
}

// free computes every guess there is, whatever the machine's speed.
func free(e *Engine) *Engine {
	e.spec.price = func(int) float64 { return 1 }
	return e
}

// The same tokens as without guesses, greedy and sampled, when many hold and
// many do not.
func TestSameTokensWithGuesses(t *testing.T) {
	for _, n := range []int{1, 7, 32} {
		for name, s := range map[string]fakeSetup{
			"plain":      {},
			"few blocks": {blocks: 14, context: 192},
			"no room":    {seqs: 3, tokens: 4},
			"two stages": {stages: 2, c: Config{NoPrefixCache: true}},
		} {
			t.Run(fmt.Sprintf("%d/%s", n, name), func(t *testing.T) {
				s.model.loops = true
				e, m := openFake(t, s)
				free(e)
				both := func() bool { s := e.Stats(); return s.Accepted > 0 && s.Drafted > s.Accepted }
				// Where there is little room there are few guesses, and all of two runs may hold.
				for i := 0; i < 2 || n > 1 && !both() && i < 50; i++ {
					runJobs(t, e, fakeJobs(m, n))
				}
				if s := e.Stats(); n > 1 && !both() {
					t.Errorf("%d guesses, %d held", s.Drafted, s.Accepted)
				}
			})
		}
	}
}

// A stop id among the guesses ends the sequence there, and so does the limit.
func TestGuessesEndWithTheSequence(t *testing.T) {
	e, m := openFake(t, fakeSetup{model: fakeModel{loops: true}})
	free(e)
	prompt := fakePrompt(20, 3)
	text := m.continuation(prompt, 200, nil)
	for n := 1; n < 120; n++ {
		ids, res, err := collect(t.Context(), e, greedy(prompt, n))
		if err != nil || !slices.Equal(ids, text[:n]) || res.Finish != FinishLength || res.Completion != n {
			t.Fatalf("%d tokens: %v %+v %v, want %v", n, ids, res, err, text[:n])
		}
	}
	plain, _ := openFake(t, fakeSetup{model: fakeModel{loops: true}, c: Config{NoSpeculation: true}})
	stopped := 0
	for at := range 50 {
		r := greedy(prompt, 150)
		r.Sampling.MinTokens, r.Sampling.StopIDs = at, []int32{text[at], text[at] + 1}
		want, wantEnd, err1 := collect(t.Context(), plain, r)
		got, end, err2 := collect(t.Context(), e, r)
		if err1 != nil || err2 != nil || !slices.Equal(got, want) || end.Finish != wantEnd.Finish || end.StopID != wantEnd.StopID {
			t.Fatalf("stop at %d: %v %+v %v, want %v %+v %v", at, got, end, err2, want, wantEnd, err1)
		}
		if end.Finish == FinishStop {
			stopped++
		}
	}
	if stopped == 0 || stopped == 50 {
		t.Errorf("%d of 50 ended with a stop id", stopped)
	}
	if s := e.Stats(); s.Accepted < 1000 {
		t.Errorf("only %d guesses held", s.Accepted)
	}
}

// On the embedded model, bit for bit, log-probabilities too.
func TestSameTokensWithGuessesOnTheTinyModel(t *testing.T) {
	jobs := tinyJobs(t, 32)
	for name, s := range map[string]setup{
		"together":   {PlanOptions: PlanOptions{MaxContext: 256, MaxSeqs: 32}},
		"few":        {PlanOptions: PlanOptions{MaxContext: 256, MaxSeqs: 3}},
		"few blocks": {PlanOptions: PlanOptions{MaxContext: 256, MaxSeqs: 8}, blocks: 20},
	} {
		t.Run(name, func(t *testing.T) {
			e := free(openEngine(t, s))
			runJobs(t, e, jobs)
			if s := e.Stats(); name == "together" && s.Accepted == 0 {
				t.Errorf("%d guesses, none held", s.Drafted)
			}
		})
	}
}
