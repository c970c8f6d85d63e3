package api

import (
	"errors"
	"strings"
	"testing"
)

func mustRead(t *testing.T, body string) *fields {
	t.Helper()
	v, err := parseValue([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	f, err := readObject(v)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestIntegers(t *testing.T) {
	for text, want := range map[string]struct {
		n  int64
		ok bool
	}{
		"5": {5, true}, "5.0": {5, true}, "5e0": {5, true}, "50e-1": {5, true}, "-3": {-3, true}, "0": {0, true}, "-0": {0, true},
		"9223372036854775807": {9223372036854775807, true}, "-9223372036854775808": {-9223372036854775808, true},
		"9223372036854775808": {}, "1.5": {}, "1e300": {}, "1e20": {}, `"5"`: {}, "true": {}, "[5]": {}, "{}": {},
		"9007199254740993.0": {9007199254740993, true}, "9007199254740993e0": {},
	} {
		f := mustRead(t, `{"x":`+text+`}`)
		n, ok := f.integer("x", -1<<63, 1<<63-1)
		if n != want.n || ok != want.ok || ok == (f.err() != nil) {
			t.Errorf("%s: %d, %v, error %v", text, n, ok, f.err())
		}
	}
}

func TestNullIsAbsent(t *testing.T) {
	f := mustRead(t, `{"i":null,"n":null,"s":null,"b":null,"a":null,"o":null}`)
	_, i := f.integer("i", 0, 1)
	_, n := f.number("n", 0, 1)
	_, s := f.str("s")
	_, a := f.array("a")
	_, o := f.object("o")
	if i || n || s || a || o || !f.boolean("b", true) || f.err() != nil {
		t.Errorf("null was read as a value: %v", f.err())
	}
}

func TestPathsInErrors(t *testing.T) {
	for body, path := range map[string]string{
		`{"messages":[{"role":"user","content":"a"},{"role":5,"content":"b"}]}`: "messages.1.role",
		`{"messages":[7]}`: "messages.0",
		`{"messages":{}}`:  "messages",
		`{"messages":[{"role":"user","content":[{"type":"text","text":5}]}]}`:                                                 "messages.0.content.0.text",
		`{"messages":[{"role":"user","content":[{"type":"nonsense"}]}]}`:                                                      "messages.0.content.0.type",
		`{"messages":[{"role":"user"}]}`:                                                                                      "messages.0.content",
		`{"messages":[{"role":"assistant","tool_calls":[{"function":{"arguments":"{}"}}]}]}`:                                  "messages.0.tool_calls.0.function.name",
		`{"messages":[{"role":"user","content":"x"}],"stream_options":{"include_usage":"yes"}}`:                               "stream_options.include_usage",
		`{"messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_object"}}`:                               "response_format.type",
		`{"messages":[{"role":"user","content":"x"}],"chat_template_kwargs":{"messages":[]}}`:                                 "chat_template_kwargs.messages",
		`{"messages":[{"role":"user","content":"x"}],"temperature":"0"}`:                                                      "temperature",
		`{"messages":[{"role":"user","content":"x"}],"stop":[1]}`:                                                             "stop",
		`{"messages":[{"role":"user","content":"x"}],"stop_token_ids":[-1]}`:                                                  "stop_token_ids",
		`{"messages":[{"role":"user","content":"x"}],"allowed_token_ids":[]}`:                                                 "allowed_token_ids",
		`{"messages":[{"role":"user","content":"x"}],"repetition_penalty":0}`:                                                 "repetition_penalty",
		`{"messages":[{"role":"user","content":"x"}],"continue_final_message":true}`:                                          "continue_final_message",
		`{"messages":[{"role":"user","content":"x"}],"reasoning_effort":"enormous"}`:                                          "reasoning_effort",
		`{"messages":[{"role":"user","content":"x"}],"top_logprobs":2}`:                                                       "top_logprobs",
		`{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f"}}]}`:                  "tools",
		`{"messages":[{"role":"user","content":"x"}],"tool_choice":"required"}`:                                               "tool_choice",
		`{"messages":[{"role":"user","content":"x"}],"modalities":["audio"]}`:                                                 "modalities",
		`{"messages":[{"role":"user","content":"x"}],"suffix":"y"}`:                                                           "suffix",
		`{"messages":[{"role":"user","content":"x"}],"guided_regex":"a+"}`:                                                    "guided_regex",
		`{"messages":[{"role":"user","content":"x"}],"logit_bias":{"5":101}}`:                                                 "logit_bias",
		`{"messages":[{"role":"user","content":"x"}],"logit_bias":{"2000":1}}`:                                                "logit_bias",
		`{"messages":[{"role":"user","content":"x"}],"max_tokens":0}`:                                                         "max_tokens",
		`{"messages":[{"role":"user","content":"x"}],"truncate_prompt_tokens":0}`:                                             "truncate_prompt_tokens",
		`{"messages":[{"role":"user","content":"x"}],"functions":[{"name":"f"}],"function_call":{"name":"f"}}`:                "function_call",
		`{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{}}`: "tool_choice",
	} {
		s := newFixture(caseModel{}, script{})
		f := mustRead(t, body)
		_, _, err := decodeChat(f, s.model.Load())
		e, ok := errors.AsType[*apiError](err)
		if !ok || e.Param != path || e.Status != 400 || !strings.Contains(e.Message, path) {
			t.Errorf("%s\n  names %+v, want %s", body, e, path)
		}
	}
}

func TestBrokenBodies(t *testing.T) {
	for body, want := range map[string]string{
		"": "empty", " ": "empty", "{": "ends in the middle", `{"a":`: "ends in the middle", `{"a":1}}`: "more than one", "{} {}": "more than one",
		"[1]": "an array", "nope": "not valid JSON", `{"a":01}`: "not valid JSON", `{'a':1}`: "not valid JSON", "{\"a\":\"\n\"}": "not valid JSON",
		strings.Repeat(`{"a":`, 200): "nested",
	} {
		v, err := parseValue([]byte(body))
		if err == nil {
			_, err = readObject(v)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", body, err, want)
		}
	}
	huge := "[" + strings.Repeat("0,", maxValues) + "0]"
	if _, err := parseValue([]byte(huge)); err == nil || !strings.Contains(err.Error(), "values") {
		t.Errorf("too many values: %v", err)
	}
}

// Of equal names the last counts; unknown names are reported once.
func TestNames(t *testing.T) {
	f := mustRead(t, `{"n":1,"n":2,"x":3,"x":4}`)
	if n, _ := f.integer("n", 0, 9); n != 2 {
		t.Errorf("n is %d, want the last, 2", n)
	}
	if got := f.unknown(); len(got) != 1 || got[0] != "x" {
		t.Errorf("unknown: %q", got)
	}
	var seen seenNames
	if !seen.first("x") || seen.first("x") || seen.first(strings.Repeat("y", 100)) {
		t.Error("a name is new once, and a very long one never")
	}
}
