package hub

import (
	"crypto/sha1"
	sha2 "crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const commitA = "0123456789abcdef0123456789abcdef01234567"

// fakeHub speaks the hub's protocol for one repository, org/name. Large files are redirected to a second server, its "CDN".
type fakeHub struct {
	*httptest.Server
	cdn *httptest.Server

	mu       sync.Mutex
	files    map[string][]byte
	large    map[string]bool // by name: stored as LFS
	commit   string
	log      []string                                                 // "HEAD /org/name/resolve/…"
	leaks    []string                                                 // requests to the CDN that carried a token
	headers  []http.Header                                            // of content requests
	hook     func(w http.ResponseWriter, r *http.Request) (done bool) // before everything on the hub
	cdnHook  func(w http.ResponseWriter, r *http.Request) (done bool)
	announce map[string]string // name → etag to announce instead of the right one
}

func newFakeHub(t *testing.T) *fakeHub {
	h := &fakeHub{
		commit: commitA, announce: map[string]string{},
		files: map[string][]byte{
			"config.json": []byte(`{"architectures":["LlamaForCausalLM"]}`), "tokenizer.json": []byte(`{}`), "README.md": []byte("read me"),
			"model.safetensors": []byte(strings.Repeat("weights!", 50_000)), "pytorch_model.bin": []byte("pickle"), "model.gguf": []byte("gguf"),
			"onnx/model.safetensors": []byte("x"), "additional_chat_templates/tool_use.jinja": []byte("{{ x }}"),
		},
		large: map[string]bool{"model.safetensors": true},
	}
	h.Server = httptest.NewServer(http.HandlerFunc(h.serve))
	h.cdn = httptest.NewServer(http.HandlerFunc(h.serveCDN))
	t.Cleanup(func() { h.Close(); h.cdn.Close() })
	return h
}

func (h *fakeHub) options(t *testing.T) Options {
	return Options{Endpoint: h.URL, CacheDir: t.TempDir(), Token: "hf_secret", backoff: time.Millisecond, stall: 2 * time.Second}
}

func digest(b []byte, large bool) string {
	if large {
		sum := sha2.Sum256(b)
		return hex.EncodeToString(sum[:])
	}
	sum := sha1.Sum(append(fmt.Appendf(nil, "blob %d\x00", len(b)), b...))
	return hex.EncodeToString(sum[:])
}

func (h *fakeHub) etag(name string) string {
	if e, ok := h.announce[name]; ok {
		return e
	}
	return digest(h.files[name], h.large[name])
}

func (h *fakeHub) serve(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.log = append(h.log, r.Method+" "+r.URL.Path)
	if h.hook != nil && h.hook(w, r) {
		return
	}
	if rev, ok := strings.CutPrefix(r.URL.EscapedPath(), "/api/models/org/name/revision/"); ok {
		if rev != "main" && rev != h.commit && rev != "refs%2Fpr%2F1" {
			fail(w, 404, "RevisionNotFound")
			return
		}
		type sibling struct {
			Name string `json:"rfilename"`
			Size int    `json:"size"`
		}
		var list []sibling
		for name, b := range h.files {
			list = append(list, sibling{name, len(b)})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"id": "org/name", "sha": h.commit, "siblings": list})
		return
	}
	name, ok := strings.CutPrefix(r.URL.Path, "/org/name/resolve/"+h.commit+"/")
	if !ok {
		fail(w, 404, "RepoNotFound")
		return
	}
	b, ok := h.files[name]
	if !ok {
		fail(w, 404, "EntryNotFound")
		return
	}
	w.Header().Set("X-Repo-Commit", h.commit)
	if h.large[name] {
		w.Header().Set("X-Linked-Etag", strconv.Quote(h.etag(name)))
		w.Header().Set("X-Linked-Size", strconv.Itoa(len(b)))
		w.Header().Set("Etag", `"of-the-redirect"`)
		http.Redirect(w, r, h.cdn.URL+"/"+name, http.StatusFound)
		return
	}
	w.Header().Set("Etag", strconv.Quote(h.etag(name)))
	h.content(w, r, b)
}

func (h *fakeHub) serveCDN(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.log = append(h.log, "CDN "+r.Method+" "+r.URL.Path)
	if r.Header.Get("Authorization") != "" {
		h.leaks = append(h.leaks, r.URL.Path)
	}
	if h.cdnHook != nil && h.cdnHook(w, r) {
		return
	}
	h.content(w, r, h.files[strings.TrimPrefix(r.URL.Path, "/")])
}

// content answers with the bytes, or the range asked for.
func (h *fakeHub) content(w http.ResponseWriter, r *http.Request, b []byte) {
	h.headers = append(h.headers, r.Header.Clone())
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(b)))
}

func fail(w http.ResponseWriter, status int, code string) {
	if code != "" {
		w.Header().Set("X-Error-Code", code)
	}
	w.WriteHeader(status)
}

// count tells how many requests had this in their log line.
func (h *fakeHub) count(part string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.log {
		if strings.Contains(l, part) {
			n++
		}
	}
	return n
}
