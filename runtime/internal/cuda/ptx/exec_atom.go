package ptx

import (
	"math"
	"sync/atomic"
	"unsafe"
)

// buildAtom is atom and red. On global memory each is one atomic operation, so
// that blocks on other goroutines see it whole; within a warp lanes go in order.
func buildAtom(b *builder) exec {
	t := b.s.typ()
	args, dst := b.s.args, part{b.sink[slot64], true}
	isRed := b.s.op == "red"
	if !isRed {
		off, wide := b.anyDst(b.arg(0), t)
		dst, args = part{off, wide}, args[1:]
	}
	cas := b.s.has("cas")
	want := 2
	if cas {
		want = 3
	}
	if len(args) != want {
		return nil
	}
	es := t.size()
	src := func(o *operand) part {
		off, wide := b.anySrc(o, t)
		return part{off, wide}
	}
	x := src(&args[1])
	y := x
	if cas {
		y = src(&args[2])
	}
	f, mask := atomOp(b.s, t), t.mask()
	if f == nil {
		return nil
	}
	sp := b.memSpace()
	r := b.memRef(&args[0], sp, es, accessAtomic)
	one := func(w *warp, win window, l int) (wrote bool) {
		p := win.at(w.addr[l])
		u, v := x.get(w, l), y.get(w, l)
		var old uint64
		if win.sp == spGlobal {
			old = atomicUpdate(p, es, func(old uint64) uint64 { return f(old, u, v) })
		} else {
			old = readAt(p, es)
			writeAt(p, es, f(old, u, v))
		}
		if !isRed {
			dst.set(w, l, old)
		}
		return !cas || old == u&mask
	}
	return func(w *warp, m uint32) {
		r.addrs(w, m)
		for m != 0 {
			win, hit := r.locate(w, m)
			if hit == 0 {
				return
			}
			if w.blk.watch {
				if w.observeAtomic(r, win, hit); w.fault != nil {
					return
				}
			}
			if o := w.orderOf(win); o != nil && r.order.strong {
				if o.atomic(w, r, win, hit, one); w.fault != nil {
					return
				}
			} else {
				for left := hit; left != 0; {
					one(w, win, lane(&left))
				}
			}
			m &^= hit
		}
	}
}

// mask covers the bits of a type.
func (t typ) mask() uint64 {
	if t.size() < 8 {
		return 1<<(8*t.size()) - 1
	}
	return math.MaxUint64
}

func (w *warp) observeAtomic(r *memRef, win window, m uint32) {
	if w.blk.l.opts.Profile {
		w.blk.count(r.num, win.sp, &w.addr, m, r.size)
	}
	if !w.inOrder(r, win, m) {
		return
	}
	s := w.shadowOf(win.sp)
	if s == nil {
		return
	}
	for left := m; left != 0; {
		l := lane(&left)
		if s.store(w, l, w.addr[l], r.size, true, false, false); w.fault != nil {
			return
		}
	}
}

// atomicUpdate replaces the value at p by f of it, and returns the old one.
// Two bytes are updated as part of the word that holds them.
func atomicUpdate(p unsafe.Pointer, size int, f func(uint64) uint64) uint64 {
	switch size {
	case 8:
		q := (*uint64)(p)
		for {
			old := atomic.LoadUint64(q)
			if atomic.CompareAndSwapUint64(q, old, f(old)) {
				return old
			}
		}
	case 4:
		q := (*uint32)(p)
		for {
			old := atomic.LoadUint32(q)
			if atomic.CompareAndSwapUint32(q, old, uint32(f(uint64(old)))) {
				return uint64(old)
			}
		}
	}
	shift := uintptr(p) & 2 * 8
	q := (*uint32)(unsafe.Add(p, -int(uintptr(p)&2)))
	for {
		word := atomic.LoadUint32(q)
		old := uint64(word >> shift & 0xffff)
		if atomic.CompareAndSwapUint32(q, word, word&^(0xffff<<shift)|uint32(f(old)&0xffff)<<shift) {
			return old
		}
	}
}

// atomOp gives the new value from the old one and the operands.
func atomOp(s *stmt, t typ) func(old, x, y uint64) uint64 {
	mask := t.mask()
	signed := func(v uint64) int64 {
		if t.size() == 4 {
			return int64(int32(v))
		}
		return int64(v)
	}
	switch {
	case s.has("exch"):
		return func(_, x, _ uint64) uint64 { return x & mask }
	case s.has("cas"):
		return func(old, x, y uint64) uint64 {
			if old == x&mask {
				return y & mask
			}
			return old
		}
	case t.size() < 4 && !t.half():
		return nil
	case s.has("and"):
		return func(old, x, _ uint64) uint64 { return old & x }
	case s.has("or"):
		return func(old, x, _ uint64) uint64 { return old | x&mask }
	case s.has("xor"):
		return func(old, x, _ uint64) uint64 { return old ^ x&mask }
	case s.has("inc"):
		return func(old, x, _ uint64) uint64 {
			if old >= x&mask {
				return 0
			}
			return old + 1
		}
	case s.has("dec"):
		return func(old, x, _ uint64) uint64 {
			if old == 0 || old > x&mask {
				return x & mask
			}
			return old - 1
		}
	case s.has("min") || s.has("max"):
		larger := s.has("max")
		switch {
		case t.signed():
			return func(old, x, _ uint64) uint64 { return uint64(pick(signed(old), signed(x), larger)) & mask }
		case t.integer():
			return func(old, x, _ uint64) uint64 { return pick(old, x&mask, larger) }
		}
		return nil
	case s.has("add"):
		switch {
		case t == tF32:
			return func(old, x, _ uint64) uint64 {
				return uint64(math.Float32bits(math.Float32frombits(uint32(old)) + math.Float32frombits(uint32(x))))
			}
		case t == tF64:
			return func(old, x, _ uint64) uint64 {
				return math.Float64bits(math.Float64frombits(old) + math.Float64frombits(x))
			}
		case t.half():
			c, n := codecOf(t), halves(t)
			return func(old, x, _ uint64) uint64 {
				r := uint32(0)
				for i := range n {
					sh := 16 * i
					r |= c.narrow(float64(c.widen(uint32(old)>>sh&0xffff))+float64(c.widen(uint32(x)>>sh&0xffff))) << sh
				}
				return uint64(r)
			}
		}
		return func(old, x, _ uint64) uint64 { return (old + x) & mask }
	}
	return nil
}
