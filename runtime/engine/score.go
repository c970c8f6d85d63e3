package engine

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// ScoreOptions of Score.
type ScoreOptions struct {
	TopK       int  // the k largest logits of each position; 0: none
	LastLogits bool // all logits of the last position
	Deadline   time.Time
}

// ScorePosition is what the model made of one token of a text.
type ScorePosition struct {
	ID int32
	// Logprob is the natural-log probability of ID after the tokens before it;
	// 0 at position 0, which has none.
	Logprob float32
	// Top are the largest logits at this position, which are for the token
	// that follows: largest first, lower ids first among equals.
	Top []TokenLogit
}

// TokenLogit is a raw logit.
type TokenLogit struct {
	ID    int32
	Logit float32
}

// Score of a text.
type Score struct {
	Positions  []ScorePosition
	LastLogits []float32
}

// Score evaluates ids as they are, teacher-forced, beside whatever else runs:
// the same steps and devices as Generate, without sampling. The ids may fill
// the context. Errors are those of Generate.
func (e *Engine) Score(ctx context.Context, ids []int32, o ScoreOptions) (Score, error) {
	r := Request{Prompt: ids, Deadline: o.Deadline}
	r.Sampling.Logprobs, r.Sampling.PromptLogprobs = -1, -1
	if err := r.check(e.vocab); err != nil {
		return Score{}, err
	}
	if o.TopK < 0 || o.TopK > e.vocab {
		return Score{}, fmt.Errorf("%w: top-k: %d is not in 0 to %d", ErrInvalid, o.TopK, e.vocab)
	}
	t := e.newTask(&r)
	t.seq.MaxNew, t.seq.PromptRows = 0, true
	t.score = &scorer{o: o, s: Score{Positions: make([]ScorePosition, len(ids))}}
	if err := e.submit(t); err != nil {
		return Score{}, err
	}
	if err := e.follow(ctx, t, func(*news) error { return nil }); err != nil {
		return Score{}, err
	}
	return t.score.s, nil
}

// scorer collects a Score; the step loop writes it, the caller reads it after
// the end.
type scorer struct {
	o ScoreOptions
	s Score
}

// add takes the logits of position p.
func (c *scorer) add(ids []int32, p int, row []float32) error {
	m, at, ok := maximum(row)
	if !ok || at < 0 {
		return errBadLogits
	}
	at1 := &c.s.Positions[p]
	at1.ID = ids[p]
	for _, id := range topN(row, c.o.TopK) {
		at1.Top = append(at1.Top, TokenLogit{ID: id, Logit: row[id]})
	}
	if p+1 < len(ids) {
		c.s.Positions[p+1].Logprob = float32(float64(row[ids[p+1]]) - logSumExp(row, m))
	} else if c.o.LastLogits {
		c.s.LastLogits = slices.Clone(row)
	}
	return nil
}
