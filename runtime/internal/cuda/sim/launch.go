package sim

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"infer/runtime/internal/cuda/ptx"
)

const (
	maxThreads    = 1024
	defaultShared = 48 << 10 // of a block, without opting in
)

// Launch is cuLaunchKernel with the parameters in one block, as their layout
// says; trailing padding may be missing or there.
func (g *GPU) Launch(fn uint64, grid, block [3]uint32, shared uint32, onto uint64, params []byte) Result {
	m := g.m
	m.mu.Lock()
	defer m.mu.Unlock()
	s, r := g.enter(onto)
	if r != Success {
		return r
	}
	f, r := g.function(fn)
	if r != Success {
		return r
	}
	if r := f.check(grid, block, shared, params); r != Success {
		m.report(g, r, fmt.Sprintf("launch of %s: grid %v, block %v, %d bytes of shared memory (%d static, %d allowed), %d bytes of parameters (%d wanted)",
			f.name, grid, block, shared, f.kernel.SharedBytes(), f.dynamic, len(params), f.kernel.ParamBytes()))
		return r
	}
	w := m.newOp(opKernel)
	w.fn, w.shared = f, int(shared)
	for i := range 3 {
		w.grid[i], w.block[i] = int(grid[i]), int(block[i])
	}
	w.params = append(w.params, params[:f.kernel.ParamBytes()]...)
	m.stats(g).Launches++
	m.push(s, w)
	return Success
}

// check holds a launch against the limits of devices, with the driver's codes.
func (f *Function) check(grid, block [3]uint32, shared uint32, params []byte) Result {
	gridMax, blockMax := [3]uint32{1<<31 - 1, 65535, 65535}, [3]uint32{1024, 1024, 64}
	threads := uint64(1)
	for i := range 3 {
		if grid[i] == 0 || grid[i] > gridMax[i] || block[i] == 0 || block[i] > blockMax[i] {
			return InvalidValue
		}
		threads *= uint64(block[i])
	}
	if threads > maxThreads {
		return InvalidValue
	}
	if n := f.kernel.MaxThreads(); n > 0 && threads > uint64(n) {
		return LaunchOutOfResources
	}
	if int64(shared) > int64(f.dynamic) {
		return InvalidValue
	}
	if len(params) < f.kernel.ParamBytes() {
		return InvalidValue
	}
	return Success
}

// view is the memory a launch may touch.
type view struct {
	m       *Machine
	g       *GPU
	id      uint64
	peers   uint64
	shadow  bool         // the ways to peers have faults
	touched atomic.Int64 // bytes of the allocations it touched
	remote  [maxDevices]atomic.Int64

	mu      sync.Mutex
	shadows map[*alloc]*shadow
	hung    bool
	factor  float64
	code    Result
}

// shadow stands for a peer's allocation while a way to or from it is faulty.
type shadow struct {
	owner        int
	data, before []byte
}

// peerView is what a device last saw of a peer's allocation.
type peerView struct {
	device int
	a      *alloc
}

// Region finds the allocation of an address: the device's own, a peer's that
// access was enabled for, or pinned host memory.
func (v *view) Region(addr uint64) (ptx.Region, bool) {
	d := int(addr>>addrShift) - 1
	if d < 0 {
		p, ok := v.m.host.find(addr)
		if !ok {
			return ptx.Region{}, false
		}
		v.touched.Add(int64(len(p.data)))
		return ptx.Region{Base: p.base, Data: p.data, Name: "pinned host memory"}, true
	}
	if d >= len(v.m.gpus) || d != v.g.index && v.peers&(1<<d) == 0 {
		return ptx.Region{}, false
	}
	a := v.m.gpus[d].mem.find(addr)
	if a == nil {
		return ptx.Region{}, false
	}
	if a.touch.Swap(v.id) != v.id {
		if d == v.g.index {
			v.touched.Add(a.size)
		} else {
			v.remote[d].Add(a.size)
		}
	}
	if d != v.g.index && v.shadow {
		return ptx.Region{Base: a.base, Data: v.through(a, d)}, true
	}
	return ptx.Region{Base: a.base, Data: a.data, Init: a.init}, true
}

// through makes the shadow of a peer's allocation: what the link shows of it.
func (v *view) through(a *alloc, owner int) []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	if s := v.shadows[a]; s != nil {
		return s.data
	}
	m := v.m
	m.mu.Lock()
	defer m.mu.Unlock()
	var broken *armed
	for _, f := range m.strikes(PeerKernel, owner, v.g.index, a.size, nil, false) {
		switch {
		case f.Kind == Hang:
			v.hung = true
		case f.Kind == Slow:
			v.factor *= f.factor()
		case broken == nil:
			broken = f
		}
	}
	for _, f := range m.strikes(PeerKernel, owner, v.g.index, a.size, nil, true) {
		v.code = f.Code
		if v.code == Success {
			v.code = Unknown
		}
	}
	words := make([]uint64, a.size/8+4)
	buf := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(words)*8)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(buf))) % 16
	s := &shadow{owner: owner, data: buf[skip : skip+uintptr(a.size)]}
	if broken == nil {
		copy(s.data, a.data)
	} else {
		key := peerView{v.g.index, a}
		copy(s.data, m.seen[key])
		m.deliver(broken, s.data, a.data, func(b []byte) { m.seen[key] = b })
	}
	s.before = append([]byte(nil), s.data...)
	if v.shadows == nil {
		v.shadows = map[*alloc]*shadow{}
	}
	v.shadows[a] = s
	return s.data
}

// writeBack sends what the kernel wrote to peers over the link.
func (v *view) writeBack() {
	m := v.m
	for a, s := range v.shadows {
		var broken *armed
		asked := false
		for i := 0; i < len(s.data); i++ {
			if s.data[i] == s.before[i] {
				continue
			}
			j := i
			for j < len(s.data) && s.data[j] != s.before[j] {
				j++
			}
			if !asked {
				asked = true
				for _, f := range m.strikes(PeerKernel, v.g.index, s.owner, a.size, nil, false) {
					switch {
					case f.Kind == Hang:
						v.hung = true
					case f.Kind == Slow:
						v.factor *= f.factor()
					case broken == nil:
						broken = f
					}
				}
			}
			if broken == nil {
				copy(a.data[i:j], s.data[i:j])
			} else {
				m.deliver(broken, a.data[i:j], s.data[i:j], nil)
			}
			a.mark(int64(i), int64(j-i))
			i = j
		}
	}
}

// runKernel interprets a launch. The lock is open meanwhile; nothing else
// touches the devices whose memory it may touch. False: the stream got no
// further.
func (m *Machine) runKernel(s *stream, w *op, overhead time.Duration) bool {
	g, f := s.g, w.fn
	if !m.ages(g) {
		return false
	}
	m.launch++
	v := &view{m: m, g: g, id: m.launch, peers: g.peers, factor: 1}
	for _, a := range m.faults {
		v.shadow = v.shadow || v.peers != 0 && a.on(PeerKernel, a.From, a.To)
	}
	cfg := ptx.Config{Grid: w.grid, Block: w.block, SharedBytes: w.shared, Symbols: f.symbols}
	opts := ptx.Options{Workers: m.opts.Workers, Checks: m.opts.Checks}
	mask := m.reach(s, w)
	m.busy |= mask
	m.running++
	s.running = true
	m.mu.Unlock()
	st, err := f.kernel.Launch(context.Background(), cfg, w.params, v, opts)
	m.mu.Lock()
	s.running = false
	m.running--
	m.busy &^= mask
	if m.waiters > 0 {
		m.moved.Broadcast()
	}
	v.writeBack()
	if err == nil && v.code != Success {
		err = errors.New("access to a peer: injected")
	}
	if err != nil {
		m.fail(g, v.result(err), m.explain(err))
		return false
	}
	if g.err != Success || m.closed {
		return false
	}
	if v.hung {
		s.hung = true
		return false
	}
	m.timeKernel(s, f, st, v, overhead)
	return true
}

// timeKernel books a launch's modelled time, and counts it.
func (m *Machine) timeKernel(s *stream, f *Function, st ptx.Stats, v *view, overhead time.Duration) {
	g := s.g
	t, bytes := g.rates.kernelTime(st, v.touched.Load())
	for d := range m.gpus {
		if n := v.remote[d].Load(); n > 0 {
			t = max(t, m.linkTime(d, g.index, min(n, st.GlobalRead+st.GlobalWritten), true))
		}
	}
	t = time.Duration(float64(t)*v.factor) + overhead
	m.occupy(s, t, Span{Name: f.name, Peer: g.index, Bytes: bytes}, g, engineCompute, nil)
	m.stats(g).Kernels++
	k := m.kernels[kernelKey{g.index, f.name}]
	if k == nil {
		k = &KernelStats{Device: g.index, Name: f.name}
		m.kernels[kernelKey{g.index, f.name}] = k
	}
	k.Launches++
	k.Time += t
	k.Bytes += bytes
	k.Stats.Add(st)
}

// result is the driver's code for what a kernel did.
func (v *view) result(err error) Result {
	if v.code != Success {
		return v.code
	}
	var f *ptx.Fault
	if !errors.As(err, &f) {
		return LaunchFailed
	}
	switch f.Kind {
	case ptx.FaultIllegal, ptx.FaultReadOnly:
		return IllegalAddress
	case ptx.FaultMisaligned:
		return MisalignedAddress
	case ptx.FaultBudget, ptx.FaultDeadlock:
		return LaunchTimeout
	}
	return LaunchFailed
}

// explain adds where a bad global address lies.
func (m *Machine) explain(err error) string {
	var f *ptx.Fault
	if errors.As(err, &f) && f.Kind == ptx.FaultIllegal && f.Space == "global" {
		return err.Error() + "; " + m.describe(f.Addr)
	}
	return err.Error()
}

// ages counts a launch of the device, which may be its last, or find a bit of
// its memory flipped.
func (m *Machine) ages(g *GPU) bool {
	g.launches++
	for _, a := range m.faults {
		if a.Device != Any && a.Device != g.index {
			continue
		}
		switch a.Kind {
		case Lost:
			a.seen++
			if a.seen > a.After {
				a.struck++
				m.tally[Lost]++
				code := a.Code
				if code == Success {
					code = Unknown
				}
				m.fail(g, code, fmt.Sprintf("device lost at launch %d: injected", g.launches))
				return false
			}
		case BitRot:
			a.seen++
			if a.struck == 0 && a.seen > a.After && m.now >= time.Duration(a.AtUS*1e3) {
				if g.rot() {
					a.struck++
					m.tally[BitRot]++
				}
			}
		}
	}
	return true
}

// rot flips one bit of what was uploaded to the device.
func (g *GPU) rot() bool {
	total := int64(0)
	for _, a := range g.mem.allocs() {
		total += a.uploaded
	}
	if total == 0 {
		return false
	}
	k := g.m.rng.Int64N(total)
	for _, a := range g.mem.allocs() {
		if k < a.uploaded {
			a.data[k] ^= 1 << g.m.rng.IntN(8)
			return true
		}
		k -= a.uploaded
	}
	return false
}

// exec runs one operation of a stream. False: the stream got no further.
func (m *Machine) exec(s *stream, w *op) bool {
	s.ready = max(s.ready, w.issued)
	for _, k := range w.after {
		s.ready = max(s.ready, k.s.ready)
	}
	switch w.kind {
	case opKernel:
		return m.runKernel(s, w, launchTime)
	case opCopy:
		return m.runCopy(s, w)
	case opSet:
		return m.runSet(s, w)
	case opRecord:
		w.rec.passed, w.rec.at = true, s.ready
	case opWait:
		s.ready = max(s.ready, w.rec.at)
	}
	return true
}
