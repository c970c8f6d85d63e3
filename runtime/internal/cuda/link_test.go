//go:build cuda && cgo && linux

package cuda

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// See testdata/linkcheck.
func TestShimDefinesAllThatCuRefersTo(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "linkcheck")
	if out, err := exec.Command("go", "build", "-o", exe, "./testdata/linkcheck").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(exe).CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), " -1\n") {
		t.Errorf("it does not start: %v\n%s", err, out)
	}
}

// This very test has the whole door in it, as the program has.
func TestNeedsLibcOnly(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	libs, err := f.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	libc := false
	for _, l := range libs {
		switch name, _, _ := strings.Cut(l, "."); name {
		case "libc":
			libc = true
		case "libdl", "libpthread", "libm", "ld-linux-x86-64", "ld-linux-aarch64": // of libc
		default:
			t.Errorf("the program would not start without %s", l)
		}
	}
	if !libc {
		t.Errorf("not linked with libc: %v; dlopen needs it", libs)
	}

	// The management library's functions are bound when they are called, not
	// when the program starts: it may not be there.
	for _, tag := range []elf.DynTag{elf.DT_FLAGS, elf.DT_FLAGS_1, elf.DT_BIND_NOW} {
		values, err := f.DynValue(tag)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range values {
			now := tag == elf.DT_FLAGS && v&uint64(elf.DF_BIND_NOW) != 0 || tag == elf.DT_FLAGS_1 && v&uint64(elf.DF_1_NOW) != 0
			if now || tag == elf.DT_BIND_NOW {
				t.Errorf("the program binds all functions at its start (%v %#x): it would not start without libnvidia-ml", tag, v)
			}
		}
	}

	// What the program exports, a driver loaded later would use instead of its
	// own functions.
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF && elf.ST_BIND(s.Info) == elf.STB_GLOBAL && isEntry(s.Name) {
			t.Errorf("the program exports %s", s.Name)
		}
	}
	if !isEntry("cuMemAlloc") || !isEntry("cuInit") {
		t.Error("the list of entries is not what it was")
	}
}

// isEntry says whether name is a function the shim defines.
func isEntry(name string) bool {
	header, err := os.ReadFile("include/cuda_entries.h")
	return err == nil && (name == "cuInit" || strings.Contains(string(header), "CUDA_ENTRY("+name+","))
}
