package sim

import (
	"encoding/json"
	"io"
	"sort"
	"strconv"
	"time"

	"infer/runtime/internal/cuda/ptx"
)

// DeviceStats counts what a device did.
type DeviceStats struct {
	Launches      int64 // calls that launch a kernel
	GraphLaunches int64 // calls that launch a graph
	Kernels       int64 // that ran, those of graphs too
	Copies, Sets  int64 // that ran
	Syncs         int64 // calls that waited: synchronise, blocking copies
	Queries       int64 // calls that asked whether work is done
	Allocations   int64
	UsedBytes     int64
	PeakBytes     int64

	UploadBytes, DownloadBytes int64 // host to device, device to host
	PeerInBytes, PeerOutBytes  int64 // by copies, from and to other devices
	LocalBytes                 int64 // by copies within the device

	// Modelled time its engines worked. Copies between devices count at both.
	ComputeTime, CopyInTime, CopyOutTime time.Duration
}

// KernelStats is what one kernel did on one device.
type KernelStats struct {
	Device   int
	Name     string
	Launches int64
	Time     time.Duration // modelled
	Bytes    int64         // of device memory, as the model counts them
	Stats    ptx.Stats
}

type kernelKey struct {
	device int
	name   string
}

// Stats is what a machine did.
type Stats struct {
	Time    time.Duration // modelled
	Devices []DeviceStats
	Kernels []KernelStats     // by device, then the longest first
	Faults  map[FaultKind]int // how often each kind struck
}

func (m *Machine) stats(g *GPU) *DeviceStats { return &m.counts[g.index] }

// Stats is what the machine did so far.
func (m *Machine) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := Stats{Time: m.now, Devices: append([]DeviceStats(nil), m.counts...), Faults: map[FaultKind]int{}}
	for i, g := range m.gpus {
		s.Devices[i].UsedBytes = g.mem.used
	}
	for _, k := range m.kernels {
		s.Kernels = append(s.Kernels, *k)
	}
	sort.Slice(s.Kernels, func(i, j int) bool {
		a, b := s.Kernels[i], s.Kernels[j]
		switch {
		case a.Device != b.Device:
			return a.Device < b.Device
		case a.Time != b.Time:
			return a.Time > b.Time
		}
		return a.Name < b.Name
	})
	for k, n := range m.tally {
		s.Faults[k] = n
	}
	return s
}

// Span is one stretch of an engine's modelled time.
type Span struct {
	Device     int
	Engine     string // compute, copy in, copy out
	Stream     uint64
	Name       string // the kernel, or the path of a copy
	Peer       int    // where a copy goes: a device, or Host
	Bytes      int64
	Start, End time.Duration
}

// spanLog keeps the last spans.
type spanLog struct {
	ring []Span
	next int
}

const keptSpans = 1 << 16

func (l *spanLog) add(s Span) {
	if len(l.ring) < keptSpans {
		l.ring = append(l.ring, s)
		return
	}
	l.ring[l.next] = s
	l.next = (l.next + 1) % keptSpans
}

// Timeline lists the last 65,536 spans, by start.
func (m *Machine) Timeline() []Span {
	m.mu.Lock()
	out := append([]Span(nil), m.spans.ring...)
	m.mu.Unlock()
	sort.SliceStable(out, func(i, j int) bool { return out[i].Start < out[j].Start })
	return out
}

// Busy is the part of the modelled time between from and to in which a device's
// engine (compute, copy in, copy out) worked, 0 to 1.
func (m *Machine) Busy(device int, engine string, from, to time.Duration) float64 {
	if to <= from {
		return 0
	}
	var sum time.Duration
	for _, s := range m.Timeline() {
		if s.Device == device && s.Engine == engine {
			sum += max(0, min(s.End, to)-max(s.Start, from))
		}
	}
	return float64(sum) / float64(to-from)
}

// WriteTrace writes the timeline for chrome://tracing and Perfetto.
func (m *Machine) WriteTrace(w io.Writer) error {
	type event struct {
		Name  string         `json:"name"`
		Phase string         `json:"ph"`
		PID   int            `json:"pid"`
		TID   string         `json:"tid"`
		Start float64        `json:"ts"`  // microseconds
		For   float64        `json:"dur"` // microseconds
		Args  map[string]any `json:"args"`
	}
	events := []event{}
	for _, s := range m.Timeline() {
		events = append(events, event{
			Name: s.Name, Phase: "X", PID: s.Device, TID: s.Engine,
			Start: float64(s.Start) / 1e3, For: float64(s.End-s.Start) / 1e3,
			Args: map[string]any{"bytes": s.Bytes, "stream": strconv.FormatUint(s.Stream, 16)},
		})
	}
	return json.NewEncoder(w).Encode(map[string]any{"traceEvents": events})
}
