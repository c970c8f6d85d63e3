package sim

import (
	"time"

	"infer/runtime/internal/cuda/ptx"
)

// Fixed costs, as usual on current systems.
const (
	launchTime     = 2500 * time.Nanosecond // of a kernel on a stream
	nodeTime       = 1300 * time.Nanosecond // of a kernel in a graph
	graphTime      = 4 * time.Microsecond   // of a graph
	hostLatency    = 5 * time.Microsecond   // of a copy between host and device
	peerLatency    = 2.5                    // microseconds, where a link does not say
	stagedLatency  = 14.0
	slotEfficiency = 0.85 // of a slot's raw bandwidth
)

// rates are what a device does a second, at best.
type rates struct {
	bytes  float64 // of device memory
	macs   float64 // multiply-adds of the tensor cores
	instrs float64 // instructions of threads
	host   float64 // bytes to or from the host
}

// ratesOf takes the figures of the spec, else of the product, else guesses.
func ratesOf(d Device) rates {
	fp32, dense := d.FP32TFLOPS, d.DenseTFLOPS
	for _, p := range products() {
		if p.name == d.Name {
			if fp32 == 0 {
				fp32 = p.fp32
			}
			if dense == 0 {
				dense = max(p.bf16, p.fp16)
			}
		}
	}
	if fp32 == 0 {
		fp32 = d.MemoryGBps / 50 // GPUs have some 20 to 60 bytes for 1000 operations
	}
	if dense == 0 {
		dense = 2 * fp32
	}
	gen, width := 0, 0
	if d.PCIeGen != nil && d.PCIeWidth != nil {
		gen, width = *d.PCIeGen, *d.PCIeWidth
	}
	return rates{
		bytes: d.MemoryGBps * 1e9, macs: dense * 1e12 / 2, instrs: fp32 * 1e12 / 2,
		host: slotEfficiency * 1e9 * pcieGBps(gen, width),
	}
}

// engineKind is a part of a device that does one thing at a time.
type engineKind uint8

const (
	engineCompute engineKind = iota
	engineIn                 // copies from the host or another device
	engineOut                // copies to them, and within the device
	numEngines
)

func (e engineKind) String() string { return [...]string{"compute", "copy in", "copy out"}[e] }

// slot is a busy stretch of modelled time.
type slot struct{ from, to time.Duration }

// engine is the plan of an engine's time. Work that is ready early takes a gap
// before what was planned already, so that the order in which the machine
// happens to run independent streams does not matter.
type engine struct {
	slots []slot // in order, not touching
	floor time.Duration
}

const keptSlots = 256

// fit finds the first time from ready on with room for d.
func (e *engine) fit(ready, d time.Duration) time.Duration {
	t := max(ready, e.floor)
	for i := e.first(t); i < len(e.slots); i++ {
		if e.slots[i].from-t >= d {
			break
		}
		t = max(t, e.slots[i].to)
	}
	return t
}

// first is the first slot that ends after t.
func (e *engine) first(t time.Duration) int {
	i := len(e.slots)
	for i > 0 && e.slots[i-1].to > t {
		i--
	}
	return i
}

// book takes the time from t on; fit said that it is free.
func (e *engine) book(t, d time.Duration) {
	if d <= 0 {
		return
	}
	i := e.first(t)
	left := i > 0 && e.slots[i-1].to == t
	right := i < len(e.slots) && e.slots[i].from == t+d
	switch {
	case left && right:
		e.slots[i-1].to = e.slots[i].to
		e.slots = append(e.slots[:i], e.slots[i+1:]...)
	case left:
		e.slots[i-1].to = t + d
	case right:
		e.slots[i].from = t
	default:
		e.slots = append(e.slots, slot{})
		copy(e.slots[i+1:], e.slots[i:])
		e.slots[i] = slot{t, t + d}
	}
	if len(e.slots) > keptSlots {
		n := copy(e.slots, e.slots[keptSlots/2:])
		e.floor = max(e.floor, e.slots[0].from)
		e.slots = e.slots[:n]
	}
}

// occupy books d on an engine of one device, and of a second at once, and moves
// the stream there.
func (m *Machine) occupy(s *stream, d time.Duration, what Span, g *GPU, kind engineKind, peer *GPU) {
	what.Device, what.Engine = g.index, kind.String()
	a := &g.engines[kind]
	t := a.fit(s.ready, d)
	if peer != nil { // g sends, peer receives
		in := &peer.engines[engineIn]
		for u := in.fit(t, d); u != t; u = in.fit(t, d) {
			t = a.fit(u, d)
		}
		in.book(t, d)
		m.stats(peer).CopyInTime += d
	}
	a.book(t, d)
	switch c := m.stats(g); kind {
	case engineCompute:
		c.ComputeTime += d
	case engineIn:
		c.CopyInTime += d
	default:
		c.CopyOutTime += d
	}
	s.ready = t + d
	what.Stream, what.Start, what.End = s.handle, t, t+d
	m.spans.add(what)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// kernelTime is the roofline of a launch. bytes is what it must move at least:
// see the package's comment.
func (r rates) kernelTime(st ptx.Stats, touched int64) (time.Duration, int64) {
	bytes := min(st.GlobalRead+st.GlobalWritten, touched)
	t := max(float64(bytes)/r.bytes, float64(st.MatrixMACs)/r.macs, float64(st.ThreadInstructions)/r.instrs)
	return seconds(t), bytes
}

// linkTime is the time of a copy between devices.
func (m *Machine) linkTime(from, to int, n int64, peer bool) time.Duration {
	l := m.links[[2]int{from, to}]
	latency, gbps := stagedLatency, 1e-9*min(m.gpus[from].rates.host, m.gpus[to].rates.host)
	if l.StagedGBps != nil {
		gbps = *l.StagedGBps
	}
	if l.StagedUS != nil {
		latency = *l.StagedUS
	}
	if peer {
		latency = peerLatency
		if l.PeerUS != nil {
			latency = *l.PeerUS
		}
		if n := nvlinks(l.Kind); n > 0 {
			gbps = 20 * float64(n)
		}
		if l.PeerGBps != nil {
			gbps = *l.PeerGBps
		}
	}
	return seconds(latency*1e-6 + float64(n)/(gbps*1e9))
}

// Time is the modelled time as the host knows it: the latest end of anything it
// has waited for.
func (m *Machine) Time() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}
