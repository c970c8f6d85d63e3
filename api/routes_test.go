package api

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"infer/runtime/engine"
	"infer/runtime/tokenizer/chattemplate"
)

// ask asks s for one answer without a connection.
func ask(s http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func expect(t *testing.T, w *httptest.ResponseRecorder, status int, list ...assertion) {
	t.Helper()
	if w.Code != status {
		t.Errorf("status %d, want %d: %s", w.Code, status, w.Body)
	}
	checkAll(t, "answer", list, decodeJSON(w.Body.String()))
}

func TestModelNames(t *testing.T) {
	s := New(Config{Log: zerolog.Nop()})
	s.SetModel(Model{Name: "org/m", Aliases: []string{"a b", "x/y/z"}, Created: time.Unix(7, 0), Context: 99, Tokenizer: newFakeTokenizer()})
	for _, path := range []string{"org/m", "org%2Fm", "a%20b", "x/y/z", "x%2Fy/z"} {
		w := ask(s, "GET", "/v1/models/"+path, "")
		expect(t, w, 200, assertion{"object", "eq", "model"}, assertion{"max_model_len", "eq", num(99)}, assertion{"root", "eq", "org/m"})
	}
	expect(t, ask(s, "GET", "/v1/models/org", ""), 404, assertion{"error.code", "eq", "model_not_found"})
	expect(t, ask(s, "GET", "/v1/models/", ""), 404)
	expect(t, ask(s, "GET", "/v1/models", ""), 200, assertion{"data", "len", num(3)}, assertion{"data.2.id", "eq", "x/y/z"})
	expect(t, ask(s, "POST", "/tokenize", `{"model":"nope","content":"x"}`), 404, assertion{"error.param", "eq", "model"})

	s.SetModel(Model{Name: "m", Aliases: []string{"*"}, Context: 99, Tokenizer: newFakeTokenizer()})
	expect(t, ask(s, "GET", "/v1/models/anything", ""), 200, assertion{"id", "eq", "anything"})
}

func TestRoutesThatAreNot(t *testing.T) {
	s := newFixture(caseModel{}, script{})
	w := ask(s, "GET", "/v1/chat/completions", "")
	expect(t, w, 405, assertion{"error.type", "eq", "invalid_request_error"})
	if w.Header().Get("Allow") != "POST" {
		t.Errorf("Allow is %q", w.Header().Get("Allow"))
	}
	expect(t, ask(s, "POST", "/none", ""), 404, assertion{"error.param", "null", true}, assertion{"error.code", "null", true})
	for path, status := range map[string]int{"/": 200, "/health": 200, "/ready": 200, "/v1/models": 405} {
		if w := ask(s, "HEAD", path, ""); w.Code != status {
			t.Errorf("HEAD %s: %d", path, w.Code)
		}
	}
	expect(t, ask(s, "POST", "/chat/completions", ""), 404, assertion{"error.message", "has", "/v1/chat/completions"})
	if w := ask(s, "OPTIONS", "/v1/models", ""); w.Code != 204 {
		t.Errorf("OPTIONS: %d", w.Code)
	}
}

func TestKeys(t *testing.T) {
	s := newFixture(caseModel{APIKey: "secret"}, script{Pieces: []string{"x"}})
	for _, path := range []string{"/health", "/v1/health", "/ready", "/ping", "/metrics"} {
		if w := ask(s, "GET", path, ""); w.Code != 200 {
			t.Errorf("%s needs a key: %d", path, w.Code)
		}
	}
	for _, h := range [][2]string{{"Authorization", "Bearer secret"}, {"Authorization", "bearer  secret"}, {"Authorization", "Bearer another"}, {"X-Api-Key", "secret"}} {
		if w := ask(s, "GET", "/v1/models", "", h[0], h[1]); w.Code != 200 {
			t.Errorf("%s: %s is refused: %d", h[0], h[1], w.Code)
		}
	}
	for _, h := range [][2]string{{"Authorization", "Bearer secret2"}, {"Authorization", "Bearer "}, {"Authorization", "Basic secret"}, {"X-Api-Key", "secre"}, {"X", "y"}} {
		w := ask(s, "GET", "/v1/models", "", h[0], h[1])
		expect(t, w, 401, assertion{"error.code", "eq", "invalid_api_key"})
		if strings.Contains(w.Body.String(), "secret") {
			t.Errorf("the answer has the key: %s", w.Body)
		}
	}
	expect(t, ask(s, "GET", "/no/such", ""), 401) // says nothing about what exists
}

func TestOrigins(t *testing.T) {
	origin := func(cfg []string, o string) string {
		s := New(Config{CORSOrigins: cfg, Log: zerolog.Nop()})
		return ask(s, "GET", "/health", "", "Origin", o).Header().Get("Access-Control-Allow-Origin")
	}
	for _, o := range []string{"http://localhost:3000", "https://127.0.0.1", "http://[::1]:5", "http://app.localhost"} {
		if origin(nil, o) != o {
			t.Errorf("%s is refused by default", o)
		}
	}
	for _, o := range []string{"https://example.org", "http://localhost.example.org", "null", "http://127.0.0.1.example.org"} {
		if got := origin(nil, o); got != "" {
			t.Errorf("%s is let in by default", o)
		}
	}
	if origin([]string{"https://example.org"}, "https://example.org") == "" || origin([]string{"https://example.org"}, "http://localhost") != "" ||
		origin([]string{"*"}, "https://x.y") == "" {
		t.Error("configured origins are not what is let in")
	}
}

func TestRequestIDs(t *testing.T) {
	s := newFixture(caseModel{}, script{})
	if got := ask(s, "GET", "/health", "", "X-Request-Id", "abc-1").Header().Get("X-Request-Id"); got != "abc-1" {
		t.Errorf("the client's id came back as %q", got)
	}
	for _, bad := range []string{"", "a b", "a\nb", strings.Repeat("x", 200)} {
		if got := ask(s, "GET", "/health", "", "X-Request-Id", bad).Header().Get("X-Request-Id"); !strings.HasPrefix(got, "req_") {
			t.Errorf("for %q the id is %q", bad, got)
		}
	}
}

// An engine that cannot go on makes the process unhealthy, so that it is
// started again.
func TestHealthOfAFailedEngine(t *testing.T) {
	s := New(Config{Log: zerolog.Nop()})
	var failed error
	s.SetModel(Model{Name: "m", Context: 9, Tokenizer: newFakeTokenizer(), Stats: func() Stats { return Stats{Failed: failed} }})
	expect(t, ask(s, "GET", "/health", ""), 200)
	failed = errFake
	expect(t, ask(s, "GET", "/health", ""), 503, assertion{"error.message", "has", "gpu:0"})
}

// Who asks while the model loads gets an answer when it is there, is told to come
// back when that takes too long, and is sent away when the server stops instead.
func TestRequestsWaitForTheModel(t *testing.T) {
	model := Model{Name: "m", Context: 9, Tokenizer: newFakeTokenizer(), Generator: &fakeEngine{tok: newFakeTokenizer(), script: script{Pieces: []string{"a"}, End: "length"}}}
	for _, route := range [][3]string{{"GET", "/v1/models", ""}, {"GET", "/v1/models/m", ""}, {"POST", "/v1/completions", `{"prompt":"x"}`}, {"POST", "/tokenize", `{"content":"x"}`}} {
		for name, c := range map[string]struct {
			status int
			after  func(s *Server)
		}{
			"loaded":   {200, func(s *Server) { s.SetModel(model) }},
			"too long": {503, func(*Server) { time.Sleep(time.Minute) }},
			"stopped":  {503, func(s *Server) { _ = s.Shutdown(context.Background()) }},
		} {
			t.Run(route[1]+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := New(Config{Log: zerolog.Nop(), Limits: Limits{Loading: time.Minute}})
					answer := make(chan *httptest.ResponseRecorder, 1)
					go func() { answer <- ask(s, route[0], route[1], route[2]) }()
					synctest.Wait()
					if len(answer) > 0 {
						t.Fatalf("answered without a model: %d", (<-answer).Code)
					}
					expect(t, ask(s, "GET", "/health", ""), 503) // probes do not wait
					c.after(s)
					synctest.Wait()
					if len(answer) == 0 {
						t.Fatal("no answer")
					}
					expect(t, <-answer, c.status)
				})
			})
		}
	}
}

// The server is ready when it has computed, and no more after a fault.
func TestReady(t *testing.T) {
	fault := false
	s, _ := newLive(t, Limits{}, func(_ context.Context, _ engine.Request, emit func(engine.Event) error) (engine.Result, error) {
		if fault {
			return engine.Result{}, errFake
		}
		return stopped, emit(token1("a"))
	})
	expect(t, ask(s, "GET", "/ready", ""), 200)
	fault = true
	expect(t, ask(s, "GET", "/ready", ""), 200) // it has computed
	expect(t, ask(s, "POST", "/v1/chat/completions", chatBody), 500)
	expect(t, ask(s, "GET", "/ready", ""), 503, assertion{"error.message", "has", "gpu:0"})
	expect(t, ask(s, "GET", "/health", ""), 200)
	fault = false
	expect(t, ask(s, "GET", "/ready", ""), 200)
}

func TestMetricsCount(t *testing.T) {
	s := newFixture(caseModel{}, script{Pieces: []string{"a", "b", "c"}, End: "length", Usage: scriptUsage{Prompt: 5, Completion: 3}})
	expect(t, ask(s, "POST", "/v1/completions", `{"prompt":"x"}`), 200)
	expect(t, ask(s, "POST", "/v1/completions", `{"prompt":"x","temperature":9}`), 400)
	body := ask(s, "GET", "/metrics", "").Body.String()
	for _, line := range []string{
		`vllm:prompt_tokens_total{model_name="m"} 5`,
		`vllm:generation_tokens_total{model_name="m"} 3`,
		`vllm:request_success_total{finished_reason="length",model_name="m"} 1`,
		`vllm:request_success_total{finished_reason="stop",model_name="m"} 0`,
		`vllm:time_to_first_token_seconds_count{model_name="m"} 1`,
		`vllm:inter_token_latency_seconds_count{model_name="m"} 2`,
		`vllm:request_generation_tokens_sum{model_name="m"} 3`,
		`vllm:cache_config_info{block_size="16",model_name="m",num_gpu_blocks="100"} 1`,
		`infer_http_requests_total{route="/v1/completions",status="200"} 1`,
		`infer_http_requests_total{route="/v1/completions",status="400"} 1`,
		`infer_ready 1`,
	} {
		if !strings.Contains(body, "\n"+line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
}

// A panic of an engine or a handler is a 500, not the end of the process.
func TestPanicsStay(t *testing.T) {
	s, _ := newLive(t, Limits{}, func(context.Context, engine.Request, func(engine.Event) error) (engine.Result, error) {
		panic("engine")
	})
	expect(t, ask(s, "POST", "/v1/chat/completions", chatBody), 500, assertion{"error.type", "eq", "server_error"})
	s.SetModel(Model{Name: "m", Context: 9, Tokenizer: newFakeTokenizer(), Template: panicking{}})
	expect(t, ask(s, "POST", "/v1/chat/completions", chatBody), 500, assertion{"error.message", "eq", "internal error"})
}

type panicking struct{ Template }

func (panicking) Caps(bool) chattemplate.Caps { panic("template") }

func num(n int) any { return decodeJSON(fmt.Sprint(n)) }
