package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	metaTimeout  = 30 * time.Second // one request without a body to keep
	maxAttempts  = 6
	maxWait      = 30 * time.Second // one wait between attempts
	maxRedirects = 8
	maxListing   = 64 << 20
	maxFile      = 1 << 50 // bytes; no such file exists, and sums of sizes stay far from overflow
)

// client speaks the hub's protocol.
type client struct {
	opt  Options
	base *url.URL
	http *http.Client
	ev   Events
}

func newClient(opt Options, ev Events) (*client, error) {
	base, err := url.Parse(opt.Endpoint)
	if err != nil || base.Host == "" {
		return nil, fmt.Errorf("the hub's endpoint %q is no URL", opt.Endpoint)
	}
	return &client{opt: opt, base: base, ev: ev, http: &http.Client{
		Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout:   10 * time.Second,
			ResponseHeaderTimeout: metaTimeout,
			IdleConnTimeout:       30 * time.Second,
			MaxIdleConnsPerHost:   2 * opt.Parallel,
			DisableCompression:    true, // sizes and digests are of the bytes as stored
			ForceAttemptHTTP2:     true,
		},
		// Redirects are followed by do, which knows where the token may go.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func (c *client) close() { c.http.CloseIdleConnections() }

// do sends a request and follows redirects: all of them, or with stayHome only those on the hub itself (the answer then tells where
// the content lies). The token goes to the hub's own scheme, host and port and nowhere else.
func (c *client) do(ctx context.Context, method, address string, header http.Header, stayHome bool) (*http.Response, error) {
	for range maxRedirects {
		req, err := http.NewRequestWithContext(ctx, method, address, nil)
		if err != nil {
			return nil, err
		}
		for k, v := range header {
			req.Header[k] = v
		}
		req.Header.Set("User-Agent", "infer")
		req.Header.Set("Accept-Encoding", "identity")
		if c.home(req.URL) && c.opt.Token != "" {
			req.Header.Set("Authorization", "Bearer "+c.opt.Token)
		}
		res, err := c.http.Do(req)
		if err != nil {
			return nil, err
		}
		if res.StatusCode < 300 || res.StatusCode > 399 || res.StatusCode == http.StatusNotModified {
			return res, nil
		}
		next, err := res.Location()
		if err != nil {
			drop(res)
			return nil, fmt.Errorf("%s %s: a redirect without a place: %w", method, req.URL.Redacted(), err)
		}
		if stayHome && !c.home(next) {
			return res, nil
		}
		drop(res)
		if next.Scheme != "https" && (next.Scheme != "http" || c.base.Scheme == "https") {
			return nil, fmt.Errorf("%s %s: a redirect to %s, which is not safe", method, req.URL.Redacted(), next.Redacted())
		}
		address = next.String()
	}
	return nil, fmt.Errorf("%s %s: more than %d redirects", method, clip(address), maxRedirects)
}

// home tells whether a URL is on the hub itself.
func (c *client) home(u *url.URL) bool {
	return u.Scheme == c.base.Scheme && strings.EqualFold(u.Host, c.base.Host)
}

// drop reads the little that may be left, so that the connection can be used again.
func drop(res *http.Response) {
	io.CopyN(io.Discard, res.Body, 64<<10) //nolint:errcheck // the answer is not needed
	res.Body.Close()
}

// statusError is an answer that is no success.
type statusError struct {
	status int
	after  time.Duration // Retry-After; 0 if it does not say
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

// failure turns an answer into an error that says what to do.
func (c *client) failure(res *http.Response, repo Repo, what string) error {
	code, message := res.Header.Get("X-Error-Code"), clip(res.Header.Get("X-Error-Message"))
	page := c.opt.Endpoint + "/" + repo.ID
	has := c.opt.Token != ""
	e := &statusError{status: res.StatusCode}
	wrap := func(reason error, format string, a ...any) {
		e.err = fmt.Errorf("%s of %s: %w%s (HTTP %d)", what, repo, reason, fmt.Sprintf(format, a...), res.StatusCode)
	}
	switch {
	case code == "GatedRepo" && !has:
		wrap(ErrGated, ": accept its terms at %s, then set HF_TOKEN to a token of your account", page)
	case code == "GatedRepo":
		wrap(ErrGated, ": your token's account has no access yet; ask for it at %s", page)
	case code == "RevisionNotFound":
		wrap(ErrRevisionNotFound, ": %q; see %s/tree/main for branches", repo.Revision, page)
	case code == "EntryNotFound":
		wrap(ErrEntryNotFound, "")
	case res.StatusCode == http.StatusUnauthorized && has && strings.Contains(message, "Invalid credentials"):
		wrap(ErrUnauthorized, ": make a new one at %s/settings/tokens and set HF_TOKEN", c.opt.Endpoint)
	case code == "RepoNotFound" || res.StatusCode == http.StatusNotFound && code == "", res.StatusCode == http.StatusUnauthorized:
		hint := ": check the name; for a private one set HF_TOKEN"
		if has {
			hint = ": check the name, and that your token may read it"
		}
		wrap(ErrRepoNotFound, "%s", hint)
	case res.StatusCode == http.StatusForbidden:
		wrap(ErrForbidden, ": %s; check that your token may read it, at %s/settings/tokens", orElse(message, "the hub gives no reason"), c.opt.Endpoint)
	case res.StatusCode == http.StatusTooManyRequests:
		e.after = retryAfter(res.Header.Get("Retry-After"), time.Now())
		hint := ": wait and try again"
		if e.after > 0 {
			hint = fmt.Sprintf(": try again in %s", e.after.Round(time.Second))
		}
		if !has {
			hint += ", or set HF_TOKEN for a higher limit"
		}
		wrap(ErrRateLimited, "%s", hint)
	case res.StatusCode >= 500:
		e.after = retryAfter(res.Header.Get("Retry-After"), time.Now())
		wrap(ErrUnavailable, ": it answers with an error of its own; try again later")
	default:
		e.err = fmt.Errorf("%s of %s: the hub answers HTTP %d %s", what, repo, res.StatusCode, message)
	}
	return e
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// retryAfter reads seconds or a date; what it cannot read is 0.
func retryAfter(s string, now time.Time) time.Duration {
	if n, err := strconv.Atoi(strings.TrimSpace(s)); err == nil && n > 0 {
		return time.Duration(min(n, 24*3600)) * time.Second
	}
	if t, err := http.ParseTime(s); err == nil && t.After(now) {
		return min(t.Sub(now), 24*time.Hour)
	}
	return 0
}

// passing tells whether trying again can help: the network, a busy or broken server.
func passing(err error) bool {
	var se *statusError
	if errors.As(err, &se) {
		return se.status == http.StatusTooManyRequests || se.status >= 500 || se.status == http.StatusRequestTimeout
	}
	var ne net.Error
	var oe *net.OpError
	return errors.As(err, &ne) || errors.As(err, &oe) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, errStalled)
}

// refused tells whether there is nobody to wait for: no such host, or no server on its port.
func refused(err error) bool {
	var dns *net.DNSError
	return errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &dns) && dns.IsNotFound
}

// again runs try until it succeeds, fails for good, or has failed maxAttempts times. A try that reports progress starts the count anew.
func (c *client) again(ctx context.Context, what string, try func() (progress bool, err error)) error {
	wait := c.opt.backoff
	for attempt := 1; ; attempt++ {
		progress, err := try()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%s: %w", what, context.Cause(ctx))
		case !passing(err):
			return err
		}
		if progress {
			attempt, wait = 1, c.opt.backoff
		}
		pause := wait + rand.N(wait/2+1)
		var se *statusError
		if errors.As(err, &se) && se.after > 0 {
			if se.after > maxWait { // longer than anyone watches a prompt: say so instead
				return err
			}
			pause = se.after
		}
		if attempt >= maxAttempts || attempt >= 2 && refused(err) {
			if errors.As(err, &se) {
				return err
			}
			return fmt.Errorf("%s: %w after %d attempts (is the network there, and HF_ENDPOINT right?): %w", what, ErrUnavailable, attempt, err)
		}
		c.ev.retry(what, err, pause)
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%s: %w", what, context.Cause(ctx))
		case <-timer.C:
		}
		wait = min(2*wait, maxWait)
	}
}

// listing is what a repository holds at a commit.
type listing struct {
	commit string
	files  []file
}

func (c *client) list(ctx context.Context, repo Repo) (l listing, err error) {
	address := c.opt.Endpoint + "/api/models/" + repo.ID + "/revision/" + url.PathEscape(repo.Revision) + "?blobs=true"
	what := "the file list"
	err = c.again(ctx, what+" of "+repo.String(), func() (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, metaTimeout)
		defer cancel()
		res, err := c.do(ctx, http.MethodGet, address, nil, false)
		if err != nil {
			return false, err
		}
		defer drop(res)
		if res.StatusCode != http.StatusOK {
			return false, c.failure(res, repo, what)
		}
		b, err := io.ReadAll(io.LimitReader(res.Body, maxListing+1))
		if err != nil {
			return false, err
		}
		if len(b) > maxListing {
			return false, fmt.Errorf("the file list of %s is longer than %d bytes", repo, maxListing)
		}
		l, err = parseListing(b)
		if err != nil {
			return false, fmt.Errorf("the file list of %s: %w", repo, err)
		}
		return false, nil
	})
	return l, err
}

func parseListing(b []byte) (listing, error) {
	var raw struct {
		SHA      string `json:"sha"`
		Siblings []struct {
			Name string `json:"rfilename"`
			Size *int64 `json:"size"`
		} `json:"siblings"`
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		return listing{}, fmt.Errorf("%w (is HF_ENDPOINT a hub?)", err)
	}
	if !commit.MatchString(raw.SHA) {
		return listing{}, fmt.Errorf("%w: commit %q", ErrUnsafe, clip(raw.SHA))
	}
	l := listing{commit: raw.SHA}
	for _, s := range raw.Siblings {
		f := file{s.Name, -1}
		if s.Size != nil && *s.Size >= 0 {
			f.size = *s.Size
		}
		l.files = append(l.files, f)
	}
	return l, nil
}

// meta is what the hub announces of one file.
type meta struct {
	name string
	etag string // SHA-256 of a large file, git's SHA-1 of a small one
	size int64
}

func (c *client) head(ctx context.Context, repo Repo, commitID string, f file) (m meta, err error) {
	err = c.again(ctx, "asking for "+f.name, func() (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, metaTimeout)
		defer cancel()
		res, err := c.do(ctx, http.MethodHead, c.address(repo, commitID, f.name), nil, true)
		if err != nil {
			return false, err
		}
		defer drop(res)
		if res.StatusCode >= 400 {
			return false, c.failure(res, repo, f.name)
		}
		m, err = readMeta(res, f, commitID)
		return false, err
	})
	return m, err
}

func (c *client) address(repo Repo, commitID, name string) string {
	parts := strings.Split(name, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return c.opt.Endpoint + "/" + repo.ID + "/resolve/" + commitID + "/" + strings.Join(parts, "/")
}

func readMeta(res *http.Response, f file, commitID string) (meta, error) {
	m := meta{name: f.name, size: -1}
	tag := orElse(res.Header.Get("X-Linked-Etag"), res.Header.Get("Etag"))
	m.etag = strings.Trim(strings.TrimPrefix(tag, "W/"), `"`)
	if !etag.MatchString(m.etag) {
		return m, fmt.Errorf("%w: %s has the etag %q", ErrUnsafe, f.name, clip(tag))
	}
	if got := res.Header.Get("X-Repo-Commit"); got != "" && got != commitID {
		return m, fmt.Errorf("%w: %s is of commit %s, asked for %s", ErrIntegrity, f.name, clip(got), commitID)
	}
	size := res.Header.Get("X-Linked-Size")
	if size == "" && res.StatusCode < 300 {
		size = res.Header.Get("Content-Length")
	}
	if n, err := strconv.ParseInt(size, 10, 64); err == nil && n >= 0 {
		m.size = n
	} else {
		m.size = f.size
	}
	if m.size > maxFile {
		return m, fmt.Errorf("%w: %s is said to have %d bytes", ErrUnsafe, f.name, m.size)
	}
	if m.size < 0 {
		return m, fmt.Errorf("%w: the hub does not say how large %s is", ErrIntegrity, f.name)
	}
	return m, nil
}
