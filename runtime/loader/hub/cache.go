package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// cache is the folder of one repository in the layout of huggingface_hub.
type cache struct {
	root string // of all repositories
	dir  string // models--org--name
}

func newCache(root string, repo Repo) cache {
	return cache{root, filepath.Join(root, "models--"+strings.ReplaceAll(repo.ID, "/", "--"))}
}

func (c cache) snapshot(commitID string) string { return filepath.Join(c.dir, "snapshots", commitID) }
func (c cache) blob(tag string) string          { return filepath.Join(c.dir, "blobs", tag) }
func (c cache) partial(tag string) string       { return c.blob(tag) + ".incomplete" }

func (c cache) lockFile(tag string) string {
	return filepath.Join(c.root, ".locks", filepath.Base(c.dir), tag+".lock")
}

func (c cache) pointer(commitID, name string) string {
	return filepath.Join(c.snapshot(commitID), filepath.FromSlash(name))
}

// have tells whether a file is in the snapshot with the size that the hub announced.
func (c cache) have(commitID string, m meta) bool {
	st, err := os.Stat(c.pointer(commitID, m.name))
	return err == nil && st.Mode().IsRegular() && st.Size() == m.size
}

// haveBlob tells whether the content is here, perhaps for another commit. A blob of the wrong size will be replaced.
func (c cache) haveBlob(m meta) bool {
	st, err := os.Stat(c.blob(m.etag))
	return err == nil && st.Mode().IsRegular() && st.Size() == m.size
}

// link makes the snapshot's entry: a relative link to the blob, put in place at once.
func (c cache) link(commitID string, m meta) error {
	pointer, blob := c.pointer(commitID, m.name), c.blob(m.etag)
	if err := os.MkdirAll(filepath.Dir(pointer), 0o777); err != nil {
		return fmt.Errorf("making the snapshot's folder: %w", err)
	}
	to, err := filepath.Rel(filepath.Dir(pointer), blob)
	if err != nil {
		return fmt.Errorf("linking %s: %w", m.name, err)
	}
	tmp, err := tempName(pointer)
	if err != nil {
		return err
	}
	defer os.Remove(tmp)                        // nothing is left there after the rename
	if err := os.Symlink(to, tmp); err != nil { // a file system without symbolic links
		if err := os.Link(blob, tmp); err != nil { // or without any
			if err := copyFile(blob, tmp); err != nil {
				return fmt.Errorf("putting %s into the snapshot: %w", m.name, err)
			}
		}
	}
	if err := os.Rename(tmp, pointer); err != nil {
		return fmt.Errorf("putting %s into the snapshot: %w", m.name, err)
	}
	return nil
}

// tempName gives a name beside p that nothing has.
func tempName(p string) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(p), "."+filepath.Base(p)+".*.tmp")
	if err != nil {
		return "", fmt.Errorf("writing into the cache: %w", err)
	}
	defer f.Close()
	return f.Name(), os.Remove(f.Name())
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

// writeFile puts a small file in place at once.
func writeFile(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	tmp, err := tempName(path)
	if err != nil {
		return err
	}
	if err := os.WriteFile(tmp, []byte(text), 0o666); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

func (c cache) writeRef(revision, commitID string) error {
	path := filepath.Join(c.dir, "refs", filepath.FromSlash(revision))
	if revision == commitID {
		return nil
	}
	if b, err := os.ReadFile(path); err == nil && string(b) == commitID {
		return nil
	}
	if err := writeFile(path, commitID); err != nil {
		return fmt.Errorf("noting the commit of %s: %w", revision, err)
	}
	return nil
}

// noteMissing marks the optional files that a commit does not have, so that other programs do not ask for them again.
func (c cache) noteMissing(commitID string, files []file) error {
	there := map[string]bool{}
	for _, f := range files {
		there[f.name] = true
	}
	for _, name := range optional {
		path := filepath.Join(c.dir, ".no_exist", commitID, name)
		if _, err := os.Stat(path); there[name] || err == nil {
			continue
		}
		if err := writeFile(path, ""); err != nil {
			return fmt.Errorf("noting that there is no %s: %w", name, err)
		}
	}
	return nil
}

// find gives the commit that a revision had when it was last looked up.
func (c cache) find(revision string) (string, bool) {
	if commit.MatchString(revision) {
		return revision, true
	}
	b, err := os.ReadFile(filepath.Join(c.dir, "refs", filepath.FromSlash(revision)))
	id := strings.TrimSpace(string(b))
	return id, err == nil && commit.MatchString(id)
}

const maxIndex = 64 << 20

// complete tells whether a snapshot has its config and all its weights; the error names what is missing.
func (c cache) complete(commitID string) error {
	for _, name := range []string{configName, singleName} {
		if _, err := os.Stat(c.pointer(commitID, name)); name == singleName && err == nil {
			return nil
		} else if name == configName && err != nil {
			return fmt.Errorf("%s is missing", name)
		}
	}
	shards, err := readIndex(c.pointer(commitID, indexName))
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is missing", singleName)
	}
	if err != nil {
		return err
	}
	for _, s := range shards {
		if !safePath(s) {
			return fmt.Errorf("%w: shard %q", ErrUnsafe, clip(s))
		}
		if _, err := os.Stat(c.pointer(commitID, s)); err != nil {
			return fmt.Errorf("%s is missing", s)
		}
	}
	return nil
}

// readIndex gives the shards of an index, each once, in order of appearance in its sorted tensors.
func readIndex(path string) ([]string, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if st.Size() > maxIndex {
		return nil, fmt.Errorf("%s has %d bytes, more than the limit of %d", indexName, st.Size(), maxIndex)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseIndex(b)
}

func parseIndex(b []byte) ([]string, error) {
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(b, &index); err != nil {
		return nil, fmt.Errorf("%s: %w", indexName, err)
	}
	seen := map[string]bool{}
	for _, s := range index.WeightMap {
		seen[s] = true
	}
	if len(seen) == 0 {
		return nil, fmt.Errorf("%s: no weight_map, or an empty one", indexName)
	}
	return sortedKeys(seen), nil
}
