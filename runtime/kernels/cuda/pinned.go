package cuda

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"infer/runtime/device"
	driver "infer/runtime/internal/cuda"
)

// pinned knows the system's page-locked host memory, which every device copies
// from and to directly.
type pinned struct {
	mu   sync.Mutex
	list atomic.Pointer[[]span] // sorted by address; replaced, never changed
}

// span is half-open.
type span struct{ lo, hi uintptr }

func spanOf(b []byte) span {
	lo := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return span{lo, lo + uintptr(len(b))}
}

// has tells whether all of b is pinned.
func (p *pinned) has(b []byte) bool {
	list := p.list.Load()
	if list == nil || len(b) == 0 {
		return false
	}
	s := spanOf(b)
	i, ok := slices.BinarySearchFunc(*list, s.lo, func(e span, lo uintptr) int {
		switch {
		case e.hi <= lo:
			return -1
		case e.lo > lo:
			return 1
		}
		return 0
	})
	return ok && s.hi <= (*list)[i].hi
}

func (p *pinned) change(f func([]span) []span) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []span
	if old := p.list.Load(); old != nil {
		list = slices.Clone(*old)
	}
	list = f(list)
	p.list.Store(&list)
}

func (p *pinned) add(b []byte) {
	s := spanOf(b)
	p.change(func(list []span) []span {
		i, _ := slices.BinarySearchFunc(list, s.lo, func(e span, lo uintptr) int {
			if e.lo < lo {
				return -1
			}
			return 1
		})
		return slices.Insert(list, i, s)
	})
}

func (p *pinned) remove(b []byte) {
	s := spanOf(b)
	p.change(func(list []span) []span {
		return slices.DeleteFunc(list, func(e span) bool { return e == s })
	})
}

// hostBuffer is a device.HostBuffer.
type hostBuffer struct {
	dev *Device
	mem []byte
}

// AllocHost gets n bytes of pinned host memory.
func (d *Device) AllocHost(n int64) (device.HostBuffer, error) {
	if n < 1 || n > 1<<40 {
		return nil, fmt.Errorf("allocate %d bytes of pinned host memory: out of range", n)
	}
	h := &hostBuffer{dev: d}
	err := d.do(fmt.Sprintf("allocate %d bytes of pinned host memory", n), func(t *driver.Thread) (err error) {
		h.mem, err = t.AllocHost(n)
		return err
	})
	if err != nil {
		return nil, err
	}
	d.sys.pinned.add(h.mem)
	return h, nil
}

func (h *hostBuffer) Bytes() []byte { return h.mem }

func (h *hostBuffer) Free() error {
	if h.mem == nil {
		return nil
	}
	mem := h.mem
	h.mem = nil
	h.dev.sys.pinned.remove(mem)
	if h.dev.sys.someLost.Load() {
		// The driver frees it when all devices are done with it, which a lost
		// one may never be.
		return nil
	}
	return h.dev.do("free pinned host memory", func(t *driver.Thread) error { return t.FreeHost(mem) })
}
