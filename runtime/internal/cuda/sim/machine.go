package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"infer/runtime/internal/cuda/ptx"
)

// Checks are the interpreter's optional checks: races, uninitialised memory …
type Checks = ptx.Checks

// CheckAll turns all of them on.
const CheckAll = ptx.CheckAll

// Options say how a machine is run.
type Options struct {
	Seed    uint64 // of the order in which streams go on, and of random faults
	Checks  Checks // none by default: they cost speed
	Workers int    // blocks of a kernel that run at once; 0: as many as there are processors
	Faults  []Fault
	// Report is told what no driver says: which kernel touched which address,
	// what a check found. It must not call the machine. nil: kept for Reports.
	Report func(Report)
}

// Report is the story behind an error code.
type Report struct {
	Device int
	Result Result
	Text   string
}

func (r Report) String() string { return fmt.Sprintf("device %d: %s: %s", r.Device, r.Result, r.Text) }

// Machine is a simulated machine. Its methods and those of its GPUs are safe
// for any number of goroutines.
type Machine struct {
	spec  Spec
	opts  Options
	gpus  []*GPU
	links map[[2]int]*Link

	mu      sync.Mutex
	moved   sync.Cond // something ran, was queued, or the machine was closed
	waiters int
	closed  bool
	rng     *rand.Rand
	handles uint64
	streams map[uint64]*stream
	events  map[uint64]*event
	modules map[uint64]*module
	funcs   map[uint64]*Function
	graphs  map[uint64]*graph
	execs   map[uint64]*graphExec
	active  []*stream // with work, in order of their making
	last    *stream   // that ran last
	busy    uint64    // bits of devices a kernel runs on now
	running int
	staged  int64 // bytes of pageable sources kept for queued copies
	faults  []*armed
	late    map[[2]int][]write
	seen    map[peerView][]byte
	host    pinnedSet
	now     time.Duration // modelled time on the host
	launch  uint64        // number of the last launch
	spare   []*op

	counts  []DeviceStats
	kernels map[kernelKey]*KernelStats
	tally   map[FaultKind]int
	spans   spanLog
	reports []Report
}

// GPU is one device of a machine, with its primary context.
type GPU struct {
	m          *Machine
	index      int
	bit        uint64 // in Machine.busy
	dev        Device
	capability string
	total      int64
	limit      int64 // of it for allocations
	mem        space
	peers      uint64 // bits of the devices whose memory it may touch
	err        Result // sticky
	null       *stream
	capturing  int // streams in a capture that forbids unsafe calls
	launches   int
	retained   int
	rates      rates
	engines    [numEngines]engine
}

// New makes a machine. Faults are those of the spec, its links' fault words,
// and those of the options.
func New(s Spec, o Options) (*Machine, error) {
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("simulated machine: %w", err)
	}
	m := &Machine{
		spec: s, opts: o, links: map[[2]int]*Link{},
		rng:     rand.New(rand.NewPCG(o.Seed, 0x73696d)),
		streams: map[uint64]*stream{}, events: map[uint64]*event{}, modules: map[uint64]*module{},
		funcs: map[uint64]*Function{}, graphs: map[uint64]*graph{}, execs: map[uint64]*graphExec{},
		late: map[[2]int][]write{}, seen: map[peerView][]byte{},
		kernels: map[kernelKey]*KernelStats{}, tally: map[FaultKind]int{},
		counts: make([]DeviceStats, len(s.Devices)),
	}
	m.moved.L = &m.mu
	for i, d := range s.Devices {
		g := &GPU{m: m, index: i, bit: 1 << i, dev: d, capability: d.Capability, total: d.MemoryBytes, rates: ratesOf(d)}
		// A context and the display take some.
		g.limit = g.total - min(400<<20, g.total/32)
		g.mem.next = uint64(i+1)<<addrShift + 1<<33
		g.null = &stream{g: g, blocking: true}
		m.gpus = append(m.gpus, g)
	}
	for _, l := range s.Links {
		m.links[[2]int{l.From, l.To}] = &l
		if l.Fault != "" && l.Fault != "none" {
			f := Fault{Kind: FaultKind(l.Fault), From: l.From, To: l.To}
			if f.Kind == Slow && l.PeerGBps != nil && l.StagedGBps != nil && *l.PeerGBps < *l.StagedGBps/2 {
				f.Factor = 1 // its own figures say how slow
			}
			m.arm(f)
		}
	}
	for i, f := range append(append([]Fault(nil), s.Faults...), o.Faults...) {
		if err := f.check(len(m.gpus)); err != nil {
			return nil, fmt.Errorf("simulated machine: fault %d: %w", i, err)
		}
		m.arm(f)
	}
	return m, nil
}

// Device gives GPU i, which must exist.
func (m *Machine) Device(i int) *GPU { return m.gpus[i] }

// Devices is how many GPUs there are.
func (m *Machine) Devices() int { return len(m.gpus) }

// Spec is what the machine was made from.
func (m *Machine) Spec() Spec { return m.spec }

// Close ends the machine: calls that wait return DEINITIALIZED, as do all
// later ones, and device memory is given back.
func (m *Machine) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return errors.New("simulated machine: closed twice")
	}
	m.closed = true
	m.moved.Broadcast()
	for m.running > 0 {
		m.wait()
	}
	for _, g := range m.gpus {
		g.mem.clear()
	}
	m.host.list.Store(nil)
	m.active, m.streams = nil, map[uint64]*stream{}
	return nil
}

// EndHangs ends what hangs, for whoever gives the machine up and would wait for
// it: the devices whose streams hang fail with LAUNCH_TIMEOUT.
func (m *Machine) EndHangs() {
	m.mu.Lock()
	defer m.mu.Unlock()
	keep := m.faults[:0]
	for _, a := range m.faults {
		if a.Kind != Hang {
			keep = append(keep, a)
		}
	}
	m.faults = keep
	for _, g := range m.gpus {
		for _, s := range m.active {
			if s.g == g && s.hung {
				m.fail(g, LaunchTimeout, "a stream hung: ended by its owner")
				break
			}
		}
	}
	m.moved.Broadcast()
}

// handle makes a number no other object has. The first are kept free for the
// driver's special streams.
func (m *Machine) handle() uint64 {
	m.handles++
	return 1<<20 + m.handles<<4
}

// state is the sticky error of the device.
func (g *GPU) state() Result {
	if g.m.closed {
		return Deinitialized
	}
	return g.err
}

// State is the device's sticky error; Success while it is well.
func (g *GPU) State() Result {
	g.m.mu.Lock()
	defer g.m.mu.Unlock()
	return g.state()
}

// Retain is cuDevicePrimaryCtxRetain: one more user of the device's context.
func (g *GPU) Retain() Result {
	g.m.mu.Lock()
	defer g.m.mu.Unlock()
	if g.m.closed {
		return Deinitialized
	}
	g.retained++
	return Success
}

// Release is cuDevicePrimaryCtxRelease: with its last user everything of the
// device goes.
func (g *GPU) Release() Result {
	g.m.mu.Lock()
	switch {
	case g.m.closed:
		g.m.mu.Unlock()
		return Deinitialized
	case g.retained == 0:
		g.m.mu.Unlock()
		return InvalidContext
	}
	g.retained--
	last := g.retained == 0
	g.m.mu.Unlock()
	if last {
		return g.Reset()
	}
	return Success
}

// Reset is cuDevicePrimaryCtxReset: everything of the device is gone, and so
// is its error, unless the device is lost.
func (g *GPU) Reset() Result {
	m := g.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return Deinitialized
	}
	for m.busy&g.bit != 0 && !m.closed {
		m.wait()
	}
	m.abandon(g)
	for h, s := range m.streams {
		if s.g == g {
			delete(m.streams, h)
		}
	}
	for h, x := range m.modules {
		if x.g == g {
			delete(m.modules, h)
		}
	}
	for h, f := range m.funcs {
		if f.g == g {
			delete(m.funcs, h)
		}
	}
	for h, x := range m.execs {
		if x.g == g {
			delete(m.execs, h)
		}
	}
	for h, e := range m.events {
		if e.g == g {
			delete(m.events, h)
		}
	}
	g.mem.clear()
	g.peers, g.capturing, g.err = 0, 0, Success
	m.moved.Broadcast()
	return Success
}

// fail makes the error of a device sticky and drops its queued work. Marks that
// others wait for are passed: what they guarded never came.
func (m *Machine) fail(g *GPU, r Result, text string) {
	m.report(g, r, text)
	if g.err != Success {
		return
	}
	g.err = r
	m.abandon(g)
}

func (m *Machine) abandon(g *GPU) {
	keep := m.active[:0]
	for _, s := range m.active {
		if s.g != g {
			keep = append(keep, s)
			continue
		}
		for i, w := range s.pending() {
			if i > 0 || !s.running { // a kernel that runs now still uses it
				m.drop(w)
			}
		}
		s.queue, s.head, s.done, s.hung, s.listed = nil, 0, s.queued, false, false
	}
	m.active = keep
}

const keptReports = 100

func (m *Machine) report(g *GPU, r Result, text string) {
	rep := Report{Device: g.index, Result: r, Text: text}
	if m.opts.Report != nil {
		m.opts.Report(rep)
		return
	}
	if len(m.reports) < keptReports {
		m.reports = append(m.reports, rep)
	}
}

// Reports lists the first stories behind error codes.
func (m *Machine) Reports() []Report {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Report(nil), m.reports...)
}

// CanAccessPeer is cuDeviceCanAccessPeer.
func (m *Machine) CanAccessPeer(from, to int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.links[[2]int{from, to}]
	return l != nil && l.CanAccess
}

// EnablePeer is cuCtxEnablePeerAccess: g may touch the memory of device to.
func (g *GPU) EnablePeer(to int) Result {
	m := g.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := g.state(); r != Success {
		return r
	}
	switch l := m.links[[2]int{g.index, to}]; {
	case to < 0 || to >= len(m.gpus) || to == g.index:
		return InvalidDevice
	case l == nil || !l.CanAccess:
		return PeerAccessUnsupported
	case g.peers&(1<<to) != 0:
		return PeerAlreadyEnabled
	}
	g.peers |= 1 << to
	return Success
}

// DisablePeer is cuCtxDisablePeerAccess.
func (g *GPU) DisablePeer(to int) Result {
	g.m.mu.Lock()
	defer g.m.mu.Unlock()
	if r := g.state(); r != Success {
		return r
	}
	if to < 0 || to >= len(g.m.gpus) || g.peers&(1<<to) == 0 {
		return PeerNotEnabled
	}
	g.peers &^= 1 << to
	return Success
}
