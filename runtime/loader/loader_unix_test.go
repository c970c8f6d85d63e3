//go:build unix

package loader_test

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"infer/runtime/loader"
)

// Opening a pipe would wait for a writer for ever.
func TestPipeIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := loader.OpenFile(path); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("error %v", err)
	}
}
