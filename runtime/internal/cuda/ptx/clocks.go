package ptx

import (
	"maps"
	"slices"
)

// know is what a thread knows of what other threads have done: for each block,
// up to which clock. It is shared, and never changed once made.
type know struct{ blocks map[int32]*blockClock }

// blockClock is how far the threads of one block are known: accesses before the
// clock of their warp, or before that of their thread.
type blockClock struct {
	warps   []uint32
	threads []threadClock
}

type threadClock struct {
	thread uint16
	clock  uint32
}

func (k *know) has(block int32, thread uint16, clock uint32) bool {
	if k == nil {
		return false
	}
	c := k.blocks[block]
	return c != nil && c.has(thread, clock)
}

func (c *blockClock) has(thread uint16, clock uint32) bool {
	if clock < c.warps[thread>>5] {
		return true
	}
	for _, t := range c.threads {
		if t.thread == thread && clock < t.clock {
			return true
		}
	}
	return false
}

// covers says whether c knows all that o does.
func (c *blockClock) covers(o *blockClock) bool {
	if c == o {
		return true
	}
	for i, n := range o.warps {
		if c.warps[i] < n {
			return false
		}
	}
	for _, t := range o.threads {
		if !c.has(t.thread, t.clock-1) {
			return false
		}
	}
	return true
}

func (c *blockClock) join(o *blockClock) *blockClock {
	switch {
	case c == nil || o.covers(c):
		return o
	case c.covers(o):
		return c
	}
	j := &blockClock{warps: slices.Clone(c.warps)}
	for i, n := range o.warps {
		j.warps[i] = max(j.warps[i], n)
	}
	for _, list := range [][]threadClock{c.threads, o.threads} {
		for _, t := range list {
			if !j.has(t.thread, t.clock-1) {
				j.threads = append(slices.DeleteFunc(j.threads, func(u threadClock) bool { return u.thread == t.thread }), t)
			}
		}
	}
	return j
}

// join is what both know together.
func (k *know) join(o *know) *know {
	if k == nil || k == o {
		return o
	}
	if o == nil {
		return k
	}
	var m map[int32]*blockClock // of the result, once it is more than k
	for n, c := range o.blocks {
		old := k.blocks[n]
		j := old.join(c)
		if j == old {
			continue
		}
		if m == nil {
			m = maps.Clone(k.blocks)
		}
		m[n] = j
	}
	if m == nil {
		return k
	}
	return &know{m}
}

// blockOrder is what the threads of the block that runs know, of each other and
// of other blocks.
//
//	bar.sync          what one of the members knows all know
//	fence, release    takes what the thread knows; its atomics hand it on
//	fence, acquire    learns what the atomics the thread did before have found
//
// Time is a count of the block's events: a warp's clock moves on at each, so
// that what came before a fence is told from what came after it.
type blockOrder struct {
	g       *gridOrder
	n       int32 // number of the block
	clock   uint32
	now     []uint32   // each warp's clock
	seen    [][]uint32 // per warp: up to where it knows the block's warps, itself included: its other lanes
	know    []*know    // per warp: what all its lanes know of other blocks
	threads []threadOrder
	learned []int32 // threads whose own know is set

	page  *orderPage
	pageN uint64
}

// threadOrder is what one thread has beyond its warp.
type threadOrder struct {
	know     *know
	found    *know  // by strong reads; known after a fence
	released *know  // at the last releasing fence
	at       uint32 // clock of that fence: the thread's own accesses before it
}

func newBlockOrder(g *gridOrder, warps int) *blockOrder {
	b := &blockOrder{
		g: g, now: make([]uint32, warps), know: make([]*know, warps), threads: make([]threadOrder, warps*lanesPerWarp),
	}
	for range warps {
		b.seen = append(b.seen, make([]uint32, warps))
	}
	return b
}

func (b *blockOrder) newBlock(n int) {
	if b == nil {
		return
	}
	b.n, b.clock = int32(n), 1
	for i := range b.now {
		b.now[i] = 1
		clear(b.seen[i])
	}
	clear(b.know)
	clear(b.threads)
	b.learned = b.learned[:0]
}

// join is a barrier of the members; all: of the whole block, also of warps that
// have ended.
func (b *blockOrder) join(members []int, all bool) {
	if b == nil {
		return
	}
	in := func(warp int) bool { return all || slices.Contains(members, warp) }
	b.clock++
	var k *know
	seen := make([]uint32, len(b.now))
	for a := range b.now {
		if !in(a) {
			continue
		}
		k = k.join(b.know[a])
		for i, c := range b.seen[a] {
			seen[i] = max(seen[i], c)
		}
		seen[a] = b.clock
	}
	k = b.teach(k, in)
	for a := range b.now {
		if in(a) {
			copy(b.seen[a], seen)
			b.now[a], b.know[a] = b.clock, k
		}
	}
}

// teach adds what single threads of these warps know to k: now all know it.
func (b *blockOrder) teach(k *know, in func(warp int) bool) *know {
	left := b.learned[:0]
	for _, t := range b.learned {
		if !in(int(t) / lanesPerWarp) {
			left = append(left, t)
			continue
		}
		k = k.join(b.threads[t].know)
		b.threads[t].know = nil
	}
	b.learned = left
	return k
}

// warpSync orders the lanes of a warp.
func (b *blockOrder) warpSync(warp int) {
	if b == nil {
		return
	}
	b.clock++
	b.now[warp], b.seen[warp][warp] = b.clock, b.clock
	b.know[warp] = b.teach(b.know[warp], func(w int) bool { return w == warp })
}

// fence is one of the lanes of m, whose scope is more than the block.
func (b *blockOrder) fence(w *warp, m uint32, acquire, release bool) {
	first := w.num * lanesPerWarp
	if acquire {
		for left := m; left != 0; {
			t := first + lane(&left)
			b.learn(t, b.threads[t].found)
			b.threads[t].found = nil
		}
	}
	if !release {
		return
	}
	k := b.snapshot(w.num)
	for left := m; left != 0; {
		t := &b.threads[first+lane(&left)]
		t.released, t.at = k.join(t.know), b.now[w.num]+1
	}
	b.clock++
	b.now[w.num] = b.clock
}

func (b *blockOrder) learn(thread int, k *know) {
	if k == nil {
		return
	}
	t := &b.threads[thread]
	if t.know == nil {
		b.learned = append(b.learned, int32(thread))
	}
	t.know = t.know.join(k)
}

// snapshot is what all lanes of a warp know now.
func (b *blockOrder) snapshot(warp int) *know {
	own := &know{map[int32]*blockClock{b.n: {warps: slices.Clone(b.seen[warp])}}}
	return own.join(b.know[warp])
}

// publish adds to k what the thread itself has done before clock.
func (b *blockOrder) publish(k *know, thread int, clock uint32) *know {
	return k.join(&know{map[int32]*blockClock{b.n: {
		warps: make([]uint32, len(b.now)), threads: []threadClock{{uint16(thread), clock}},
	}}})
}

// knows says whether a thread knows of another block's access.
func (b *blockOrder) knows(thread int, s *span) bool {
	return b.know[thread/lanesPerWarp].has(s.block, s.thread, s.clock) || b.threads[thread].know.has(s.block, s.thread, s.clock)
}
