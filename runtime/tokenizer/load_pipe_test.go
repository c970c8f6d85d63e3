package tokenizer

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// Opening a pipe would wait for somebody to write into it; a device has no end.
func TestLoadOnlyRegularFiles(t *testing.T) {
	for _, kind := range []fs.FileMode{fs.ModeNamedPipe, fs.ModeDevice, fs.ModeDir} {
		_, err := LoadFS(fstest.MapFS{"tokenizer.json": {Data: []byte("{}"), Mode: kind}}, "tokenizer.json", "there/tokenizer.json")
		if err == nil || !strings.Contains(err.Error(), "there/tokenizer.json is not a regular file") {
			t.Errorf("%v: %v", kind, err)
		}
	}
}
