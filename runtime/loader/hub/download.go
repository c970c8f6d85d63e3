package hub

import (
	"context"
	"crypto/sha1" // git's name for a small file, not a guard against an attacker: those files are small, and come from the same server
	sha2 "crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// worthwhile is how many bytes a try must bring to count as progress: a server that drips is given up like one that is silent.
const worthwhile = 64 << 10

var errStalled = errors.New("no byte came for too long")

// fetch brings one file into the cache, or finds it there.
func (c *client) fetch(ctx context.Context, store cache, repo Repo, commitID string, m meta) error {
	if store.have(commitID, m) {
		c.ev.progress(m.name, m.size, m.size)
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(store.blob(m.etag)), 0o777); err != nil {
		return fmt.Errorf("making the cache folder: %w", err)
	}
	unlock, err := c.lock(ctx, store, m)
	if err != nil {
		return err
	}
	defer unlock()
	if !store.haveBlob(m) {
		if err := c.download(ctx, store, repo, commitID, m); err != nil {
			return err
		}
	}
	c.ev.progress(m.name, m.size, m.size)
	return store.link(commitID, m)
}

// download makes the blob, going on from a partial one. The caller holds its lock.
func (c *client) download(ctx context.Context, store cache, repo Repo, commitID string, m meta) error {
	d := &partial{client: c, repo: repo, meta: m, url: c.address(repo, commitID, m.name)}
	path := store.partial(m.etag)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return fmt.Errorf("downloading %s: %w", m.name, err)
	}
	defer f.Close()
	d.f = f
	if err := d.readBack(ctx); err != nil {
		return fmt.Errorf("downloading %s: reading what is there of it: %w", m.name, err)
	}
	resumed := d.done > 0
	err = c.again(ctx, "downloading "+m.name, func() (bool, error) {
		before := d.done
		err := d.rest(ctx)
		return d.done-before >= worthwhile, err
	})
	if err == nil {
		err = d.check()
		if errors.Is(err, ErrIntegrity) && resumed { // the part from an earlier time may be what is wrong
			if err = d.reset(); err == nil {
				if err = c.again(ctx, "downloading "+m.name, func() (bool, error) { return false, d.rest(ctx) }); err == nil {
					err = d.check()
				}
			}
		}
		if errors.Is(err, ErrIntegrity) {
			os.Remove(path) // of no use to anyone
		}
	}
	if err != nil {
		return noSpace(err, m)
	}
	if err := f.Sync(); err != nil {
		return noSpace(fmt.Errorf("writing %s: %w", m.name, err), m)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("writing %s: %w", m.name, err)
	}
	if err := os.Rename(path, store.blob(m.etag)); err != nil {
		return fmt.Errorf("putting %s into the cache: %w", m.name, err)
	}
	return nil
}

// partial is a file on its way.
type partial struct {
	*client
	repo Repo
	meta meta
	url  string
	f    *os.File
	done int64 // bytes in f, all of them in sum
	sum  hash.Hash
	last time.Time // of a progress report
}

// start begins the digest that the etag is of.
func (d *partial) start() {
	d.done = 0
	switch {
	case sha256.MatchString(d.meta.etag):
		d.sum = sha2.New()
	case commit.MatchString(d.meta.etag):
		d.sum = sha1.New()
		fmt.Fprintf(d.sum, "blob %d\x00", d.meta.size)
	default: // a mirror with etags of its own: the size is all there is to check
		d.sum = nil
	}
}

// readBack takes over what an earlier download left.
func (d *partial) readBack(ctx context.Context) error {
	d.start()
	st, err := d.f.Stat()
	if err != nil {
		return err
	}
	if st.Size() > d.meta.size || d.sum == nil { // what cannot be checked in the end is not trusted
		return d.reset()
	}
	if _, err := d.f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	buf := make([]byte, 1<<20)
	for ctx.Err() == nil {
		n, err := d.f.Read(buf)
		d.sum.Write(buf[:n])
		d.done += int64(n)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

func (d *partial) reset() error {
	d.start()
	if err := d.f.Truncate(0); err != nil {
		return err
	}
	_, err := d.f.Seek(0, io.SeekStart)
	return err
}

// rest asks for what is missing and appends it.
func (d *partial) rest(ctx context.Context) error {
	if d.done == d.meta.size {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(d.opt.stall, func() { cancel(errStalled) })
	defer watch.Stop()

	header := http.Header{}
	if d.done > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", d.done))
	}
	res, err := d.do(ctx, http.MethodGet, d.url, header, false)
	if err != nil {
		return causeOf(ctx, err)
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusPartialContent && d.done > 0:
		if at, ok := rangeStart(res.Header.Get("Content-Range")); !ok || at != d.done {
			return fmt.Errorf("%w: %s: asked for bytes from %d, the hub sends %q", ErrIntegrity, d.meta.name, d.done, clip(res.Header.Get("Content-Range")))
		}
	case res.StatusCode == http.StatusOK: // all of it, also where a part was asked for
		if err := d.reset(); err != nil {
			return err
		}
	case res.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		if err := d.reset(); err != nil {
			return err
		}
		return io.ErrUnexpectedEOF // again, from the start
	default:
		return d.failure(res, d.repo, d.meta.name)
	}
	return causeOf(ctx, d.copy(res.Body, watch))
}

// causeOf gives the reason for which a context ended, if that is why err came.
func causeOf(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (d *partial) copy(body io.Reader, watch *time.Timer) error {
	buf := make([]byte, 256<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			watch.Reset(d.opt.stall)
			if int64(n) > d.meta.size-d.done {
				return fmt.Errorf("%w: %s has more than the announced %d bytes", ErrIntegrity, d.meta.name, d.meta.size)
			}
			if _, err := d.f.Write(buf[:n]); err != nil {
				return fmt.Errorf("writing %s: %w", d.meta.name, err)
			}
			if d.sum != nil {
				d.sum.Write(buf[:n])
			}
			d.done += int64(n)
			if now := time.Now(); now.Sub(d.last) > 100*time.Millisecond && d.done < d.meta.size {
				d.last = now
				d.ev.progress(d.meta.name, d.done, d.meta.size)
			}
		}
		switch {
		case err == io.EOF && d.done < d.meta.size:
			return io.ErrUnexpectedEOF
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// check compares the digest with the one announced.
func (d *partial) check() error {
	if d.done != d.meta.size {
		return fmt.Errorf("%w: %s has %d bytes, announced are %d", ErrIntegrity, d.meta.name, d.done, d.meta.size)
	}
	if d.sum == nil {
		return nil
	}
	if got := hex.EncodeToString(d.sum.Sum(nil)); got != d.meta.etag {
		return fmt.Errorf("%w: the digest of %s is %s, announced is %s; if this happens again, something on the way changes it",
			ErrIntegrity, d.meta.name, got, d.meta.etag)
	}
	return nil
}

// rangeStart reads the first number of "bytes 5-9/10".
func rangeStart(s string) (int64, bool) {
	s, ok := strings.CutPrefix(s, "bytes ")
	from, _, _ := strings.Cut(s, "-")
	n, err := strconv.ParseInt(from, 10, 64)
	return n, ok && err == nil
}
