//go:build unix

package loader_test

import (
	"os"
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

// A cache whose blob was deleted has links that lead nowhere.
func TestDanglingLink(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "config.json", []byte("{}"))
	if err := os.Symlink("nowhere", filepath.Join(dir, "model.safetensors")); err != nil {
		t.Fatal(err)
	}
	if _, err := loader.Open(dir); err == nil || !strings.Contains(err.Error(), "model.safetensors: a link that leads nowhere") {
		t.Errorf("got %v", err)
	}
}
