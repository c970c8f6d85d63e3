package ptx

import "sync"

// gridOrder remembers, for one launch, which block touched which global memory,
// and finds accesses of different blocks that nothing orders, by PTX's memory
// consistency model (see doc.go): whatever order the blocks happen to run in.
//
// A touched stretch is a span. Spans lie in chunks of 16 bytes, which no access
// crosses, as all are aligned to their size.
type gridOrder struct {
	mu    sync.Mutex // held while a strong access is done, and while any is recorded
	pages map[uint64]*orderPage
}

const (
	chunkBytes = 16
	pageChunks = 256
	manyReads  = 2 // readers of a stretch that are remembered: the first, the last
)

type orderPage [pageChunks]orderChunk

type orderChunk struct {
	one  span // most chunks have one
	more []span
}

// span is the last access of its kind to a stretch of a chunk.
type span struct {
	release *know // what reading this write hands on
	block   int32
	clock   uint32
	pc      int32
	thread  uint16
	lo, end uint8 // in the chunk; an empty span has end 0
	kind    spanKind
}

type spanKind uint8

const (
	spanWrite  spanKind = 1 << iota
	spanStrong          // atomic, volatile and the like, for threads of other blocks too
)

func (k spanKind) String() string {
	return [...]string{"a read", "a write", "a strong read", "a strong write"}[k]
}

// memOrder is what an access means to other blocks.
type memOrder struct {
	strong, acquire, release bool
	blind                    bool // a red: what it reads teaches the thread nothing
}

// memOrder reads the qualifiers of a ld, st, atom or red. One of a narrower
// scope than the GPU is as good as none between blocks.
func (b *builder) memOrder() memOrder {
	s := b.s
	atom := s.op == "atom" || s.op == "red"
	if !atom && !b.strong() || s.has("cta") || s.has("cluster") {
		return memOrder{}
	}
	return memOrder{
		strong:  true,
		acquire: s.has("acquire") || s.has("acq_rel"),
		release: s.has("release") || s.has("acq_rel"),
		blind:   s.op == "red",
	}
}

// buildFence orders what blocks see of each other. Within a block, and in
// memory itself, accesses happen in program order anyway.
func buildFence(b *builder) exec {
	s := b.s
	acquire, release := !s.has("release"), !s.has("acquire")
	if s.has("proxy") || s.has("mbarrier_init") || !s.has("gpu") && !s.has("gl") && !s.has("sys") {
		return func(*warp, uint32) {}
	}
	return func(w *warp, m uint32) {
		if o := w.blk.order; o != nil {
			o.fence(w, m, acquire, release)
		}
	}
}

// orderOf is the record of accesses to a window; nil if they are not checked.
func (w *warp) orderOf(win window) *blockOrder {
	if win.sp != spGlobal || win.ro {
		return nil
	}
	return w.blk.order
}

// inOrder checks and records weak accesses; false at a fault. Strong ones are
// looked at where they are done.
func (w *warp) inOrder(r *memRef, win window, m uint32) bool {
	b := w.orderOf(win)
	if b == nil || r.order.strong {
		return true
	}
	b.g.mu.Lock()
	defer b.g.mu.Unlock()
	kind := spanKind(0)
	if r.write {
		kind = spanWrite
	}
	for m != 0 {
		l := lane(&m)
		c := b.chunk(w.addr[l])
		s := b.span(w, l, r.size, kind)
		if b.check(w, l, c, &s); w.fault != nil {
			return false
		}
		c.record(b, &s)
	}
	return true
}

// ordered makes a strong ld or st one step with what it means to other blocks.
func (r *memRef) ordered(move mover) mover {
	if !r.order.strong {
		return move
	}
	return func(w *warp, win window, m uint32) {
		b := w.orderOf(win)
		if b == nil {
			move(w, win, m)
			return
		}
		b.g.mu.Lock()
		defer b.g.mu.Unlock()
		at := b.releasing(w, r)
		for left := m; left != 0; {
			l := lane(&left)
			c, s := b.begin(w, l, r.size, r.write)
			if w.fault != nil {
				return
			}
			b.finish(r, c, &s, r.write, !r.write, at)
		}
		move(w, win, m)
	}
}

// atomic does an atom or red of the lanes of m, each by one, as one step with
// what it means to other blocks.
func (b *blockOrder) atomic(w *warp, r *memRef, win window, m uint32, one func(*warp, window, int) bool) {
	b.g.mu.Lock()
	defer b.g.mu.Unlock()
	at := b.releasing(w, r)
	for m != 0 {
		l := lane(&m)
		c, s := b.begin(w, l, r.size, true)
		if w.fault != nil {
			return
		}
		b.finish(r, c, &s, one(w, win, l), true, at)
	}
}

// releasing is the clock before which accesses are released by an operation
// that releases itself.
func (b *blockOrder) releasing(w *warp, r *memRef) (at uint32) {
	if !r.order.release {
		return 0
	}
	at = b.now[w.num] + 1
	b.clock++
	b.now[w.num] = b.clock
	return at
}

// begin checks a strong access of lane l.
func (b *blockOrder) begin(w *warp, l, size int, write bool) (*orderChunk, span) {
	c, kind := b.chunk(w.addr[l]), spanStrong
	if write {
		kind |= spanWrite
	}
	s := b.span(w, l, size, kind)
	b.check(w, l, c, &s)
	return c, s
}

// finish records a strong access that wrote, read, or did both, and hands on
// what threads know by it; releasedAt is from releasing.
func (b *blockOrder) finish(r *memRef, c *orderChunk, s *span, wrote, reads bool, releasedAt uint32) {
	t := &b.threads[s.thread]
	old := c.find(s.lo, s.end, spanStrong|spanWrite)
	if wrote {
		if releasedAt > 0 {
			s.release = b.publish(b.snapshot(int(s.thread)/lanesPerWarp).join(t.know), int(s.thread), releasedAt)
		} else if t.released != nil {
			s.release = b.publish(t.released, int(s.thread), t.at)
		}
		// What an atomic operation reads it hands on, and so does a thread's
		// store after its own release.
		if old != nil && (reads || old.block == s.block && old.thread == s.thread) {
			s.release = old.release.join(s.release)
		}
	}
	if reads && old != nil && !r.order.blind {
		if r.order.acquire {
			b.learn(int(s.thread), old.release)
		} else {
			t.found = t.found.join(old.release)
		}
	}
	if !wrote {
		s.kind &^= spanWrite
	}
	c.record(b, s)
}

func (b *blockOrder) span(w *warp, l, size int, kind spanKind) span {
	lo := uint8(w.addr[l] % chunkBytes)
	return span{
		block: b.n, clock: b.now[w.num], pc: w.pc, thread: uint16(w.num*lanesPerWarp + l), lo: lo, end: lo + uint8(size), kind: kind,
	}
}

func (b *blockOrder) chunk(addr uint64) *orderChunk {
	n := addr / (chunkBytes * pageChunks)
	if b.page == nil || b.pageN != n {
		p := b.g.pages[n]
		if p == nil {
			p = new(orderPage)
			b.g.pages[n] = p
		}
		b.page, b.pageN = p, n
	}
	return &b.page[addr/chunkBytes%pageChunks]
}

// check reports an access that may run at the same time as a recorded one of
// another block, if one of them writes and one is weak.
func (b *blockOrder) check(w *warp, l int, c *orderChunk, s *span) {
	for i := -1; i < len(c.more); i++ {
		o := c.at(i)
		if o.block == s.block || o.end <= s.lo || o.lo >= s.end ||
			(o.kind|s.kind)&spanWrite == 0 || o.kind&s.kind&spanStrong != 0 || b.knows(int(s.thread), o) {
			continue
		}
		f := w.failAt(FaultRace, l, spGlobal, w.addr[l], "%s, and %s in another block that nothing orders before it", s.kind, o.kind)
		f.against(w.k, w.blk.thread(int(o.thread)), o.pc)
		f.OtherBlock = w.blk.l.index(int(o.block))
		return
	}
}

// at is span i, from -1.
func (c *orderChunk) at(i int) *span {
	if i < 0 {
		return &c.one
	}
	return &c.more[i]
}

// find gives the span of exactly this stretch and kind.
func (c *orderChunk) find(lo, end uint8, kind spanKind) *span {
	for i := -1; i < len(c.more); i++ {
		if o := c.at(i); o.lo == lo && o.end == end && o.kind == kind {
			return o
		}
	}
	return nil
}

// record adds an access that was found in order. A write takes the place of all
// it covers: who knows of it knows of those.
func (c *orderChunk) record(b *blockOrder, s *span) {
	if s.kind&spanWrite != 0 {
		left := c.more[:0]
		for _, o := range c.more {
			if o.lo < s.lo || o.end > s.end {
				left = append(left, o)
			}
		}
		c.more = left
		if c.one.end == 0 || c.one.lo >= s.lo && c.one.end <= s.end {
			c.one = *s
		} else {
			c.more = append(c.more, *s)
		}
		return
	}
	if c.one.end == 0 {
		c.one = *s
		return
	}
	reads := 0
	for i := -1; i < len(c.more); i++ {
		o := c.at(i)
		if o.lo != s.lo || o.end != s.end || o.kind != s.kind {
			continue
		}
		reads++
		if o.block == s.block && o.thread>>5 == s.thread>>5 || o.block != s.block && b.knows(int(s.thread), o) || reads == manyReads {
			*o = *s
			return
		}
	}
	c.more = append(c.more, *s)
}
