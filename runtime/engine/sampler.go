package engine

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// errNoToken: every token was forbidden. errBadLogits: the model's output is
// not numbers, which no request can cause.
var (
	errNoToken   = errors.New("allowed tokens, bad words, logit bias, penalties and min_tokens together leave no token to choose")
	errBadLogits = errors.New("the logits hold NaN or +Inf: the weights may be damaged")
)

// sampler chooses one sequence's tokens. The order of what changes logits is
// vLLM's: allowed ids, bad words, min_tokens, bias, penalties; then what draw
// does. A choice depends on the row, the sequence and its position alone.
type sampler struct {
	s     Sampling
	seed  uint64
	stops []int32 // ids that end the sequence
	bias  []TokenLogprob
	seen  *tokenCounts // nil without penalties
}

// newSampler for a checked request; own are the model's stop ids.
func newSampler(r *Request, seed uint64, own []int32) *sampler {
	s := &sampler{s: r.Sampling, seed: seed}
	s.stops = slices.Clone(r.Sampling.StopIDs)
	if !r.Sampling.IgnoreEOS {
		s.stops = append(s.stops, own...)
	}
	for id, b := range r.Sampling.LogitBias {
		s.bias = append(s.bias, TokenLogprob{ID: id, Logprob: b})
	}
	slices.SortFunc(s.bias, func(a, b TokenLogprob) int { return cmp.Compare(a.ID, b.ID) })
	if repeats := s.repetition() != 1; repeats || s.s.Presence != 0 || s.s.Frequency != 0 {
		s.seen = newTokenCounts()
		if repeats {
			for _, id := range r.Prompt {
				s.seen.add(id, 0)
			}
		}
	}
	return s
}

func (s *sampler) repetition() float64 {
	if s.s.Repetition == 0 {
		return 1
	}
	return s.s.Repetition
}

// changes tells whether the logits of the next token are altered when the
// sequence has generated n.
func (s *sampler) changes(n int) bool {
	return s.seen != nil || len(s.bias) > 0 || s.s.Allowed != nil || len(s.s.BadWords) > 0 || n < s.s.MinTokens && len(s.stops) > 0
}

// plain tells whether the next choice is the largest logit and nothing else is
// asked, so that the row is not needed on the host.
func (s *sampler) plain(n int) bool {
	return s.s.Temperature == 0 && s.s.Logprobs < 0 && !s.changes(n)
}

// choose picks the token behind ids (prompt, then output from position prompt
// on) from its row of logits, which it leaves as it is.
func (s *sampler) choose(c *candidates, row []float32, ids []int32, prompt int) (int32, error) {
	m, at, ok := maximum(row)
	if !ok {
		return 0, errBadLogits
	}
	if n := len(ids) - prompt; s.changes(n) {
		row = s.change(c, row, ids, n)
		m, at, ok = maximum(row)
		if !ok { // driven to +Inf, or to NaN from there
			return 0, errNoToken
		}
	}
	switch {
	case at < 0:
		return 0, errNoToken
	case s.s.Temperature == 0:
		return int32(at), nil
	}
	return c.draw(row, m, &s.s, uniform(s.seed, len(ids))), nil
}

// change returns an altered copy of row, in c.
func (s *sampler) change(c *candidates, row []float32, ids []int32, n int) []float32 {
	never := float32(math.Inf(-1))
	if cap(c.row) < len(row) {
		c.row = make([]float32, len(row))
	}
	x := c.row[:len(row)]
	if s.s.Allowed == nil {
		copy(x, row)
	} else {
		for i := range x {
			x[i] = never
		}
		for _, id := range s.s.Allowed {
			x[id] = row[id]
		}
	}
	for _, word := range s.s.BadWords {
		head := word[:len(word)-1]
		if len(ids) >= len(head) && slices.Equal(ids[len(ids)-len(head):], head) {
			x[word[len(head)]] = never
		}
	}
	if n < s.s.MinTokens {
		for _, id := range s.stops {
			x[id] = never
		}
	}
	for _, b := range s.bias {
		x[b.ID] += b.Logprob
	}
	if s.seen != nil {
		rep, freq, pres := float32(s.repetition()), s.s.Frequency, s.s.Presence
		for i, id := range s.seen.ids {
			v := x[id]
			if v > 0 {
				v /= rep
			} else {
				v *= rep
			}
			if k := s.seen.output[i]; k > 0 {
				v = float32(float64(v) - freq*float64(k) - pres)
			}
			x[id] = v
		}
	}
	return x
}

// accept notes that id was chosen, and tells whether it ends the sequence.
func (s *sampler) accept(id int32) (stop bool) {
	if s.seen != nil {
		s.seen.add(id, 1)
	}
	return slices.Contains(s.stops, id)
}

// tokenCounts has the distinct ids of a sequence in order of appearance, and
// how often each was generated.
type tokenCounts struct {
	ids    []int32
	output []int32
	index  map[int32]int32
}

func newTokenCounts() *tokenCounts { return &tokenCounts{index: make(map[int32]int32)} }

func (t *tokenCounts) add(id, output int32) {
	i, ok := t.index[id]
	if !ok {
		i = int32(len(t.ids))
		t.index[id] = i
		t.ids = append(t.ids, id)
		t.output = append(t.output, 0)
	}
	t.output[i] += output
}

// check validates a request against the vocabulary; its errors are ErrInvalid
// and name the field.
func (r *Request) check(vocab int) error {
	s := &r.Sampling
	bad := func(field, format string, args ...any) error {
		return fmt.Errorf("%w: %s: %s", ErrInvalid, field, fmt.Sprintf(format, args...))
	}
	within := func(field string, v, lo, hi float64) error {
		if !(v >= lo && v <= hi) {
			return bad(field, "%g is not in %g to %g", v, lo, hi)
		}
		return nil
	}
	ids := func(field string, list []int32) error {
		for i, id := range list {
			if id < 0 || int(id) >= vocab {
				return bad(field, "id %d at index %d is not in the vocabulary of %d", id, i, vocab)
			}
		}
		return nil
	}
	const large = math.MaxFloat32
	if len(r.Prompt) == 0 {
		return bad("prompt", "no tokens")
	}
	if s.MaxTokens < 0 || s.MinTokens < 0 || s.TopK < 0 {
		return bad("max_tokens, min_tokens, top_k", "%d, %d, %d: must not be negative", s.MaxTokens, s.MinTokens, s.TopK)
	}
	if s.MaxTokens > 0 && s.MinTokens > s.MaxTokens {
		return bad("min_tokens", "%d is more than max_tokens %d", s.MinTokens, s.MaxTokens)
	}
	if s.Allowed != nil && len(s.Allowed) == 0 {
		return bad("allowed token ids", "none")
	}
	if s.Logprobs < -1 || s.PromptLogprobs < -1 || s.Logprobs > vocab || s.PromptLogprobs > vocab {
		return bad("logprobs", "%d, for the prompt %d: must be −1 to %d", s.Logprobs, s.PromptLogprobs, vocab)
	}
	err := errors.Join(
		ids("prompt", r.Prompt), ids("allowed token ids", s.Allowed), ids("stop token ids", s.StopIDs),
		within("temperature", s.Temperature, 0, large), within("top_p", s.TopP, 0, 1), within("min_p", s.MinP, 0, 1),
		within("repetition_penalty", s.Repetition, 0, large),
		within("presence_penalty", s.Presence, -large, large), within("frequency_penalty", s.Frequency, -large, large),
	)
	for i, w := range s.BadWords {
		if len(w) == 0 {
			err = errors.Join(err, bad("bad words", "word %d has no tokens", i))
		}
		err = errors.Join(err, ids("bad words", w))
	}
	for id, b := range s.LogitBias {
		err = errors.Join(err, ids("logit_bias", []int32{id}), within("logit_bias", float64(b), -large, large))
	}
	return err
}
