//go:build cuda && cgo && linux

package cuda

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Each library is tried in a process of its own, since it stays loaded.
func TestFactsOfNVML(t *testing.T) {
	if lib := os.Getenv("INFER_TEST_NVML"); lib != "" {
		factsOf(t, lib, os.Getenv("INFER_TEST_NVLINKS"))
		return
	}
	header, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml/pkg/nvml").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := string(header[:len(header)-1])
	for _, c := range []struct{ def, kind string }{
		{"-DNO_LINKS", "PHB"},
		{"-DOLD", "NV2"},    // without the call that tells a switch
		{"-DSWITCH", "NV3"}, // its link counts
	} {
		lib := filepath.Join(t.TempDir(), "libnvidia-ml.so")
		if out, err := exec.Command("gcc", "-shared", "-fPIC", "-I", dir, c.def, "testdata/nvml.c", "-o", lib).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		child := exec.Command(os.Args[0], "-test.run=^TestFactsOfNVML$")
		child.Env = append(os.Environ(), "INFER_TEST_NVML="+lib, "INFER_TEST_NVLINKS="+c.kind)
		if out, err := child.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", c.def, err, out)
		}
	}
}

func factsOf(t *testing.T, lib, kind string) {
	if err := nvml.SetLibraryOptions(nvml.WithLibraryPath(lib)); err != nil {
		t.Fatal(err)
	}
	d := open(t, "-DDEVICES=3")
	if _, v := d.Version(); v != "570.86.10" {
		t.Errorf("driver version %q", v)
	}
	p := d.Devices()
	if p[0].FreeBytes != 1001 || p[1].FreeBytes != 1000 {
		t.Errorf("devices are not matched by UUID: %+v", p)
	}
	if p[0].BAR1Bytes != 1<<28 || p[0].PCIeGen != 5 || p[0].PCIeWidth != 8 || p[0].NUMANode != -1 {
		t.Errorf("%+v", p[0])
	}
	if p[1].PCIeWidth != 0 {
		t.Errorf("what the library does not answer is unknown: %+v", p[1])
	}
	if p[2].FreeBytes != 1<<29 || p[2].NUMANode != -1 || p[2].MemoryGBps == 0 {
		t.Errorf("a device that the library does not know: %+v", p[2])
	}
	if l := d.Link(0, 1); l.Kind != kind || l.P2PStatus != "CNS" || !l.PeerAccess {
		t.Errorf("0 to 1: %+v, want %s", l, kind)
	}
	if l := d.Link(1, 0); l.P2PStatus != "GNS" || l.PeerAccess {
		t.Errorf("1 to 0: %+v", l)
	}
	if l := d.Link(0, 2); l != (LinkProperties{PeerAccess: true}) {
		t.Errorf("0 to 2: %+v", l)
	}
	again, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if again.Link(0, 1) != d.Link(0, 1) {
		t.Error("the second time it says something else")
	}
}
