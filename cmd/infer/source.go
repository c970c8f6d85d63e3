package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"infer/models/tiny"
)

// source is a MODEL argument, resolved to a folder.
type source struct {
	name string // what people call it: "tiny", "org/name", the folder's name
	path string // the folder as it stands in messages
	fs   fs.FS
}

// repoID is org/name or org/name@revision.
var repoID = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(@[\w./-]+)?$`)

// looksLikeModel tells a MODEL from a PROMPT when only one argument is given.
func looksLikeModel(arg string) bool {
	if arg == tiny.Name || repoID.MatchString(arg) {
		return true
	}
	if _, err := os.Stat(arg); err == nil || strings.HasSuffix(arg, ".gguf") {
		return true // a file is refused with a word on what a MODEL is
	}
	// A path that does not exist is a mistyped model, not a prompt.
	return !strings.ContainsAny(arg, " \n") && (strings.HasPrefix(arg, "./") || strings.HasPrefix(arg, "../") || strings.HasPrefix(arg, "/"))
}

// resolveModel finds the folder of a MODEL argument, downloading a repo that is
// not in the cache yet.
func resolveModel(ctx context.Context, cmd *cobra.Command, arg string, p *progress) (source, error) {
	if arg == "" || arg == tiny.Name {
		return source{name: tiny.Name, path: tiny.Name, fs: tiny.FS}, nil
	}
	info, err := os.Stat(arg)
	switch {
	case err == nil && info.IsDir():
		return folder(arg), nil
	case strings.HasSuffix(arg, ".gguf"):
		return source{}, fmt.Errorf("%s: GGUF files are not read: give the folder or the repo id of the original safetensors", arg)
	case err == nil:
		return source{}, fmt.Errorf("%s is a file: MODEL is a folder with config.json and safetensors, a repo id like org/name, or %q", arg, tiny.Name)
	case !errors.Is(err, fs.ErrNotExist):
		return source{}, err
	case !repoID.MatchString(arg):
		return source{}, fmt.Errorf("no folder %s here, and it is no repo id like org/name", arg)
	}
	dir, err := pull(ctx, arg, p)
	if err != nil {
		return source{}, err
	}
	src := folder(dir)
	src.name, _, _ = strings.Cut(arg, "@")
	return src, nil
}

func folder(dir string) source {
	name := filepath.Base(dir)
	if abs, err := filepath.Abs(dir); err == nil {
		name = filepath.Base(abs)
	}
	return source{name: name, path: dir, fs: os.DirFS(dir)}
}
