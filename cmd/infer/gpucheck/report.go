package gpucheck

import (
	"time"

	"infer/runtime/kernels/cuda"
)

// Schema of Report.
const Schema = "gpu-selftest/1"

// Report is all that was found. Rates are 10⁹ bytes or operations a second.
type Report struct {
	Schema  string    `json:"schema"`
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Seconds float64   `json:"seconds"`

	Devices []Device `json:"devices"` // all that are visible
	Links   []Link   `json:"links"`   // as the driver says
	Device  string   `json:"device"`  // the one that was measured

	Suite   *Suite   `json:"suite,omitempty"`
	Copy    float64  `json:"copy_gbps"` // within the device, bytes read + bytes written
	Kernels []Kernel `json:"kernels"`
	Decode  []Decode `json:"decode"`

	// Faults are what did not work; none: all is well.
	Faults []string `json:"faults"`
}

// Device is one GPU.
type Device struct {
	ID         string  `json:"id"`
	Name       string  `json:"name"`
	Capability string  `json:"compute_capability"`
	Bytes      int64   `json:"memory_bytes"`
	Units      int     `json:"multiprocessors"`
	UUID       string  `json:"uuid"`
	PCI        string  `json:"pci"`
	NUMANode   int     `json:"numa_node"`
	PCIeGen    int     `json:"pcie_gen"`
	PCIeWidth  int     `json:"pcie_width"`
	MemoryGBps float64 `json:"memory_gbps"` // nominal
	Driver     string  `json:"driver_version"`
	Simulated  bool    `json:"simulated"`
}

// Link is one directed pair.
type Link struct {
	From       string `json:"from"`
	To         string `json:"to"`
	Kind       string `json:"kind"`
	PeerAccess bool   `json:"can_access_peer"`
	P2PStatus  string `json:"nvml_p2p_status"`
}

// describe is what is known of the machine before anything is measured.
func (r *Report) describe(s *cuda.System) {
	for _, info := range s.Infos() {
		g := info.GPU
		r.Devices = append(r.Devices, Device{
			ID: info.ID.String(), Name: info.Name, Capability: g.Capability.String(), Bytes: info.TotalBytes, Units: info.Units,
			UUID: g.UUID, PCI: g.PCI, NUMANode: g.NUMANode, PCIeGen: g.PCIeGen, PCIeWidth: g.PCIeWidth,
			MemoryGBps: g.MemoryGBps, Driver: g.DriverVersion, Simulated: g.Simulated,
		})
	}
	for _, l := range s.Links() {
		r.Links = append(r.Links, Link{l.From.String(), l.To.String(), l.Kind, l.PeerAccess, l.P2PStatus})
	}
}

// Suite is what the kernels' tests said.
type Suite struct {
	Passed  int      `json:"passed"`
	Failed  []string `json:"failed"`
	Output  string   `json:"output,omitempty"` // the end of it, when something failed
	Seconds float64  `json:"seconds"`
}

// Kernel is the speed of one operation at one size.
type Kernel struct {
	Name      string  `json:"name"`
	Precision string  `json:"precision"`
	Bytes     int64   `json:"bytes"` // that it must read and write at least
	US        float64 `json:"us"`    // a call, of many in a row
	GBps      float64 `json:"gbps"`
	OfCopy    float64 `json:"of_copy"`          // GBps ÷ the copy's
	TFLOPs    float64 `json:"tflops,omitempty"` // of products
}

// Decode is the speed of a model of random weights.
type Decode struct {
	Shape       string  `json:"shape"`
	Precision   string  `json:"precision"`
	Graphs      bool    `json:"graphs"`
	WeightBytes int64   `json:"weight_bytes"` // read for each step
	LoadSeconds float64 `json:"load_seconds"`
	Prefill     float64 `json:"prefill_tokens_per_s"` // of one prompt
	Prompt      int     `json:"prompt"`
	Batches     []Batch `json:"batches"`
}

// Batch is how fast so many sequences decode together.
type Batch struct {
	Sequences int     `json:"sequences"`
	Tokens    float64 `json:"tokens_per_s"` // over all
	StepMS    float64 `json:"step_ms"`
	GBps      float64 `json:"gbps"` // weights ÷ step
	OfCopy    float64 `json:"of_copy"`
}
