package ptx

// shadow remembers, for each granule of a memory, who wrote and read it last,
// and so finds accesses that nothing orders. A granule is the smallest width
// the kernel accesses the memory with, so that no two accesses share a part
// of one.
//
// Order is kept as vector clocks between the block's warps: a warp's clock
// advances at each barrier and warp-wide synchronisation, a barrier joins the
// clocks of the warps that met there. Within a warp, lanes are ordered by its
// clock. Clocks only grow, over all blocks of a worker, so that nothing has to
// be cleared between blocks: what is older than the block was not written.
type shadow struct {
	sp    space
	shift int // log2 of the granule
	pages map[uint64]*shadowPage
	last  *shadowPage
	lastN uint64
	clock uint64   // greatest clock given out
	begin uint64   // clocks below belong to earlier blocks
	now   []uint64 // each warp's clock
	seen  [][]uint64
	full  []uint64 // each warp's clock at the last barrier of all warps
}

const pageGranules = 1 << 10

type shadowPage [pageGranules]shadowCell

// shadowCell is the history of one granule.
type shadowCell struct {
	wClock  uint64 // when it was written; 0: never
	rClock  uint64 // clock of the warp that read it last
	readers uint32 // warps that have read it since the full barrier at rEpoch
	rEpoch  uint64
	wPC     int32
	rPC     int32
	wThread uint16
	rThread uint16
	flags   uint8
}

const (
	cellAtomic   = 1 << iota // the last write was atomic
	cellInFlight             // destination of a cp.async that has not landed
	cellMany                 // several lanes of the last reading warp have read it
)

func newShadow(sp space, gran, warps int) *shadow {
	s := &shadow{sp: sp, pages: map[uint64]*shadowPage{}, now: make([]uint64, warps), full: make([]uint64, warps)}
	for 1<<(s.shift+1) <= gran {
		s.shift++
	}
	for range warps {
		s.seen = append(s.seen, make([]uint64, warps))
	}
	return s
}

// newBlock makes everything recorded so far part of the past.
func (s *shadow) newBlock() {
	if s == nil {
		return
	}
	s.clock++
	s.begin = s.clock
	for i := range s.now {
		s.now[i], s.full[i] = s.clock, s.clock
		clear(s.seen[i])
	}
	if s.sp == spGlobal {
		clear(s.pages)
		s.last = nil
	}
}

// join orders what the members did before a barrier against what they do
// after it.
func (s *shadow) join(members []int, all bool) {
	if s == nil {
		return
	}
	s.clock++
	if all {
		// Everything so far is ordered, also what ended warps did.
		for _, a := range members {
			for b := range s.seen[a] {
				s.seen[a][b] = s.clock
			}
			s.now[a], s.full[a] = s.clock, s.clock
		}
		return
	}
	for _, a := range members {
		for _, b := range members {
			s.seen[a][b] = max(s.seen[a][b], s.now[b]+1)
			if a != b {
				for i, c := range s.seen[b] {
					s.seen[a][i] = max(s.seen[a][i], c)
				}
			}
		}
	}
	for _, a := range members {
		s.now[a] = s.clock
	}
}

// warpSync orders the lanes of a warp.
func (b *blockRun) warpSync(warp int) {
	b.order.warpSync(warp)
	for _, s := range []*shadow{b.shadow, b.gshadow} {
		if s != nil {
			s.clock++
			s.now[warp] = s.clock
		}
	}
}

func (s *shadow) cell(addr uint64) *shadowCell {
	g := addr >> s.shift
	n := g / pageGranules
	if s.last == nil || s.lastN != n {
		p := s.pages[n]
		if p == nil {
			p = new(shadowPage)
			s.pages[n] = p
		}
		s.last, s.lastN = p, n
	}
	return &s.last[g%pageGranules]
}

// ordered says whether what warp other did at its clock c happened before what
// warp me does now.
func (s *shadow) ordered(me, other int, c uint64) bool { return c < s.seen[me][other] }

// load records a read of size bytes by lane l and reports what is wrong with it.
func (s *shadow) load(w *warp, l int, addr uint64, size int) {
	me := uint16(w.num*lanesPerWarp + l)
	for a := addr; a < addr+uint64(size); a += 1 << s.shift {
		c := s.cell(a)
		if c.wClock >= s.begin {
			if c.flags&cellInFlight != 0 {
				s.report(w, l, a, FaultInFlight, c.wThread, c.wPC, "read")
				return
			}
			if s.unordered(w, me, c.wThread, c.wClock) {
				s.report(w, l, a, FaultRace, c.wThread, c.wPC, "read after a write")
				return
			}
		} else if s.sp == spShared {
			w.failAt(FaultUninitialised, l, s.sp, a, "")
			return
		}
		s.noteRead(c, w, me)
	}
}

func (s *shadow) noteRead(c *shadowCell, w *warp, me uint16) {
	if c.rEpoch != s.full[w.num] || c.rEpoch < s.begin {
		c.rEpoch, c.readers = s.full[w.num], 0
	}
	c.readers |= 1 << w.num
	switch {
	case c.rClock != s.now[w.num] || c.rThread>>5 != me>>5:
		c.flags &^= cellMany
	case c.rThread != me:
		c.flags |= cellMany
	}
	c.rClock, c.rThread, c.rPC = s.now[w.num], me, w.pc
}

// unordered says whether a write by thread other at clock c may run at the
// same time as thread me now.
func (s *shadow) unordered(w *warp, me, other uint16, c uint64) bool {
	if me == other {
		return false
	}
	if me>>5 == other>>5 {
		return c == s.now[w.num]
	}
	return !s.ordered(w.num, int(other>>5), c)
}

// store records a write. same says that the memory holds the value already:
// then it does not matter which of two writes comes last.
func (s *shadow) store(w *warp, l int, addr uint64, size int, atomic, inFlight, same bool) {
	me := uint16(w.num*lanesPerWarp + l)
	for a := addr; a < addr+uint64(size); a += 1 << s.shift {
		c := s.cell(a)
		if c.wClock >= s.begin {
			if c.flags&cellInFlight != 0 && !(inFlight && c.wThread == me) {
				s.report(w, l, a, FaultInFlight, c.wThread, c.wPC, "write")
				return
			}
			if s.unordered(w, me, c.wThread, c.wClock) && !(atomic && c.flags&cellAtomic != 0) && !same {
				s.report(w, l, a, FaultRace, c.wThread, c.wPC, "write after a write")
				return
			}
		} else if atomic && s.sp == spShared {
			w.failAt(FaultUninitialised, l, s.sp, a, "")
			return
		}
		if !atomic && s.readUnordered(c, w, me) {
			s.report(w, l, a, FaultRace, c.rThread, c.rPC, "write after a read")
			return
		}
		if atomic && c.wThread == me && c.flags&cellAtomic == 0 && c.wClock >= s.full[w.num] && c.wClock >= s.begin {
			continue // the thread's own plain write still stands against the others' atomics
		}
		c.wClock, c.wThread, c.wPC = s.now[w.num], me, w.pc
		c.flags &^= cellAtomic | cellInFlight
		if atomic {
			c.flags |= cellAtomic
		}
		if inFlight {
			c.flags |= cellInFlight
		}
	}
}

// readUnordered says whether another thread's read may run at the same time as
// a write by me now. Of several reading warps only the time since the last
// barrier of all is known, so that a partial barrier with one of them counts as
// order: nothing is reported that is no race.
func (s *shadow) readUnordered(c *shadowCell, w *warp, me uint16) bool {
	if c.rEpoch < s.begin || c.rClock < s.begin {
		return false
	}
	if c.rThread>>5 == me>>5 {
		if c.rClock == s.now[w.num] && (c.rThread != me || c.flags&cellMany != 0) {
			return true
		}
	} else if !s.ordered(w.num, int(c.rThread>>5), c.rClock) {
		return true
	}
	if c.rEpoch != s.full[w.num] {
		return false
	}
	for m := c.readers &^ (1 << w.num); m != 0; {
		other := lane(&m)
		if !s.ordered(w.num, other, s.full[other]) {
			return true
		}
	}
	return false
}

// landed records that a cp.async destination now holds its data.
func (s *shadow) landed(w *warp, l int, addr uint64, size int) {
	for a := addr; a < addr+uint64(size); a += 1 << s.shift {
		c := s.cell(a)
		c.flags &^= cellInFlight
		c.wClock, c.wThread = s.now[w.num], uint16(w.num*lanesPerWarp+l)
	}
}

func (s *shadow) report(w *warp, l int, addr uint64, kind FaultKind, thread uint16, pc int32, what string) {
	f := w.failAt(kind, l, s.sp, addr, "%s", what)
	f.against(w.k, w.blk.thread(int(thread)), pc)
}
