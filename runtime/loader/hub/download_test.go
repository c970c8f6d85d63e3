package hub

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// cut sends the first n bytes of an answer and ends the connection.
func cut(w http.ResponseWriter, b []byte, n int) {
	w.Header().Set("Content-Length", strconv.Itoa(len(b)))
	_, _ = w.Write(b[:n])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

func TestResumeAfterCut(t *testing.T) {
	h := newFakeHub(t)
	opt := h.options(t)
	weights := h.files["model.safetensors"]
	var ranges []string
	h.cdnHook = func(w http.ResponseWriter, r *http.Request) bool {
		ranges = append(ranges, r.Header.Get("Range"))
		if len(ranges) == 1 {
			cut(w, weights, 100_000)
		}
		return false
	}
	dir, err := Resolve(context.Background(), "org/name", opt, Events{})
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "model.safetensors")); !bytes.Equal(b, weights) {
		t.Error("the weights differ")
	}
	if len(ranges) != 2 || ranges[0] != "" || !strings.HasPrefix(ranges[1], "bytes=") || ranges[1] == "bytes=0-" {
		t.Errorf("ranges %q", ranges)
	}
}

// TestCancelKeepsThePart ends a download in the middle; the next one goes on from there.
func TestCancelKeepsThePart(t *testing.T) {
	h := newFakeHub(t)
	opt := h.options(t)
	weights := h.files["model.safetensors"]
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := errors.New("the user has had enough")
	h.cdnHook = func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Length", strconv.Itoa(len(weights)))
		_, _ = w.Write(weights[:150_000])
		_ = http.NewResponseController(w).Flush()
		for range 1000 { // until the bytes are on the other side's disk
			if st, err := os.Stat(newCache(opt.CacheDir, Repo{ID: "org/name"}).partial(h.etag("model.safetensors"))); err == nil && st.Size() > 0 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		cancel(stop)
		<-r.Context().Done()
		return true
	}
	if _, err := Resolve(ctx, "org/name", opt, Events{}); !errors.Is(err, stop) {
		t.Fatalf("error %v", err)
	}
	st, err := os.Stat(newCache(opt.CacheDir, Repo{ID: "org/name"}).partial(h.etag("model.safetensors")))
	if err != nil || st.Size() == 0 {
		t.Fatalf("no partial file: %v", err)
	}
	got := ""
	h.mu.Lock()
	h.cdnHook = func(_ http.ResponseWriter, r *http.Request) bool { got = r.Header.Get("Range"); return false }
	h.mu.Unlock()
	have := int64(0)
	dir, err := Resolve(context.Background(), "org/name", opt, Events{Plan: func(_, _ string, _ int, _, n int64) { have = n }})
	if err != nil {
		t.Fatal(err)
	}
	if want := "bytes=" + strconv.FormatInt(st.Size(), 10) + "-"; got != want {
		t.Errorf("range %q, want %q", got, want)
	}
	if have < st.Size() {
		t.Errorf("the plan counts %d bytes as here", have)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "model.safetensors")); !bytes.Equal(b, weights) {
		t.Error("the weights differ")
	}
}

// TestPartials starts from partial files of every kind.
func TestPartials(t *testing.T) {
	for name, c := range map[string]struct {
		part   func(weights []byte) []byte
		ignore bool // the server sends all, whatever the range
	}{
		"a beginning":       {func(w []byte) []byte { return w[:777] }, false},
		"all of it":         {func(w []byte) []byte { return w }, false},
		"too long":          {func(w []byte) []byte { return append(bytes.Clone(w), 'x') }, false},
		"wrong bytes":       {func(w []byte) []byte { return bytes.Repeat([]byte{0}, 777) }, false},
		"all of it, wrong":  {func(w []byte) []byte { return make([]byte, len(w)) }, false},
		"no ranges there":   {func(w []byte) []byte { return w[:777] }, true},
		"wrong, no ranges":  {func(w []byte) []byte { return make([]byte, 777) }, true},
		"nothing":           {func([]byte) []byte { return nil }, false},
		"a blob, cut short": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFakeHub(t)
			opt := h.options(t)
			weights := h.files["model.safetensors"]
			store := newCache(opt.CacheDir, Repo{ID: "org/name"})
			path := store.blob(h.etag("model.safetensors"))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			part := weights[:5]
			if c.part != nil {
				path, part = store.partial(h.etag("model.safetensors")), c.part(weights)
			}
			if err := os.WriteFile(path, part, 0o600); err != nil {
				t.Fatal(err)
			}
			if c.ignore {
				h.cdnHook = func(_ http.ResponseWriter, r *http.Request) bool { r.Header.Del("Range"); return false }
			}
			dir, err := Resolve(context.Background(), "org/name", opt, Events{})
			if err != nil {
				t.Fatal(err)
			}
			if b, _ := os.ReadFile(filepath.Join(dir, "model.safetensors")); !bytes.Equal(b, weights) {
				t.Error("the weights differ")
			}
			if _, err := os.Stat(store.partial(h.etag("model.safetensors"))); err == nil {
				t.Error("the partial file is still there")
			}
		})
	}
}

func TestServerThatLies(t *testing.T) {
	for name, hook := range map[string]func(w http.ResponseWriter, r *http.Request, b []byte) bool{
		"more bytes": func(w http.ResponseWriter, _ *http.Request, b []byte) bool {
			_, _ = w.Write(append(bytes.Clone(b), "more"...))
			return true
		},
		"endless": func(w http.ResponseWriter, r *http.Request, b []byte) bool {
			for {
				if _, err := w.Write(b); err != nil {
					return true
				}
			}
		},
		"other bytes": func(w http.ResponseWriter, _ *http.Request, b []byte) bool {
			_, _ = w.Write(make([]byte, len(b)))
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newFakeHub(t)
			opt := h.options(t)
			weights := h.files["model.safetensors"]
			h.cdnHook = func(w http.ResponseWriter, r *http.Request) bool { return hook(w, r, weights) }
			if _, err := Resolve(context.Background(), "org/name", opt, Events{}); !errors.Is(err, ErrIntegrity) {
				t.Errorf("error %v", err)
			}
			if _, err := os.Stat(newCache(opt.CacheDir, Repo{ID: "org/name"}).blob(h.etag("model.safetensors"))); err == nil {
				t.Error("a wrong blob is in the cache")
			}
		})
	}
}

func TestStalledAndShort(t *testing.T) {
	h := newFakeHub(t)
	opt := h.options(t)
	opt.stall = 50 * time.Millisecond
	weights := h.files["model.safetensors"]
	n := 0
	h.cdnHook = func(w http.ResponseWriter, r *http.Request) bool {
		switch n++; n {
		case 1: // sends a part and falls silent
			w.Header().Set("Content-Length", strconv.Itoa(len(weights)))
			_, _ = w.Write(weights[:1000])
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return true
		case 2: // a whole answer that is too short
			_, _ = w.Write(weights[:2000])
			return true
		}
		return false
	}
	dir, err := Resolve(context.Background(), "org/name", opt, Events{})
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "model.safetensors")); !bytes.Equal(b, weights) || n != 3 {
		t.Errorf("%d requests, the same bytes: %v", n, bytes.Equal(b, weights))
	}
	// A server that never sends anything is given up.
	h.mu.Lock()
	h.commit, h.files["model.safetensors"] = strings.Repeat("e", 40), []byte("new")
	h.cdnHook = func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }
	h.mu.Unlock()
	if _, err := Resolve(context.Background(), "org/name", opt, Events{}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("error %v", err)
	}
}

// TestConcurrentPulls has several pulls of one model at a time, as processes would: each file is downloaded once.
func TestConcurrentPulls(t *testing.T) {
	h := newFakeHub(t)
	h.files["vocab.json"] = h.files["tokenizer.json"] // two names, one blob
	opt := h.options(t)
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if _, err := Resolve(context.Background(), "org/name", opt, Events{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := h.count("CDN GET"); n != 1 {
		t.Errorf("the weights were downloaded %d times", n)
	}
}

// TestTokenStaysHome follows redirects to other ports, hosts and back: the token goes to the hub only.
func TestTokenStaysHome(t *testing.T) {
	h := newFakeHub(t)
	opt := h.options(t)
	moved := false
	h.hook = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Authorization") != "Bearer hf_secret" {
			t.Errorf("%s without the token", r.URL.Path)
		}
		if strings.HasSuffix(r.URL.Path, "config.json") && r.URL.RawQuery == "" { // a renamed repository: the same host
			moved = true
			http.Redirect(w, r, r.URL.Path+"?moved", http.StatusTemporaryRedirect)
			return true
		}
		return false
	}
	if _, err := Resolve(context.Background(), "org/name", opt, Events{}); err != nil {
		t.Fatal(err)
	}
	if len(h.leaks) > 0 || !moved || h.count("CDN GET") == 0 {
		t.Errorf("leaks %v, moved %v", h.leaks, moved)
	}
	c, err := newClient(opt.withDefaults(), Events{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	h.mu.Lock()
	h.hook = func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, r.URL.Path, http.StatusFound)
		return true
	}
	h.mu.Unlock()
	if _, err := c.do(context.Background(), http.MethodGet, h.URL+"/loop", nil, false); err == nil || !strings.Contains(err.Error(), "redirects") {
		t.Errorf("error %v", err)
	}
	h.mu.Lock()
	h.hook = func(w http.ResponseWriter, r *http.Request) bool {
		http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		return true
	}
	h.mu.Unlock()
	if _, err := c.do(context.Background(), http.MethodGet, h.URL+"/x", nil, false); err == nil || !strings.Contains(err.Error(), "not safe") {
		t.Errorf("error %v", err)
	}
}

// TestWaitsForAnotherProcess holds the lock that huggingface_hub would hold.
func TestWaitsForAnotherProcess(t *testing.T) {
	h := newFakeHub(t)
	opt := h.options(t)
	store := newCache(opt.CacheDir, Repo{ID: "org/name"})
	path := store.lockFile(h.etag("model.safetensors"))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if ok, err := tryLock(f); !ok || err != nil {
		t.Fatalf("lock: %v, %v", ok, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if _, err := Resolve(ctx, "org/name", opt, Events{}); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "another download of model.safetensors") {
		t.Errorf("error %v", err)
	}
	time.AfterFunc(200*time.Millisecond, func() { f.Close() })
	if _, err := Resolve(context.Background(), "org/name", opt, Events{}); err != nil {
		t.Error(err)
	}
}
