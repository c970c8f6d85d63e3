package api

import (
	"encoding/json/jsontext"
	"strconv"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"infer/runtime/engine"
)

// POST /v1/completions

// defaultCompletionTokens is OpenAI's max_tokens for a request without one.
const defaultCompletionTokens = 16

func (s *Server) completions(c *gin.Context) {
	s.generating(c, func(m *Model, f *fields) (*turn, dialect, error) {
		t, err := decodeCompletion(f, m)
		if err != nil {
			return nil, nil, err
		}
		return t, &textDialect{t: t, m: m}, nil
	})
}

func decodeCompletion(f *fields, m *Model) (*turn, error) {
	t, err := newTurn(f, m, "cmpl-", "prompt")
	if err != nil {
		return nil, err
	}
	t.echo = f.boolean("echo", false)
	least := int64(1)
	if t.echo {
		least = 0 // only the prompt is wanted, with its log-probabilities
	}
	readMaxTokens(f, t, least, "max_tokens", "max_completion_tokens", "n_predict")
	if !t.maxAsked {
		t.maxAsked, t.sampling.MaxTokens = true, defaultCompletionTokens
		// The default is no wish of the client's: a minimum may lift it.
		if n, ok := f.integer("min_tokens", 0, 1<<31-1); ok {
			t.sampling.MaxTokens = max(t.sampling.MaxTokens, int(n))
		}
	}
	readSampling(f, m, t)
	t.sampling.Logprobs = -1
	if n, ok := f.integer("logprobs", 0, maxTop); ok {
		t.sampling.Logprobs = int(n)
		if t.echo && !t.promptLogprobs {
			t.sampling.PromptLogprobs = int(n)
		}
	}
	t.bestOf = t.n
	if n, ok := f.integer("best_of", 1, maxN); ok {
		t.bestOf = int(n)
		switch {
		case t.bestOf < t.n:
			f.bad("best_of", "%d is less than n, which is %d", t.bestOf, t.n)
		case t.bestOf > t.n && t.stream:
			f.bad("best_of", "with stream it cannot be more than n: the best is known at the end only")
		}
	}
	if suffix, ok := f.str("suffix"); ok && suffix != "" {
		f.bad("suffix", "this model does not fill in text before a suffix; leave it out")
	}
	if f.has("prompt_embeds") {
		f.bad("prompt_embeds", "this server takes text or token ids only")
	}
	refuseConstraints(f)
	f.ignore(noEffect...)
	if err := f.err(); err != nil {
		return nil, err
	}
	t.prompts = readPrompts(f, m, t)
	return t, f.err()
}

// readPrompts reads a string, a list of ids, or a list of either.
func readPrompts(f *fields, m *Model, t *turn) []prompt {
	special := f.boolean("add_special_tokens", true)
	v := f.get("prompt")
	switch v.kind {
	case 0:
		f.bad("prompt", "it is required: a string, token ids, or a list of either")
		return nil
	case jsontext.KindString:
		return []prompt{textPrompt(f, m, t, v.text, special)}
	case jsontext.KindBeginArray:
	default:
		f.wrongType("prompt", v, "a string or an array")
		return nil
	}
	list := v.list()
	if len(list) == 0 {
		f.bad("prompt", "the list is empty")
		return nil
	}
	if list[0].kind == jsontext.KindNumber {
		list = []value{v} // one prompt, given as ids
	}
	if len(list)*t.bestOf > maxPrompts {
		f.bad("prompt", "%d prompts with %d choices each; at most %d sequences are made for one request", len(list), t.bestOf, maxPrompts)
		return nil
	}
	prompts := make([]prompt, 0, len(list))
	for i, v := range list {
		switch v.kind {
		case jsontext.KindString:
			prompts = append(prompts, textPrompt(f, m, t, v.text, special))
		case jsontext.KindBeginArray:
			ids, err := idList(v.list(), f.at("prompt"), m.Vocab)
			if err != nil {
				f.fail(err)
				return nil
			}
			text := ""
			if t.echo || t.logprobs() {
				text = m.Tokenizer.Decode(ids, !t.keepSpecial)
			}
			prompts = append(prompts, newPrompt(t, ids, text))
		default:
			f.bad("prompt", "entry %s: a string or an array of token ids is wanted, not %s", strconv.Itoa(i), v.kindName())
			return nil
		}
	}
	return prompts
}

func textPrompt(f *fields, m *Model, t *turn, text string, special bool) prompt {
	m.needText(f, "prompt")
	return newPrompt(t, m.Tokenizer.Encode(text, special), text)
}

func newPrompt(t *turn, ids []int32, text string) prompt {
	p := prompt{ids: ids}
	if t.logprobs() {
		p.chars = utf8.RuneCountInString(text)
	}
	if t.echo {
		p.echo = text
	}
	return p
}

// textDialect writes text completions.
type textDialect struct {
	t     *turn
	m     *Model
	begun map[int]bool
}

type textCompletion struct {
	ID                string         `json:"id"`
	Object            string         `json:"object"`
	Created           int64          `json:"created"`
	Model             string         `json:"model"`
	Choices           []textChoice   `json:"choices"`
	Usage             jsontext.Value `json:"usage,omitzero"`
	SystemFingerprint *string        `json:"system_fingerprint"`
}

type textChoice struct {
	Index          int                       `json:"index"`
	Text           string                    `json:"text"`
	Logprobs       *textLogprobs             `json:"logprobs"`
	FinishReason   *string                   `json:"finish_reason"`
	TokenIDs       []int32                   `json:"token_ids,omitzero"`
	PromptTokenIDs []int32                   `json:"prompt_token_ids,omitzero"`
	PromptLogprobs []map[int32]promptLogprob `json:"prompt_logprobs,omitzero"`
}

func (d *textDialect) answer(choices ...textChoice) textCompletion {
	return textCompletion{
		ID: d.t.id, Object: "text_completion", Created: d.t.created.Unix(), Model: d.t.model,
		Choices: choices, SystemFingerprint: orNull(d.m.Fingerprint),
	}
}

func (d *textDialect) whole(o outcome) any {
	a := d.answer()
	a.Choices = make([]textChoice, len(o.choices))
	for i, c := range o.choices {
		finish := string(c.finish)
		p := d.t.prompts[c.prompt]
		choice := textChoice{Index: i, Text: c.prefix + string(c.text), FinishReason: &finish}
		if d.t.logprobs() {
			choice.Logprobs = newTextLogprobs()
			if d.t.echo {
				d.addPrompt(choice.Logprobs, p, c.plist)
			}
			d.addTokens(choice.Logprobs, p, c.tokens)
		}
		if d.t.returnIDs {
			choice.TokenIDs, choice.PromptTokenIDs = tokenIDs(c.tokens), p.ids
		}
		if d.t.promptLogprobs {
			choice.PromptLogprobs = newPromptLogprobs(d.m.Tokenizer, c.plist)
		}
		a.Choices[i] = choice
	}
	a.Usage, _ = marshal(o.usage.body()) // plain integers: cannot fail
	return a
}

// addPrompt adds the prompt's own tokens.
func (d *textDialect) addPrompt(l *textLogprobs, p prompt, list []engine.Logprob) {
	offsets := promptOffsets(d.m.Tokenizer, p.ids, p.echo)
	for i, id := range p.ids {
		var lp *engine.Logprob
		if i < len(list) && list[i].Rank > 0 {
			lp = &list[i]
		}
		l.add(d.m.Tokenizer, id, lp, offsets[i])
	}
}

func (d *textDialect) addTokens(l *textLogprobs, p prompt, tokens []token) {
	for _, t := range tokens {
		if t.logprob != nil {
			l.add(d.m.Tokenizer, t.id, t.logprob, p.chars+t.chars)
		}
	}
}

func (d *textDialect) stream(w *eventWriter, dl delta) error {
	if d.begun == nil {
		d.begun = map[int]bool{}
	}
	p := d.t.prompts[dl.choice/d.t.bestOf]
	text := dl.prefix + dl.text
	if text != "" || len(dl.tokens) > 0 || len(dl.prompt) > 0 {
		c := textChoice{Index: dl.choice, Text: text}
		if d.t.logprobs() {
			c.Logprobs = newTextLogprobs()
			if d.t.echo && len(dl.prompt) > 0 {
				d.addPrompt(c.Logprobs, p, dl.prompt)
			}
			d.addTokens(c.Logprobs, p, dl.tokens)
		}
		if d.t.returnIDs {
			c.TokenIDs = tokenIDs(dl.tokens)
			if !d.begun[dl.choice] {
				c.PromptTokenIDs = p.ids
			}
		}
		d.begun[dl.choice] = true
		if err := d.chunk(w, dl.usage, c); err != nil {
			return err
		}
	}
	if dl.done {
		finish := string(dl.finish)
		return d.chunk(w, dl.usage, textChoice{Index: dl.choice, FinishReason: &finish})
	}
	return nil
}

func (d *textDialect) chunk(w *eventWriter, u usage, c textChoice) error {
	a := d.answer(c)
	var err error
	if a.Usage, err = chunkUsage(d.t, u); err != nil {
		return err
	}
	return w.data(a)
}

func (d *textDialect) end(w *eventWriter, u usage) error {
	if d.t.includeUsage {
		a := d.answer()
		a.Choices = []textChoice{}
		var err error
		if a.Usage, err = marshal(u.body()); err != nil {
			return err
		}
		if err := w.data(a); err != nil {
			return err
		}
	}
	w.raw([]byte("[DONE]"))
	return nil
}

func (d *textDialect) fail(w *eventWriter, e *apiError) error { return w.data(e.openAI()) }
