package sim

import (
	"fmt"
	"sort"
	"sync/atomic"
	"unsafe"

	"infer/runtime/internal/cuda/ptx"
)

const (
	granule   = 512 // device memory comes in so many bytes
	addrShift = 48  // an address's device + 1 stands above this bit
	smallest  = 1 << 12
)

// alloc is one allocation of device memory.
type alloc struct {
	id       int
	base     uint64
	size     int64 // asked for
	data     []byte
	init     []byte // bytes that were written; nil: not tracked
	backing  []byte
	touch    atomic.Uint64 // the last launch that touched it
	uploaded int64         // bytes from the start on that came from the host: weights are
}

func (a *alloc) String() string {
	return fmt.Sprintf("allocation %d (%d bytes at %#x)", a.id, a.size, a.base)
}

// mark notes that bytes were written.
func (a *alloc) mark(off, n int64) {
	if a.init == nil {
		return
	}
	b := a.init[off : off+n]
	for i := range b {
		b[i] = 1
	}
}

// freed is what is remembered of an allocation that is gone.
type freed struct {
	id   int
	base uint64
	size int64
}

const rememberFreed = 4096

// space is a device's address range. Kernels read it without the machine's lock.
type space struct {
	list  atomic.Pointer[[]*alloc] // by base
	next  uint64
	used  int64
	ids   int
	freed []freed // last ones
}

func (s *space) allocs() []*alloc {
	if p := s.list.Load(); p != nil {
		return *p
	}
	return nil
}

// find gives the allocation that holds addr.
func (s *space) find(addr uint64) *alloc {
	l := s.allocs()
	i := sort.Search(len(l), func(i int) bool { return l[i].base > addr })
	if i == 0 || addr-l[i-1].base >= uint64(l[i-1].size) {
		return nil
	}
	return l[i-1]
}

// add makes an allocation of n bytes.
func (s *space) add(n int64, track bool) (*alloc, error) {
	a := &alloc{id: s.ids + 1, size: n, base: s.next}
	padded := roundUp(n)
	var err error
	if padded < smallest {
		// Small ones would waste pages of their own.
		words := make([]uint64, (padded+granule)/8)
		a.data = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(words)*8)
	} else if a.backing, err = newBacking(padded); err != nil {
		return nil, err
	} else {
		a.data = a.backing
	}
	// The interpreter needs host and device address aligned alike.
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(a.data))) % granule
	a.data = a.data[skip : skip+uintptr(n)]
	if track {
		a.init = make([]byte, n)
	}
	s.ids++
	s.next += uint64(padded) + 1<<12 // no two touch: running over an end is found
	s.used += padded
	l := append(append(make([]*alloc, 0, len(s.allocs())+1), s.allocs()...), a) // addresses only grow
	s.list.Store(&l)
	return a, nil
}

// remove takes the allocation at base away.
func (s *space) remove(base uint64) bool {
	l := s.allocs()
	i := sort.Search(len(l), func(i int) bool { return l[i].base >= base })
	if i == len(l) || l[i].base != base {
		return false
	}
	a := l[i]
	if len(s.freed) == rememberFreed {
		s.freed = append(s.freed[:0], s.freed[rememberFreed/2:]...)
	}
	s.freed = append(s.freed, freed{a.id, a.base, a.size})
	s.used -= roundUp(a.size)
	rest := append(append(make([]*alloc, 0, len(l)-1), l[:i]...), l[i+1:]...)
	s.list.Store(&rest)
	if a.backing != nil {
		freeBacking(a.backing)
	}
	return true
}

func (s *space) clear() {
	for _, a := range s.allocs() {
		s.remove(a.base)
	}
}

func roundUp(n int64) int64 { return (n + granule - 1) &^ (granule - 1) }

// describe names an address that no allocation holds.
func (m *Machine) describe(addr uint64) string {
	d := int(addr>>addrShift) - 1
	if d < 0 || d >= len(m.gpus) {
		return fmt.Sprintf("%#x is an address of no device", addr)
	}
	s := &m.gpus[d].mem
	for i := len(s.freed) - 1; i >= 0; i-- {
		if f := s.freed[i]; addr-f.base < uint64(f.size) {
			return fmt.Sprintf("%#x is %d bytes into allocation %d of device %d (%d bytes at %#x), which was freed", addr, addr-f.base, f.id, d, f.size, f.base)
		}
	}
	l := s.allocs()
	i := sort.Search(len(l), func(i int) bool { return l[i].base > addr })
	if i > 0 && addr-l[i-1].base < 1<<32 {
		a := l[i-1]
		if addr-a.base < uint64(a.size) {
			return fmt.Sprintf("%#x is %d bytes into %s of device %d", addr, addr-a.base, a, d)
		}
		return fmt.Sprintf("%#x is %d bytes behind the end of %s of device %d", addr, addr-a.base-uint64(a.size), a, d)
	}
	return fmt.Sprintf("%#x is near no allocation of device %d", addr, d)
}

// span resolves n bytes at a device address.
func (m *Machine) span(addr uint64, n int64) (*alloc, int64, bool) {
	d := int(addr>>addrShift) - 1
	if d < 0 || d >= len(m.gpus) || n < 0 {
		return nil, 0, false
	}
	a := m.gpus[d].mem.find(addr)
	if a == nil || int64(addr-a.base) > a.size-n {
		return nil, 0, false
	}
	return a, int64(addr - a.base), true
}

// MemAlloc is cuMemAlloc.
func (g *GPU) MemAlloc(n int64) (uint64, Result) {
	m := g.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := g.state(); r != Success {
		return 0, r
	}
	if n <= 0 {
		return 0, InvalidValue
	}
	if r := g.unsafeInCapture(); r != Success {
		return 0, r
	}
	m.stats(g).Allocations++
	for _, a := range m.faults {
		if a.Kind == NoMemory && (a.Device == Any || a.Device == g.index) && a.due() {
			m.tally[NoMemory]++
			return 0, OutOfMemory
		}
	}
	if n > g.limit-g.mem.used || roundUp(n) > g.limit-g.mem.used {
		return 0, OutOfMemory
	}
	a, err := g.mem.add(n, m.opts.Checks&ptx.CheckGlobalInit != 0)
	if err != nil {
		m.report(g, OutOfMemory, err.Error())
		return 0, OutOfMemory
	}
	m.stats(g).PeakBytes = max(m.stats(g).PeakBytes, g.mem.used)
	return a.base, Success
}

// MemFree is cuMemFree: it waits for the work of the device.
func (g *GPU) MemFree(addr uint64) Result {
	m := g.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := g.state(); r != Success {
		return r
	}
	if addr == 0 {
		return Success
	}
	owner := int(addr>>addrShift) - 1
	if owner < 0 || owner >= len(m.gpus) {
		return InvalidValue
	}
	if r := g.unsafeInCapture(); r != Success {
		return r
	}
	g = m.gpus[owner]
	if r := m.drain(g); r != Success {
		return r
	}
	// Another device's kernel may be reading it.
	for m.busy&g.bit != 0 && !m.closed {
		m.wait()
	}
	if !g.mem.remove(addr) {
		m.report(g, InvalidValue, "free: "+m.describe(addr))
		return InvalidValue
	}
	return Success
}

// MemInfo is cuMemGetInfo.
func (g *GPU) MemInfo() (free, total int64, r Result) {
	g.m.mu.Lock()
	defer g.m.mu.Unlock()
	return g.limit - g.mem.used, g.total, g.state()
}
