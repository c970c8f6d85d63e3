package hub

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"golang.org/x/sync/errgroup"
)

// spare is what a download leaves free on the disk.
const spare = 64 << 20

// Resolve gives the folder of a model, after bringing what is missing of it into the cache. repo is org/name or org/name@revision.
//
// A revision that is a commit and complete in the cache is not looked up. Where the hub cannot be reached, a complete model that the
// cache has for the revision is used, and Events.Cached says so. When ctx ends, so does Resolve; what was downloaded is kept.
//
// Errors wrap one of this package's Err values where the reason is one of them.
func Resolve(ctx context.Context, repo string, opt Options, ev Events) (dir string, err error) {
	r, err := ParseRepo(repo)
	if err != nil {
		return "", err
	}
	opt = opt.withDefaults()
	store := newCache(opt.CacheDir, r)
	if opt.Offline {
		return local(store, r, opt.NoWeights)
	}
	if commit.MatchString(r.Revision) && store.complete(r.Revision) == nil {
		return store.snapshot(r.Revision), nil
	}
	c, err := newClient(opt, ev)
	if err != nil {
		return "", err
	}
	defer c.close()

	l, err := c.list(ctx, r)
	if err != nil {
		if errors.Is(err, ErrUnavailable) {
			if id, ok := store.find(r.Revision); ok && store.complete(id) == nil {
				ev.cached(r.String(), id, err)
				return store.snapshot(id), nil
			}
		}
		return "", err
	}
	if err := c.pull(ctx, store, r, l); err != nil {
		return "", err
	}
	return store.snapshot(l.commit), nil
}

// local finds a model in the cache only.
func local(store cache, r Repo, noWeights bool) (string, error) {
	id, ok := store.find(r.Revision)
	if !ok {
		return "", fmt.Errorf("%s: %w (HF_HUB_OFFLINE): unset it, or pull the model first; looked in %s", r, ErrOffline, store.dir)
	}
	if _, err := os.Stat(store.pointer(id, "config.json")); noWeights && err == nil {
		return store.snapshot(id), nil
	}
	if err := store.complete(id); err != nil {
		return "", fmt.Errorf("%s: %w (HF_HUB_OFFLINE), and %s holds a part only: %w", r, ErrOffline, store.snapshot(id), err)
	}
	return store.snapshot(id), nil
}

// pull brings all files of a listing that a model needs.
func (c *client) pull(ctx context.Context, store cache, r Repo, l listing) error {
	small, err := selectSmall(l.files)
	if err != nil {
		return fmt.Errorf("%s: %w", r, err)
	}
	if err := os.MkdirAll(store.dir, 0o777); err != nil {
		return fmt.Errorf("making the cache folder: %w", err)
	}
	smallMeta, err := c.heads(ctx, r, l.commit, small)
	if err != nil {
		return err
	}
	var shards []string
	for _, m := range smallMeta {
		if m.name != indexName {
			continue
		}
		// The index says which other files there are, so it comes first.
		if m.size > maxIndex {
			return fmt.Errorf("%s: %s has %d bytes, more than the limit of %d", r, indexName, m.size, maxIndex)
		}
		if err := c.quiet().fetch(ctx, store, r, l.commit, m); err != nil {
			return fmt.Errorf("%s: %w", r, err)
		}
		if shards, err = readIndex(store.pointer(l.commit, indexName)); err != nil {
			return fmt.Errorf("%s: %w", r, err)
		}
	}
	if c.opt.NoWeights { // the listing is not noted as complete: the weights may follow
		return c.fetchAll(ctx, store, r, l.commit, smallMeta)
	}
	weights, err := selectWeights(l.files, shards)
	if err != nil {
		return fmt.Errorf("%s: %w", r, err)
	}
	weightMeta, err := c.heads(ctx, r, l.commit, weights)
	if err != nil {
		return err
	}
	if err := c.fetchAll(ctx, store, r, l.commit, append(smallMeta, weightMeta...)); err != nil {
		return err
	}
	if err := store.noteMissing(l.commit, l.files); err != nil {
		return fmt.Errorf("%s: %w", r, err)
	}
	// Last, so that the revision points to a commit only once it is complete.
	return store.writeRef(r.Revision, l.commit)
}

// quiet reports no progress: the plan is not known yet.
func (c *client) quiet() *client {
	q := *c
	q.ev.Progress = nil
	return &q
}

// heads asks what the hub announces of each file.
func (c *client) heads(ctx context.Context, r Repo, commitID string, files []file) ([]meta, error) {
	out := make([]meta, len(files))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(c.opt.Parallel)
	for i, f := range files {
		g.Go(func() (err error) {
			out[i], err = c.head(ctx, r, commitID, f)
			return err
		})
	}
	return out, g.Wait()
}

func (c *client) fetchAll(ctx context.Context, store cache, r Repo, commitID string, files []meta) error {
	var total, have, missing int64
	for _, m := range files {
		total += m.size
		switch {
		case store.have(commitID, m), store.haveBlob(m):
			have += m.size
		default:
			part := int64(0)
			if st, err := os.Stat(store.partial(m.etag)); err == nil {
				part = min(st.Size(), m.size)
			}
			have += part
			missing += m.size - part
		}
	}
	if free, ok := c.opt.free(store.dir); ok && missing > 0 && uint64(missing)+spare > free {
		return fmt.Errorf("%s: %w: %d bytes are to be downloaded, %d are free in %s: make space, or set HF_HOME to another disk",
			r, ErrDiskFull, missing, free, store.root)
	}
	c.ev.plan(r.String(), commitID, len(files), total, have)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(c.opt.Parallel)
	for _, m := range files {
		g.Go(func() error {
			if err := c.fetch(ctx, store, r, commitID, m); err != nil {
				return fmt.Errorf("%s: %w", r, err)
			}
			return nil
		})
	}
	return g.Wait()
}

func sortedKeys(m map[string]bool) []string { return slices.Sorted(maps.Keys(m)) }
