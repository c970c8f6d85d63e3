//go:build cuda && cgo && linux

package cuda

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

func TestOpenWithoutDriver(t *testing.T) {
	driverIs(t, "libcuda-that-is-not-there.so.1")
	d, err := Open()
	if !errors.Is(err, ErrNoDriver) || errors.Is(err, ErrNotBuilt) || d != nil {
		t.Fatal(d, err)
	}
	if !strings.Contains(err.Error(), "libcuda-that-is-not-there.so.1") {
		t.Errorf("the error does not name the library: %v", err)
	}
}

func TestOpenWithoutGPU(t *testing.T) {
	d := open(t, "-DDEVICES=0")
	if len(d.Devices()) != 0 || d.Note() != "the driver sees no GPU" {
		t.Error(d.Devices(), d.Note())
	}
	if api, _ := d.Version(); api != 12040 {
		t.Errorf("API version %d", api)
	}
	if _, err := d.Device(0); err == nil || !strings.Contains(err.Error(), "there are 0") {
		t.Error(err)
	}
}

func TestOpenRefusesOldDrivers(t *testing.T) {
	stub(t, "-DDEVICES=2", "-DVERSION=11070")
	if _, err := Open(); err == nil || errors.Is(err, ErrNoDriver) || !strings.Contains(err.Error(), "it speaks CUDA 11.7; CUDA 11.8 (driver 520)") {
		t.Error(err)
	}
}

func TestOpenHiddenByEnvironment(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "-1")
	d := open(t, "-DDEVICES=0") // as a real driver does
	if d.Note() != "CUDA_VISIBLE_DEVICES=-1 hides every GPU" {
		t.Error(d.Note())
	}
}

// A real driver reads CUDA_VISIBLE_DEVICES itself; what it then shows is not
// filtered again.
func TestEnvironmentIsNotAppliedTwice(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "5,3,9")
	d := open(t, "-DDEVICES=2")
	if len(d.Devices()) != 2 || !strings.Contains(d.Note(), "lists 3, of which 2") {
		t.Error(len(d.Devices()), d.Note())
	}
}

func TestOpenRefusesSlices(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "MIG-1234")
	stub(t, "-DDEVICES=2")
	if _, err := Open(); err == nil || !strings.Contains(err.Error(), "MIG-1234") {
		t.Error(err)
	}
}

func TestOpenOfBrokenDriver(t *testing.T) {
	stub(t, "-DDEVICES=2", "-DINIT=803")
	_, err := Open()
	var e *Error
	if !errors.As(err, &e) || e.Code != 803 || e.Name != "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" || e.Call != "cuInit" || e.Device != -1 {
		t.Fatalf("%#v", err)
	}
	if errors.Is(err, ErrNoDriver) {
		t.Error("a driver that fails is not to be taken for none")
	}
}

func TestOpenOfOldDriver(t *testing.T) {
	stub(t, "-DDEVICES=2", "-DOLD")
	if _, err := Open(); err == nil || !strings.Contains(err.Error(), "lacks cuGraphInstantiateWithFlags;") {
		t.Error(err)
	}
}

func TestProperties(t *testing.T) {
	d := open(t, "-DDEVICES=2")
	got := d.Devices()
	if len(got) != 2 {
		t.Fatal(got)
	}
	want := Properties{
		Name: "Stub GPU", UUID: "GPU-22000000-0000-0000-0000-000000000000", PCI: "0000:40:00.0",
		Major: 12, SMs: 170, TotalBytes: 1 << 30, FreeBytes: 1 << 29, ClockKHz: 2407000, MemoryClockKHz: 14001000, BusWidthBits: 512,
		SharedPerBlockOptin: 101376, NUMANode: -1, MemoryGBps: 1792.128,
	}
	if got[1] != want {
		t.Errorf("got  %+v\nwant %+v", got[1], want)
	}
	if !d.Link(0, 1).PeerAccess || d.Link(1, 0).PeerAccess {
		t.Errorf("links are directed: %+v %+v", d.Link(0, 1), d.Link(1, 0))
	}
}

type fakeFacts struct{}

func (fakeFacts) DriverVersion() string { return "570.00" }
func (fakeFacts) Device(uuid string) DeviceFacts {
	return DeviceFacts{FreeBytes: int64(uuid[4]), NUMANode: 1, PCIeGen: 5, PCIeWidth: 8, BAR1Bytes: 7, MemoryGBps: 1790}
}

func (fakeFacts) Link(from, to string) LinkFacts {
	return LinkFacts{Kind: from[4:6] + to[4:6], P2PStatus: "GNS", StagedGBps: 24, StagedUS: 14}
}

func TestInstall(t *testing.T) {
	entries := stubEntries(t, "-DDEVICES=3")
	uninstall, err := Install(entries, fakeFacts{})
	if err != nil {
		t.Fatal(err)
	}
	defer uninstall()
	driverIs(t, "libcuda-that-is-not-there.so.1")

	d, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	if _, v := d.Version(); v != "570.00" {
		t.Errorf("version %q", v)
	}
	p := d.Devices()[2]
	if !p.Simulated || p.NUMANode != 1 || p.PCIeGen != 5 || p.PCIeWidth != 8 || p.BAR1Bytes != 7 || p.MemoryGBps != 1790 || p.FreeBytes != '3' {
		t.Errorf("%+v", p)
	}
	if got, want := d.Link(2, 0), (LinkProperties{Kind: "3311", P2PStatus: "GNS", StagedGBps: 24, StagedUS: 14}); got != want {
		t.Errorf("%+v", got)
	}
	if _, err := Install(entries, nil); err == nil {
		t.Error("installed twice")
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}

	// A simulated driver reads no environment: the door does.
	t.Setenv("CUDA_VISIBLE_DEVICES", "2,0")
	t.Setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID") // the stub numbers its slots downwards
	d, err = Open()
	if err != nil {
		t.Fatal(err)
	}
	var uuids []string
	for _, p := range d.Devices() {
		uuids = append(uuids, p.UUID[4:6])
	}
	if !slices.Equal(uuids, []string{"11", "33"}) {
		t.Error(uuids)
	}
	if d.Link(0, 1).Kind != "1133" {
		t.Errorf("links are not numbered as the devices: %+v", d.Link(0, 1))
	}
	if _, err := Install(entries, nil); err == nil {
		t.Error("installed while a driver is open")
	}
	d.Close()

	uninstall()
	uninstall() // harmless
	if _, err := Open(); !errors.Is(err, ErrNoDriver) {
		t.Errorf("after uninstall: %v", err)
	}
}

func TestInstallRefuses(t *testing.T) {
	var x int
	for name, entries := range map[string]map[string]unsafe.Pointer{
		"no version": {"cuMemAlloc": unsafe.Pointer(&x)},
		"no address": {"cuMemAlloc_v2": nil},
	} {
		if _, err := Install(entries, nil); err == nil || !strings.Contains(err.Error(), "cuMemAlloc") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestInstallOfHalfADriver(t *testing.T) {
	entries := stubEntries(t, "-DDEVICES=1")
	delete(entries, "cuMemAlloc_v2")
	uninstall, err := Install(entries, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer uninstall()
	if _, err := Open(); err == nil || !strings.Contains(err.Error(), "lacks cuMemAlloc_v2;") {
		t.Error(err)
	}
}

func TestTwoDriversAtOnce(t *testing.T) {
	a := open(t, "-DDEVICES=2")
	b, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	dev, err := a.Device(1)
	if err != nil {
		t.Fatal(err)
	}
	if err := dev.Run(context.Background(), func(t *Thread) error { _, _, err := t.MemInfo(); return err }); err != nil {
		t.Error(err)
	}
}
