package hub

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

// Repo names a model repository at a revision.
type Repo struct {
	ID       string // org/name
	Revision string // branch, tag or commit
}

func (r Repo) String() string {
	if r.Revision == defaultRevision {
		return r.ID
	}
	return r.ID + "@" + r.Revision
}

const defaultRevision = "main"

var (
	idPart = regexp.MustCompile(`^[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?$`)
	commit = regexp.MustCompile(`^[0-9a-f]{40}$`)
	sha256 = regexp.MustCompile(`^[0-9a-f]{64}$`)
	etag   = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$`)
)

// ParseRepo reads org/name or org/name@revision; without revision it is "main". The error is ErrBadID.
func ParseRepo(s string) (Repo, error) {
	id, revision, given := strings.Cut(s, "@")
	if !given {
		revision = defaultRevision
	}
	org, name, ok := strings.Cut(id, "/")
	if !ok || len(id) > 96 || !idPart.MatchString(org) || !idPart.MatchString(name) ||
		strings.Contains(id, "--") || strings.Contains(id, "..") || strings.HasSuffix(name, ".git") {
		return Repo{}, fmt.Errorf("%q is %w: want org/name or org/name@revision", clip(s), ErrBadID)
	}
	if !safePath(revision) || len(revision) > 200 {
		return Repo{}, fmt.Errorf("%q is %w: the revision cannot be a branch, tag or commit", clip(s), ErrBadID)
	}
	return Repo{id, revision}, nil
}

// safePath tells whether a name from outside is a plain relative path on every system.
func safePath(p string) bool {
	return fs.ValidPath(p) && p != "." && filepath.IsLocal(filepath.FromSlash(p)) && len(p) <= 1024 &&
		!strings.ContainsFunc(p, func(r rune) bool {
			return r == '\\' || r == ':' || r == unicode.ReplacementChar || unicode.IsControl(r)
		})
}

func clip(s string) string {
	if len(s) > 120 {
		return s[:120] + "…"
	}
	return s
}

// file is one file of a repository as the hub lists it.
type file struct {
	name string
	size int64 // −1 if the list does not say
}

// optional are the files beside weights and config.json that the runtime reads, or that other programs with the same cache look for.
var optional = []string{
	"generation_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
	"vocab.json", "merges.txt", "vocab.txt", "tokenizer.model", "chat_template.jinja", "chat_template.json",
}

const (
	configName = "config.json"
	singleName = "model.safetensors"
	indexName  = "model.safetensors.index.json"
	extraDir   = "additional_chat_templates/"
)

// selectSmall picks everything but weights: config, tokenizer, templates, and the index of shards where there is no single file.
func selectSmall(files []file) (out []file, err error) {
	byName := map[string]file{}
	for _, f := range files {
		byName[f.name] = f
	}
	for _, name := range append([]string{configName}, optional...) {
		if f, ok := byName[name]; ok {
			out = append(out, f)
		}
	}
	for _, f := range files {
		if strings.HasPrefix(f.name, extraDir) && strings.HasSuffix(f.name, ".jinja") && strings.Count(f.name, "/") == 1 {
			if !safePath(f.name) {
				return nil, fmt.Errorf("%w: %q", ErrUnsafe, clip(f.name))
			}
			out = append(out, f)
		}
	}
	if _, single := byName[singleName]; single {
		return out, nil
	}
	index, sharded := byName[indexName]
	if !sharded {
		return nil, noWeights(files)
	}
	return append(out, index), nil
}

// noWeights says what the repository has instead.
func noWeights(files []file) error {
	have := map[string]string{}
	for _, f := range files {
		for ext, what := range map[string]string{
			".gguf": "GGUF files", ".bin": "PyTorch pickles (.bin), which can run any code and are never opened",
			".pt": "PyTorch pickles (.pt)", ".pth": "PyTorch pickles (.pth)", ".safetensors": "a safetensors file under another name: " + clip(f.name),
			".onnx": "ONNX files", ".h5": "TensorFlow weights", ".msgpack": "Flax weights",
		} {
			if strings.HasSuffix(f.name, ext) && have[ext] == "" {
				have[ext] = what
			}
		}
	}
	hint := "; it has no weights at all"
	for _, ext := range []string{".safetensors", ".gguf", ".bin", ".pth", ".pt", ".onnx", ".h5", ".msgpack"} {
		if have[ext] != "" {
			hint = "; it has " + have[ext]
			break
		}
	}
	return fmt.Errorf("%w (%s or %s)%s: look for a repository or revision with safetensors", ErrNoSafetensors, singleName, indexName, hint)
}

// selectWeights picks the single file, or the shards that the index names.
func selectWeights(files []file, shards []string) ([]file, error) {
	byName := map[string]file{}
	for _, f := range files {
		byName[f.name] = f
	}
	if f, ok := byName[singleName]; ok {
		return []file{f}, nil
	}
	var out []file
	for _, s := range shards {
		if !safePath(s) || !strings.HasSuffix(s, ".safetensors") {
			return nil, fmt.Errorf("%w: %s names the shard %q", ErrUnsafe, indexName, clip(s))
		}
		f, ok := byName[s]
		if !ok {
			return nil, fmt.Errorf("%w: %s names the shard %q, which the repository does not have", ErrEntryNotFound, indexName, clip(s))
		}
		out = append(out, f)
	}
	return out, nil
}
