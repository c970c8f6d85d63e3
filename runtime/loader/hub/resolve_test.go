package hub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tree lists what is below a folder; links with their targets.
func tree(t *testing.T, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		if to, err := os.Readlink(p); err == nil {
			rel += " -> " + to
		}
		out = append(out, filepath.ToSlash(rel))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

// TestLayout pins the cache to the layout of huggingface_hub.
func TestLayout(t *testing.T) {
	h := newFakeHub(t)
	opt := h.options(t)
	var mu sync.Mutex
	last, files, total := map[string]int64{}, 0, int64(0)
	dir, err := Resolve(context.Background(), "org/name", opt, Events{
		Plan:     func(_, _ string, n int, bytes, have int64) { files, total = n, bytes },
		Progress: func(f string, done, size int64) { mu.Lock(); last[f] = done - size; mu.Unlock() },
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(opt.CacheDir, "models--org--name", "snapshots", commitA); dir != want {
		t.Errorf("folder %s, want %s", dir, want)
	}
	var got []string
	for _, f := range tree(t, opt.CacheDir) {
		if !strings.Contains(f, ".no_exist") {
			got = append(got, f)
		}
	}
	var want []string
	sum := int64(0)
	for name, up := range map[string]string{"config.json": "../../", "tokenizer.json": "../../", "model.safetensors": "../../", "additional_chat_templates/tool_use.jinja": "../../../"} {
		tag := h.etag(name)
		sum += int64(len(h.files[name]))
		want = append(want, "models--org--name/snapshots/"+commitA+"/"+name+" -> "+up+"blobs/"+tag, "models--org--name/blobs/"+tag, ".locks/models--org--name/"+tag+".lock")
		if d, ok := last[name]; !ok || d != 0 {
			t.Errorf("%s: the last progress is %d from its size", name, d)
		}
	}
	want = append(want, "models--org--name/refs/main")
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("cache\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
	if b, _ := os.ReadFile(filepath.Join(opt.CacheDir, "models--org--name/refs/main")); string(b) != commitA {
		t.Errorf("refs/main has %q", b)
	}
	if _, err := os.Stat(filepath.Join(opt.CacheDir, "models--org--name/.no_exist", commitA, "chat_template.jinja")); err != nil {
		t.Error(err)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "model.safetensors")); !bytes.Equal(b, h.files["model.safetensors"]) {
		t.Error("the weights differ")
	}
	if files != 4 || total != sum {
		t.Errorf("plan of %d files, %d bytes; want 4, %d", files, total, sum)
	}
	if len(h.leaks) > 0 {
		t.Errorf("the token went to another host: %v", h.leaks)
	}
	for _, unwanted := range []string{"README", ".bin", ".gguf", "onnx"} {
		if n := h.count(unwanted); n > 0 {
			t.Errorf("%d requests for %s", n, unwanted)
		}
	}

	// Again: nothing is downloaded. Offline: nothing is asked.
	before := h.count("GET /org/name/resolve") + h.count("CDN GET")
	if again, err := Resolve(context.Background(), "org/name", opt, Events{}); err != nil || again != dir {
		t.Errorf("again: %s, %v", again, err)
	}
	if n := h.count("GET /org/name/resolve") + h.count("CDN GET"); n != before {
		t.Errorf("%d downloads the second time", n-before)
	}
	h.Close()
	opt.Offline = true
	if again, err := Resolve(context.Background(), "org/name", opt, Events{}); err != nil || again != dir {
		t.Errorf("offline: %s, %v", again, err)
	}
	opt.Offline = false
	cached := ""
	if again, err := Resolve(context.Background(), "org/name", opt, Events{Cached: func(_, id string, _ error) { cached = id }}); err != nil || again != dir || cached != commitA {
		t.Errorf("without network: %s, %q, %v", again, cached, err)
	}
	if again, err := Resolve(context.Background(), "org/name@"+commitA, opt, Events{}); err != nil || again != dir {
		t.Errorf("by commit: %s, %v", again, err)
	}
}

func TestRevisions(t *testing.T) {
	h := newFakeHub(t)
	opt := h.options(t)
	if _, err := Resolve(context.Background(), "org/name@refs/pr/1", opt, Events{}); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(opt.CacheDir, "models--org--name/refs/refs/pr/1")); err != nil || string(b) != commitA {
		t.Errorf("%q, %v", b, err)
	}
	// A new commit shares what did not change.
	h.mu.Lock()
	h.commit = strings.Repeat("f", 40)
	h.files["config.json"] = []byte(`{"new":1}`)
	h.mu.Unlock()
	dir, err := Resolve(context.Background(), "org/name@refs/pr/1", opt, Events{})
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(filepath.Join(dir, "config.json")); string(b) != `{"new":1}` {
		t.Errorf("config %s", b)
	}
	if n := h.count("CDN GET"); n != 1 {
		t.Errorf("the weights were downloaded %d times", n)
	}
}

func sharded(h *fakeHub, index string) {
	delete(h.files, "model.safetensors")
	h.files["model.safetensors.index.json"] = []byte(index)
	h.files["model-00001-of-00002.safetensors"] = []byte("one")
	h.files["model-00002-of-00002.safetensors"] = []byte("two")
	h.files["model-of-another.safetensors"] = []byte("three")
	h.large["model-00001-of-00002.safetensors"] = true
}

func TestShards(t *testing.T) {
	h := newFakeHub(t)
	sharded(h, `{"weight_map":{"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors","c":"model-00001-of-00002.safetensors"}}`)
	opt := h.options(t)
	var mu sync.Mutex
	total, seen := int64(-1), map[string]int64{}
	dir, err := Resolve(context.Background(), "org/name", opt, Events{
		Plan: func(_, _ string, _ int, bytes, _ int64) { total = bytes },
		Progress: func(f string, done, _ int64) {
			mu.Lock()
			defer mu.Unlock()
			if seen[f] = done; total < 0 {
				t.Errorf("progress of %s before the plan", f)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range seen {
		total -= n
	}
	if total != 0 {
		t.Errorf("the progress of all files is %d bytes short of the plan", total)
	}
	for _, name := range []string{"model.safetensors.index.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(b, h.files[name]) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if h.count("another") > 0 {
		t.Error("a file that the index does not name was asked for")
	}
	// Offline, a missing shard is noticed.
	if err := os.Remove(filepath.Join(dir, "model-00002-of-00002.safetensors")); err != nil {
		t.Fatal(err)
	}
	opt.Offline = true
	if _, err := Resolve(context.Background(), "org/name", opt, Events{}); !errors.Is(err, ErrOffline) || !strings.Contains(err.Error(), "model-00002") {
		t.Errorf("error %v", err)
	}
}

// TestErrors pins what each refusal is called and what it tells to do.
func TestErrors(t *testing.T) {
	status := func(code int, errorCode, message string) func(*fakeHub, *Options) {
		return func(h *fakeHub, _ *Options) {
			h.hook = func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("X-Error-Message", message)
				fail(w, code, errorCode)
				return true
			}
		}
	}
	anonymous := func(f func(*fakeHub, *Options)) func(*fakeHub, *Options) {
		return func(h *fakeHub, o *Options) { f(h, o); o.Token = "" }
	}
	for name, c := range map[string]struct {
		repo  string
		setup func(*fakeHub, *Options)
		want  error
		words []string
	}{
		"no id":           {"name", nil, ErrBadID, []string{"org/name"}},
		"climbing id":     {"org/..", nil, ErrBadID, nil},
		"climbing rev":    {"org/name@../../x", nil, ErrBadID, nil},
		"other repo":      {"org/other", nil, ErrRepoNotFound, []string{"org/other", "404"}},
		"revision":        {"org/name@v9", nil, ErrRevisionNotFound, []string{`"v9"`}},
		"gated, no token": {"org/name", anonymous(status(401, "GatedRepo", "")), ErrGated, []string{"/org/name", "HF_TOKEN", "accept"}},
		"gated, token":    {"org/name", status(403, "GatedRepo", ""), ErrGated, []string{"/org/name", "access"}},
		"401 anonymous":   {"org/name", anonymous(status(401, "", "")), ErrRepoNotFound, []string{"HF_TOKEN"}},
		"bad token":       {"org/name", status(401, "", "Invalid credentials in Authorization header"), ErrUnauthorized, []string{"settings/tokens"}},
		"forbidden":       {"org/name", status(403, "", "not for you"), ErrForbidden, []string{"not for you"}},
		"rate limit":      {"org/name", anonymous(status(429, "", "")), ErrRateLimited, []string{"HF_TOKEN"}},
		"server error":    {"org/name", status(503, "", ""), ErrUnavailable, []string{"503"}},
		"teapot":          {"org/name", status(418, "", "short"), nil, []string{"418", "short"}},
		"no hub": {"org/name", func(h *fakeHub, _ *Options) {
			h.hook = func(w http.ResponseWriter, _ *http.Request) bool { fmt.Fprint(w, "<html>"); return true }
		}, nil, []string{"HF_ENDPOINT"}},
		"commit is a path": {"org/name", func(h *fakeHub, _ *Options) { h.commit = "../../../../x" }, ErrUnsafe, nil},
		"etag is a path":   {"org/name", func(h *fakeHub, _ *Options) { h.announce["config.json"] = "../../x" }, ErrUnsafe, []string{"config.json"}},
		"extra climbs":     {"org/name", func(h *fakeHub, _ *Options) { h.files["additional_chat_templates/..\\x.jinja"] = nil }, ErrUnsafe, nil},
		"shard climbs":     {"org/name", func(h *fakeHub, _ *Options) { sharded(h, `{"weight_map":{"a":"../../x.safetensors"}}`) }, ErrUnsafe, []string{"../../x"}},
		"shard missing":    {"org/name", func(h *fakeHub, _ *Options) { sharded(h, `{"weight_map":{"a":"y.safetensors"}}`) }, ErrEntryNotFound, []string{"y.safetensors"}},
		"empty index":      {"org/name", func(h *fakeHub, _ *Options) { sharded(h, `{}`) }, nil, []string{"weight_map"}},
		"pickles only": {"org/name", func(h *fakeHub, _ *Options) {
			delete(h.files, "model.safetensors")
			delete(h.files, "model.gguf")
			delete(h.files, "onnx/model.safetensors")
		}, ErrNoSafetensors, []string{"pickle"}},
		"gguf only": {"org/name", func(h *fakeHub, _ *Options) {
			delete(h.files, "model.safetensors")
			delete(h.files, "onnx/model.safetensors")
		}, ErrNoSafetensors, []string{"GGUF"}},
		"wrong digest":     {"org/name", func(h *fakeHub, _ *Options) { h.announce["model.safetensors"] = strings.Repeat("0", 64) }, ErrIntegrity, []string{"model.safetensors", strings.Repeat("0", 64)}},
		"wrong git digest": {"org/name", func(h *fakeHub, _ *Options) { h.announce["config.json"] = strings.Repeat("0", 40) }, ErrIntegrity, []string{"config.json"}},
		"disk full":        {"org/name", func(_ *fakeHub, o *Options) { o.free = func(string) (uint64, bool) { return 1000, true } }, ErrDiskFull, []string{"1000", "HF_HOME"}},
		"offline":          {"org/name", func(_ *fakeHub, o *Options) { o.Offline = true }, ErrOffline, []string{"HF_HUB_OFFLINE"}},
		"http from https":  {"org/name", func(h *fakeHub, o *Options) { o.Endpoint = "https://127.0.0.1:1" }, ErrUnavailable, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newFakeHub(t)
			opt := h.options(t)
			if c.setup != nil {
				c.setup(h, &opt)
			}
			_, err := Resolve(context.Background(), c.repo, opt, Events{})
			if err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Fatalf("error %v, want %v", err, c.want)
			}
			for _, w := range c.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not say %q", err, w)
				}
			}
			if strings.Contains(err.Error(), "hf_secret") {
				t.Errorf("the error shows the token: %v", err)
			}
			if _, err := os.Stat(filepath.Join(opt.CacheDir, "models--org--name/refs")); err == nil {
				t.Error("a revision was noted although the model is not complete")
			}
		})
	}
}

func TestRetries(t *testing.T) {
	h := newFakeHub(t)
	opt := h.options(t)
	left := map[string]int{}
	h.hook = func(w http.ResponseWriter, r *http.Request) bool {
		key := r.Method + r.URL.Path
		if left[key]++; left[key] > 3 {
			return false
		}
		switch left[key] {
		case 1:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(429)
		case 2:
			w.WriteHeader(502)
		default:
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return false
			}
			c.Close()
		}
		return true
	}
	delete(h.files, "tokenizer.json")
	var mu sync.Mutex
	retries, waited := 0, time.Duration(0)
	_, err := Resolve(context.Background(), "org/name", opt, Events{Retry: func(_ string, _ error, wait time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		retries++
		waited = max(waited, wait)
	}})
	if err != nil {
		t.Fatal(err)
	}
	if retries < 9 || waited != time.Second {
		t.Errorf("%d retries, longest wait %v", retries, waited)
	}
	// A wait that nobody would sit through is an error at once.
	h.hook = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(429)
		return true
	}
	start := time.Now()
	if _, err := Resolve(context.Background(), "org/name@refs/pr/1", opt, Events{}); !errors.Is(err, ErrRateLimited) || !strings.Contains(err.Error(), "1h0m0s") {
		t.Errorf("error %v", err)
	}
	if time.Since(start) > 10*time.Second {
		t.Error("it waited")
	}
}

// All but the weights can be had by themselves; the weights follow later.
func TestNoWeights(t *testing.T) {
	h := newFakeHub(t)
	opt := h.options(t)
	some := opt
	some.NoWeights = true
	dir, err := Resolve(context.Background(), "org/name", some, Events{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "config.json")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "model.safetensors")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the weights came along: %v", err)
	}
	offline := opt
	offline.Offline = true
	if _, err := Resolve(context.Background(), "org/name", offline, Events{}); err == nil {
		t.Error("a folder without weights passes for a model")
	}
	all, err := Resolve(context.Background(), "org/name", opt, Events{})
	if err != nil || all != dir {
		t.Fatalf("%s, %v, want %s", all, err, dir)
	}
	if _, err := os.Stat(filepath.Join(dir, "model.safetensors")); err != nil {
		t.Error(err)
	}
	offline.NoWeights = true
	if again, err := Resolve(context.Background(), "org/name", offline, Events{}); err != nil || again != dir {
		t.Errorf("%s, %v", again, err)
	}
}
