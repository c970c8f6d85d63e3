package api

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// randomScript cuts a text of odd characters at random bytes.
func randomScript(r *rand.Rand) script {
	alphabet := []string{"a", "b", "ab", " ", "\n", "é", "€", "👩‍👩‍👧", "STOP", "ST", "\xff", "\u2028", "\u0085", "<think>", "</think>", "</thi", "\""}
	var text strings.Builder
	for range r.IntN(20) {
		text.WriteString(alphabet[r.IntN(len(alphabet))])
	}
	g := script{End: []string{"eos", "length"}[r.IntN(2)]}
	for rest := text.String(); rest != ""; {
		n := 1 + r.IntN(min(4, len(rest)))
		g.PiecesB64 = append(g.PiecesB64, base64.StdEncoding.EncodeToString([]byte(rest[:n])))
		g.Logprobs = append(g.Logprobs, scriptLP{Token: fmt.Sprintf("t%d", len(g.Logprobs)), ID: int32(500 + len(g.Logprobs)), Logprob: -0.5})
		rest = rest[n:]
	}
	g.Usage = scriptUsage{Prompt: 3, Completion: len(g.PiecesB64), Cached: 1}
	return g
}

// Streamed and whole answers agree in text, reasoning, finish, usage, tokens
// and ids, whatever the cuts, and no stop string is in either.
func TestStreamedAndWholeAgree(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := caseModel{Think: []string{"", "tags", "open"}[r.IntN(3)]}
		g := randomScript(r)
		options := `"logprobs":true,"return_token_ids":true`
		stops := []string{"", `,"stop":"STOP"`, `,"stop":["ab","€"]`, `,"stop":["STOP"],"include_stop_str_in_output":true`}[r.IntN(4)]
		body := `{"messages":[{"role":"user","content":"x"}],` + options + stops
		whole := decodeJSON(ask(newFixture(m, g), "POST", "/v1/chat/completions", body+"}").Body.String())
		stream := ask(newFixture(m, g), "POST", "/v1/chat/completions", body+`,"stream":true,"stream_options":{"include_usage":true}}`).Body.String()
		list, done := events(t, stream)
		if !done {
			t.Fatalf("seed %d: no [DONE]: %s", seed, stream)
		}
		view := choiceViews(list)["0"]
		var tokens, ids []any
		for _, v := range list {
			if l, ok := follow(v, "choices.0.logprobs.content").([]any); ok {
				tokens = append(tokens, l...)
			}
			if l, ok := follow(v, "choices.0.token_ids").([]any); ok {
				ids = append(ids, l...)
			}
		}
		for _, c := range []struct {
			what      string
			got, want any
		}{
			{"text", view.text, follow(whole, "choices.0.message.content")},
			{"reasoning", view.reasoning, orString(follow(whole, "choices.0.message.reasoning_content"))},
			{"finish", view.finish, follow(whole, "choices.0.finish_reason")},
			{"usage", follow(list[len(list)-1], "usage"), follow(whole, "usage")},
			{"tokens", append([]any{}, tokens...), follow(whole, "choices.0.logprobs.content")},
			{"ids", append([]any{}, ids...), follow(whole, "choices.0.token_ids")},
		} {
			if !same(c.got, c.want) {
				t.Errorf("seed %d: %s is %s streamed, %s whole\n%s", seed, c.what, show(c.got), show(c.want), stream)
			}
		}
		if stops == `,"stop":"STOP"` && strings.Contains(view.text+view.reasoning, "STOP") {
			t.Errorf("seed %d: a stop string is in the answer: %q", seed, view.text)
		}
		if t.Failed() {
			return
		}
	}
}

func orString(v any) any {
	if s, ok := v.(string); ok {
		return s
	}
	return ""
}

// Usage of an answer that a stop string ended counts what was consumed, and
// the tokens of the stop string are not reported.
func TestStopStringCounts(t *testing.T) {
	g := script{Pieces: []string{"Hello ", "ST", "OP", " more"}, End: "length", Usage: scriptUsage{Prompt: 7, Completion: 4}}
	for i := range g.Pieces {
		g.Logprobs = append(g.Logprobs, scriptLP{Token: g.Pieces[i], ID: int32(500 + i), Logprob: -0.5})
	}
	w := ask(newFixture(caseModel{}, g), "POST", "/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"stop":"STOP","logprobs":true}`)
	expect(t, w, 200,
		assertion{"choices.0.message.content", "eq", "Hello "}, assertion{"choices.0.finish_reason", "eq", "stop"},
		assertion{"usage.completion_tokens", "eq", num(3)}, assertion{"usage.prompt_tokens", "eq", num(7)},
		assertion{"choices.0.logprobs.content", "len", num(1)}, assertion{"choices.0.logprobs.content.0.token", "eq", "Hello "},
	)
}

func TestBestOf(t *testing.T) {
	choice := func(text string, lp float64) script {
		return script{Pieces: []string{text}, End: "eos", Usage: scriptUsage{Prompt: 2, Completion: 1}, Logprobs: []scriptLP{{Token: text, ID: 500, Logprob: lp}}}
	}
	g := script{Choices: []script{choice("bad", -3), choice("best", -0.1), choice("good", -0.5)}}
	s := newFixture(caseModel{}, g)
	w := ask(s, "POST", "/v1/completions", `{"prompt":"xy","n":2,"best_of":3}`)
	expect(t, w, 200,
		assertion{"choices", "len", num(2)}, assertion{"choices.0.text", "eq", "best"}, assertion{"choices.1.text", "eq", "good"},
		assertion{"choices.0.index", "eq", num(0)}, assertion{"choices.1.index", "eq", num(1)}, assertion{"choices.0.logprobs", "null", true},
		assertion{"usage.completion_tokens", "eq", num(3)}, assertion{"usage.prompt_tokens", "eq", num(2)},
	)
	expect(t, ask(s, "POST", "/v1/completions", `{"prompt":"x","best_of":2,"stream":true}`), 400, assertion{"error.param", "eq", "best_of"})
}

func TestPromptLogprobs(t *testing.T) {
	g := script{
		Pieces: []string{" C"}, End: "length", Usage: scriptUsage{Prompt: 2, Completion: 1},
		Prompt: []scriptLP{{Token: "A", ID: 509}, {Token: " é", ID: 508, Logprob: -1.5, Top: [][2]any{{" B", -1.0}, {" é", -1.5}}}},
	}
	s := newFixture(caseModel{}, g)
	expect(t, ask(s, "POST", "/v1/completions", `{"prompt":"A é","prompt_logprobs":2}`), 200,
		assertion{"choices.0.prompt_logprobs.0", "null", true}, assertion{"choices.0.prompt_logprobs.1.508.logprob", "eq", decodeJSON("-1.5")},
		assertion{"choices.0.prompt_logprobs.1.508.decoded_token", "eq", " é"}, assertion{"choices.0.text", "eq", " C"},
		assertion{"choices.0.prompt_logprobs.1", "len", num(2)})
	expect(t, ask(s, "POST", "/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"prompt_logprobs":0}`), 200,
		assertion{"prompt_logprobs", "len", num(2)}, assertion{"prompt_logprobs.1.508.rank", "eq", num(1)})
	// Scoring: no token is asked for, and none is reported.
	for _, stream := range []string{"", `,"stream":true`} {
		w := ask(s, "POST", "/v1/completions", `{"prompt":"A é","echo":true,"max_tokens":0,"logprobs":1`+stream+`}`)
		if stream == "" {
			expect(t, w, 200, assertion{"choices.0.text", "eq", "A é"}, assertion{"choices.0.logprobs.tokens", "len", num(2)},
				assertion{"choices.0.logprobs.text_offset", "eq", []any{num(0), num(1)}}, assertion{"usage.completion_tokens", "eq", num(0)},
				assertion{"choices.0.finish_reason", "eq", "length"})
			continue
		}
		list, _ := events(t, w.Body.String())
		if got := joined(list, "choices.0.text"); got != "A é" {
			t.Errorf("streamed: %q", got)
		}
	}
	w := ask(s, "POST", "/v1/completions", `{"prompt":"A é","max_tokens":1,"logprobs":0}`)
	expect(t, w, 200, assertion{"choices.0.logprobs.text_offset", "absent", false})
	expect(t, ask(s, "POST", "/v1/completions", `{"prompt":"A é","max_tokens":0}`), 400, assertion{"error.param", "eq", "max_tokens"})
}
