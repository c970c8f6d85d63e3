package hub

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestFromEnv(t *testing.T) {
	home := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		p := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(".cache/huggingface/token", "hf_file\n")
	write("other/token", "hf_other")
	for name, c := range map[string]struct {
		env  map[string]string
		want Options
	}{
		"nothing":     {nil, Options{Endpoint: "https://huggingface.co", CacheDir: "~/.cache/huggingface/hub", Token: "hf_file"}},
		"home":        {map[string]string{"HF_HOME": "~/other"}, Options{Endpoint: "https://huggingface.co", CacheDir: "~/other/hub", Token: "hf_other"}},
		"xdg":         {map[string]string{"XDG_CACHE_HOME": home + "/x"}, Options{Endpoint: "https://huggingface.co", CacheDir: "~/x/huggingface/hub"}},
		"cache":       {map[string]string{"HF_HUB_CACHE": "$HOME/c", "HF_HOME": "~/other"}, Options{Endpoint: "https://huggingface.co", CacheDir: "~/c", Token: "hf_other"}},
		"token first": {map[string]string{"HF_TOKEN": " hf_env ", "HUGGING_FACE_HUB_TOKEN": "old"}, Options{Endpoint: "https://huggingface.co", CacheDir: "~/.cache/huggingface/hub", Token: "hf_env"}},
		"token path":  {map[string]string{"HF_TOKEN_PATH": "~/other/token"}, Options{Endpoint: "https://huggingface.co", CacheDir: "~/.cache/huggingface/hub", Token: "hf_other"}},
		"no token":    {map[string]string{"HF_TOKEN": "x", "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1"}, Options{Endpoint: "https://huggingface.co", CacheDir: "~/.cache/huggingface/hub"}},
		"mirror":      {map[string]string{"HF_ENDPOINT": "http://127.0.0.1:9/", "HF_HUB_OFFLINE": "yes"}, Options{Endpoint: "http://127.0.0.1:9", CacheDir: "~/.cache/huggingface/hub", Token: "hf_file", Offline: true}},
		"not offline": {map[string]string{"HF_HUB_OFFLINE": "0"}, Options{Endpoint: "https://huggingface.co", CacheDir: "~/.cache/huggingface/hub", Token: "hf_file"}},
	} {
		got, err := fromEnv(func(k string) string {
			if k == "HOME" {
				return home
			}
			return c.env[k]
		})
		c.want.CacheDir = strings.Replace(c.want.CacheDir, "~", home, 1)
		if err != nil || got.Endpoint != c.want.Endpoint || got.CacheDir != c.want.CacheDir || got.Token != c.want.Token || got.Offline != c.want.Offline {
			t.Errorf("%s: got %+v, %v; want %+v", name, got, err, c.want)
		}
	}
	for _, env := range []map[string]string{{"HF_ENDPOINT": "huggingface.co"}, {"HF_ENDPOINT": "ftp://x"}, {"HF_TOKEN": "a\nb"}} {
		if _, err := fromEnv(func(k string) string {
			if k == "HOME" {
				return home
			}
			return env[k]
		}); err == nil || strings.Contains(err.Error(), "a\nb") {
			t.Errorf("%v: error %v", env, err)
		}
	}
}

func TestParseRepo(t *testing.T) {
	for s, want := range map[string]Repo{
		"org/name":              {"org/name", "main"},
		"Qwen/Qwen2.5-0.5B@v1":  {"Qwen/Qwen2.5-0.5B", "v1"},
		"o/n@refs/pr/3":         {"o/n", "refs/pr/3"},
		"meta-llama/Llama_3.1B": {"meta-llama/Llama_3.1B", "main"},
	} {
		if got, err := ParseRepo(s); err != nil || got != want {
			t.Errorf("%q: %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "name", "/name", "org/", "a/b/c", "org/na me", "org/../x", "org/..", "./x", "org/name@", "org/name@../x", "org/name@/x", "org/name@a\\b", "org/n--x", "org/x.git", "org/-x", "org/x\x00", "http://x/y", strings.Repeat("a", 90) + "/" + strings.Repeat("b", 90)} {
		if got, err := ParseRepo(s); !errors.Is(err, ErrBadID) {
			t.Errorf("%q: %v, %v", s, got, err)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for s, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-1": 0, "x": 0, "99999999": 24 * time.Hour,
		"Fri, 02 Jan 2026 03:04:15 GMT": 10 * time.Second, "Fri, 02 Jan 2026 03:04:00 GMT": 0,
	} {
		if got := retryAfter(s, now); got != want {
			t.Errorf("%q: %v, want %v", s, got, want)
		}
	}
}

func FuzzListing(f *testing.F) {
	f.Add([]byte(`{"sha":"0123456789abcdef0123456789abcdef01234567","siblings":[{"rfilename":"model.safetensors","size":5},{"rfilename":"config.json"}]}`), []byte(`{"weight_map":{"a":"b.safetensors"}}`))
	f.Fuzz(func(t *testing.T, list, index []byte) {
		l, err := parseListing(list)
		if err != nil {
			return
		}
		small, err := selectSmall(l.files)
		if err != nil {
			return
		}
		shards, err := parseIndex(index)
		if err != nil {
			shards = nil
		}
		weights, err := selectWeights(l.files, shards)
		if err != nil {
			return
		}
		for _, f := range append(small, weights...) {
			if !safePath(f.name) {
				t.Errorf("unsafe name %q", f.name)
			}
		}
	})
}
