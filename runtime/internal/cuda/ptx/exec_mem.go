package ptx

import (
	"sync/atomic"
	"unsafe"
)

// vecLen is the vector length of a ld or st.
func (b *builder) vecLen() int {
	switch {
	case b.s.has("v2"):
		return 2
	case b.s.has("v4"):
		return 4
	case b.s.has("v8"):
		return 8
	}
	return 1
}

// memSpace is the state space an opcode names; generic if none.
func (b *builder) memSpace() space {
	for _, m := range b.s.mods {
		if sp, ok := spaceNames[m]; ok {
			return sp
		}
	}
	return spGeneric
}

// strong says whether an access may meet those of other blocks: it is then
// done atomically.
func (b *builder) strong() bool {
	return b.s.has("volatile") || b.s.has("relaxed") || b.s.has("acquire") || b.s.has("release") || b.s.has("mmio")
}

// part is one element of a vector access: a register slot.
type part struct {
	off  uintptr
	wide bool
}

// elements lists the registers of a vector operand, or of a single one.
func (b *builder) elements(o *operand, n int, one func(*operand) part) []part {
	if o.kind != opVec {
		if n != 1 {
			b.fail("needs a vector of %d registers", n)
		}
		return []part{one(o)}
	}
	if len(o.list) != n {
		b.fail("needs a vector of %d registers, not %d", n, len(o.list))
	}
	var out []part
	for i := range o.list {
		out = append(out, one(&o.list[i]))
	}
	return out
}

// memAccess checks what every ld and st has: a type, a width.
func (b *builder) memAccess() (t typ, n int) {
	t, n = b.s.typ(), b.vecLen()
	if t == tNone || t == tPred || t == tB128 || t.size()*n > 16 {
		b.fail("this type and vector length are not supported")
	}
	return t, n
}

func buildLd(b *builder) exec {
	t, n := b.memAccess()
	if len(b.s.args) == 3 {
		b.arg(2) // a cache policy: nothing to do
	} else {
		b.args(2)
	}
	dst := b.elements(b.arg(0), n, func(o *operand) part {
		off, wide := b.anyDst(o, t)
		if t.wide() && !wide {
			b.fail("destination is narrower than the load")
		}
		return part{off, wide}
	})
	addr, sp := b.arg(1), b.memSpace()
	if addr.kind == opAddr && addr.vr != nil && addr.vr.space == spParam {
		return b.loadParam(addr, t, dst)
	}
	r := b.memRef(addr, sp, t.size()*n, accessLoad)
	move := loader(t, dst)
	if b.strong() && n == 1 && t.size() >= 4 {
		move = strongLoader(t, dst[0])
	}
	move = r.ordered(move)
	return func(w *warp, m uint32) {
		r.addrs(w, m)
		for m != 0 {
			win, hit := r.locate(w, m)
			if hit == 0 {
				return
			}
			if w.blk.watch {
				if w.observe(r, win, hit); w.fault != nil {
					return
				}
			}
			move(w, win, hit)
			m &^= hit
		}
	}
}

// loadParam reads a kernel parameter: the same for every thread.
func (b *builder) loadParam(addr *operand, t typ, dst []part) exec {
	es := t.size()
	at := addr.vr.offset + int(addr.off)
	if at < 0 || at+es*len(dst) > b.k.bytes || at%es != 0 {
		b.fail("%d bytes at %d of the kernel's %d parameter bytes", es*len(dst), at, b.k.bytes)
	}
	b.in.space = spParam
	return func(w *warp, m uint32) {
		for i, d := range dst {
			v := extend(readBytes(w.blk.l.params[at+i*es:], es), t)
			if m == allLanes {
				w.fill(d.off, d.wide, v)
				continue
			}
			for left := m; left != 0; {
				d.set(w, lane(&left), v)
			}
		}
	}
}

func (p part) set(w *warp, l int, v uint64) {
	if p.wide {
		view[uint64](w, p.off)[l] = v
	} else {
		view[uint32](w, p.off)[l] = uint32(v)
	}
}

func (p part) get(w *warp, l int) uint64 {
	if p.wide {
		return view[uint64](w, p.off)[l]
	}
	return uint64(view[uint32](w, p.off)[l])
}

func readBytes(b []byte, n int) uint64 {
	v := uint64(0)
	for i := range n {
		v |= uint64(b[i]) << (8 * i)
	}
	return v
}

// extend widens a loaded element to 64 bits, by its sign if it has one.
func extend(v uint64, t typ) uint64 {
	switch t {
	case tS8:
		return uint64(int64(int8(v)))
	case tS16:
		return uint64(int64(int16(v)))
	case tS32:
		return uint64(int64(int32(v)))
	}
	return v
}

type mover func(w *warp, win window, m uint32)

// loader copies from memory to registers: 4-byte elements, which fill kernels,
// have loops of their own.
func loader(t typ, dst []part) mover {
	es := t.size()
	narrow := true
	for _, d := range dst {
		narrow = narrow && !d.wide
	}
	if es == 4 && narrow {
		switch len(dst) {
		case 1:
			d := dst[0].off
			return func(w *warp, win window, m uint32) {
				x, a := view[uint32](w, d), &w.addr
				if m == allLanes {
					for l := range x {
						x[l] = *(*uint32)(win.at(a[l]))
					}
					return
				}
				for m != 0 {
					l := lane(&m)
					x[l] = *(*uint32)(win.at(a[l]))
				}
			}
		case 4:
			d0, d1, d2, d3 := dst[0].off, dst[1].off, dst[2].off, dst[3].off
			return func(w *warp, win window, m uint32) {
				x0, x1, x2, x3 := view[uint32](w, d0), view[uint32](w, d1), view[uint32](w, d2), view[uint32](w, d3)
				for m != 0 {
					l := lane(&m)
					v := (*[4]uint32)(win.at(w.addr[l]))
					x0[l], x1[l], x2[l], x3[l] = v[0], v[1], v[2], v[3]
				}
			}
		}
	}
	if es == 2 && narrow && len(dst) == 1 && !t.signed() {
		d := dst[0].off
		return func(w *warp, win window, m uint32) {
			x, a := view[uint32](w, d), &w.addr
			for m != 0 {
				l := lane(&m)
				x[l] = uint32(*(*uint16)(win.at(a[l])))
			}
		}
	}
	return func(w *warp, win window, m uint32) {
		for m != 0 {
			l := lane(&m)
			p := win.at(w.addr[l])
			for i, d := range dst {
				d.set(w, l, extend(readAt(unsafe.Add(p, i*es), es), t))
			}
		}
	}
}

func readAt(p unsafe.Pointer, n int) uint64 {
	switch n {
	case 1:
		return uint64(*(*uint8)(p))
	case 2:
		return uint64(*(*uint16)(p))
	case 4:
		return uint64(*(*uint32)(p))
	}
	return *(*uint64)(p)
}

func writeAt(p unsafe.Pointer, n int, v uint64) {
	switch n {
	case 1:
		*(*uint8)(p) = uint8(v)
	case 2:
		*(*uint16)(p) = uint16(v)
	case 4:
		*(*uint32)(p) = uint32(v)
	default:
		*(*uint64)(p) = v
	}
}

func strongLoader(t typ, d part) mover {
	return func(w *warp, win window, m uint32) {
		for m != 0 {
			l := lane(&m)
			p := win.at(w.addr[l])
			if t.wide() {
				d.set(w, l, atomic.LoadUint64((*uint64)(p)))
			} else {
				d.set(w, l, extend(uint64(atomic.LoadUint32((*uint32)(p))), t))
			}
		}
	}
}

func buildSt(b *builder) exec {
	t, n := b.memAccess()
	if len(b.s.args) == 3 {
		b.arg(2)
	} else {
		b.args(2)
	}
	src := b.elements(b.arg(1), n, func(o *operand) part {
		off, wide := b.anySrc(o, t)
		if t.wide() && !wide {
			b.fail("source is narrower than the store")
		}
		return part{off, wide}
	})
	r := b.memRef(b.arg(0), b.memSpace(), t.size()*n, accessStore)
	es := t.size()
	move := storer(es, src)
	if b.strong() && n == 1 && es >= 4 {
		move = strongStorer(es, src[0])
	}
	if r.order.strong { // looked at and done in one step, as other blocks see it
		store := move
		move = r.ordered(func(w *warp, win window, m uint32) {
			if w.blk.watch {
				w.observeStore(r, win, m, es, src)
			}
			if w.fault == nil {
				store(w, win, m)
			}
		})
	}
	return func(w *warp, m uint32) {
		r.addrs(w, m)
		for m != 0 {
			win, hit := r.locate(w, m)
			if hit == 0 {
				return
			}
			if w.blk.watch && !r.order.strong {
				if w.observeStore(r, win, hit, es, src); w.fault != nil {
					return
				}
			}
			move(w, win, hit)
			m &^= hit
		}
	}
}

func storer(es int, src []part) mover {
	if es == 4 && len(src) == 1 && !src[0].wide {
		s := src[0].off
		return func(w *warp, win window, m uint32) {
			x, a := view[uint32](w, s), &w.addr
			if m == allLanes {
				for l := range x {
					*(*uint32)(win.at(a[l])) = x[l]
				}
				return
			}
			for m != 0 {
				l := lane(&m)
				*(*uint32)(win.at(a[l])) = x[l]
			}
		}
	}
	return func(w *warp, win window, m uint32) {
		for m != 0 {
			l := lane(&m)
			p := win.at(w.addr[l])
			for i, s := range src {
				writeAt(unsafe.Add(p, i*es), es, s.get(w, l))
			}
		}
	}
}

func strongStorer(es int, s part) mover {
	return func(w *warp, win window, m uint32) {
		for m != 0 {
			l := lane(&m)
			p := win.at(w.addr[l])
			if es == 8 {
				atomic.StoreUint64((*uint64)(p), s.get(w, l))
			} else {
				atomic.StoreUint32((*uint32)(p), uint32(s.get(w, l)))
			}
		}
	}
}
