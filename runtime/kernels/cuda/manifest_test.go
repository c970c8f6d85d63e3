package cuda

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"infer/runtime/internal/cuda/ptx"
)

// The committed PTX is what the sources were compiled to.
func TestManifest(t *testing.T) {
	f, err := os.Open("ptx/MANIFEST")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	listed := map[string]bool{}
	for sc := bufio.NewScanner(f); sc.Scan(); {
		want, name, ok := strings.Cut(sc.Text(), "  ")
		if !ok || len(want) != 2*sha256.Size {
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Errorf("listed in MANIFEST: %v", err)
			continue
		}
		if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s is not what MANIFEST was made with: run make ptx", name)
		}
		listed[name] = true
	}
	for _, dir := range []string{"src/*", "ptx/*.ptx"} {
		names, _ := filepath.Glob(dir)
		if len(names) == 0 {
			t.Errorf("no %s", dir)
		}
		for _, n := range names {
			if !listed[filepath.ToSlash(n)] {
				t.Errorf("%s is not in MANIFEST: run make ptx", n)
			}
		}
	}
	for _, src := range must(filepath.Glob("src/*.cu")) {
		if name := strings.TrimSuffix(filepath.Base(src), ".cu"); !listed["ptx/"+name+".ptx"] {
			t.Errorf("%s was not compiled: run make ptx", src)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// What every GPU since 8.0 takes, without local memory.
func TestPlainPTX(t *testing.T) {
	for _, f := range must(filepath.Glob("ptx/*.ptx")) {
		m := must(ptx.Parse(Module(strings.TrimSuffix(filepath.Base(f), ".ptx"))))
		if m.Target != "sm_80" || m.Version != "7.8" {
			t.Errorf("%s is PTX %s for %s", f, m.Version, m.Target)
		}
		for _, name := range m.Kernels() {
			k := m.Kernel(name)
			if n := k.LocalBytes(); n > 0 {
				t.Errorf("%s: %s uses %d bytes of local memory", f, name, n)
			}
			if n := k.SharedBytes(); n > 48<<10 {
				t.Errorf("%s: %s has %d bytes of shared memory; 48 KiB need no asking", f, name, n)
			}
			for _, op := range k.Opcodes() {
				if strings.Contains(op, "f64") || slices.Contains([]string{"sin.approx.f32", "cos.approx.f32"}, op) {
					t.Errorf("%s: %s uses %s", f, name, op)
				}
			}
		}
	}
}
