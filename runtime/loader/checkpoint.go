package loader

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// The files of a model folder that this package reads.
const (
	ConfigName     = "config.json"
	GenerationName = "generation_config.json"
	SingleName     = "model.safetensors"
	IndexName      = "model.safetensors.index.json"
)

// Limits on the JSON files, far above real ones (the largest published index
// is about 10 MB, configs are kilobytes).
const (
	maxConfig = 16 << 20
	maxIndex  = 256 << 20
	maxShards = 10_000
)

// Checkpoint is an opened model folder: headers only, no weights in memory.
type Checkpoint struct {
	Name             string // the folder as it was given
	Config           []byte // config.json as it is; not yet checked to be JSON
	GenerationConfig []byte // generation_config.json as it is; nil when absent
	Files            []*File
	// Ignored says what of the folder was not used, and why, for reports.
	Ignored []string
	byName  map[string]*Tensor
}

// Open opens a model folder. Close it after loading.
func Open(dir string, opts ...Option) (*Checkpoint, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("open model folder: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("open model folder: %s is a file: give the folder that holds %s and %s", dir, ConfigName, SingleName)
	}
	return OpenFS(os.DirFS(dir), dir, opts...)
}

// OpenFS opens a model folder that is the root of fsys, such as an embedded
// one. name stands for the folder in messages.
func OpenFS(fsys fs.FS, name string, opts ...Option) (*Checkpoint, error) {
	c := &Checkpoint{Name: name, byName: map[string]*Tensor{}}
	var err error
	if c.Config, err = readJSON(fsys, ConfigName); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is missing: %s is no model folder: %w", c.path(ConfigName), c.Name, fs.ErrNotExist)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", c.path(ConfigName), err)
	}
	c.GenerationConfig, err = readJSON(fsys, GenerationName)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", c.path(GenerationName), err)
	}
	if err := c.openWeights(fsys, makeOptions(opts)); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Checkpoint) path(name string) string { return filepath.Join(c.Name, name) }

func readJSON(fsys fs.FS, name string) ([]byte, error) {
	f, size, err := openRegular(fsys, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size > maxConfig {
		return nil, fmt.Errorf("has %d bytes, above the limit of %d", size, maxConfig)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxConfig))
	if err != nil {
		return nil, bare(err)
	}
	return b, nil
}

func (c *Checkpoint) openWeights(fsys fs.FS, o options) error {
	_, errSingle := fs.Stat(fsys, SingleName)
	_, errIndex := fs.Stat(fsys, IndexName)
	switch {
	case errSingle == nil:
		if errIndex == nil {
			c.Ignored = append(c.Ignored, IndexName+": there is a "+SingleName+", which is used whole")
		}
		f, err := openIn(fsys, SingleName, c.path(SingleName), o)
		if err != nil {
			return fmt.Errorf("%s: %w", c.path(SingleName), err)
		}
		c.Files = []*File{f}
	case errIndex == nil:
		index, err := readIndex(fsys)
		if err != nil {
			return fmt.Errorf("%s: %w", c.path(IndexName), err)
		}
		if err := c.openShards(fsys, index, o); err != nil {
			return err
		}
		return c.checkIndex(index)
	default:
		return c.noWeights(fsys)
	}
	return c.collect()
}

// noWeights says what is there instead of the weights.
func (c *Checkpoint) noWeights(fsys fs.FS) error {
	hint := ""
	entries, _ := fs.ReadDir(fsys, ".")
	for _, e := range entries {
		if name := e.Name(); (name == SingleName || name == IndexName) && e.Type()&fs.ModeSymlink != 0 {
			return fmt.Errorf("%s: a link that leads nowhere: download the model again", c.path(name))
		}
		switch path.Ext(e.Name()) {
		case ".bin", ".pt", ".pth", ".ckpt", ".pkl":
			return fmt.Errorf("%s: no %s or %s; there is %s, a pickle, which can run any code and is never opened: convert the model to safetensors, or get a version that has it",
				c.Name, SingleName, IndexName, quote(e.Name()))
		case ".gguf", ".safetensors":
			hint = fmt.Sprintf("; there is %s, which is not read under that name", quote(e.Name()))
		}
	}
	return fmt.Errorf("%s: no %s or %s%s", c.Name, SingleName, IndexName, hint)
}

// readIndex reads the weight_map of a sharded checkpoint: tensor → shard.
func readIndex(fsys fs.FS) (map[string]string, error) {
	f, size, err := openRegular(fsys, IndexName)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size > maxIndex {
		return nil, fmt.Errorf("has %d bytes, above the limit of %d", size, maxIndex)
	}
	return parseIndex(io.LimitReader(f, maxIndex))
}

func parseIndex(r io.Reader) (map[string]string, error) {
	d := newDecoder(r, 0)
	index := map[string]string{}
	shards := map[string]string{} // one copy of each name, and a count
	found := false
	err := d.object(func(key string) error {
		if key != "weight_map" {
			return d.skip() // metadata's total_size is informative only, and at times wrong
		}
		found = true
		err := d.object(func(name string) error {
			shard, err := d.str()
			if err != nil {
				return fmt.Errorf("%s: %w", quote(name), err)
			}
			if err := checkShardName(shard); err != nil {
				return fmt.Errorf("%s: %w", quote(name), err)
			}
			if _, ok := shards[shard]; !ok {
				if len(shards) == maxShards {
					return fmt.Errorf("more than %d shards", maxShards)
				}
				shards[shard] = shard
			}
			index[name] = shards[shard]
			return nil
		})
		if err != nil {
			return fmt.Errorf("weight_map: %w", err)
		}
		return nil
	})
	if err == nil {
		err = d.end()
	}
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, errors.New("has no weight_map")
	case len(index) == 0:
		return nil, errors.New("weight_map is empty")
	}
	return index, nil
}

// checkShardName refuses what would lead out of the folder.
func checkShardName(s string) error {
	switch {
	case !fs.ValidPath(s) || s == "." || strings.ContainsAny(s, "\\\x00") || !filepath.IsLocal(s):
		return fmt.Errorf("shard %s is not a path inside the model folder", quote(s))
	case path.Ext(s) != ".safetensors":
		return fmt.Errorf("shard %s is not a .safetensors file", quote(s))
	}
	return nil
}

func (c *Checkpoint) openShards(fsys fs.FS, index map[string]string, o options) error {
	var names []string
	seen := map[string]bool{}
	for _, shard := range index {
		if !seen[shard] {
			seen[shard] = true
			names = append(names, shard)
		}
	}
	slices.Sort(names)
	files := make([]*File, len(names))
	errs := make([]error, len(names))
	var g errgroup.Group
	g.SetLimit(8)
	for i, name := range names {
		g.Go(func() error {
			files[i], errs[i] = openIn(fsys, name, c.path(name), o)
			return nil
		})
	}
	_ = g.Wait()
	for i, f := range files {
		if f != nil {
			c.Files = append(c.Files, f)
		}
		if err := errs[i]; err != nil {
			for _, g := range files[i+1:] {
				if g != nil {
					_ = g.Close()
				}
			}
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%s: shard is missing, but %s names it: incomplete download?", c.path(names[i]), IndexName)
			}
			return fmt.Errorf("%s: %w", c.path(names[i]), err)
		}
	}
	return nil
}

// collect makes the table of all tensors by name.
func (c *Checkpoint) collect() error {
	for _, f := range c.Files {
		for _, t := range f.Tensors {
			if other, ok := c.byName[t.Name]; ok {
				return fmt.Errorf("tensor %s is in two files, %s and %s", quote(t.Name), other.File(), t.File())
			}
			c.byName[t.Name] = t
		}
	}
	return nil
}

// checkIndex makes sure that every tensor lies in the shard the index says.
// A tensor that the index leaves out is still used: its shard is a part of
// the checkpoint.
func (c *Checkpoint) checkIndex(index map[string]string) error {
	if err := c.collect(); err != nil {
		return err
	}
	names := make([]string, 0, len(index))
	for name := range index {
		names = append(names, name)
	}
	slices.Sort(names) // so that the first fault reported is always the same
	for _, name := range names {
		want := c.path(index[name])
		t, ok := c.byName[name]
		switch {
		case !ok:
			return fmt.Errorf("%s: weight_map puts tensor %s into %s, which does not have it", c.path(IndexName), quote(name), want)
		case t.File() != want:
			return fmt.Errorf("%s: weight_map puts tensor %s into %s, but it is in %s", c.path(IndexName), quote(name), want, t.File())
		}
	}
	return nil
}

// Tensor finds a tensor by name.
func (c *Checkpoint) Tensor(name string) (*Tensor, bool) {
	t, ok := c.byName[name]
	return t, ok
}

// Len is the number of tensors.
func (c *Checkpoint) Len() int { return len(c.byName) }

// Bytes of all tensors.
func (c *Checkpoint) Bytes() int64 {
	var n int64
	for _, t := range c.byName {
		n += t.Bytes
	}
	return n
}

// Close closes the files.
func (c *Checkpoint) Close() error {
	var errs []error
	for _, f := range c.Files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
