package kvcache

import "fmt"

// none ends the list of free blocks.
const none = -1

// BlockManager owns the numbers 0..n−1 of the pages. A block is in use (one or
// more references), or free; a free block that is published stays in the
// prefix cache until it is evicted. Not safe for concurrent use.
type BlockManager struct {
	blocks []block
	cached map[Key]int32 // published blocks, in use or free

	// Free blocks as a list, next to be taken first: blocks that hold nothing,
	// then published ones, least recently used first.
	first, last int32
	free        int

	evicted uint64
}

type block struct {
	refs       int32
	prev, next int32 // in the list while refs is 0
	published  bool
	key        Key
}

// NewBlockManager makes n ≥ 1 free blocks.
func NewBlockManager(n int) *BlockManager {
	m := &BlockManager{
		blocks: make([]block, n), cached: make(map[Key]int32),
		first: none, last: none,
	}
	for i := range m.blocks {
		m.pushLast(int32(i))
	}
	return m
}

// Total is the number of blocks.
func (m *BlockManager) Total() int { return len(m.blocks) }

// Available is the number of blocks that Allocate could give: free ones,
// published or not.
func (m *BlockManager) Available() int { return m.free }

// Cached is the number of published blocks.
func (m *BlockManager) Cached() int { return len(m.cached) }

// Evicted counts the published blocks that were overwritten so far.
func (m *BlockManager) Evicted() uint64 { return m.evicted }

// Lookup tells how many leading keys are published, and how many of those
// blocks are free, which is how much Acquire of them takes from Available.
func (m *BlockManager) Lookup(keys []Key) (hit, free int) {
	for _, k := range keys {
		b, ok := m.cached[k]
		if !ok {
			break
		}
		hit++
		if m.blocks[b].refs == 0 {
			free++
		}
	}
	return hit, free
}

// Acquire appends to table the blocks of keys, which Lookup has just found,
// each with one more reference.
func (m *BlockManager) Acquire(table []int32, keys []Key) []int32 {
	for _, k := range keys {
		id, ok := m.cached[k]
		if !ok {
			panic("kvcache: Acquire of a key that is not published")
		}
		b := &m.blocks[id]
		if b.refs == 0 {
			m.unlink(id)
		}
		b.refs++
		table = append(table, id)
	}
	return table
}

// Allocate appends n blocks of undefined content to table, each with one
// reference; all or nothing. It evicts published blocks, least recently used
// first, when no others are left.
func (m *BlockManager) Allocate(table []int32, n int) ([]int32, bool) {
	if n > m.free {
		return table, false
	}
	for range n {
		id := m.first
		m.unlink(id)
		b := &m.blocks[id]
		if b.published {
			delete(m.cached, b.key)
			b.published = false
			m.evicted++
		}
		b.refs = 1
		table = append(table, id)
	}
	return table, true
}

// Publish makes a full block, in use and committed, findable by its key. When
// another block has that key already, that one stays and nothing changes.
func (m *BlockManager) Publish(id int32, k Key) {
	b := &m.blocks[id]
	if b.refs == 0 {
		panic(fmt.Sprintf("kvcache: Publish of block %d, which is free", id))
	}
	if b.published {
		return
	}
	if _, ok := m.cached[k]; ok {
		return
	}
	m.cached[k] = id
	b.published, b.key = true, k
}

// Release drops one reference of each block of a sequence's table. Later
// blocks of the table are evicted before earlier ones, so that what is left of
// a prefix in the cache is its beginning.
func (m *BlockManager) Release(table []int32) {
	for i := len(table) - 1; i >= 0; i-- {
		id := table[i]
		b := &m.blocks[id]
		if b.refs == 0 {
			panic(fmt.Sprintf("kvcache: Release of block %d, which is free", id))
		}
		b.refs--
		if b.refs > 0 {
			continue
		}
		if b.published {
			m.pushLast(id)
		} else {
			m.pushFirst(id)
		}
	}
}

func (m *BlockManager) pushLast(id int32) {
	b := &m.blocks[id]
	b.prev, b.next = m.last, none
	if m.last == none {
		m.first = id
	} else {
		m.blocks[m.last].next = id
	}
	m.last = id
	m.free++
}

func (m *BlockManager) pushFirst(id int32) {
	b := &m.blocks[id]
	b.prev, b.next = none, m.first
	if m.first == none {
		m.last = id
	} else {
		m.blocks[m.first].prev = id
	}
	m.first = id
	m.free++
}

func (m *BlockManager) unlink(id int32) {
	b := &m.blocks[id]
	if b.prev == none {
		m.first = b.next
	} else {
		m.blocks[b.prev].next = b.next
	}
	if b.next == none {
		m.last = b.prev
	} else {
		m.blocks[b.next].prev = b.prev
	}
	m.free--
}

// Check verifies the manager against the block tables of all live sequences:
// every reference is held by a table, every block without one is in the free
// list once, and the cache and the blocks agree. An error is a bug.
func (m *BlockManager) Check(tables [][]int32) error {
	refs := make([]int32, len(m.blocks))
	for _, t := range tables {
		for _, id := range t {
			if id < 0 || int(id) >= len(refs) {
				return fmt.Errorf("kvcache: a table names block %d of %d", id, len(refs))
			}
			refs[id]++
		}
	}
	published := 0
	for i := range m.blocks {
		b := &m.blocks[i]
		if b.refs != refs[i] {
			return fmt.Errorf("kvcache: block %d counts %d references, %d tables hold it", i, b.refs, refs[i])
		}
		if refs[i] > 1 && !b.published {
			return fmt.Errorf("kvcache: block %d is shared by %d sequences but not published", i, refs[i])
		}
		if b.published {
			published++
			if got, ok := m.cached[b.key]; !ok || got != int32(i) {
				return fmt.Errorf("kvcache: block %d is published but its key finds block %d", i, got)
			}
		}
	}
	if published != len(m.cached) {
		return fmt.Errorf("kvcache: %d blocks are published, %d keys are known", published, len(m.cached))
	}
	n, prev := 0, int32(none)
	for id := m.first; id != none; id = m.blocks[id].next {
		if b := &m.blocks[id]; b.refs != 0 || b.prev != prev {
			return fmt.Errorf("kvcache: free list is broken at block %d (%d references)", id, b.refs)
		}
		if n++; n > len(m.blocks) {
			return fmt.Errorf("kvcache: free list does not end")
		}
		prev = id
	}
	idle := 0
	for _, r := range refs {
		if r == 0 {
			idle++
		}
	}
	if n != m.free || n != idle || m.last != prev {
		return fmt.Errorf("kvcache: free list has %d blocks, %d counted free, %d without a reference", n, m.free, idle)
	}
	return nil
}
