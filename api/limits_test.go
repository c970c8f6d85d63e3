package api

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"infer/runtime/engine"
)

// Bodies that are announced and do not come keep nobody else out.
func TestSlowBodies(t *testing.T) {
	_, srv := newLive(t, Limits{Body: 4096, Requests: 2}, func(context.Context, engine.Request, func(engine.Event) error) (engine.Result, error) {
		return stopped, nil
	})
	for i := range 40 {
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		// With Expect, the answer's first line says that the body is waited for.
		how := []string{"Content-Length: 4096", "Transfer-Encoding: chunked"}[i%2]
		fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n%s\r\n\r\n", how)
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "100") {
			t.Fatalf("connection %d: %q %v", i, line, err)
		}
	}
	if status, body, _ := mustPost(t, srv.URL+"/v1/chat/completions", chatBody); status != 200 {
		t.Errorf("a request beside them: %d %s", status, body)
	}
}

func TestLimits(t *testing.T) {
	begun := make(chan struct{}, 1)
	var running sync.WaitGroup
	_, srv := newLive(t, Limits{Body: 4096, Requests: 1, Request: 2 * time.Second, BodyTimeout: 300 * time.Millisecond}, func(ctx context.Context, _ engine.Request, _ func(engine.Event) error) (engine.Result, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return engine.Result{}, ctx.Err()
	})
	url := srv.URL + "/v1/chat/completions"

	status, body, _ := mustPost(t, url, `{"messages":[{"role":"user","content":"`+strings.Repeat("a", 5000)+`"}]}`)
	if status != 413 || !strings.Contains(body, "4096") {
		t.Errorf("a large body: %d %s", status, body)
	}
	// The same without a length.
	pr, pw := io.Pipe()
	running.Go(func() {
		_, _ = io.Copy(pw, strings.NewReader(`{"x":"`+strings.Repeat("a", 5000)))
		pw.Close()
	})
	resp, err := http.Post(url, "", pr)
	if err != nil || resp.StatusCode != 413 {
		t.Errorf("a large chunked body: %v %v", resp, err)
	} else {
		resp.Body.Close()
	}
	pr.Close()
	// A client that writes all of it before it reads still hears the answer.
	big, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer big.Close()
	_ = big.SetDeadline(time.Now().Add(30 * time.Second))
	const bytes = 40 << 20
	if _, err := fmt.Fprintf(big, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", bytes, strings.Repeat(" ", bytes)); err != nil {
		t.Errorf("writing a large body: %v", err)
	}
	if line, err := bufio.NewReader(big).ReadString('\n'); err != nil || !strings.Contains(line, "413") {
		t.Errorf("after a large body: %q %v", line, err)
	}
	status, body, _ = mustPost(t, url, strings.Repeat("[", 2000))
	if status != 400 || !strings.Contains(body, "nested") {
		t.Errorf("a deep body: %d %s", status, body)
	}

	// A body that never comes.
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
	line, err := bufio.NewReader(conn).ReadString('\n')
	conn.Close()
	if err != nil || !strings.Contains(line, "408") {
		t.Errorf("a body that never comes: %q %v", line, err)
	}

	// One request is served at a time; it is cut at the time limit.
	var code atomic.Int32
	running.Go(func() {
		resp, err := http.Post(url, "", strings.NewReader(chatBody))
		if err == nil {
			code.Store(int32(resp.StatusCode))
			resp.Body.Close()
		}
	})
	await(t, "the first request", begun)
	status, body, h := mustPost(t, url, chatBody)
	if status != 429 || h.Get("Retry-After") == "" || !strings.Contains(body, "queue_full") {
		t.Errorf("a second request: %d %s", status, body)
	}
	running.Wait()
	if code.Load() != 408 {
		t.Errorf("a request that takes too long: %d, want 408", code.Load())
	}
}

// A route that answers without reading the body does not wait for it for ever.
func TestUnreadBodyEnds(t *testing.T) {
	s := New(Config{APIKeys: []string{"k"}, Limits: Limits{BodyTimeout: 200 * time.Millisecond}, Log: zerolog.Nop()})
	srv := httptest.NewServer(s)
	defer srv.Close()
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
	b, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 401") {
		t.Errorf("got %q, %v", b, err)
	}
}
