package api

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"infer/runtime/engine"
)

// genFunc is a Generator made of one function.
type genFunc func(ctx context.Context, r engine.Request, emit func(engine.Event) error) (engine.Result, error)

func (g genFunc) Generate(ctx context.Context, r engine.Request, emit func(engine.Event) error) (engine.Result, error) {
	return g(ctx, r, emit)
}

// newLive is a server with real connections over g.
func newLive(t *testing.T, limits Limits, g genFunc) (*Server, *httptest.Server) {
	t.Helper()
	s := New(Config{Version: "test", Limits: limits, Log: zerolog.Nop()})
	s.SetModel(Model{
		Name: "org/m", Created: time.Unix(1, 0), Context: 1 << 20,
		Tokenizer: newFakeTokenizer(), Template: &recorder{}, Generator: g,
	})
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return s, srv
}

func token1(text string) engine.Event {
	return engine.Event{HasToken: true, Token: 1, Bytes: []byte(text)}
}

var stopped = engine.Result{Finish: engine.FinishStop, StopID: -1}

const (
	chatBody   = `{"messages":[{"role":"user","content":"hi"}]}`
	streamBody = `{"messages":[{"role":"user","content":"hi"}],"stream":true}`
)

func post(t *testing.T, ctx context.Context, url, body string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return http.DefaultClient.Do(req)
}

func mustPost(t *testing.T, url, body string) (status int, answer string, h http.Header) {
	t.Helper()
	resp, err := post(t, t.Context(), url, body)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b), resp.Header
}

// TestMain fails when a goroutine is left after all tests.
func TestMain(m *testing.M) {
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func await(t *testing.T, what string, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(10 * time.Second):
		t.Fatalf("%s did not happen", what)
	}
}

// A client that goes away ends its sequence, streamed or not.
func TestDisconnectCancels(t *testing.T) {
	for name, body := range map[string]string{"whole": chatBody, "stream": streamBody, "queued": streamBody} {
		t.Run(name, func(t *testing.T) {
			begun, ended := make(chan struct{}), make(chan struct{})
			_, srv := newLive(t, Limits{}, func(ctx context.Context, _ engine.Request, emit func(engine.Event) error) (engine.Result, error) {
				defer close(ended)
				if name != "queued" {
					if err := emit(token1("a")); err != nil {
						return engine.Result{}, err
					}
				}
				close(begun)
				<-ctx.Done()
				return engine.Result{}, ctx.Err()
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				<-begun
				cancel()
			}()
			resp, err := post(t, ctx, srv.URL+"/v1/chat/completions", body)
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			if err == nil {
				t.Error("the client got a whole answer although it went away")
			}
			await(t, "the end of the sequence", ended)
		})
	}
}

// A client that reads nothing delays its own sequence only, and is given up.
func TestSlowReaderIsGivenUp(t *testing.T) {
	ended := make(chan struct{})
	_, srv := newLive(t, Limits{WriteTimeout: 300 * time.Millisecond}, func(ctx context.Context, _ engine.Request, emit func(engine.Event) error) (engine.Result, error) {
		defer close(ended)
		big := strings.Repeat("x", 1<<20)
		for {
			if err := emit(token1(big)); err != nil {
				return engine.Result{}, err
			}
		}
	})
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(streamBody), streamBody)
	await(t, "giving up the client", ended)
}

// Silence is broken by comment lines, and by nothing before the first.
func TestKeepAlive(t *testing.T) {
	release := make(chan struct{})
	_, srv := newLive(t, Limits{KeepAlive: 50 * time.Millisecond}, func(ctx context.Context, _ engine.Request, emit func(engine.Event) error) (engine.Result, error) {
		select {
		case <-release:
		case <-ctx.Done():
			return engine.Result{}, ctx.Err()
		}
		return stopped, emit(token1("late"))
	})
	resp, err := post(t, t.Context(), srv.URL+"/v1/chat/completions", streamBody)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for range 2 {
		line, err := lines.ReadString('\n')
		if err != nil || line != ": ping\n" {
			t.Fatalf("got %q, %v; want a comment", line, err)
		}
		_, _ = lines.ReadString('\n')
	}
	close(release)
	rest, err := io.ReadAll(lines)
	if err != nil || !strings.Contains(string(rest), "late") || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") {
		t.Errorf("rest of the stream: %q, %v", rest, err)
	}
}

// Reasoning that is hidden is silence to the client.
func TestKeepAliveWhileThinkingIsHidden(t *testing.T) {
	s := newFixture(caseModel{Think: "open"}, script{})
	s.limits.KeepAlive = 20 * time.Millisecond
	m := *s.model.Load()
	m.Generator = genFunc(func(_ context.Context, _ engine.Request, emit func(engine.Event) error) (engine.Result, error) {
		for range 20 {
			if err := emit(token1("hm")); err != nil {
				return engine.Result{}, err
			}
			time.Sleep(5 * time.Millisecond)
		}
		return stopped, emit(token1("</think>Yes"))
	})
	s.SetModel(m)
	got := ask(s, "POST", "/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"stream":true,"include_reasoning":false}`).Body.String()
	if list, _ := events(t, got); !strings.Contains(got, ": ping\n") || strings.Contains(got, "hm") || joined(list, "choices.0.delta.content") != "Yes" {
		t.Errorf("stream: %s", got)
	}
}

// An error before the first event keeps its status, also on a stream.
func TestEarlyErrorKeepsStatus(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		status int
		code   string
	}{
		"queue":    {fmt.Errorf("submit: %w", engine.ErrQueueFull), 429, "queue_full"},
		"draining": {engine.ErrDraining, 503, "draining"},
		"deadline": {engine.ErrDeadline, 408, "request_timeout"},
		"fault":    {errFake, 500, "null"},
		"length":   {engine.ErrTooLong, 400, "context_length_exceeded"},
	} {
		for _, body := range []string{chatBody, streamBody, `{"prompt":"x","echo":true,"stream":true}`} {
			_, srv := newLive(t, Limits{}, func(context.Context, engine.Request, func(engine.Event) error) (engine.Result, error) {
				return engine.Result{}, c.err
			})
			path := "/v1/chat/completions"
			if strings.Contains(body, "prompt") {
				path = "/v1/completions"
			}
			status, answer, h := mustPost(t, srv.URL+path, body)
			if status != c.status || !strings.Contains(answer, c.code) || !strings.HasPrefix(h.Get("Content-Type"), "application/json") {
				t.Errorf("%s: status %d, body %s", name, status, answer)
			}
			if (status == 429 || status == 503) != (h.Get("Retry-After") != "") {
				t.Errorf("%s: Retry-After is %q", name, h.Get("Retry-After"))
			}
			if status == 500 && !strings.Contains(answer, "gpu:0") {
				t.Errorf("%s: the fault is not named: %s", name, answer)
			}
		}
	}
}

// Shutdown lets running requests end, and refuses new ones.
func TestDrain(t *testing.T) {
	begun, finish := make(chan struct{}), make(chan struct{})
	s := New(Config{Log: zerolog.Nop()})
	s.SetModel(Model{Name: "m", Context: 4096, Tokenizer: newFakeTokenizer(), Template: &recorder{}, Generator: genFunc(
		func(ctx context.Context, _ engine.Request, emit func(engine.Event) error) (engine.Result, error) {
			close(begun)
			select {
			case <-finish:
			case <-ctx.Done():
				return engine.Result{}, context.Cause(ctx)
			}
			return stopped, emit(token1("done"))
		})})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	url := "http://" + l.Addr().String()
	answer := make(chan string, 1)
	go func() {
		resp, err := http.Post(url+"/v1/chat/completions", "", strings.NewReader(chatBody))
		if err != nil {
			answer <- err.Error()
			return
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		answer <- string(b)
	}()
	await(t, "the first request", begun)
	down := make(chan error, 1)
	go func() { down <- s.Shutdown(t.Context()) }()
	deadline := time.Now().Add(5 * time.Second)
	for !s.draining.Load() && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	for _, path := range []string{"/health", "/ready"} {
		if resp, err := http.Get(url + path); err != nil || resp.StatusCode != 503 {
			t.Errorf("%s while draining: %v %v", path, resp, err)
		} else {
			resp.Body.Close()
		}
	}
	if status, body, _ := mustPost(t, url+"/v1/chat/completions", chatBody); status != 503 || !strings.Contains(body, "draining") {
		t.Errorf("a new request while draining: %d %s", status, body)
	}
	close(finish)
	if got := <-answer; !strings.Contains(got, "done") {
		t.Errorf("the running request got %s", got)
	}
	if err := <-down; err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	http.DefaultClient.CloseIdleConnections()
}

// When the time to drain is over, running requests are told.
func TestDrainTimesOut(t *testing.T) {
	begun := make(chan struct{})
	s, srv := newLive(t, Limits{}, func(ctx context.Context, _ engine.Request, _ func(engine.Event) error) (engine.Result, error) {
		close(begun)
		<-ctx.Done()
		return engine.Result{}, ctx.Err()
	})
	got := make(chan string, 1)
	go func() {
		resp, err := http.Post(srv.URL+"/v1/chat/completions", "", strings.NewReader(chatBody))
		if err != nil {
			got <- err.Error()
			return
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		got <- fmt.Sprint(resp.StatusCode, string(b))
	}()
	await(t, "the request", begun)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); err == nil {
		t.Error("Shutdown says that all requests had ended")
	}
	if answer := <-got; !strings.HasPrefix(answer, "503") {
		t.Errorf("the running request got %s", answer)
	}
}

// Many streams with random disconnects: every answer that is read to its end
// is the answer of its prompt.
func TestManyStreamsWithDisconnects(t *testing.T) {
	_, srv := newLive(t, Limits{}, func(ctx context.Context, r engine.Request, emit func(engine.Event) error) (engine.Result, error) {
		for i := range 20 {
			if err := emit(token1(fmt.Sprintf("%d.%d ", len(r.Prompt), i))); err != nil {
				return engine.Result{}, err
			}
			if i%5 == 0 {
				select {
				case <-time.After(time.Millisecond):
				case <-ctx.Done():
					return engine.Result{}, ctx.Err()
				}
			}
		}
		return stopped, nil
	})
	var clients sync.WaitGroup
	for k := range 100 {
		clients.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			text := strings.Repeat("x", k)
			resp, err := post(t, ctx, srv.URL+"/v1/completions", `{"prompt":"p`+text+`","stream":true}`)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if k%3 == 0 {
				_, _ = io.CopyN(io.Discard, resp.Body, int64(k*7))
				return // goes away in the middle
			}
			b, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Error(err)
				return
			}
			list, done := events(t, string(b))
			var want strings.Builder
			for i := range 20 {
				fmt.Fprintf(&want, "%d.%d ", k+1, i)
			}
			if got := joined(list, "choices.0.text"); got != want.String() || !done {
				t.Errorf("stream %d: %q", k, got)
			}
		})
	}
	clients.Wait()
}

// Deadlines of one answer are not those of the next on the same connection.
func TestDeadlinesEndWithTheirAnswer(t *testing.T) {
	_, srv := newLive(t, Limits{WriteTimeout: 30 * time.Millisecond, BodyTimeout: 30 * time.Millisecond}, func(_ context.Context, _ engine.Request, emit func(engine.Event) error) (engine.Result, error) {
		time.Sleep(60 * time.Millisecond)
		return stopped, emit(token1("x"))
	})
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	answers := bufio.NewReader(conn)
	for _, req := range []string{
		"GET /health HTTP/1.1\r\nHost: x\r\n\r\n",
		fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(streamBody), streamBody),
		"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
		fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(chatBody), chatBody),
	} {
		if _, err := io.WriteString(conn, req); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatalf("%.30q: %v", req, err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != 200 {
			t.Fatalf("%.30q: status %d, %v", req, resp.StatusCode, err)
		}
		resp.Body.Close()
		time.Sleep(60 * time.Millisecond)
	}
}
