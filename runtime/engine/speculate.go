package engine

// Speculation by prompt lookup (Saxena, "Prompt Lookup Decoding", 2023): what
// followed the last tokens where they stood before is guessed to follow again.
// The guesses are computed in one step with the token that is due, and those
// that the sampler would have chosen anyway are kept: tokens are the same as
// without, since a row's logits do not depend on the batch.
const (
	draftMost  = 8    // guesses of a sequence in a step
	draftReach = 8192 // tokens that are looked back
	matchLeast = 2    // tokens that must agree for a guess
	matchMost  = 5    // more are not better
)

// speculator decides how many guesses pay. It learns from every decoding step,
// also from those without guesses, and reads no clock itself.
type speculator struct {
	off   bool
	price func(rows int) float64 // time of a decode step, in any unit
	cost  stepCost
}

func newSpeculator(off bool) *speculator {
	s := &speculator{off: off}
	s.price = s.cost.at
	return s
}

// guesses is what one sequence's earlier guesses came to, by how many tokens
// had agreed: tries and hits, fading.
type guesses struct {
	match int // that the present draft was found with; 0: none
	tries [matchMost + 1]float64
	hits  [matchMost + 1]float64
}

// chance that the next guess holds, at first a half.
func (g *guesses) chance() float64 { return (g.hits[g.match] + 1) / (g.tries[g.match] + 2) }

// learn notes that the first hits guesses held and, unless all did, one did not.
func (g *guesses) learn(hits int, missed bool) {
	const fade = 0.9
	t, h := &g.tries[g.match], &g.hits[g.match]
	*t, *h = *t*fade+float64(hits), *h*fade+float64(hits)
	if missed {
		*t++
	}
}

// draft guesses for every sequence of a step in which all decode, and lets it
// compute as many as pay.
func (s *speculator) draft(sched *Scheduler) {
	running, spare := sched.running, sched.Spare()
	prefill := len(sched.waiting) > 0
	for _, q := range running {
		if q.inStep {
			continue // its guesses are being computed
		}
		q.draft, q.guessed = q.draft[:0], 0
		prefill = prefill || !q.decoding()
	}
	if lanes, _ := sched.lanes(); lanes > 1 || len(sched.open) > 0 {
		return // with so many sequences no device has time to spare
	}
	if s.off || prefill || len(running) == 0 {
		return
	}
	for _, q := range running {
		if !q.PromptRows {
			q.draft, q.guesses.match = lookup(q.draft, q.Tokens, draftMost)
		}
	}
	// One more guess at a time, where it is likeliest to hold, while it brings
	// more tokens for its time than the step does without.
	rows := len(running)
	tokens, now := float64(rows), s.price(rows)
	for ; spare > 0; spare-- {
		var best *Sequence
		most := 0.0
		for _, q := range running {
			if q.guessed < len(q.draft) && q.chanceOf(q.guessed) > most {
				best, most = q, q.chanceOf(q.guessed)
			}
		}
		next := s.price(rows + 1)
		if best == nil || most*now <= tokens*(next-now) {
			return
		}
		best.guessed++
		rows, tokens, now = rows+1, tokens+most, next
	}
}

// chanceOf is how likely the i-th guess is reached and holds.
func (q *Sequence) chanceOf(i int) float64 {
	p, c := 1.0, q.guesses.chance()
	for range i + 1 {
		p *= c
	}
	return p
}

// learn compares a sequence's guesses, computed or not, with what was sampled
// behind its n tokens.
func (q *Sequence) learn(n int) {
	if len(q.draft) == 0 || len(q.Tokens) <= n {
		return
	}
	hits, known := 0, min(len(q.Tokens)-n, len(q.draft))
	for hits < known && q.draft[hits] == q.Tokens[n+hits] {
		hits++
	}
	q.guesses.learn(hits, hits < known)
}

// lookup appends to dst up to most tokens that may follow ids, and says how
// many of the last ids had been found before; none when fewer than matchLeast.
// Of the longest matches the latest counts. A guess may run into itself: what
// repeats with a period is guessed to go on.
func lookup(dst, ids []int32, most int) ([]int32, int) {
	n := len(ids)
	at, match := 0, matchLeast-1
	if n <= matchLeast {
		return dst, 0
	}
	last := ids[n-1]
	for i := n - 1; i > max(0, n-draftReach) && match < matchMost; i-- {
		if ids[i-1] != last {
			continue
		}
		m := 1
		for m < matchMost && m < i && ids[i-1-m] == ids[n-1-m] {
			m++
		}
		if m > match {
			at, match = i, m
		}
	}
	if at == 0 {
		return dst, 0
	}
	for i := range most {
		if at+i < n {
			dst = append(dst, ids[at+i])
		} else {
			dst = append(dst, dst[at+i-n])
		}
	}
	return dst, match
}

// stepCost learns what a decode step of so many rows takes: a least squares
// line over the steps so far, older ones fading.
type stepCost struct{ n, x, y, xx, xy float64 }

func (c *stepCost) observe(rows int, seconds float64) {
	const fade = 0.98
	x := float64(rows)
	c.n, c.x, c.y, c.xx, c.xy = c.n*fade+1, c.x*fade+x, c.y*fade+seconds, c.xx*fade+x*x, c.xy*fade+x*seconds
}

// at is the time of a step of so many rows. While only one number of rows was
// seen, a further row is taken to add a sixteenth, so that guesses are tried.
func (c *stepCost) at(rows int) float64 {
	if c.n == 0 {
		return 1 + float64(rows)/16
	}
	mx, my := c.x/c.n, c.y/c.n
	slope := my / (16 + mx)
	if spread := c.xx/c.n - mx*mx; spread > 0.05 {
		// A slower step with fewer rows is noise.
		slope = max(0, (c.xy/c.n-mx*my)/spread)
	}
	return max(my+slope*(float64(rows)-mx), my/16)
}

// withDraft is the sequence's tokens and the first n guesses, in memory that
// the guesses may stay in: Scheduler made room for them.
func (q *Sequence) withDraft(n int) []int32 { return append(q.Tokens, q.draft[:n]...) }
