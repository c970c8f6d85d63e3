//go:build cuda && cgo && linux

package cuda

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unsafe"
)

// stubs are built once for each set of definitions.
var stubs struct {
	sync.Mutex
	dir string
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "cuda-stubs-")
	if err != nil {
		panic(err)
	}
	stubs.dir = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// stub builds testdata/stub.c with the given definitions and makes it the
// machine's driver for this test.
func stub(t testing.TB, defs ...string) {
	t.Helper()
	stubs.Lock()
	defer stubs.Unlock()
	lib := filepath.Join(stubs.dir, "stub"+strings.Join(defs, "")+".so")
	if _, err := os.Stat(lib); err != nil {
		args := append([]string{"-shared", "-fPIC", "-O2", "-Iinclude", "testdata/stub.c", "-o", lib}, defs...)
		if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
			t.Fatalf("building the stub driver: %v\n%s", err, out)
		}
	}
	driverIs(t, lib)
}

func driverIs(t testing.TB, names ...string) {
	saved := libraries
	libraries = names
	t.Cleanup(func() { libraries = saved })
}

// open opens the stub and closes it after the test.
func open(t testing.TB, defs ...string) *Driver {
	t.Helper()
	stub(t, defs...)
	d, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// stubEntries are the functions of a stub, to be installed.
func stubEntries(t testing.TB, defs ...string) map[string]unsafe.Pointer {
	t.Helper()
	stub(t, defs...)
	door.Lock()
	defer door.Unlock()
	if err := load(); err != nil {
		t.Fatal(err)
	}
	m := map[string]unsafe.Pointer{}
	for _, e := range entries() {
		if e.function != nil {
			m[e.name] = e.function
		}
	}
	return m
}
