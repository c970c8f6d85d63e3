package cuda

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"infer/runtime/arch"
	"infer/runtime/device"
	"infer/runtime/internal/cuda/sim"
)

// contextBytes is what the driver keeps of a GPU's memory for one process:
// context and kernels.
const contextBytes = 512 << 20

// Describe tells the GPUs and links of a machine that need not exist: a preset
// like 2xRTX-4090,1xRTX-3060, or a topology file. It needs no driver and
// simulates nothing.
func Describe(machine string) ([]device.Info, []device.Link, error) {
	spec, err := readSpec(machine)
	if err != nil {
		return nil, nil, err
	}
	id := func(i int) device.ID { return device.ID{Kind: device.CUDA, Index: i} }
	var infos []device.Info
	for i, d := range spec.Devices {
		var major, minor int
		if _, err := fmt.Sscanf(d.Capability, "%d.%d", &major, &minor); err != nil {
			return nil, nil, &MachineError{machine, fmt.Errorf("compute capability %q: %w", d.Capability, err)}
		}
		g := &device.GPU{
			Capability: arch.Of(major, minor), UUID: d.UUID, NUMANode: -1, MemoryGBps: d.MemoryGBps, Simulated: true,
		}
		for _, f := range []struct{ to, from *int }{{&g.NUMANode, d.NUMANode}, {&g.PCIeGen, d.PCIeGen}, {&g.PCIeWidth, d.PCIeWidth}} {
			if f.from != nil {
				*f.to = *f.from
			}
		}
		infos = append(infos, device.Info{
			ID: id(i), Name: d.Name, TotalBytes: d.MemoryBytes, FreeBytes: max(d.MemoryBytes-contextBytes, 0),
			Units: d.SMs, Features: "compute capability " + g.Capability.String(), GPU: g,
		})
	}
	var links []device.Link
	for _, l := range spec.Links {
		out := device.Link{From: id(l.From), To: id(l.To), Kind: l.Kind, PeerAccess: l.CanAccess}
		if l.P2PStatus != nil {
			out.P2PStatus = *l.P2PStatus
		}
		for _, f := range []struct{ to, from *float64 }{{&out.PeerGBps, l.PeerGBps}, {&out.StagedGBps, l.StagedGBps}, {&out.PeerUS, l.PeerUS}, {&out.StagedUS, l.StagedUS}} {
			if f.from != nil {
				*f.to = *f.from
			}
		}
		links = append(links, out)
	}
	return infos, links, nil
}

// MachineError says that a name or a file is no machine to simulate or to plan
// for.
type MachineError struct {
	Machine string
	Err     error
}

func (e *MachineError) Error() string { return fmt.Sprintf("machine %s: %v", e.Machine, e.Err) }
func (e *MachineError) Unwrap() error { return e.Err }

// readSpec reads a preset's name or a topology file. Its errors are
// MachineErrors.
func readSpec(machine string) (spec sim.Spec, err error) {
	if strings.ContainsAny(machine, "/.") || isFile(machine) {
		spec, err = sim.Read(machine)
	} else {
		spec, err = sim.Preset(machine)
	}
	var file *fs.PathError // names the machine again
	if errors.As(err, &file) {
		err = file.Err
	}
	if err != nil {
		return spec, &MachineError{machine, err}
	}
	return spec, nil
}

// TFlops is the nominal rate of a product's matrix products in 16 bits, 10¹²
// operations a second, by the name that its driver gives; 0: not known.
func TFlops(name string) float64 {
	if strings.ContainsAny(name, "+,") {
		return 0
	}
	spec, err := sim.Preset("1x" + name)
	if err != nil {
		return 0
	}
	d := spec.Devices[0]
	return max(d.DenseTFLOPS, d.FP32TFLOPS)
}
