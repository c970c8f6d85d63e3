package ptx

import "unsafe"

// Generic addresses of shared, local and parameter memory, and of module
// variables without a device address, lie in windows of their own, told apart
// by the top byte.
const (
	windowShift  = 56
	sharedWindow = 1 << windowShift
	localWindow  = 2 << windowShift
	paramWindow  = 3 << windowShift
	staticWindow = 4 << windowShift
)

// accessKind is what an instruction does to memory.
type accessKind uint8

const (
	accessNone accessKind = iota
	accessLoad
	accessStore
	accessAtomic
)

// tlbEntry is the region an instruction touched last.
type tlbEntry struct {
	base  uint64
	size  uint64
	ptr   unsafe.Pointer
	ro    bool
	init  []byte
	valid bool
}

// memRef is the address side of a memory instruction.
type memRef struct {
	sp    space
	base  uintptr // slot
	wide  bool    // of the base
	off   uint64
	size  int // bytes a lane moves; a power of two up to 16
	write bool
	order memOrder
	num   int // among the kernel's memory instructions
}

// memRef describes the address operand o of an access of size bytes a lane.
func (b *builder) memRef(o *operand, sp space, size int, acc accessKind) *memRef {
	if o.kind != opAddr {
		b.fail("operand is not an address in [ ]")
	}
	if size < 1 || size > 16 || size&(size-1) != 0 {
		b.fail("an access of %d bytes is not supported", size)
	}
	r := &memRef{sp: sp, size: size, write: acc != accessLoad, num: b.k.refs, off: uint64(o.off)}
	b.k.refs++
	switch {
	case o.reg != nil:
		s := b.alloc.slots[o.reg.id]
		if s.kind == slotPred {
			b.fail("a predicate is no address")
		}
		r.base, r.wide = s.off, s.kind == slot64
	case o.vr != nil:
		v := operand{kind: opVar, vr: o.vr, off: o.off}
		r.base, r.wide, r.off = b.symbol(&v), true, 0
		switch { // a variable says its space where the opcode does not
		case sp == spGeneric && (o.vr.space == spGlobal || o.vr.space == spConst):
		case sp == spGeneric:
			r.sp = o.vr.space
		case sp == spParam:
			r.sp = o.vr.space // .param blocks of calls are local memory
		}
	default:
		r.base, r.wide, r.off = b.constant(uint64(o.off), true), true, 0
	}
	b.in.kind, b.in.space, b.in.access, b.in.bytes, b.in.mem = kMem, r.sp, acc, size, r.num
	switch r.sp {
	case spShared, spGeneric:
		b.k.gran = min(b.k.gran, size)
	}
	switch r.sp {
	case spGlobal, spGeneric:
		b.k.ggran = min(b.k.ggran, size)
		r.order = b.memOrder()
		b.k.talks = b.k.talks || acc == accessAtomic || b.strong()
	}
	return r
}

// addrs computes the lanes' addresses into w.addr.
func (r *memRef) addrs(w *warp, m uint32) {
	a := &w.addr
	off := r.off
	if r.wide {
		b := view[uint64](w, r.base)
		if m == allLanes {
			for l := range a {
				a[l] = b[l] + off
			}
			return
		}
		for m != 0 {
			l := lane(&m)
			a[l] = b[l] + off
		}
		return
	}
	b := view[uint32](w, r.base)
	if m == allLanes {
		for l := range a {
			a[l] = uint64(b[l] + uint32(off))
		}
		return
	}
	for m != 0 {
		l := lane(&m)
		a[l] = uint64(b[l] + uint32(off))
	}
}

// window is a stretch of host memory that some lanes of an access lie in.
type window struct {
	ptr  unsafe.Pointer // host address of device address base
	base uint64
	sp   space
	ro   bool
}

func (v window) at(addr uint64) unsafe.Pointer { return unsafe.Add(v.ptr, addr-v.base) }

// locate checks the addresses in w.addr and finds the memory of as many lanes
// as lie in one window together: those of the mask it returns. A zero mask
// means a fault was recorded. Addresses in w.addr become relative to their
// space. The caller repeats for the lanes that are left.
func (r *memRef) locate(w *warp, m uint32) (window, uint32) {
	first := m
	l := lane(&first)
	sp, addr := r.sp, w.addr[l]
	if sp == spGeneric || sp == spConst || sp == spParam {
		switch addr >> windowShift {
		case sharedWindow >> windowShift:
			sp = spShared
		case localWindow >> windowShift:
			sp = spLocal
		case paramWindow >> windowShift:
			sp = spParam
		case staticWindow >> windowShift:
			sp = spConst
		default:
			if sp != spParam {
				sp = spGlobal
			}
		}
		if r.sp == spGeneric && sp != spGlobal && sp != spConst {
			m = w.rebase(m, addr>>windowShift)
		}
	}
	switch sp {
	case spShared:
		return r.flat(w, m, w.blk.shared, sp, unsafe.Pointer(unsafe.SliceData(w.blk.shared)))
	case spParam:
		if r.write {
			w.failAt(FaultReadOnly, l, sp, w.addr[l], "kernel parameters cannot be written")
			return window{}, 0
		}
		return r.flat(w, m, w.blk.l.params, sp, unsafe.Pointer(unsafe.SliceData(w.blk.l.params)))
	case spLocal:
		return r.localWindow(w, m)
	}
	return r.global(w, m)
}

// rebase makes the addresses of the lanes in window top relative to it, and
// returns those lanes.
func (w *warp) rebase(m uint32, top uint64) uint32 {
	hit := uint32(0)
	for left := m; left != 0; {
		l := lane(&left)
		if w.addr[l]>>windowShift == top {
			w.addr[l] -= top << windowShift
			hit |= 1 << l
		}
	}
	return hit
}

// flat checks lanes against one buffer.
func (r *memRef) flat(w *warp, m uint32, buf []byte, sp space, ptr unsafe.Pointer) (window, uint32) {
	size, align := uint64(r.size), uint64(r.size-1)
	limit := uint64(0)
	if uint64(len(buf)) >= size {
		limit = uint64(len(buf)) - size + 1
	}
	a := &w.addr
	bad := false
	if m == allLanes {
		or := uint64(0)
		for l := range a {
			or |= a[l]
			bad = bad || a[l] >= limit
		}
		bad = bad || or&align != 0
	} else {
		for left := m; left != 0; {
			l := lane(&left)
			bad = bad || a[l] >= limit || a[l]&align != 0
		}
	}
	if bad {
		for left := m; left != 0; {
			l := lane(&left)
			switch {
			case a[l]&align != 0:
				w.failAt(FaultMisaligned, l, sp, a[l], "access of %d bytes", size)
				return window{}, 0
			case a[l] >= limit:
				w.failAt(FaultIllegal, l, sp, a[l], "access of %d bytes; there are %d", size, len(buf))
				return window{}, 0
			}
		}
	}
	return window{ptr: ptr, sp: sp}, m
}

// localWindow checks local addresses and turns them into positions in the
// warp's local memory.
func (r *memRef) localWindow(w *warp, m uint32) (window, uint32) {
	n := uint64(w.k.local)
	for left := m; left != 0; {
		l := lane(&left)
		a := w.addr[l]
		switch {
		case a&uint64(r.size-1) != 0:
			w.failAt(FaultMisaligned, l, spLocal, a, "access of %d bytes", r.size)
			return window{}, 0
		case a > n || n-a < uint64(r.size):
			w.failAt(FaultIllegal, l, spLocal, a, "access of %d bytes; a thread has %d", r.size, n)
			return window{}, 0
		}
		w.addr[l] = uint64(l)*n + a
		if w.linit != nil {
			seen := w.linit[w.addr[l] : w.addr[l]+uint64(r.size)]
			for i := range seen {
				if r.write {
					seen[i] = 1
				} else if seen[i] == 0 {
					w.failAt(FaultUninitialised, l, spLocal, a+uint64(i), "")
					return window{}, 0
				}
			}
		}
	}
	return window{ptr: unsafe.Pointer(unsafe.SliceData(w.local)), sp: spLocal}, m
}

// global checks lanes against the region the first of them lies in.
func (r *memRef) global(w *warp, m uint32) (window, uint32) {
	first := m
	l0 := lane(&first)
	c := &w.blk.tlb[r.num]
	if !c.valid || w.addr[l0]-c.base >= c.size {
		if !w.lookup(c, w.addr[l0], l0, r) {
			return window{}, 0
		}
	}
	size := uint64(r.size)
	align := size - 1
	limit := uint64(0)
	if c.size >= size {
		limit = c.size - size + 1
	}
	a, base, hit := &w.addr, c.base, m
	if m == allLanes {
		or, far := uint64(0), uint64(0)
		for l := range a {
			or |= a[l]
			far = max(far, a[l]-base)
		}
		if or&align != 0 || far >= limit {
			hit = r.sort(w, m, c, limit)
		}
	} else {
		for left := m; left != 0; {
			l := lane(&left)
			if a[l]&align != 0 || a[l]-base >= limit {
				hit = r.sort(w, m, c, limit)
				break
			}
		}
	}
	if hit == 0 {
		return window{}, 0
	}
	if r.write && c.ro {
		w.failAt(FaultReadOnly, l0, spGlobal, a[l0], "")
		return window{}, 0
	}
	if c.init != nil && !r.initialised(w, hit, c) {
		return window{}, 0
	}
	return window{ptr: c.ptr, base: base, sp: spGlobal, ro: c.ro}, hit
}

// sort returns the lanes that are wholly inside the region, or records the
// fault of one that is misaligned or reaches over the region's end.
func (r *memRef) sort(w *warp, m uint32, c *tlbEntry, limit uint64) uint32 {
	hit := uint32(0)
	for left := m; left != 0; {
		l := lane(&left)
		a := w.addr[l]
		switch o := a - c.base; {
		case a&uint64(r.size-1) != 0:
			w.failAt(FaultMisaligned, l, spGlobal, a, "access of %d bytes", r.size)
			return 0
		case o < limit:
			hit |= 1 << l
		case o < c.size:
			w.failAt(FaultIllegal, l, spGlobal, a, "access of %d bytes reaches %d over the end of its allocation", r.size, o+uint64(r.size)-c.size)
			return 0
		}
	}
	return hit
}

// lookup fills a TLB entry with the region that holds addr.
func (w *warp) lookup(c *tlbEntry, addr uint64, l int, r *memRef) bool {
	if addr>>windowShift == staticWindow>>windowShift {
		data := w.k.mod.static
		*c = tlbEntry{base: staticWindow, size: uint64(len(data)), ptr: unsafe.Pointer(unsafe.SliceData(data)), ro: true, valid: true}
		if addr-c.base < c.size {
			return true
		}
	} else if reg, ok := w.blk.l.mem.Region(addr); ok && addr-reg.Base < uint64(len(reg.Data)) {
		ptr := unsafe.Pointer(unsafe.SliceData(reg.Data))
		if (uint64(uintptr(ptr))^reg.Base)&7 != 0 {
			w.failAt(FaultMisaligned, l, spGlobal, addr, "host memory of the region at %#x is not aligned like its device address", reg.Base)
			return false
		}
		*c = tlbEntry{base: reg.Base, size: uint64(len(reg.Data)), ptr: ptr, ro: reg.ReadOnly, valid: true}
		if len(reg.Init) >= len(reg.Data) {
			c.init = reg.Init
		}
		return true
	}
	c.valid = false
	w.failAt(FaultIllegal, l, spGlobal, addr, "access of %d bytes; %s", r.size, w.nearest(addr))
	return false
}

// initialised checks or sets the written marks of a region.
func (r *memRef) initialised(w *warp, m uint32, c *tlbEntry) bool {
	if !r.write && w.blk.l.opts.Checks&CheckGlobalInit == 0 {
		return true
	}
	for left := m; left != 0; {
		l := lane(&left)
		o := w.addr[l] - c.base
		marks := c.init[o : o+uint64(r.size)]
		for i := range marks {
			if r.write {
				marks[i] = 1
			} else if marks[i] == 0 {
				w.failAt(FaultUninitialised, l, spGlobal, w.addr[l]+uint64(i), "")
				return false
			}
		}
	}
	return true
}
