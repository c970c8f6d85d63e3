package api

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"infer/runtime/engine"
)

// minLogprob stands for −Inf and everything below, which JSON cannot hold.
const minLogprob = -9999.0

func finite(x float32) float64 {
	if v := float64(x); math.IsNaN(v) || v < minLogprob {
		return minLogprob
	}
	// The shortest double that is x as a float32: -0.1 stays -0.1.
	v, _ := strconv.ParseFloat(strconv.FormatFloat(float64(x), 'g', -1, 32), 64)
	return v + 0 // no negative zero
}

// tokenText is a token's text alone, with U+FFFD for what is no text.
func tokenText(tok Tokenizer, id int32) string {
	return strings.ToValidUTF8(string(tok.TokenBytes(id)), "\uFFFD")
}

// chatLogprobs is the logprobs object of a chat choice.
type chatLogprobs struct {
	Content []chatLogprob `json:"content"`
	Refusal *struct{}     `json:"refusal"`
}

type chatLogprob struct {
	Token       string           `json:"token"`
	Logprob     float64          `json:"logprob"`
	Bytes       []int            `json:"bytes"`
	TopLogprobs []chatTopLogprob `json:"top_logprobs"`
}

type chatTopLogprob struct {
	Token   string  `json:"token"`
	Logprob float64 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
}

func newChatLogprobs(tok Tokenizer, tokens []token) *chatLogprobs {
	out := &chatLogprobs{Content: []chatLogprob{}}
	for _, t := range tokens {
		if t.logprob == nil || t.stop {
			continue // the stop token is no part of the content
		}
		e := chatLogprob{
			Token: tokenText(tok, t.id), Logprob: finite(t.logprob.Logprob), Bytes: byteList(tok, t.id),
			TopLogprobs: []chatTopLogprob{},
		}
		for _, top := range t.logprob.Top {
			e.TopLogprobs = append(e.TopLogprobs, chatTopLogprob{
				Token: tokenText(tok, top.ID), Logprob: finite(top.Logprob), Bytes: byteList(tok, top.ID),
			})
		}
		out.Content = append(out.Content, e)
	}
	return out
}

// byteList is what OpenAI calls bytes: numbers, not base64.
func byteList(tok Tokenizer, id int32) []int {
	b := tok.TokenBytes(id)
	out := make([]int, len(b))
	for i, c := range b {
		out[i] = int(c)
	}
	return out
}

// textLogprobs is the logprobs object of a completions choice.
type textLogprobs struct {
	Tokens        []string             `json:"tokens"`
	TokenLogprobs []*float64           `json:"token_logprobs"`
	TopLogprobs   []map[string]float64 `json:"top_logprobs"`
	TextOffset    []int                `json:"text_offset"` // in characters, from the prompt's start
}

func newTextLogprobs() *textLogprobs {
	return &textLogprobs{Tokens: []string{}, TokenLogprobs: []*float64{}, TopLogprobs: []map[string]float64{}, TextOffset: []int{}}
}

// add appends one token; lp is nil for a prompt's first token, which nothing
// foretells. offset is where its text begins.
func (l *textLogprobs) add(tok Tokenizer, id int32, lp *engine.Logprob, offset int) {
	l.Tokens = append(l.Tokens, tokenText(tok, id))
	l.TextOffset = append(l.TextOffset, offset)
	if lp == nil {
		l.TokenLogprobs = append(l.TokenLogprobs, nil)
		l.TopLogprobs = append(l.TopLogprobs, nil)
		return
	}
	x := finite(lp.Logprob)
	l.TokenLogprobs = append(l.TokenLogprobs, &x)
	top := make(map[string]float64, len(lp.Top)+1)
	// The token itself is always among them. Tokens of equal text share a key:
	// the likeliest has it.
	top[tokenText(tok, id)] = x
	for _, t := range lp.Top {
		key, x := tokenText(tok, t.ID), finite(t.Logprob)
		if old, ok := top[key]; !ok || x > old {
			top[key] = x
		}
	}
	l.TopLogprobs = append(l.TopLogprobs, top)
}

// promptOffsets are the places of a prompt's tokens in its text, in
// characters. A token whose text is not there (one that the tokenizer added)
// lies where the next one begins.
func promptOffsets(tok Tokenizer, ids []int32, text string) []int {
	const resync = 64 // how far a token may lie behind the one before
	offsets := make([]int, len(ids))
	at, chars := 0, 0
	for i, id := range ids {
		b := string(tok.TokenBytes(id))
		rest := text[at:]
		if !strings.HasPrefix(rest, b) && at == 0 && strings.HasPrefix(b, " ") {
			b = b[1:] // the space that some tokenizers put before a text
		}
		skip := strings.Index(rest[:min(len(rest), len(b)+resync)], b)
		if b == "" || skip < 0 {
			offsets[i] = chars
			continue
		}
		chars += startedRunes(rest[:skip])
		offsets[i] = chars
		chars += startedRunes(rest[skip : skip+len(b)])
		at += skip + len(b)
	}
	return offsets
}

// startedRunes counts the characters that begin in s, which may be cut inside
// a character at both ends.
func startedRunes(s string) int {
	n := 0
	for i := range len(s) {
		if utf8.RuneStart(s[i]) {
			n++
		}
	}
	return n
}

// promptLogprob is one alternative in vLLM's prompt_logprobs.
type promptLogprob struct {
	Logprob float64 `json:"logprob"`
	Rank    int     `json:"rank"`
	Decoded string  `json:"decoded_token"`
}

// newPromptLogprobs is one map of alternatives by id for each prompt token,
// null for the first.
func newPromptLogprobs(tok Tokenizer, list []engine.Logprob) []map[int32]promptLogprob {
	out := make([]map[int32]promptLogprob, len(list))
	for i, lp := range list {
		if lp.Rank == 0 {
			continue
		}
		m := make(map[int32]promptLogprob, len(lp.Top)+1)
		for k, t := range lp.Top {
			m[t.ID] = promptLogprob{finite(t.Logprob), k + 1, tokenText(tok, t.ID)}
		}
		m[lp.ID] = promptLogprob{finite(lp.Logprob), lp.Rank, tokenText(tok, lp.ID)}
		out[i] = m
	}
	return out
}
