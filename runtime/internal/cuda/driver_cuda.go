//go:build cuda && cgo && linux

package cuda

// #cgo CFLAGS: -I${SRCDIR}/include
// #cgo LDFLAGS: -L${SRCDIR}/lib -ldl
// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"time"
	"unsafe"

	"gorgonia.org/cu"
)

// libraries are the names the driver goes by; the second is where Windows puts
// it for Linux programs. Tests put a stub here.
var libraries = []string{"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"}

// openDeadline bounds the first calls; with many GPUs and no persistence
// daemon the driver takes tens of seconds.
const openDeadline = 3 * time.Minute

// oldest is the API of the first driver that compiles our PTX: CUDA 11.8.
const oldest = 11080

// door guards the table and what fills it.
var door struct {
	sync.Mutex
	open      int   // drivers
	installed bool  // the table is Install's
	facts     Facts // of Install
}

// Open opens the installed driver, else the machine's, and asks it and the
// management library about its GPUs. Errors: ErrNoDriver when there is none,
// *Error when there is one that fails. A driver without GPUs is no error.
func Open() (*Driver, error) {
	devices, set := os.LookupEnv("CUDA_VISIBLE_DEVICES")
	if err := checkVisible(devices); err != nil {
		return nil, err
	}
	door.Lock()
	defer door.Unlock()
	if !door.installed && door.open == 0 {
		if err := load(); err != nil {
			return nil, err
		}
	}
	if missing := missingEntries(); missing != "" {
		return nil, fmt.Errorf("cuda: the driver is too old: it lacks %s; CUDA 11.8 (driver 520) or newer is needed", missing)
	}
	type answer struct {
		d   *Driver
		err error
	}
	got := make(chan answer, 1)
	go func(simulated bool, facts Facts) {
		d, err := ask(simulated, facts, devices, set)
		got <- answer{d, err}
	}(door.installed, door.facts)
	timer := time.NewTimer(openDeadline)
	defer timer.Stop()
	select {
	case a := <-got:
		if a.err == nil {
			door.open++
		}
		return a.d, a.err
	case <-timer.C:
		return nil, fmt.Errorf("cuda: the driver did not answer within %v; does nvidia-smi?", openDeadline)
	}
}

// released is told by a Driver that closes.
func released() {
	door.Lock()
	door.open--
	door.Unlock()
}

// load fills the table from the machine's driver.
func load() error {
	why := make([]byte, 512)
	var said string
	for _, name := range libraries {
		cname := C.CString(name)
		ok := C.doorLoad(cname, (*C.char)(unsafe.Pointer(&why[0])), C.size_t(len(why)))
		C.free(unsafe.Pointer(cname))
		if ok != 0 {
			return nil
		}
		if said == "" {
			said = C.GoString((*C.char)(unsafe.Pointer(&why[0])))
		}
	}
	return fmt.Errorf("%w: %s", ErrNoDriver, said)
}

// entry is a line of the table.
type entry struct {
	at       C.int
	name     string         // as the driver exports it
	needed   bool           // by the door
	function unsafe.Pointer // nil: there is none
}

func entries() []entry {
	es := make([]entry, int(C.doorEntries()))
	for i := range es {
		at := C.int(i)
		es[i] = entry{at, C.GoString(C.doorEntryName(at)), C.doorEntryNeeded(at) != 0, C.doorEntry(at)}
	}
	return es
}

// missingEntries names what the door calls and the driver does not have.
func missingEntries() string {
	var names []string
	for _, e := range entries() {
		if e.needed && e.function == nil {
			names = append(names, e.name)
		}
	}
	return strings.Join(names, ", ")
}

// Install puts functions in the place of the machine's driver until uninstall
// is called: functions maps the names the driver exports, with their version
// (cuMemAlloc_v2), to C functions of the same signature. facts stands for the
// management library; nil knows nothing. It fails while a Driver is open or
// something is installed, and on names that are not in cuda_entries.h.
func Install(functions map[string]unsafe.Pointer, facts Facts) (uninstall func(), err error) {
	door.Lock()
	defer door.Unlock()
	switch {
	case door.installed:
		return nil, errors.New("cuda: a simulated driver is installed already")
	case door.open > 0:
		return nil, errors.New("cuda: a driver is open; a simulated one cannot take its place")
	}
	table := entries()
	known := make(map[string]bool, len(table))
	for _, e := range table {
		known[e.name] = true
	}
	for name, f := range functions {
		if !known[name] || f == nil {
			return nil, fmt.Errorf("cuda: install: %q is no function of the driver that this program knows, or has no address", name)
		}
	}
	for _, e := range table {
		C.doorSetEntry(e.at, functions[e.name])
	}
	if facts == nil {
		facts = noFacts{}
	}
	door.installed, door.facts = true, facts
	var once sync.Once
	return func() {
		once.Do(func() {
			door.Lock()
			defer door.Unlock()
			door.installed, door.facts = false, nil
			for _, e := range table {
				C.doorSetEntry(e.at, nil)
			}
		})
	}, nil
}

// ask initialises the driver and reads everything a Driver says.
func ask(simulated bool, facts Facts, devices string, set bool) (*Driver, error) {
	d := &Driver{links: map[[2]int]LinkProperties{}}
	if api := cu.Version(); api > 0 {
		d.api = api
		if api < oldest {
			return nil, fmt.Errorf("cuda: the driver is too old: it speaks CUDA %d.%d; CUDA 11.8 (driver 520) or newer is needed", api/1000, api%1000/10)
		}
	}
	switch code := int(C.doorInit(0)); code {
	case 0:
	case CodeNoDevice:
		d.note = "the driver sees no GPU"
		if set {
			d.note = listNote(devices, 0)
		}
		return d, nil
	default:
		return nil, newError(code, "cuInit", "", -1)
	}
	if !simulated {
		facts = openNVML()
	}
	d.version = facts.DriverVersion()
	n, err := cu.NumDevices()
	if err != nil {
		return nil, wrap(err, "cuDeviceGetCount", "", -1)
	}
	props := make([]Properties, n)
	for i := range props {
		if props[i], err = properties(i, facts); err != nil {
			return nil, err
		}
		props[i].Simulated = simulated
	}
	var seen []int
	if simulated {
		cs := make([]candidate, n)
		for i, p := range props {
			cs[i] = candidate{UUID: p.UUID, PCI: p.PCI, Speed: float64(p.SMs) * float64(max(p.ClockKHz, 1))}
		}
		seen, d.note = visible(cs, os.Getenv("CUDA_DEVICE_ORDER"), devices, set)
	} else {
		// The driver has applied the environment already.
		for i := range props {
			seen = append(seen, i)
		}
		if set {
			d.note = listNote(devices, n)
		}
	}
	for i, at := range seen {
		d.ordinals = append(d.ordinals, at)
		d.props = append(d.props, props[at])
		for j, other := range seen {
			if i == j {
				continue
			}
			if d.links[[2]int{i, j}], err = link(at, other, props, facts, i); err != nil {
				return nil, err
			}
		}
	}
	return d, nil
}

// properties reads one device by the driver's number.
func properties(ordinal int, facts Facts) (Properties, error) {
	dev, err := cu.GetDevice(ordinal)
	if err != nil {
		return Properties{}, wrap(err, "cuDeviceGet", fmt.Sprint(ordinal), ordinal)
	}
	var p Properties
	if p.Name, err = dev.Name(); err != nil {
		return p, wrap(err, "cuDeviceGetName", "", ordinal)
	}
	id, err := dev.UUID()
	if err != nil {
		return p, wrap(err, "cuDeviceGetUuid", "", ordinal)
	}
	p.UUID = "GPU-" + id.String()
	if p.TotalBytes, err = dev.TotalMem(); err != nil {
		return p, wrap(err, "cuDeviceTotalMem", "", ordinal)
	}
	var domain, bus, slot int
	for _, a := range []struct {
		at       cu.DeviceAttribute
		to       *int
		required bool
	}{
		{C.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &p.Major, true},
		{C.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &p.Minor, true},
		{C.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &p.SMs, true},
		{C.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &p.SharedPerBlockOptin, true},
		{C.CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, &domain, true},
		{C.CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, &bus, true},
		{C.CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, &slot, true},
		{C.CU_DEVICE_ATTRIBUTE_CLOCK_RATE, &p.ClockKHz, false},
		{C.CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, &p.MemoryClockKHz, false},
		{C.CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, &p.BusWidthBits, false},
		{C.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &p.L2Bytes, false},
		{C.CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, &p.CopyEngines, false},
	} {
		v, err := dev.Attribute(a.at)
		if err != nil && a.required {
			return p, wrap(err, "cuDeviceGetAttribute", fmt.Sprintf("attribute %d", a.at), ordinal)
		}
		if err == nil {
			*a.to = v
		}
	}
	p.PCI = fmt.Sprintf("%04x:%02x:%02x.0", domain, bus, slot)
	f := facts.Device(p.UUID)
	p.FreeBytes, p.NUMANode, p.PCIeGen, p.PCIeWidth, p.BAR1Bytes = f.FreeBytes, f.NUMANode, f.PCIeGen, f.PCIeWidth, f.BAR1Bytes
	if p.FreeBytes == 0 {
		p.FreeBytes = freeBytes(dev)
	}
	if p.MemoryGBps = f.MemoryGBps; p.MemoryGBps == 0 {
		// Two transfers a clock, whatever the kind of memory: the driver gives
		// the clock in that measure.
		p.MemoryGBps = 2 * float64(p.MemoryClockKHz) * float64(p.BusWidthBits) / 8 / 1e6
	}
	return p, nil
}

// freeBytes asks the driver itself, which needs a context: only where the
// management library does not know. 0: unknown.
func freeBytes(dev cu.Device) int64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c, err := dev.RetainPrimaryCtx()
	if err != nil {
		return 0
	}
	// Nothing depends on either: a context that stays costs memory only.
	defer func() {
		_ = cu.SetCurrentContext(cu.CUContext{})
		_ = dev.ReleasePrimaryCtx()
	}()
	if err := cu.SetCurrentContext(c); err != nil {
		return 0
	}
	free, _, err := cu.MemInfo()
	if err != nil {
		return 0
	}
	return free
}

// link asks about one directed pair of driver's numbers. seenAs is from's
// number among the visible, for errors.
func link(from, to int, props []Properties, facts Facts, seenAs int) (LinkProperties, error) {
	can, err := cu.Device(from).CanAccessPeer(cu.Device(to))
	if err != nil {
		return LinkProperties{}, wrap(err, "cuDeviceCanAccessPeer", fmt.Sprintf("to %s", props[to].UUID), seenAs)
	}
	f := facts.Link(props[from].UUID, props[to].UUID)
	return LinkProperties{
		Kind: f.Kind, PeerAccess: can != 0, P2PStatus: f.P2PStatus,
		PeerGBps: f.PeerGBps, StagedGBps: f.StagedGBps, PeerUS: f.PeerUS, StagedUS: f.StagedUS,
	}, nil
}

// wrap makes an *Error of what gorgonia.org/cu returns: its error type is an
// integer, the driver's code.
func wrap(err error, call, detail string, device int) error {
	if err == nil {
		return nil
	}
	if v := reflect.ValueOf(err); v.CanInt() {
		return newError(int(v.Int()), call, detail, device)
	}
	return fmt.Errorf("cuda:%d: %s: %w", device, call, err)
}

// newError asks the driver for the code's name and text.
func newError(code int, call, detail string, device int) *Error {
	e := &Error{Code: code, Call: call, Detail: detail, Device: device}
	var s *C.char
	if C.cuGetErrorName(C.CUresult(code), &s) == 0 && s != nil {
		e.Name = C.GoString(s)
	}
	s = nil
	if C.cuGetErrorString(C.CUresult(code), &s) == 0 && s != nil {
		e.Text = C.GoString(s)
	}
	if e.Name == "" {
		e.Name, e.Text = builtinName(code)
	}
	return e
}
