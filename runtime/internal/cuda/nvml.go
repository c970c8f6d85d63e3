//go:build cuda && cgo && linux

package cuda

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// nvmlFacts asks NVIDIA's management library. All of it is optional: what it
// does not answer is unknown.
type nvmlFacts struct{}

// nvmlLoaded says that the library is there. It then stays: the program's calls
// are bound to where it was loaded.
var nvmlLoaded bool

// openNVML loads the library; without one nothing is known.
func openNVML() Facts {
	if nvmlLoaded = nvmlLoaded || nvml.Init() == nvml.SUCCESS; nvmlLoaded {
		return nvmlFacts{}
	}
	return noFacts{}
}

func (nvmlFacts) DriverVersion() string {
	v, r := nvml.SystemGetDriverVersion()
	if r != nvml.SUCCESS {
		return ""
	}
	return v
}

func (nvmlFacts) Device(uuid string) DeviceFacts {
	f := DeviceFacts{NUMANode: -1}
	d, r := nvml.DeviceGetHandleByUUID(uuid)
	if r != nvml.SUCCESS {
		return f
	}
	if m, r := d.GetMemoryInfo(); r == nvml.SUCCESS {
		f.FreeBytes = int64(m.Free)
	}
	if b, r := d.GetBAR1MemoryInfo(); r == nvml.SUCCESS {
		f.BAR1Bytes = int64(b.Bar1Total)
	}
	// An idle link falls back to a lower generation: the best it can is what
	// counts. The number of lanes does not change.
	if g, r := d.GetMaxPcieLinkGeneration(); r == nvml.SUCCESS {
		f.PCIeGen = g
	}
	if w, r := d.GetCurrPcieLinkWidth(); r == nvml.SUCCESS {
		f.PCIeWidth = w
	}
	if p, r := d.GetPciInfo(); r == nvml.SUCCESS {
		f.NUMANode = numaNode(fmt.Sprintf("%04x:%02x:%02x.0", p.Domain, p.Bus, p.Device))
	}
	return f
}

// numaNode is what the kernel says of a PCI device; −1 unknown.
func numaNode(pci string) int {
	b, err := os.ReadFile("/sys/bus/pci/devices/" + pci + "/numa_node")
	if err != nil {
		return -1
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return -1
	}
	return n
}

func (nvmlFacts) Link(from, to string) LinkFacts {
	a, r1 := nvml.DeviceGetHandleByUUID(from)
	b, r2 := nvml.DeviceGetHandleByUUID(to)
	if r1 != nvml.SUCCESS || r2 != nvml.SUCCESS {
		return LinkFacts{}
	}
	f := LinkFacts{Kind: ancestor(a, b)}
	if n := nvlinks(a, b); n > 0 {
		f.Kind = fmt.Sprintf("NV%d", n)
	}
	read, r1 := nvml.DeviceGetP2PStatus(a, b, nvml.P2P_CAPS_INDEX_READ)
	write, r2 := nvml.DeviceGetP2PStatus(a, b, nvml.P2P_CAPS_INDEX_WRITE)
	switch {
	case r1 == nvml.SUCCESS && read != nvml.P2P_STATUS_OK:
		f.P2PStatus = p2pStatus(read)
	case r2 == nvml.SUCCESS:
		f.P2PStatus = p2pStatus(write)
	case r1 == nvml.SUCCESS:
		f.P2PStatus = p2pStatus(read)
	}
	return f
}

// ancestor is how far the PCI paths of two GPUs run together.
func ancestor(a, b nvml.Device) string {
	level, r := nvml.DeviceGetTopologyCommonAncestor(a, b)
	if r != nvml.SUCCESS {
		return ""
	}
	switch level {
	case nvml.TOPOLOGY_INTERNAL, nvml.TOPOLOGY_SINGLE:
		return "PIX"
	case nvml.TOPOLOGY_MULTIPLE:
		return "PXB"
	case nvml.TOPOLOGY_HOSTBRIDGE:
		return "PHB"
	case nvml.TOPOLOGY_NODE:
		return "NODE"
	case nvml.TOPOLOGY_SYSTEM:
		return "SYS"
	}
	return ""
}

// nvlinks counts the active links of a that end at b, or at a switch.
func nvlinks(a, b nvml.Device) int {
	peer, r := b.GetPciInfo()
	if r != nvml.SUCCESS {
		return 0
	}
	// The call is younger than the oldest driver we take; a missing one would
	// end the process.
	kinds := nvml.Extensions().LookupSymbol("nvmlDeviceGetNvLinkRemoteDeviceType") == nil
	n := 0
	for l := range nvml.NVLINK_MAX_LINKS {
		if state, r := a.GetNvLinkState(l); r != nvml.SUCCESS || state != nvml.FEATURE_ENABLED {
			continue
		}
		if kinds {
			if kind, r := a.GetNvLinkRemoteDeviceType(l); r == nvml.SUCCESS && kind == nvml.NVLINK_DEVICE_TYPE_SWITCH {
				n++
				continue
			}
		}
		if p, r := a.GetNvLinkRemotePciInfo(l); r == nvml.SUCCESS &&
			p.Domain == peer.Domain && p.Bus == peer.Bus && p.Device == peer.Device {
			n++
		}
	}
	return n
}

// p2pStatus is the abbreviation that topology tools print.
func p2pStatus(s nvml.GpuP2PStatus) string {
	switch s {
	case nvml.P2P_STATUS_OK:
		return "OK"
	case nvml.P2P_STATUS_CHIPSET_NOT_SUPPORTED:
		return "CNS"
	case nvml.P2P_STATUS_GPU_NOT_SUPPORTED:
		return "GNS"
	case nvml.P2P_STATUS_IOH_TOPOLOGY_NOT_SUPPORTED:
		return "TNS"
	case nvml.P2P_STATUS_DISABLED_BY_REGKEY:
		return "DR"
	case nvml.P2P_STATUS_NOT_SUPPORTED:
		return "NS"
	}
	return "U"
}
