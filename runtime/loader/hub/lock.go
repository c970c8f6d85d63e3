package hub

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const (
	lockPoll  = 100 * time.Millisecond
	lockStill = 2 * time.Minute // how long another download may stand still before we stop waiting for it
)

// lock takes the lock that huggingface_hub takes for the same blob. It waits while another process downloads it.
func (c *client) lock(ctx context.Context, store cache, m meta) (unlock func(), err error) {
	path := store.lockFile(m.etag)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return nil, fmt.Errorf("locking %s: %w", m.name, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", m.name, err)
	}
	moved, size := time.Now(), int64(-1)
	for {
		ok, err := tryLock(f)
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("locking %s: %w", m.name, err)
		}
		if ok {
			return func() { f.Close() }, nil // the system frees a closed file's lock
		}
		if now := partialBytes(store, m.etag); now != size {
			moved, size = time.Now(), now
			c.ev.progress(m.name, min(now, m.size), m.size)
		}
		if time.Since(moved) > lockStill {
			f.Close()
			return nil, fmt.Errorf("downloading %s: %w (%s) and makes no progress: end it and try again", m.name, ErrLocked, path)
		}
		timer := time.NewTimer(lockPoll)
		select {
		case <-ctx.Done():
			timer.Stop()
			f.Close()
			return nil, fmt.Errorf("waiting for another download of %s: %w", m.name, context.Cause(ctx))
		case <-timer.C:
		}
	}
}

// partialBytes adds up the unfinished files of a blob; huggingface_hub gives each process one of its own.
func partialBytes(store cache, tag string) (n int64) {
	files, _ := filepath.Glob(store.blob(tag) + "*.incomplete")
	for _, f := range files {
		if st, err := os.Stat(f); err == nil {
			n += st.Size()
		}
	}
	return n
}
