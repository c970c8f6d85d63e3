package api

import (
	"crypto/rand"
	"encoding/hex"
	"time"

	"infer/runtime/engine"
)

// turn is what a request asks for, whatever dialect it was written in: prompts
// and how to go on from them. A route decodes its body into a turn; what
// generates and measures knows turns only.
type turn struct {
	id      string
	created time.Time
	model   string // the name to echo
	param   string // the field that holds the prompt: "messages" or "prompt"

	prompts []prompt
	n       int // choices returned for each prompt
	bestOf  int // choices generated for each prompt, ≥ n; the likeliest n are returned

	sampling    engine.Sampling
	maxAsked    bool // the client set sampling.MaxTokens
	includeStop bool // the stop string is part of the text
	keepSpecial bool
	priority    int
	salt        string
	truncate    int // keep only the prompt's last tokens; 0: all, −1: what fits the context

	stream          bool
	includeUsage    bool // the stream ends with a usage chunk
	continuousUsage bool // every chunk has usage
	echo            bool // the text starts with the prompt's
	promptLogprobs  bool // asked for by name, not because of echo
	returnIDs       bool

	reasons       bool // reasoning in front of the answer is told apart from it
	opened        bool // the prompt opened the reasoning
	hideReasoning bool

	used usage // when all is generated, for the log
}

// prompt is one text to go on from.
type prompt struct {
	ids   []int32
	echo  string // what the answer starts with when it was asked to echo
	chars int    // the text's length in characters, when tokens are reported
}

// newTurn starts a turn from what all dialects share.
func newTurn(f *fields, m *Model, idPrefix, param string) (*turn, error) {
	name, err := m.checkName(f)
	if err != nil {
		return nil, err
	}
	return &turn{id: newID(idPrefix), created: time.Now(), model: name, param: param}, nil
}

// logprobs tells whether the answer's tokens are reported one by one.
func (t *turn) logprobs() bool { return t.sampling.Logprobs >= 0 }

// ranked tells whether more choices are made than returned.
func (t *turn) ranked() bool { return t.bestOf > t.n }

// fit checks the prompts against the context and sets MaxTokens to what is
// left where more was asked for. Every prompt of a request gets the same
// limit, so that it does not depend on its neighbours: each is fitted alone.
func (t *turn) fit(context int) error {
	for i := range t.prompts {
		p := &t.prompts[i]
		switch {
		case t.truncate == -1:
			p.ids = p.ids[max(0, len(p.ids)-(context-1)):]
		case t.truncate > 0:
			p.ids = p.ids[max(0, len(p.ids)-t.truncate):]
		}
		if len(p.ids) == 0 {
			return badField(t.param, "the prompt has no token")
		}
		if len(p.ids) >= context {
			return errContextLength(t.param, len(p.ids), context)
		}
	}
	return nil
}

// request is the engine's request for one choice of one prompt.
func (t *turn) request(m *Model, p prompt, choice int, deadline time.Time) engine.Request {
	s := t.sampling
	if t.ranked() {
		s.Logprobs = max(s.Logprobs, 0)
	}
	clampTokens(&s, t.maxAsked, m.Defaults.MaxTokens, m.Context-len(p.ids))
	return engine.Request{
		Prompt: p.ids, Sampling: s, Choice: choice, KeepSpecial: t.keepSpecial,
		Priority: t.priority, Salt: t.salt, Deadline: deadline,
	}
}

// newID makes an id with the dialect's prefix.
func newID(prefix string) string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process itself
	return prefix + hex.EncodeToString(b[:])
}

// usage counts tokens.
type usage struct {
	prompt     int // with what the template adds and what was cached
	completion int // all generated, stop tokens included
	cached     int
	reasoning  int // of completion
}
