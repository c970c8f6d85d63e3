package api

import (
	"encoding/json/jsontext"

	"github.com/gin-gonic/gin"
)

// POST /v1/chat/completions

func (s *Server) chatCompletions(c *gin.Context) {
	s.generating(c, func(m *Model, f *fields) (*turn, dialect, error) {
		t, cv, err := decodeChat(f, m)
		if err != nil {
			return nil, nil, err
		}
		ids, opened, err := cv.tokenize(c.Request.Context(), m)
		if err != nil {
			return nil, nil, err
		}
		t.reasons, t.opened = m.Template.Caps(false).ThinkTags, opened
		p := prompt{ids: ids}
		if t.echo {
			p.echo = cv.last()
		}
		t.prompts = []prompt{p}
		return t, &chatDialect{t: t, m: m}, nil
	})
}

// noEffect are fields that are known and change nothing.
var noEffect = []string{
	"metadata", "user", "store", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention",
	"prompt_cache_options", "verbosity", "prediction", "cache_prompt", "timings_per_token",
}

func decodeChat(f *fields, m *Model) (*turn, *conversation, error) {
	t, err := newTurn(f, m, "chatcmpl-", "messages")
	if err != nil {
		return nil, nil, err
	}
	cv := readConversation(f, m)
	readMaxTokens(f, t, 1, "max_completion_tokens", "max_tokens", "n_predict")
	readSampling(f, m, t)
	t.bestOf = t.n
	t.sampling.Logprobs = -1
	if f.boolean("logprobs", false) {
		t.sampling.Logprobs = 0
	}
	if n, ok := f.integer("top_logprobs", 0, maxTop); ok && n > 0 {
		if !t.logprobs() {
			f.bad("top_logprobs", "it needs logprobs: true")
		}
		t.sampling.Logprobs = int(n)
	}
	// Only an answer that continues a message has a text of its own to echo.
	t.echo = f.boolean("echo", false) && cv.continues
	t.hideReasoning = !f.boolean("include_reasoning", true)
	readTools(f)
	refuseConstraints(f)
	if f.has("suffix") {
		f.bad("suffix", "a conversation has none; leave it out")
	}
	f.ignore(noEffect...)
	return t, cv, f.err()
}

// chatDialect writes chat completions.
type chatDialect struct {
	t     *turn
	m     *Model
	begun map[int]bool // choices whose role chunk is out
}

type chatCompletion struct {
	ID                string                    `json:"id"`
	Object            string                    `json:"object"`
	Created           int64                     `json:"created"`
	Model             string                    `json:"model"`
	Choices           []chatChoice              `json:"choices"`
	Usage             usageBody                 `json:"usage"`
	SystemFingerprint *string                   `json:"system_fingerprint"`
	PromptTokenIDs    []int32                   `json:"prompt_token_ids,omitzero"`
	PromptLogprobs    []map[int32]promptLogprob `json:"prompt_logprobs,omitzero"`
}

type chatChoice struct {
	Index        int           `json:"index"`
	Message      chatMessage   `json:"message"`
	Logprobs     *chatLogprobs `json:"logprobs"`
	FinishReason string        `json:"finish_reason"`
	TokenIDs     []int32       `json:"token_ids,omitzero"`
}

// Reasoning has two names: some clients know the one, some the other.
type chatMessage struct {
	Role             string  `json:"role"`
	Content          string  `json:"content"`
	Refusal          *string `json:"refusal"`
	ReasoningContent *string `json:"reasoning_content,omitzero"`
	Reasoning        *string `json:"reasoning,omitzero"`
}

type usageBody struct {
	PromptTokens     int           `json:"prompt_tokens"`
	CompletionTokens int           `json:"completion_tokens"`
	TotalTokens      int           `json:"total_tokens"`
	PromptDetails    promptDetails `json:"prompt_tokens_details"`
	Details          answerDetails `json:"completion_tokens_details"`
}

type promptDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

type answerDetails struct {
	ReasoningTokens int `json:"reasoning_tokens"`
}

func (u usage) body() usageBody {
	return usageBody{
		PromptTokens: u.prompt, CompletionTokens: u.completion, TotalTokens: u.prompt + u.completion,
		PromptDetails: promptDetails{u.cached}, Details: answerDetails{u.reasoning},
	}
}

func (d *chatDialect) whole(o outcome) any {
	t := d.t
	answer := chatCompletion{
		ID: t.id, Object: "chat.completion", Created: t.created.Unix(), Model: t.model, Choices: []chatChoice{},
		Usage: o.usage.body(), SystemFingerprint: orNull(d.m.Fingerprint),
	}
	for i, c := range o.choices {
		choice := chatChoice{
			Index: i, Message: chatMessage{Role: "assistant", Content: c.prefix + string(c.text)}, FinishReason: string(c.finish),
		}
		if reasoning := string(c.reason); reasoning != "" && !t.hideReasoning {
			choice.Message.ReasoningContent, choice.Message.Reasoning = &reasoning, &reasoning
		}
		if t.logprobs() {
			choice.Logprobs = newChatLogprobs(d.m.Tokenizer, c.tokens)
		}
		if t.returnIDs {
			choice.TokenIDs = tokenIDs(c.tokens)
		}
		answer.Choices = append(answer.Choices, choice)
	}
	if t.returnIDs {
		answer.PromptTokenIDs = t.prompts[0].ids
	}
	if t.promptLogprobs {
		answer.PromptLogprobs = newPromptLogprobs(d.m.Tokenizer, o.choices[0].plist)
	}
	return answer
}

func tokenIDs(tokens []token) []int32 {
	ids := make([]int32, len(tokens))
	for i, t := range tokens {
		ids[i] = t.id
	}
	return ids
}

type chatChunk struct {
	ID                string            `json:"id"`
	Object            string            `json:"object"`
	Created           int64             `json:"created"`
	Model             string            `json:"model"`
	SystemFingerprint *string           `json:"system_fingerprint"`
	Choices           []chatChunkChoice `json:"choices"`
	Usage             jsontext.Value    `json:"usage,omitzero"`
	PromptTokenIDs    []int32           `json:"prompt_token_ids,omitzero"`
}

type chatChunkChoice struct {
	Index        int           `json:"index"`
	Delta        chatDelta     `json:"delta"`
	Logprobs     *chatLogprobs `json:"logprobs"`
	FinishReason *string       `json:"finish_reason"`
	TokenIDs     []int32       `json:"token_ids,omitzero"`
}

type chatDelta struct {
	Role             string  `json:"role,omitzero"`
	Content          *string `json:"content,omitzero"`
	ReasoningContent *string `json:"reasoning_content,omitzero"`
	Reasoning        *string `json:"reasoning,omitzero"`
}

func (d *chatDialect) chunk(w *eventWriter, u usage, choices ...chatChunkChoice) error {
	usage, err := chunkUsage(d.t, u)
	if err != nil {
		return err
	}
	chunk := chatChunk{
		ID: d.t.id, Object: "chat.completion.chunk", Created: d.t.created.Unix(), Model: d.t.model,
		SystemFingerprint: orNull(d.m.Fingerprint), Choices: choices, Usage: usage,
	}
	if d.t.returnIDs && len(choices) == 1 && choices[0].Delta.Role != "" {
		chunk.PromptTokenIDs = d.t.prompts[0].ids
	}
	return w.data(chunk)
}

// chunkUsage is the usage member of a chunk that is not the last: null where
// the last has one, so that clients which want the member find it.
func chunkUsage(t *turn, u usage) (jsontext.Value, error) {
	switch {
	case t.continuousUsage:
		return marshal(u.body())
	case t.includeUsage:
		return jsontext.Value("null"), nil
	}
	return nil, nil
}

func (d *chatDialect) stream(w *eventWriter, dl delta) error {
	if d.begun == nil {
		d.begun = map[int]bool{}
	}
	if !d.begun[dl.choice] {
		d.begun[dl.choice] = true
		empty := ""
		if err := d.chunk(w, usage{prompt: dl.usage.prompt}, chatChunkChoice{
			Index: dl.choice, Delta: chatDelta{Role: "assistant", Content: &empty},
		}); err != nil {
			return err
		}
	}
	if dl.reasoning != "" && !d.t.hideReasoning {
		if err := d.chunk(w, dl.usage, chatChunkChoice{
			Index: dl.choice, Delta: chatDelta{ReasoningContent: &dl.reasoning, Reasoning: &dl.reasoning},
		}); err != nil {
			return err
		}
	}
	if text := dl.prefix + dl.text; text != "" || len(dl.tokens) > 0 {
		c := chatChunkChoice{Index: dl.choice, Delta: chatDelta{Content: &text}}
		if d.t.logprobs() {
			c.Logprobs = newChatLogprobs(d.m.Tokenizer, dl.tokens)
		}
		if d.t.returnIDs {
			c.TokenIDs = tokenIDs(dl.tokens)
		}
		if err := d.chunk(w, dl.usage, c); err != nil {
			return err
		}
	}
	if dl.done {
		finish := string(dl.finish)
		return d.chunk(w, dl.usage, chatChunkChoice{Index: dl.choice, FinishReason: &finish})
	}
	return nil
}

func (d *chatDialect) end(w *eventWriter, u usage) error {
	if d.t.includeUsage {
		b, err := marshal(u.body())
		if err != nil {
			return err
		}
		if err := w.data(chatChunk{
			ID: d.t.id, Object: "chat.completion.chunk", Created: d.t.created.Unix(), Model: d.t.model,
			SystemFingerprint: orNull(d.m.Fingerprint), Choices: []chatChunkChoice{}, Usage: b,
		}); err != nil {
			return err
		}
	}
	w.raw([]byte("[DONE]"))
	return nil
}

func (d *chatDialect) fail(w *eventWriter, e *apiError) error { return w.data(e.openAI()) }
