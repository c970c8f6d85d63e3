//go:build cuda && cgo && linux

package sim

// #include "entries.h"
import "C"

import (
	"errors"
	"sync/atomic"
	"unsafe"

	"infer/runtime/internal/cuda"
)

// installed is the machine that the driver's functions work on.
var installed atomic.Pointer[Machine]

// Install puts the machine in the place of the driver, until uninstall is
// called: cuda.Open then finds its GPUs. There is one at a time in a process.
// Calls that hang end only when the machine is closed.
func (m *Machine) Install() (uninstall func(), err error) {
	if !installed.CompareAndSwap(nil, m) {
		return nil, errors.New("sim: a machine is installed already")
	}
	entries := map[string]unsafe.Pointer{}
	for i := range int(C.simEntries()) {
		entries[C.GoString(C.simEntryName(C.int(i)))] = C.simEntryFunction(C.int(i))
	}
	remove, err := cuda.Install(entries, facts{m})
	if err != nil {
		installed.Store(nil)
		return nil, err
	}
	return func() {
		remove()
		installed.CompareAndSwap(m, nil)
	}, nil
}

// facts is what NVML says of the machine.
type facts struct{ m *Machine }

func (f facts) DriverVersion() string { return f.m.DriverVersion() }

func (f facts) find(uuid string) *GPU {
	for _, g := range f.m.gpus {
		if g.dev.UUID == uuid {
			return g
		}
	}
	return nil
}

func (f facts) Device(uuid string) cuda.DeviceFacts {
	g := f.find(uuid)
	if g == nil {
		return cuda.DeviceFacts{NUMANode: -1}
	}
	d := cuda.DeviceFacts{
		NUMANode: value(g.dev.NUMANode, -1), PCIeGen: value(g.dev.PCIeGen, 0), PCIeWidth: value(g.dev.PCIeWidth, 0),
		BAR1Bytes: value(g.dev.BAR1Bytes, 0), MemoryGBps: g.dev.MemoryGBps,
	}
	if g.dev.NVMLMemory == "" {
		d.FreeBytes, _, _ = g.MemInfo()
	}
	return d
}

func (f facts) Link(from, to string) cuda.LinkFacts {
	a, b := f.find(from), f.find(to)
	if a == nil || b == nil {
		return cuda.LinkFacts{}
	}
	l, ok := f.m.Link(a.index, b.index)
	if !ok {
		return cuda.LinkFacts{}
	}
	return cuda.LinkFacts{
		Kind: l.Kind, P2PStatus: value(l.P2PStatus, ""),
		PeerGBps: value(l.PeerGBps, 0), StagedGBps: value(l.StagedGBps, 0), PeerUS: value(l.PeerUS, 0), StagedUS: value(l.StagedUS, 0),
	}
}

func value[T any](p *T, unknown T) T {
	if p == nil {
		return unknown
	}
	return *p
}
