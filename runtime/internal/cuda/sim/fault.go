package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// FaultKind is what goes wrong.
type FaultKind string

// Faults of a way that bytes take. The data faults leave return codes alone.
const (
	Zeros      FaultKind = "zeros"       // the destination reads zero
	Stale      FaultKind = "stale"       // the write comes late: with the next one on the link; until then the reader gets what was there
	BitFlip    FaultKind = "bitflip"     // one bit differs
	Shift      FaultKind = "shift"       // bytes arrive Bytes further on; the first ones are what was there
	Partial    FaultKind = "partial"     // only the first half arrives
	Garbage    FaultKind = "garbage"     // other bytes arrive
	DriverLies FaultKind = "driver-lies" // the driver claims peer access; calls succeed, nothing arrives
	Slow       FaultKind = "slow"        // modelled time times Factor
	Hang       FaultKind = "hang"        // the stream never gets past it
	Failing    FaultKind = "error"       // Code, from the call, or a fatal one when the copy runs
)

// Faults of a device.
const (
	Lost              FaultKind = "lost"       // from launch After+1 on every call returns Code
	NoMemory          FaultKind = "oom"        // allocation After+1 fails, and Times-1 more
	BitRot            FaultKind = "bitrot"     // one bit of what was uploaded flips, after After launches or at modelled time AtUS
	UnknownCapability FaultKind = "capability" // the device says Capability
)

// Path is a way bytes take.
type Path string

// The ways there are.
const (
	PeerCopy     Path = "peer-copy"     // a copy engine, with peer access
	PeerKernel   Path = "peer-kernel"   // loads and stores of a kernel, with peer access
	DriverStaged Path = "driver-staged" // a peer copy without peer access: the driver's own staging
	Upload       Path = "upload"        // host to device
	Download     Path = "download"      // device to host
)

// Ends that are no device.
const (
	Host = -1
	Any  = -2
)

// Fault is one thing that is wrong with a machine. In JSON a missing from, to
// or device means any.
type Fault struct {
	Kind FaultKind `json:"kind"`
	// The directed way of a fault of a way: devices, Host or Any.
	From int `json:"from"`
	To   int `json:"to"`
	// The ways it is in; none: peer-copy and peer-kernel between devices, upload
	// from Host, download to Host.
	Paths  []Path `json:"paths,omitempty"`
	Device int    `json:"device"` // of a fault of a device

	After    int   `json:"after,omitempty"`     // this many copies (launches, allocations) are right first
	Every    int   `json:"every,omitempty"`     // then each so-many-th; 0: each
	Times    int   `json:"times,omitempty"`     // so often at most; 0: for ever
	MinBytes int64 `json:"min_bytes,omitempty"` // smaller copies are right, and not counted
	Busy     bool  `json:"busy,omitempty"`      // only while another copy of one of the ends is queued

	Bytes      int     `json:"bytes,omitempty"`      // shift: how far; 0: 16
	Factor     float64 `json:"factor,omitempty"`     // slow: how much; 0: 1000
	Code       Result  `json:"code,omitempty"`       // error, lost: 0: UNKNOWN (999)
	AtUS       float64 `json:"at_us,omitempty"`      // bitrot: modelled microseconds
	Capability string  `json:"capability,omitempty"` // capability; "": 13.0
}

// topologyFaults are the fault words of schema topology/1.
var topologyFaults = map[FaultKind]bool{Zeros: true, Stale: true, BitFlip: true, Slow: true, Hang: true, DriverLies: true}

// UnmarshalJSON reads a fault; what is not said of its place means any.
func (f *Fault) UnmarshalJSON(data []byte) error {
	type plain Fault
	p := plain{From: Any, To: Any, Device: Any}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return fmt.Errorf("fault: %w", err)
	}
	*f = Fault(p)
	return nil
}

// ofDevice tells the faults of a device from those of a way.
func (k FaultKind) ofDevice() bool {
	switch k {
	case Lost, NoMemory, BitRot, UnknownCapability:
		return true
	}
	return false
}

func (f *Fault) check(devices int) error {
	switch f.Kind {
	case Zeros, Stale, BitFlip, Shift, Partial, Garbage, DriverLies, Slow, Hang, Failing, Lost, NoMemory, BitRot, UnknownCapability:
	default:
		return fmt.Errorf("kind: %q is no fault", f.Kind)
	}
	for _, e := range []struct {
		name string
		v    int
		min  int
	}{{"from", f.From, Any}, {"to", f.To, Any}, {"device", f.Device, Any}} {
		if e.v < e.min || e.v >= devices {
			return fmt.Errorf("%s: %d; there are devices 0 to %d", e.name, e.v, devices-1)
		}
	}
	if f.Kind.ofDevice() && f.Device == Host {
		return errors.New("device: the host is no GPU")
	}
	for _, p := range f.Paths {
		switch p {
		case PeerCopy, PeerKernel, DriverStaged, Upload, Download:
		default:
			return fmt.Errorf("paths: %q; peer-copy, peer-kernel, driver-staged, upload, download", p)
		}
	}
	if f.After < 0 || f.Every < 0 || f.Times < 0 || f.MinBytes < 0 || f.Bytes < 0 || f.Factor < 0 || f.AtUS < 0 {
		return errors.New("a negative number")
	}
	if f.Capability != "" {
		if _, _, ok := capability(f.Capability); !ok {
			return fmt.Errorf("capability: %q is not like 13.0", f.Capability)
		}
	}
	return nil
}

// armed is a fault in place.
type armed struct {
	Fault
	seen, struck int
}

// due counts one more chance and says whether the fault strikes.
func (a *armed) due() bool {
	a.seen++
	k := a.seen - a.After
	if k < 1 || a.Every > 1 && k%a.Every != 0 || a.Times > 0 && a.struck >= a.Times {
		return false
	}
	a.struck++
	return true
}

// on says whether the fault lies on a way.
func (a *armed) on(p Path, from, to int) bool {
	if a.Kind.ofDevice() || a.From != Any && a.From != from || a.To != Any && a.To != to {
		return false
	}
	for _, q := range a.Paths {
		if q == p {
			return true
		}
	}
	if len(a.Paths) > 0 {
		return false
	}
	switch p {
	case PeerCopy, PeerKernel:
		return true
	case Upload:
		return a.From == Host
	case Download:
		return a.To == Host
	}
	return false
}

// Inject adds a fault to a running machine. It panics if the fault makes no
// sense: faults come from tests.
func (m *Machine) Inject(f Fault) {
	if err := f.check(len(m.gpus)); err != nil {
		panic("sim: Inject: " + err.Error())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.arm(f)
}

// Heal removes all faults; what they have done stays.
func (m *Machine) Heal() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults = nil
}

func (m *Machine) arm(f Fault) {
	a := &armed{Fault: f}
	switch f.Kind {
	case UnknownCapability:
		for _, g := range m.gpus {
			if f.Device == Any || f.Device == g.index {
				g.capability = f.Capability
				if f.Capability == "" {
					g.capability = unknownProduct.capability
				}
			}
		}
		return
	case DriverLies:
		for k, l := range m.links {
			if (f.From == Any || f.From == k[0]) && (f.To == Any || f.To == k[1]) {
				l.CanAccess, l.P2PStatus = true, ref("OK")
			}
		}
	}
	m.faults = append(m.faults, a)
}

// strikes finds the faults that strike one transfer: those that give an error,
// or the others.
func (m *Machine) strikes(p Path, from, to int, n int64, s *stream, failing bool) []*armed {
	var out []*armed
	for _, a := range m.faults {
		if (a.Kind == Failing) != failing || !a.on(p, from, to) || n < a.MinBytes || a.Busy && !m.traffic(from, to, s) {
			continue
		}
		if a.due() {
			m.tally[a.Kind]++
			out = append(out, a)
		}
	}
	return out
}

// traffic says whether a copy of one of the two ends waits in another stream.
func (m *Machine) traffic(from, to int, s *stream) bool {
	for _, o := range m.active {
		if o == s {
			continue
		}
		for _, w := range o.pending() {
			if w.kind == opCopy && (w.touches(from) || w.touches(to)) {
				return true
			}
		}
	}
	return false
}

// deliver moves src to dst the way the data fault does; hold keeps a late
// write for later, and is nil where there is nowhere to keep it.
func (m *Machine) deliver(f *armed, dst, src []byte, hold func([]byte)) {
	n := len(src)
	if n == 0 {
		return
	}
	switch f.Kind {
	case Zeros:
		clear(dst)
	case Stale:
		if hold != nil {
			hold(bytes.Clone(src))
		}
	case DriverLies:
	case BitFlip:
		copy(dst, src)
		dst[m.rng.IntN(n)] ^= 1 << m.rng.IntN(8)
	case Shift:
		k := f.Bytes
		if k == 0 {
			k = 16
		}
		if k < n {
			copy(dst[k:], src[:n-k])
		}
	case Partial:
		copy(dst[:n/2], src)
	case Garbage:
		for i := range dst {
			dst[i] = src[i] ^ byte(1+m.rng.IntN(255))
		}
	default:
		copy(dst, src)
	}
}
