package sim

import (
	"fmt"
	"strings"
)

// sharedByCapability is the shared memory a block may opt in to, in bytes.
var sharedByCapability = map[string]int{
	"7.0": 98304, "7.2": 98304, "7.5": 65536, "8.0": 166912, "8.6": 101376, "8.7": 166912, "8.8": 101376, "8.9": 101376,
	"9.0": 232448, "10.0": 232448, "10.1": 232448, "10.3": 232448, "10.7": 232448, "11.0": 232448,
	"12.0": 101376, "12.1": 101376, "13.0": 101376,
}

func (g *GPU) sharedOptin() int {
	if n, ok := sharedByCapability[g.capability]; ok {
		return n
	}
	return defaultShared
}

// sms is the number of multiprocessors, guessed from the rates if unknown.
func (g *GPU) sms() int {
	if g.dev.SMs > 0 {
		return g.dev.SMs
	}
	for _, p := range products() {
		if p.name == g.dev.Name && p.sms > 0 {
			return p.sms
		}
	}
	return max(1, int(g.rates.instrs/(128*2e9)))
}

const busBits = 512

// Attribute is cuDeviceGetAttribute; numbers and units are the driver's.
func (g *GPU) Attribute(attribute int) (int, Result) {
	g.m.mu.Lock()
	defer g.m.mu.Unlock()
	generation, variant, _ := capability(g.capability)
	_, bus, slot := g.pci()
	flag := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	switch attribute {
	case 1, 2, 3: // threads, and x and y, of a block
		return maxThreads, Success
	case 4:
		return 64, Success
	case 5:
		return 1<<31 - 1, Success
	case 6, 7:
		return 65535, Success
	case 8: // shared memory of a block
		return defaultShared, Success
	case 9: // constant memory
		return 64 << 10, Success
	case 10: // warp
		return 32, Success
	case 12, 82: // registers of a block, of a multiprocessor
		return 64 << 10, Success
	case 13: // kHz
		return 2_000_000, Success
	case 15, 19, 31, 41, 83, 96: // copies overlap; host memory mapped; concurrent kernels; one address space; managed; registered host memory used directly
		return 1, Success
	case 16:
		return g.sms(), Success
	case 18:
		return flag(g.dev.Integrated), Success
	case 17, 20, 32, 35: // kernel timeout, compute mode, ECC, TCC
		return 0, Success
	case 33:
		return bus, Success
	case 34:
		return slot, Success
	case 36: // kHz: twice that times the bus is the bandwidth
		return int(g.dev.MemoryGBps * 1e6 * 8 / (2 * busBits)), Success
	case 37:
		return busBits, Success
	case 38: // L2
		return 32 << 20, Success
	case 39: // threads of a multiprocessor
		return 1536, Success
	case 40: // copy engines
		return 2, Success
	case 50:
		return 0, Success
	case 75:
		return generation, Success
	case 76:
		return variant, Success
	case 81, 97: // shared memory of a multiprocessor, of a block that opts in
		return g.sharedOptin(), Success
	case 88, 89, 100, 115: // pageable and managed memory, the host's page tables, memory pools
		return 0, Success
	case 106: // blocks of a multiprocessor
		return 16, Success
	case 134:
		if g.dev.NUMANode != nil {
			return *g.dev.NUMANode, Success
		}
		return -1, Success
	}
	return 0, InvalidValue
}

// P2PAttribute is cuDeviceGetP2PAttribute.
func (m *Machine) P2PAttribute(attribute, from, to int) (int, Result) {
	if from < 0 || from >= len(m.gpus) || to < 0 || to >= len(m.gpus) || from == to {
		return 0, InvalidDevice
	}
	yes := 0
	if m.CanAccessPeer(from, to) {
		yes = 1
	}
	switch attribute {
	case 1, 2, 4: // rank, access, arrays
		return yes, Success
	case 3, 5: // native atomics: over NVLink
		if nvlinks(m.links[[2]int{from, to}].Kind) == 0 {
			yes = 0
		}
		return yes, Success
	}
	return 0, InvalidValue
}

// pci is the device's place: cards that share a switch have neighbouring buses.
func (g *GPU) pci() (domain, bus, slot int) { return 0, 1 + g.index, 0 }

// PCI is the device's bus id like 0000:01:00.0.
func (g *GPU) PCI() string {
	d, b, s := g.pci()
	return fmt.Sprintf("%04x:%02x:%02x.0", d, b, s)
}

// Name is the device's name, UUID its identity.
func (g *GPU) Name() string { return g.dev.Name }

// UUID is like GPU-01234567-89ab-cdef-0123-456789abcdef.
func (g *GPU) UUID() string { return g.dev.UUID }

// Capability is the device's compute capability, like 8.9.
func (g *GPU) Capability() string {
	g.m.mu.Lock()
	defer g.m.mu.Unlock()
	return g.capability
}

// DriverVersion is NVML's, empty if the machine does not say one.
func (m *Machine) DriverVersion() string {
	v := m.spec.Driver.Version
	if v == nil || strings.Trim(*v, "0123456789.") != "" {
		return ""
	}
	return *v
}

// Link is what is known of the way between two devices.
func (m *Machine) Link(from, to int) (Link, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.links[[2]int{from, to}]
	if l == nil {
		return Link{}, false
	}
	return *l, true
}
