package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"strconv"
	"strings"
)

// Spec describes a machine: schema topology/1, and what it leaves open.
type Spec struct {
	Schema  string   `json:"schema"`
	ID      string   `json:"id"`
	Title   string   `json:"title,omitempty"`
	Driver  Driver   `json:"driver"`
	Devices []Device `json:"devices"`
	Links   []Link   `json:"links"` // one for each directed pair
	Faults  []Fault  `json:"faults,omitempty"`
}

// Driver is the software of the machine.
type Driver struct {
	Version      *string `json:"version"` // as NVML prints it; nil or not a version: unknown
	KernelModule string  `json:"kernel_module,omitempty"`
	API          int     `json:"api,omitempty"` // as cuDriverGetVersion counts: 13000 is CUDA 13.0; 0: 13000
}

// Device is one GPU.
type Device struct {
	Index       int     `json:"index"`
	UUID        string  `json:"uuid"` // GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx
	Name        string  `json:"name"` // as NVML prints it
	Capability  string  `json:"compute_capability"`
	MemoryBytes int64   `json:"memory_bytes"`
	MemoryGBps  float64 `json:"memory_bandwidth_gbps"` // 10⁹ bytes a second
	PCIeGen     *int    `json:"pcie_gen"`
	PCIeWidth   *int    `json:"pcie_width"`
	NUMANode    *int    `json:"numa_node"`
	BAR1Bytes   *int64  `json:"bar1_bytes"`
	Integrated  bool    `json:"integrated,omitempty"`
	NVMLMemory  string  `json:"nvml_memory_info,omitempty"` // NOT_SUPPORTED: NVML does not say the memory's size

	// Not in the files of facts; taken from the product's row if zero.
	FP32TFLOPS  float64 `json:"fp32_tflops,omitempty"`
	DenseTFLOPS float64 `json:"dense_tflops,omitempty"` // tensor cores, bf16 or fp16, without sparsity
	SMs         int     `json:"sms,omitempty"`
}

// Link is the way from one GPU to another.
type Link struct {
	From        int      `json:"from"`
	To          int      `json:"to"`
	Kind        string   `json:"kind"`            // PIX PXB PHB NODE SYS NV1 … NV18
	CanAccess   bool     `json:"can_access_peer"` // cuDeviceCanAccessPeer(From, To)
	P2PStatus   *string  `json:"nvml_p2p_status"` // OK GNS CNS TNS DR NS U
	PeerGBps    *float64 `json:"peer_gbps"`       // one way, with peer access
	StagedGBps  *float64 `json:"staged_gbps"`     // through host memory
	PeerUS      *float64 `json:"peer_latency_us"`
	StagedUS    *float64 `json:"staged_latency_us"`
	Fault       string   `json:"fault"` // none zeros stale bitflip slow hang driver-lies
	FaultDetail string   `json:"fault_detail,omitempty"`
}

// Schema is the one that Spec reads and writes.
const Schema = "topology/1"

// The driver's limit is 64; device addresses have room for 255.
const (
	maxDevices  = 64
	maxSpecFile = 8 << 20
)

// Read reads a machine from a topology file and checks it. An error names the
// file and the field.
func Read(file string) (Spec, error) {
	f, err := os.Open(file)
	if err != nil {
		return Spec{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSpecFile+1))
	if err != nil {
		return Spec{}, err
	}
	if len(data) > maxSpecFile {
		return Spec{}, fmt.Errorf("%s: more than %d bytes", file, maxSpecFile)
	}
	s, err := Decode(data)
	if err != nil {
		return Spec{}, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

// Decode is Read for a file's contents. Fields that the schema does not have
// are left aside, for files of facts may say more than a machine needs; but one
// that is spelled almost like a field is an error.
func Decode(data []byte) (Spec, error) {
	var s Spec
	if err := json.Unmarshal(data, &s); err != nil {
		var te *json.UnmarshalTypeError
		if errors.As(err, &te) && te.Field == "" {
			return s, fmt.Errorf("one object is wanted, not: %s", te.Value)
		}
		if errors.As(err, &te) {
			return s, fmt.Errorf("%s: %s is not a %s", te.Field, te.Value, te.Type)
		}
		return s, err
	}
	if err := misspelled(data); err != nil {
		return s, err
	}
	return s, s.check()
}

// check finds what would make no machine.
func (s *Spec) check() error {
	if s.Schema != Schema {
		return fmt.Errorf("schema: %q; only %q is known", s.Schema, Schema)
	}
	if s.Driver.API < 0 {
		return fmt.Errorf("driver.api: %d is negative", s.Driver.API)
	}
	n := len(s.Devices)
	if n == 0 {
		return errors.New("devices: none")
	}
	if n > maxDevices {
		return fmt.Errorf("devices: %d; at most %d", n, maxDevices)
	}
	sort.SliceStable(s.Devices, func(i, j int) bool { return s.Devices[i].Index < s.Devices[j].Index })
	uuids := map[string]int{}
	for i := range s.Devices {
		d := &s.Devices[i]
		if d.Index != i {
			return fmt.Errorf("devices: indexes must be 0 to %d, each once; there is none with index %d", n-1, i)
		}
		if err := d.check(); err != nil {
			return fmt.Errorf("devices[%d].%w", i, err)
		}
		if j, ok := uuids[d.UUID]; ok {
			return fmt.Errorf("devices[%d].uuid: the same as of device %d", i, j)
		}
		uuids[d.UUID] = i
	}
	if err := s.checkLinks(); err != nil {
		return err
	}
	for i := range s.Faults {
		if err := s.Faults[i].check(n); err != nil {
			return fmt.Errorf("faults[%d]: %w", i, err)
		}
	}
	return nil
}

func (d *Device) check() error {
	if _, ok := parseUUID(d.UUID); !ok {
		return fmt.Errorf("uuid: %q is not like GPU-01234567-89ab-cdef-0123-456789abcdef", d.UUID)
	}
	if d.Name == "" {
		return errors.New("name: empty")
	}
	if _, _, ok := capability(d.Capability); !ok {
		return fmt.Errorf("compute_capability: %q is not like 8.9", d.Capability)
	}
	if d.MemoryBytes < 1<<20 || d.MemoryBytes > 1<<44 {
		return fmt.Errorf("memory_bytes: %d; must be 1 MiB to 16 TiB", d.MemoryBytes)
	}
	if !(d.MemoryGBps > 0 && d.MemoryGBps < 1e6) {
		return fmt.Errorf("memory_bandwidth_gbps: %g; must be above 0 and below 1,000,000", d.MemoryGBps)
	}
	for _, f := range []struct {
		name    string
		v       *int
		min, to int
	}{{"pcie_gen", d.PCIeGen, 1, 8}, {"pcie_width", d.PCIeWidth, 1, 32}, {"numa_node", d.NUMANode, -1, 1023}} {
		if f.v != nil && (*f.v < f.min || *f.v > f.to) {
			return fmt.Errorf("%s: %d; must be %d to %d, or null", f.name, *f.v, f.min, f.to)
		}
	}
	if d.BAR1Bytes != nil && *d.BAR1Bytes < 0 {
		return fmt.Errorf("bar1_bytes: %d is negative", *d.BAR1Bytes)
	}
	if d.NVMLMemory != "" && d.NVMLMemory != "NOT_SUPPORTED" {
		return fmt.Errorf("nvml_memory_info: %q; NOT_SUPPORTED or absent", d.NVMLMemory)
	}
	if d.FP32TFLOPS < 0 || d.DenseTFLOPS < 0 || d.SMs < 0 {
		return errors.New("fp32_tflops, dense_tflops, sms: negative")
	}
	return nil
}

var linkKinds = map[string]bool{"PIX": true, "PXB": true, "PHB": true, "NODE": true, "SYS": true}

func (s *Spec) checkLinks() error {
	n := len(s.Devices)
	seen := map[[2]int]bool{}
	for i, l := range s.Links {
		at := fmt.Sprintf("links[%d] (%d to %d)", i, l.From, l.To)
		switch {
		case l.From < 0 || l.From >= n || l.To < 0 || l.To >= n:
			return fmt.Errorf("%s: there are devices 0 to %d", at, n-1)
		case l.From == l.To:
			return fmt.Errorf("%s: both ends are one device", at)
		case seen[[2]int{l.From, l.To}]:
			return fmt.Errorf("%s: a second entry for the pair", at)
		case !linkKinds[l.Kind] && nvlinks(l.Kind) == 0:
			return fmt.Errorf("%s.kind: %q; PIX, PXB, PHB, NODE, SYS or NV1 to NV36", at, l.Kind)
		}
		seen[[2]int{l.From, l.To}] = true
		if l.P2PStatus != nil {
			if _, ok := p2pStatus[*l.P2PStatus]; !ok {
				return fmt.Errorf("%s.nvml_p2p_status: %q; OK, CNS, GNS, TNS, DR, NS, U or null", at, *l.P2PStatus)
			}
		}
		for _, f := range []struct {
			name string
			v    *float64
		}{{"peer_gbps", l.PeerGBps}, {"staged_gbps", l.StagedGBps}, {"peer_latency_us", l.PeerUS}, {"staged_latency_us", l.StagedUS}} {
			if f.v != nil && !(*f.v > 0 && *f.v < 1e9) {
				return fmt.Errorf("%s.%s: %g; must be above 0, or null", at, f.name, *f.v)
			}
		}
		if l.Fault != "" && l.Fault != "none" && !topologyFaults[FaultKind(l.Fault)] {
			return fmt.Errorf("%s.fault: %q; none, zeros, stale, bitflip, slow, hang or driver-lies", at, l.Fault)
		}
	}
	for a := range n {
		for b := range n {
			if a != b && !seen[[2]int{a, b}] {
				return fmt.Errorf("links: no entry for %d to %d", a, b)
			}
		}
	}
	return nil
}

// p2pStatus holds NVML's numbers for its status words.
var p2pStatus = map[string]int{"OK": 0, "CNS": 1, "GNS": 2, "TNS": 3, "DR": 4, "NS": 5, "U": 6}

// nvlinks is the number of links that a kind like NV18 stands for; 0: it is
// another kind.
func nvlinks(kind string) int {
	rest, ok := strings.CutPrefix(kind, "NV")
	n, err := strconv.Atoi(rest)
	if !ok || err != nil || n < 1 || n > 36 {
		return 0
	}
	return n
}

// capability takes "8.9" apart; the driver's number for a part has three digits
// at most before the last.
func capability(s string) (generation, variant int, ok bool) {
	a, b, found := strings.Cut(s, ".")
	g, err1 := strconv.Atoi(a)
	v, err2 := strconv.Atoi(b)
	ok = found && err1 == nil && err2 == nil && g >= 0 && g < 1000 && v >= 0 && v < 10 && fmt.Sprintf("%d.%d", g, v) == s
	return g, v, ok
}

// parseUUID gives the 16 bytes of a GPU's UUID.
func parseUUID(s string) (u [16]byte, ok bool) {
	hex, found := strings.CutPrefix(s, "GPU-")
	if !found || len(hex) != 36 {
		return u, false
	}
	for _, i := range []int{8, 13, 18, 23} {
		if hex[i] != '-' {
			return u, false
		}
	}
	hex = strings.ReplaceAll(hex, "-", "")
	if len(hex) != 32 {
		return u, false
	}
	for i := range u {
		b, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		if err != nil {
			return u, false
		}
		u[i] = byte(b)
	}
	return u, true
}
