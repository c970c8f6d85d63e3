package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"infer/runtime/engine"
)

type httpCase struct {
	N   int    `json:"n"`
	ID  string `json:"id"`
	Why string `json:"why"`
	step
	Seq []step `json:"seq"`
}

type step struct {
	Req   caseRequest       `json:"req"`
	Model caseModel         `json:"model"`
	Gen   script            `json:"gen"`
	Want  want              `json:"want"`
	Save  map[string]string `json:"save"`
}

type caseRequest struct {
	Method, Path string
	Headers      map[string]string
	Body         json.RawMessage
	Raw          *string
}

type caseModel struct {
	Ctx          int      `json:"ctx"`
	PromptTokens int      `json:"prompt_tokens"`
	Tools        string   `json:"tools"`
	Think        string   `json:"think"`
	Aliases      []string `json:"aliases"`
	APIKey       string   `json:"api_key"`
	State        string   `json:"state"`
	Queue        string   `json:"queue"`
	Template     string   `json:"template"`
}

type want struct {
	Status   int               `json:"status"`
	StatusIn []int             `json:"status_in"`
	Headers  map[string]string `json:"headers"`
	JSON     []assertion       `json:"json"`
	Engine   []assertion       `json:"engine"`
	Render   []assertion       `json:"render"`
	TextRE   []string          `json:"text_re"`
	SSE      *wantSSE          `json:"sse"`
}

// fixture is a server over fakes, as a case's model describes it.
type fixture struct {
	*Server
	engine   *fakeEngine
	template *recorder
}

func newFixture(m caseModel, g script) *fixture {
	tok := newFakeTokenizer()
	tok.count = m.PromptTokens
	for _, lp := range g.Prompt {
		tok.prompt = append(tok.prompt, lp.ID)
	}
	cfg := Config{Version: "0.0.0-test", Log: zerolog.Nop()}
	if m.APIKey != "" {
		cfg.APIKeys = []string{"another", m.APIKey}
	}
	f := &fixture{
		Server:   New(cfg),
		engine:   &fakeEngine{tok: tok, script: g, full: m.Queue == "full"},
		template: &recorder{systemFirst: m.Template == "system-first-only", think: m.Think},
	}
	if m.State == "loading" {
		return f
	}
	context := 4096
	if m.Ctx > 0 {
		context = m.Ctx
	}
	f.SetModel(Model{
		Name: "m", Aliases: m.Aliases, Created: time.Unix(1700000000, 0), Context: context, Fingerprint: "fp_test",
		Tokenizer: tok, Template: f.template, Generator: f.engine,
		Stats: func() Stats { return Stats{BlockSize: 16, BlocksTotal: 100} },
	})
	return f
}

// served are the routes that exist; cases of others are listed.
var served = []string{
	"/v1/chat/completions", "/v1/completions", "/v1/models", "/tokenize", "/detokenize", "/health", "/ready", "/metrics",
	"/version", "/ping", "/v1/nothing",
}

func isServed(path string) bool {
	for _, p := range served {
		if path == p || strings.HasPrefix(path, p+"/") {
			return true
		}
	}
	return false
}

// refused names the field that makes a request one of those that this server
// refuses until it can hold the model to it; "" when there is none.
func refused(body []byte) string {
	v := decodeJSON(string(body))
	if tools, ok := follow(v, "tools").([]any); ok && len(tools) > 0 && follow(v, "tool_choice") != "none" {
		return "tool"
	}
	if list, ok := follow(v, "functions").([]any); ok && len(list) > 0 && follow(v, "function_call") != "none" {
		return "function"
	}
	if rf, ok := follow(v, "response_format").(map[string]any); ok && rf["type"] != "text" {
		return "response_format"
	}
	for _, name := range []string{"structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar", "grammar", "json_schema"} {
		if x := follow(v, name); x != nil && x != any(missing{}) {
			return name
		}
	}
	return ""
}

func caseFiles(t *testing.T) []string {
	files := []string{"testdata/http/http.json"}
	if dir := os.Getenv("INFER_CASES"); dir != "" {
		files = append(files, filepath.Join(dir, "http", "http.json"))
	}
	return files
}

func TestCases(t *testing.T) {
	for _, file := range caseFiles(t) {
		t.Run(filepath.Base(filepath.Dir(filepath.Dir(file))), func(t *testing.T) { runCases(t, file) })
	}
}

func runCases(t *testing.T, file string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Cases []httpCase }
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(&all); err != nil {
		t.Fatalf("reading %s: %v", file, err)
	}
	ran, refusedCount := 0, 0
	unserved := map[string]int{}
	for _, c := range all.Cases {
		steps := c.Seq
		if len(steps) == 0 {
			steps = []step{c.step}
		}
		if !isServed(steps[0].Req.Path) {
			unserved[steps[0].Req.Path]++
			continue
		}
		ran++
		t.Run(fmt.Sprintf("%d-%s", c.N, c.ID), func(t *testing.T) {
			for _, s := range steps {
				if field := refused(s.Req.Body); field != "" && s.Want.Status != http.StatusBadRequest {
					refusedCount++
					s.Want = want{Status: http.StatusBadRequest, JSON: []assertion{
						{"error.type", "eq", "invalid_request_error"}, {"error.param", "re", field},
					}}
				}
				runStep(t, s)
			}
		})
	}
	if ran == 0 {
		t.Fatal("no case ran")
	}
	t.Logf("%s: %d of %d cases ran; %d of them ask for tools or structured output and were checked to be refused", file, ran, len(all.Cases), refusedCount)
	for _, path := range slices.Sorted(mapKeys(unserved)) {
		t.Logf("not yet served: %s (%d)", path, unserved[path])
	}
}

func runStep(t *testing.T, s step) {
	f := newFixture(s.Model, s.Gen)
	f.engine.lists = batch(f.engine.tok, s.Req.Body)
	body := s.Req.Body
	if s.Req.Raw != nil {
		body = []byte(*s.Req.Raw)
	}
	srv := httptest.NewServer(f)
	defer srv.Close()
	req, err := http.NewRequest(s.Req.Method, srv.URL+s.Req.Path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range s.Req.Headers {
		req.Header.Set(name, v)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var got bytes.Buffer
	if _, err := got.ReadFrom(resp.Body); err != nil {
		t.Fatalf("reading the answer: %v (%s)", err, &got)
	}
	w := s.Want
	if w.Status != 0 && resp.StatusCode != w.Status || len(w.StatusIn) > 0 && !slices.Contains(w.StatusIn, resp.StatusCode) {
		t.Fatalf("status %d, want %d%v: %s", resp.StatusCode, w.Status, w.StatusIn, &got)
	}
	for name, re := range w.Headers {
		if !regexp.MustCompile(re).MatchString(resp.Header.Get(name)) {
			t.Errorf("header %s is %q, want a match of %q", name, resp.Header.Get(name), re)
		}
	}
	for _, re := range w.TextRE {
		if !regexp.MustCompile(re).Match(got.Bytes()) {
			t.Errorf("the body does not match %q", re)
		}
	}
	if len(w.JSON) > 0 {
		checkAll(t, "answer", w.JSON, decodeJSON(got.String()))
	}
	if w.SSE != nil {
		w.SSE.check(t, got.String())
	}
	if len(w.Engine) > 0 {
		if len(f.engine.requests) == 0 {
			t.Fatal("the engine was not asked")
		}
		checkAll(t, "engine", w.Engine, engineView(f.engine.requests[0]))
	}
	if len(w.Render) > 0 {
		checkAll(t, "template variables", w.Render, f.template.vars)
	}
	if t.Failed() {
		t.Logf("answer: %s", &got)
	}
}

func checkAll(t *testing.T, what string, list []assertion, v any) {
	t.Helper()
	for _, a := range list {
		if msg := a.check(v); msg != "" {
			t.Errorf("%s: %s", what, msg)
		}
	}
}

// batch lists a body's prompts when it has several.
func batch(tok *fakeTokenizer, body []byte) [][]int32 {
	list, _ := follow(decodeJSON(string(body)), "prompt").([]any)
	var out [][]int32
	for _, p := range list {
		switch p := p.(type) {
		case string:
			out = append(out, tok.Encode(p, true))
		case []any:
			ids := []int32{}
			for _, id := range p {
				n, _ := id.(json.Number).Int64()
				ids = append(ids, int32(n))
			}
			out = append(out, ids)
		}
	}
	return out
}

// engineView is a request to the engine under the case language's names.
func engineView(r engine.Request) any {
	s := r.Sampling
	b, err := json.Marshal(map[string]any{
		"max_tokens": s.MaxTokens, "min_tokens": s.MinTokens, "temperature": s.Temperature, "top_k": s.TopK, "top_p": s.TopP,
		"min_p": s.MinP, "repetition_penalty": s.Repetition, "presence_penalty": s.Presence, "frequency_penalty": s.Frequency,
		"logit_bias": s.LogitBias, "seed": s.Seed, "stop": s.Stop, "stop_token_ids": s.StopIDs, "ignore_eos": s.IgnoreEOS,
		"priority": r.Priority, "prompt_ids": r.Prompt, "skip_special_tokens": !r.KeepSpecial, "allowed_token_ids": s.Allowed,
		"bad_words": s.BadWords,
	})
	if err != nil {
		panic(err)
	}
	return decodeJSON(string(b))
}
