package sim

import (
	"sort"
	"sync/atomic"
	"unsafe"
)

// pinned is host memory the driver knows: allocated by it or registered with it.
type pinned struct {
	base uint64
	data []byte
	ours bool // allocated here, not registered
}

// pinnedSet is the pinned memory by address. Kernels read it without the lock.
type pinnedSet struct{ list atomic.Pointer[[]pinned] }

func (s *pinnedSet) all() []pinned {
	if p := s.list.Load(); p != nil {
		return *p
	}
	return nil
}

func (s *pinnedSet) find(addr uint64) (pinned, bool) {
	l := s.all()
	i := sort.Search(len(l), func(i int) bool { return l[i].base > addr })
	if i == 0 || addr-l[i-1].base >= uint64(len(l[i-1].data)) {
		return pinned{}, false
	}
	return l[i-1], true
}

// covers says whether all of b is pinned.
func (s *pinnedSet) covers(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	a := hostAddr(b)
	p, ok := s.find(a)
	return ok && a-p.base+uint64(len(b)) <= uint64(len(p.data))
}

// overlaps says whether some of b is pinned.
func (s *pinnedSet) overlaps(b []byte) bool {
	a := hostAddr(b)
	for _, p := range s.all() {
		if a < p.base+uint64(len(p.data)) && p.base < a+uint64(len(b)) {
			return true
		}
	}
	return false
}

func (s *pinnedSet) add(p pinned) {
	l := append(append([]pinned(nil), s.all()...), p)
	sort.Slice(l, func(i, j int) bool { return l[i].base < l[j].base })
	s.list.Store(&l)
}

func (s *pinnedSet) remove(base uint64) {
	var rest []pinned
	for _, p := range s.all() {
		if p.base != base {
			rest = append(rest, p)
		}
	}
	s.list.Store(&rest)
}

func hostAddr(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// HostAlloc is cuMemHostAlloc: pinned memory that every device reaches, also
// kernels, at its host address. It is Go's: who still holds it when it was
// freed, or the machine closed, reads what was there.
func (g *GPU) HostAlloc(n int64) ([]byte, Result) {
	m := g.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := g.state(); r != Success {
		return nil, r
	}
	if n <= 0 {
		return nil, InvalidValue
	}
	if n > 1<<38 {
		return nil, OutOfMemory
	}
	const page = 4096
	b := make([]byte, n+page)
	skip := int64(-hostAddr(b) % page)
	b = b[skip : skip+n : skip+n]
	m.host.add(pinned{base: hostAddr(b), data: b, ours: true})
	return b, Success
}

// HostFree is cuMemFreeHost: it waits for all work, which may use the memory.
func (g *GPU) HostFree(addr uint64) Result { return g.m.unpin(g, addr, false, InvalidValue) }

// HostRegister is cuMemHostRegister: b is pinned until HostUnregister.
func (g *GPU) HostRegister(b []byte) Result {
	m := g.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := g.state(); r != Success {
		return r
	}
	if len(b) == 0 {
		return InvalidValue
	}
	if m.host.overlaps(b) {
		return HostAlreadyRegistered
	}
	m.host.add(pinned{base: hostAddr(b), data: b})
	return Success
}

// HostUnregister is cuMemHostUnregister.
func (g *GPU) HostUnregister(addr uint64) Result { return g.m.unpin(g, addr, true, HostNotRegistered) }

// unpin forgets pinned memory, of the kind asked for; missing is the result if
// there is none at the address.
func (m *Machine) unpin(g *GPU, addr uint64, registered bool, missing Result) Result {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := g.state(); r != Success {
		return r
	}
	p, ok := m.host.find(addr)
	if !ok || p.base != addr || p.ours == registered {
		return missing
	}
	for _, d := range m.gpus {
		if r := m.drain(d); r != Success && d == g {
			return r
		}
	}
	for m.busy != 0 && !m.closed {
		m.wait()
	}
	m.host.remove(addr)
	return Success
}
