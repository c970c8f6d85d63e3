package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"
)

// sharedBuffer takes what several goroutines write, as standard error does.
type sharedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *sharedBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *sharedBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// testServer runs infer serve in this process until stop is called.
func testServer(t testing.TB, args ...string) (url string, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, w := io.Pipe()
	var errOut sharedBuffer
	code := make(chan int, 1)
	go func() {
		code <- execute(ctx, append([]string{"serve", "--port", "0", "--log-format", "json"}, args...), strings.NewReader(""), w, &errOut)
		w.Close()
	}()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatalf("the server said %q: exit code %d: %s", line, <-code, errOut.String())
	}
	for field := range strings.FieldsSeq(line) {
		if strings.HasPrefix(field, "http://") {
			url = field
		}
	}
	if url == "" {
		t.Fatalf("no URL in %q", line)
	}
	return url, func() {
		cancel()
		if c := <-code; c != 0 {
			t.Errorf("infer serve ended with %d: %s", c, errOut.String())
		}
	}
}

// soakRequest is one of the requests that the soak test asks again and again.
func soakRequest(i int) map[string]any {
	prompts := []string{
		"Hello!", "Tell me a story about a fox.", "What is the opposite of 'big'?", "Who are you?",
		"Tell me a long story about a girl named Anna.", "What does a cow say?", "Count to five.",
	}
	r := map[string]any{
		"messages":   []any{map[string]any{"role": "user", "content": prompts[i%len(prompts)]}},
		"max_tokens": 8 + 12*(i%5), "seed": i, "stream": true, "temperature": float64(i%3) * 0.6,
	}
	if i%4 == 3 {
		r["stop"] = []string{" and", "."}
	}
	if i%5 == 4 {
		r["frequency_penalty"] = 0.7
	}
	return r
}

var errLeft = errors.New("the client left")

// ask streams one answer. After leave chunks (when not negative) the client
// disconnects, and errLeft is returned.
func ask(client *http.Client, url string, request any, leave int) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	body, err := json.Marshal(request)
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	if leave == 0 {
		time.AfterFunc(time.Duration(rand.IntN(20))*time.Millisecond, cancel)
	}
	resp, err := client.Do(req)
	if err != nil {
		if leave == 0 && errors.Is(err, context.Canceled) {
			return "", errLeft
		}
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		return "", fmt.Errorf("%s: %s", resp.Status, text)
	}
	var text strings.Builder
	finish := ""
	lines := bufio.NewScanner(resp.Body)
	for n := 0; lines.Scan(); n++ {
		if leave >= 0 && n >= leave {
			return "", errLeft
		}
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			return text.String() + "|" + finish, nil
		}
		var chunk struct {
			Choices []struct {
				Delta        struct{ Content string }
				FinishReason string `json:"finish_reason"`
			}
			Error any
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil || chunk.Error != nil {
			return "", fmt.Errorf("chunk %q: %v", data, err)
		}
		for _, c := range chunk.Choices {
			text.WriteString(c.Delta.Content)
			finish += c.FinishReason
		}
	}
	if leave == 0 && lines.Err() != nil {
		return "", errLeft
	}
	return "", fmt.Errorf("the stream ended early: %w", lines.Err())
}

// 200 clients at once, a third of which leave at some point: every answer that
// ends is the one a single client gets, no goroutine stays, and memory goes
// back. INFER_SOAK=60s makes it long.
func TestSoak(t *testing.T) {
	duration := 3 * time.Second
	if d, err := time.ParseDuration(os.Getenv("INFER_SOAK")); err == nil {
		duration = d
	}
	ignore := goleak.IgnoreCurrent()
	defer goleak.VerifyNone(t, ignore)
	url, stop := testServer(t, "--max-seqs", "24")
	transport := &http.Transport{MaxIdleConnsPerHost: 200}
	client := &http.Client{Transport: transport}
	defer transport.CloseIdleConnections()
	defer stop()

	const requests, clients = 35, 200
	want := make([]string, requests)
	for i := range want {
		var err error
		if want[i], err = ask(client, url, soakRequest(i), -1); err != nil {
			t.Fatal(err)
		}
	}
	var answers, left atomic.Int64
	round := func(d time.Duration) {
		var g errgroup.Group
		end := time.Now().Add(d)
		for range clients {
			g.Go(func() error {
				for time.Now().Before(end) {
					i, leave := rand.IntN(requests), -1
					if rand.IntN(3) == 0 {
						leave = rand.IntN(20)
					}
					got, err := ask(client, url, soakRequest(i), leave)
					switch {
					case errors.Is(err, errLeft):
						left.Add(1)
					case err != nil:
						return fmt.Errorf("request %d: %w", i, err)
					case got != want[i]:
						return fmt.Errorf("request %d: answer %q, alone it is %q", i, got, want[i])
					default:
						answers.Add(1)
					}
				}
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	}
	round(duration / 3)
	before := residentMiB(t)
	round(duration)
	after := residentMiB(t)
	t.Logf("%d answers, %d left early; resident memory %d MiB after the first round, %d MiB at the end", answers.Load(), left.Load(), before, after)
	if answers.Load() < requests || left.Load() < requests {
		t.Errorf("only %d answers and %d disconnects: the test did not test much", answers.Load(), left.Load())
	}
	if !raceDetector && after > before+before/4+32 {
		t.Errorf("resident memory grew from %d to %d MiB", before, after)
	}
}

// residentMiB is this process's resident memory after a collection; 0 where
// the system does not tell.
func residentMiB(t testing.TB) int {
	debug.FreeOSMemory()
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Logf("resident memory is unknown here: %v", err)
		return 0
	}
	var total, resident int
	if _, err := fmt.Sscan(string(data), &total, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * os.Getpagesize() >> 20
}
