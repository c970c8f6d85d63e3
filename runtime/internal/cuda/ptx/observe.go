package ptx

import (
	"math/bits"
	"unsafe"
)

// observe feeds a load to the checks and the profile that the launch asked for.
func (w *warp) observe(r *memRef, win window, m uint32) {
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
		if s.load(w, l, w.addr[l], r.size); w.fault != nil {
			return
		}
	}
}

// shadowOf is the record of a space's accesses; nil if it is not checked.
func (w *warp) shadowOf(sp space) *shadow {
	switch sp {
	case spShared:
		return w.blk.shadow
	case spGlobal:
		return w.blk.gshadow
	}
	return nil
}

// observeStore is observe for a store. Two lanes that write the same value to
// one place do no harm, so it looks at what memory will hold.
func (w *warp) observeStore(r *memRef, win window, m uint32, es int, src []part) {
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
		same := len(src) > 0
		p := win.at(w.addr[l])
		for i, e := range src {
			q := unsafe.Add(p, i*es)
			v := e.get(w, l)
			if es < 8 {
				v &= 1<<(8*es) - 1
			}
			if readAt(q, es) != v {
				same = false
				// What this lane writes is in place for the lanes after it.
				writeAt(q, es, v)
			}
		}
		if s.store(w, l, w.addr[l], r.size, false, false, same); w.fault != nil {
			return
		}
	}
}

// count books one access of a warp: the 32-byte sectors of global memory it
// touches, or the passes over the 32 four-byte banks of shared memory.
func (b *blockRun) count(num int, sp space, addr *[lanesPerWarp]uint64, m uint32, size int) {
	c := &b.mem[num]
	c.requests++
	switch sp {
	case spGlobal:
		c.sectors += sectors(addr, m, size)
	case spShared:
		c.conflicts += bankConflicts(addr, m, size)
	}
}

// sectors counts the distinct 32-byte sectors. Accesses are aligned to their
// size, so that none crosses a sector.
func sectors(addr *[lanesPerWarp]uint64, m uint32, size int) uint64 {
	var seen [lanesPerWarp]uint64
	n := 0
	for m != 0 {
		s := addr[lane(&m)] / 32
		known := false
		for i := n - 1; i >= 0 && !known; i-- { // neighbours are found at once
			known = seen[i] == s
		}
		if !known {
			seen[n] = s
			n++
		}
	}
	return uint64(n)
}

// bankConflicts counts the passes beyond the first. Lanes that read the same
// word share it; accesses of 8 and 16 bytes are served in halves and quarters
// of the warp.
func bankConflicts(addr *[lanesPerWarp]uint64, m uint32, size int) uint64 {
	group := lanesPerWarp
	if size > 4 {
		group = lanesPerWarp * 4 / size
	}
	extra := uint64(0)
	for start := 0; start < lanesPerWarp; start += group {
		g := m >> start
		if group < 32 {
			g &= 1<<group - 1
		}
		extra += passes(addr, g, start, size)
	}
	return extra
}

func passes(addr *[lanesPerWarp]uint64, m uint32, start, size int) uint64 {
	var words [32][lanesPerWarp]uint32 // distinct words of each bank
	var count [32]int
	most := 1
	for m != 0 {
		l := start + bits.TrailingZeros32(m)
		m &= m - 1
		first := uint32(addr[l] / 4)
		for wd := first; wd < first+uint32(max(size/4, 1)); wd++ {
			bank := wd & 31
			known := false
			for i := range count[bank] {
				known = known || words[bank][i] == wd
			}
			if !known {
				words[bank][count[bank]] = wd
				count[bank]++
				most = max(most, count[bank])
			}
		}
	}
	return uint64(most - 1)
}
