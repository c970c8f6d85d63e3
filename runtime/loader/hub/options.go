package hub

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Options say where a hub is and where its cache lies. FromEnv makes the usual ones.
type Options struct {
	Endpoint string // for instance https://huggingface.co, without slash at the end
	CacheDir string // the folder of models--org--name folders
	Token    string // optional
	Offline  bool   // use the cache only
	Parallel int    // files at a time; 0: 4
	// NoWeights brings all but the weights: enough to plan with.
	NoWeights bool

	// For tests; zero values are the usual ones.
	backoff time.Duration // first wait before a retry: 500 ms
	stall   time.Duration // longest time without a byte: 60 s
	free    func(dir string) (uint64, bool)
}

func (o Options) withDefaults() Options {
	if o.Parallel <= 0 {
		o.Parallel = 4
	}
	if o.backoff == 0 {
		o.backoff = 500 * time.Millisecond
	}
	if o.stall == 0 {
		o.stall = time.Minute
	}
	if o.free == nil {
		o.free = freeSpace
	}
	return o
}

const maxToken = 1 << 12

// FromEnv reads the variables that huggingface_hub reads: HF_ENDPOINT, HF_HUB_CACHE, HF_HOME, HF_TOKEN, HF_TOKEN_PATH,
// HF_HUB_DISABLE_IMPLICIT_TOKEN, HF_HUB_OFFLINE and their older names, and the token file that `hf auth login` writes.
func FromEnv() (Options, error) { return fromEnv(os.Getenv) }

func fromEnv(env func(string) string) (Options, error) {
	first := func(names ...string) string {
		for _, n := range names {
			if v := env(n); v != "" {
				return v
			}
		}
		return ""
	}
	home := first("HF_HOME")
	if home == "" {
		base := first("XDG_CACHE_HOME")
		if base == "" {
			base = "~/.cache"
		}
		home = filepath.Join(base, "huggingface")
	}
	cache := first("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE")
	if cache == "" {
		cache = filepath.Join(home, "hub")
	}
	cache, err := expand(cache, env)
	if err != nil {
		return Options{}, fmt.Errorf("the cache folder: %w", err)
	}
	o := Options{
		Endpoint: strings.TrimRight(first("HF_ENDPOINT"), "/"),
		CacheDir: cache,
		Offline:  isTrue(first("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")),
	}
	if o.Endpoint == "" {
		o.Endpoint = "https://huggingface.co"
	}
	if u, err := url.Parse(o.Endpoint); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return Options{}, fmt.Errorf("HF_ENDPOINT is %q: want a URL such as https://huggingface.co", o.Endpoint)
	}
	if !isTrue(env("HF_HUB_DISABLE_IMPLICIT_TOKEN")) {
		o.Token = strings.TrimSpace(first("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"))
		if o.Token == "" {
			file := first("HF_TOKEN_PATH")
			if file == "" {
				file = filepath.Join(home, "token")
			}
			if o.Token, err = tokenFile(file, env); err != nil {
				return Options{}, err
			}
		}
	}
	if strings.ContainsFunc(o.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return Options{}, fmt.Errorf("the hub's token has a character that no token has: check HF_TOKEN or the token file")
	}
	return o, nil
}

func tokenFile(file string, env func(string) string) (string, error) {
	file, err := expand(file, env)
	if err != nil {
		return "", nil // without a home there is no token either
	}
	st, err := os.Stat(file)
	if err != nil || st.Size() > maxToken || !st.Mode().IsRegular() {
		return "", nil // huggingface_hub goes without a token too
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("reading the hub's token: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// expand resolves ~ and $VARIABLES, and makes the path absolute.
func expand(p string, env func(string) string) (string, error) {
	p = os.Expand(p, env)
	if p == "~" || strings.HasPrefix(p, "~/") {
		home := env("HOME")
		if home == "" {
			var err error
			if home, err = os.UserHomeDir(); err != nil {
				return "", err
			}
		}
		p = filepath.Join(home, p[1:])
	}
	return filepath.Abs(p)
}

func isTrue(s string) bool {
	switch strings.ToUpper(s) {
	case "1", "ON", "YES", "TRUE":
		return true
	}
	return false
}

// Events are called as a download goes on; any may be nil. Progress and Retry come from several goroutines at a time.
type Events struct {
	// Plan comes once, before the first Progress: the commit, the number of files, their bytes in all and how many of these are here
	// already. Progress counts those too.
	Plan func(repo, commit string, files int, total, have int64)
	// Progress has the bytes of a file that are here. The last call for a file has done equal to size.
	Progress func(file string, done, size int64)
	// Retry says that something failed and is tried again after a wait.
	Retry func(what string, err error, wait time.Duration)
	// Cached says that the hub could not be asked, and a complete model in the cache is used instead.
	Cached func(repo, commit string, err error)
}

func (e Events) plan(repo, commit string, files int, total, have int64) {
	if e.Plan != nil {
		e.Plan(repo, commit, files, total, have)
	}
}

func (e Events) progress(file string, done, size int64) {
	if e.Progress != nil {
		e.Progress(file, done, size)
	}
}

func (e Events) retry(what string, err error, wait time.Duration) {
	if e.Retry != nil {
		e.Retry(what, err, wait)
	}
}

func (e Events) cached(repo, commit string, err error) {
	if e.Cached != nil {
		e.Cached(repo, commit, err)
	}
}
