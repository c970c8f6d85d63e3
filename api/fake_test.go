package api

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"

	"infer/runtime/engine"
	"infer/runtime/tokenizer/chattemplate"
)

// script is what the fake engine yields (`gen` of a case).
type script struct {
	Pieces    []string    `json:"pieces"`
	PiecesB64 []string    `json:"pieces_b64"`
	End       string      `json:"end"`
	Usage     scriptUsage `json:"usage"`
	Logprobs  []scriptLP  `json:"logprobs"`
	Prompt    []scriptLP  `json:"prompt_logprobs"`
	Choices   []script    `json:"choices"`
}

type scriptUsage struct{ Prompt, Completion, Cached, Reasoning int }

type scriptLP struct {
	Token   string   `json:"token"`
	ID      int32    `json:"id"`
	Logprob any      `json:"logprob"`
	Top     [][2]any `json:"top"`
}

var errFake = errors.New("device gpu:0 was lost in step 3")

// fakeEngine is a Generator that follows a script.
type fakeEngine struct {
	tok    *fakeTokenizer
	script script
	full   bool      // the queue
	lists  [][]int32 // prompts of a batch, to find a sequence's place

	mu       sync.Mutex
	requests []engine.Request
}

func (e *fakeEngine) Generate(ctx context.Context, r engine.Request, emit func(engine.Event) error) (engine.Result, error) {
	e.mu.Lock()
	e.requests = append(e.requests, r)
	e.mu.Unlock()
	if e.full {
		return engine.Result{StopID: -1}, fmt.Errorf("submitting: %w", engine.ErrQueueFull)
	}
	g := e.script
	if len(g.Choices) > 0 {
		place := r.Choice
		for i, ids := range e.lists {
			if fmt.Sprint(ids) == fmt.Sprint(r.Prompt) {
				place = i
			}
		}
		g = g.Choices[place%len(g.Choices)]
	}
	result := engine.Result{
		StopID: -1, Prompt: g.Usage.Prompt, Completion: g.Usage.Completion, Cached: g.Usage.Cached, Seed: 1,
	}
	if len(g.Prompt) > 0 && r.Sampling.PromptLogprobs >= 0 {
		var list []engine.Logprob
		for i, lp := range g.Prompt {
			x := e.tok.logprob(lp)
			if i == 0 {
				x.Rank = 0
			}
			list = append(list, x)
		}
		if err := emit(engine.Event{Prompt: list}); err != nil {
			return result, fmt.Errorf("emitting: %w", err)
		}
	}
	pieces := make([][]byte, 0, len(g.Pieces))
	for _, p := range g.Pieces {
		pieces = append(pieces, []byte(p))
	}
	for _, p := range g.PiecesB64 {
		b, err := base64.StdEncoding.DecodeString(p)
		if err != nil {
			return result, err
		}
		pieces = append(pieces, b)
	}
	for i, p := range pieces {
		ev := engine.Event{HasToken: true, Token: int32(1000 + i), Bytes: p}
		if i < len(g.Logprobs) {
			ev.Token = g.Logprobs[i].ID
			if r.Sampling.Logprobs >= 0 {
				lp := e.tok.logprob(g.Logprobs[i])
				lp.Top = lp.Top[:min(len(lp.Top), r.Sampling.Logprobs)]
				ev.Logprob = &lp
			}
		}
		if err := ctx.Err(); err != nil {
			return result, err
		}
		if err := emit(ev); err != nil {
			return result, fmt.Errorf("emitting: %w", err)
		}
	}
	switch g.End {
	case "error":
		return result, errFake
	case "length":
		result.Finish = engine.FinishLength
	default:
		result.Finish = engine.FinishStop
	}
	return result, nil
}

// fakeTokenizer has one token a byte, and tokens that a script names.
type fakeTokenizer struct {
	mu     sync.Mutex
	count  int // when > 0: what every text counts as
	prompt []int32
	bytes  map[int32]string
	ids    map[string]int32
}

const fakeVocab = 2000

func newFakeTokenizer() *fakeTokenizer {
	return &fakeTokenizer{bytes: map[int32]string{}, ids: map[string]int32{}}
}

func (t *fakeTokenizer) name(id int32, text string) int32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old, ok := t.ids[text]; ok && id < 0 {
		return old
	}
	if id < 0 {
		id = int32(1500 + len(t.ids))
	}
	t.bytes[id], t.ids[text] = text, id
	return id
}

func (t *fakeTokenizer) logprob(lp scriptLP) engine.Logprob {
	out := engine.Logprob{ID: t.name(lp.ID, lp.Token), Logprob: float32(floatOf(lp.Logprob)), Rank: 1}
	for _, top := range lp.Top {
		out.Top = append(out.Top, engine.TokenLogprob{ID: t.name(-1, top[0].(string)), Logprob: float32(floatOf(top[1]))})
	}
	return out
}

func floatOf(v any) float64 {
	switch v := v.(type) {
	case json.Number:
		f, _ := v.Float64()
		return f
	case float64:
		return v
	case string:
		if v == "-inf" {
			return math.Inf(-1)
		}
	}
	return 0
}

func (t *fakeTokenizer) Encode(text string, _ bool) []int32 {
	if t.prompt != nil {
		return t.prompt
	}
	if t.count > 0 {
		return make([]int32, t.count)
	}
	ids := make([]int32, len(text))
	for i := range len(text) {
		ids[i] = int32(text[i])
	}
	return ids
}

func (t *fakeTokenizer) EncodePlain(text string, special bool) []int32 {
	return t.Encode(text, special)
}

func (t *fakeTokenizer) Decode(ids []int32, _ bool) string {
	var b strings.Builder
	for _, id := range ids {
		b.Write(t.TokenBytes(id))
	}
	return b.String()
}

func (t *fakeTokenizer) VocabSize() int { return fakeVocab }

func (t *fakeTokenizer) Token(id int32) (string, bool) { return string(t.TokenBytes(id)), true }

func (t *fakeTokenizer) TokenBytes(id int32) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s, ok := t.bytes[id]; ok {
		return []byte(s)
	}
	if id >= 0 && id < 256 {
		return []byte{byte(id)}
	}
	return fmt.Appendf(nil, "<%d>", id)
}

// recorder is a Template that keeps what it was given.
type recorder struct {
	systemFirst bool
	think       string // of a case's model

	mu   sync.Mutex
	vars any
}

func (r *recorder) Caps(bool) chattemplate.Caps {
	return chattemplate.Caps{System: true, SystemLater: !r.systemFirst, Tools: true, ToolCalls: true, ThinkTags: r.think == "tags" || r.think == "open"}
}

func (r *recorder) RenderContinue(ctx context.Context, vars *chattemplate.Dict) (string, error) {
	text, err := r.Render(ctx, vars)
	return strings.TrimSuffix(text, "</assistant>"), err
}

func (r *recorder) Render(_ context.Context, vars *chattemplate.Dict) (string, error) {
	v := plainValue(vars)
	r.mu.Lock()
	r.vars = v
	r.mu.Unlock()
	var b strings.Builder
	messages, _ := follow(v, "messages").([]any)
	for i, m := range messages {
		role, _ := follow(m, "role").(string)
		content, _ := follow(m, "content").(string)
		if role == "system" && i > 0 && r.systemFirst {
			return "", errors.New("System message must be at the beginning.")
		}
		fmt.Fprintf(&b, "<%s>%s</%s>", role, content, role)
	}
	if follow(v, "add_generation_prompt") == true {
		b.WriteString("<assistant>")
		if r.think == "open" {
			b.WriteString("<think>\n")
		}
	}
	return b.String(), nil
}

// plainValue is a template's variable as assertions read it.
func plainValue(v chattemplate.Value) any {
	switch v := v.(type) {
	case *chattemplate.Dict:
		m := map[string]any{}
		for _, k := range v.Keys() {
			x, _ := v.Get(k)
			m[k] = plainValue(x)
		}
		return m
	case *chattemplate.List:
		list := []any{}
		for _, x := range v.Items {
			list = append(list, plainValue(x))
		}
		return list
	case int64, float64:
		return json.Number(fmt.Sprint(v))
	}
	return v
}
