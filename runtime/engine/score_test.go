package engine

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
)

func TestLogprobs(t *testing.T) {
	e, m := openFake(t, fakeSetup{tokens: 32, seqs: 2})
	prompt := fakePrompt(40, 4)
	r := greedy(prompt, 6)
	r.Sampling.Logprobs, r.Sampling.PromptLogprobs = 3, 2
	for range 2 { // the second finds the prompt in the cache, and must not use it
		var events []Event
		res, err := e.Generate(t.Context(), r, func(ev Event) error { events = append(events, ev); return nil })
		if err != nil || len(events) != 7 || events[0].HasToken || len(events[0].Prompt) != 40 || res.Cached != 0 {
			t.Fatalf("%v, %d events, %+v", err, len(events), res)
		}
		for p, lp := range events[0].Prompt {
			if lp.ID != prompt[p] {
				t.Errorf("prompt position %d: id %d, want %d", p, lp.ID, prompt[p])
			}
			if p == 0 {
				if lp.Rank != 0 || lp.Top != nil {
					t.Errorf("position 0 has no probability: %+v", lp)
				}
				continue
			}
			want := wantLogprob(m, prompt[:p], prompt[p], 2)
			if fmt.Sprint(lp) != fmt.Sprint(want) {
				t.Errorf("prompt position %d: %+v, want %+v", p, lp, want)
			}
		}
		out := m.continuation(prompt, 6, nil)
		for i, ev := range events[1:] {
			want := wantLogprob(m, slices.Concat(prompt, out[:i]), out[i], 3)
			if fmt.Sprint(*ev.Logprob) != fmt.Sprint(want) || want.Rank != 1 {
				t.Errorf("token %d: %+v, want %+v", i, *ev.Logprob, want)
			}
		}
	}
	r.Sampling.Logprobs, r.Sampling.PromptLogprobs = 0, -1
	_, err := e.Generate(t.Context(), r, func(ev Event) error {
		if ev.Logprob == nil || ev.Logprob.Top != nil || ev.Prompt != nil {
			t.Errorf("logprobs 0: %+v", ev)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	idle(t, e)
}

// wantLogprob computes without the engine.
func wantLogprob(m *fakeModel, context []int32, id int32, n int) Logprob {
	var row []float32
	m.continuation(context, 1, func(r []float32, _ int) int32 { row = slices.Clone(r); return 0 })
	lp, err := logprob(row, id, n)
	if err != nil {
		panic(err)
	}
	return lp
}

func TestScore(t *testing.T) {
	e, m := openFake(t, fakeSetup{context: 64, tokens: 32, seqs: 2})
	ids := fakePrompt(64, 8) // fills the context
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			s, err := e.Score(t.Context(), ids, ScoreOptions{TopK: 4, LastLogits: true})
			if err != nil || len(s.Positions) != 64 || len(s.LastLogits) != 50 {
				t.Errorf("%v, %d positions", err, len(s.Positions))
				return
			}
			for p, x := range s.Positions {
				if x.ID != ids[p] || len(x.Top) != 4 {
					t.Errorf("position %d: %+v", p, x)
				}
				if p == 0 {
					continue
				}
				want := wantLogprob(m, ids[:p], ids[p], 4)
				before := s.Positions[p-1].Top
				for i := range before {
					if before[i].ID != want.Top[i].ID {
						t.Errorf("position %d: top %v, want %v", p-1, before, want.Top)
					}
				}
				if x.Logprob != want.Logprob {
					t.Errorf("position %d: %g, want %g", p, x.Logprob, want.Logprob)
				}
			}
			if i := slices.Index(s.LastLogits, slices.Max(s.LastLogits)); s.Positions[63].Top[0] != (TokenLogit{int32(i), s.LastLogits[i]}) {
				t.Errorf("last logits and last top disagree")
			}
		})
	}
	wg.Wait()
	if _, err := e.Score(t.Context(), fakePrompt(65, 1), ScoreOptions{}); !errors.Is(err, ErrTooLong) {
		t.Errorf("65 of 64: %v", err)
	}
	if _, err := e.Score(t.Context(), ids, ScoreOptions{TopK: 51}); !errors.Is(err, ErrInvalid) {
		t.Errorf("top 51 of 50: %v", err)
	}
	if _, err := e.Score(t.Context(), nil, ScoreOptions{}); !errors.Is(err, ErrInvalid) {
		t.Errorf("nothing: %v", err)
	}
	idle(t, e)
}
