package tokenizer

import "math"

// pairTable maps a pair of ids to its place in the list of merges and the id it
// becomes: a flat hash table with open addressing.
type pairTable struct {
	slots []pairSlot
	mask  uint64
}

type pairSlot struct {
	key  uint64
	rank uint32 // noRank: free
	id   int32
}

const noRank = math.MaxUint32

// pair is the two ids that a slot joins.
func (s pairSlot) pair() (a, b int32) { return int32(s.key >> 32), int32(uint32(s.key)) }

func newPairTable(n int) *pairTable {
	size := 16
	for size < 2*n {
		size *= 2
	}
	t := &pairTable{make([]pairSlot, size), uint64(size - 1)}
	for i := range t.slots {
		t.slots[i].rank = noRank
	}
	return t
}

func pairKey(a, b int32) uint64 { return uint64(uint32(a))<<32 | uint64(uint32(b)) }

func pairHash(key uint64) uint64 {
	key *= 0x9E3779B97F4A7C15
	return key ^ key>>32
}

// put sets the merge of a and b; of two for one pair the later holds.
func (t *pairTable) put(a, b int32, rank uint32, id int32) {
	key := pairKey(a, b)
	for i := pairHash(key) & t.mask; ; i = (i + 1) & t.mask {
		if s := &t.slots[i]; s.rank == noRank || s.key == key {
			*s = pairSlot{key, rank, id}
			return
		}
	}
}

// get returns the merge of a and b, rank noRank where there is none.
func (t *pairTable) get(a, b int32) (rank uint32, id int32) {
	key := pairKey(a, b)
	for i := pairHash(key) & t.mask; ; i = (i + 1) & t.mask {
		s := &t.slots[i]
		if s.rank == noRank || s.key == key {
			return s.rank, s.id
		}
	}
}

// grown is the table with twice the room.
func (t *pairTable) grown() *pairTable {
	g := newPairTable(len(t.slots))
	for _, s := range t.slots {
		if s.rank != noRank {
			a, b := s.pair()
			g.put(a, b, s.rank, s.id)
		}
	}
	return g
}

// scanLimit is up to how many symbols looking through all of them for the best
// pair beats keeping a heap.
const scanLimit = 48

// pair is the merge of a and b, but for one into a hidden token.
func (m *bpe) pair(st *scratch, a, b int32) (rank uint32, id int32) {
	rank, id = m.merges.get(a, b)
	if st.hidden[id] {
		return noRank, 0
	}
	return rank, id
}

// merge joins pairs of st.ids until none is left and appends what remains.
func (m *bpe) merge(st *scratch, dst []int32) []int32 {
	if len(st.ids) < 2 {
		return append(dst, st.ids...)
	}
	if len(st.ids) > scanLimit {
		return m.mergeLong(st, dst)
	}
	ids := st.ids
	ranks, merged := st.ranks[:0], st.merged[:0] // of the pair that starts at i
	for i := range len(ids) - 1 {
		r, id := m.pair(st, ids[i], ids[i+1])
		ranks, merged = append(ranks, r), append(merged, id)
	}
	st.ranks, st.merged = ranks, merged
	for len(ranks) > 0 {
		best, at := uint32(noRank), -1
		for i, r := range ranks {
			if r < best {
				best, at = r, i
			}
		}
		if at < 0 {
			break
		}
		ids[at] = merged[at]
		ids = append(ids[:at+1], ids[at+2:]...)
		if at+1 < len(ranks) {
			ranks = append(ranks[:at+1], ranks[at+2:]...)
			merged = append(merged[:at+1], merged[at+2:]...)
			ranks[at], merged[at] = m.pair(st, ids[at], ids[at+1])
		} else {
			ranks, merged = ranks[:at], merged[:at]
		}
		if at > 0 {
			ranks[at-1], merged[at-1] = m.pair(st, ids[at-1], ids[at])
		}
	}
	return append(dst, ids...)
}

// merge is a possible join of the symbol at pos with the one behind it.
type merge struct {
	rank uint32
	pos  int32
	id   int32
}

func (a merge) before(b merge) bool { return a.rank < b.rank || a.rank == b.rank && a.pos < b.pos }

// mergeLong does what merge does, in time n log n.
func (m *bpe) mergeLong(st *scratch, dst []int32) []int32 {
	ids := st.ids
	n := int32(len(ids))
	prev, next := st.prev[:0], st.next[:0]
	h := st.heap[:0]
	for i := range n {
		prev, next = append(prev, i-1), append(next, i+1)
		if i+1 < n {
			if r, id := m.pair(st, ids[i], ids[i+1]); r != noRank {
				h = append(h, merge{r, i, id})
			}
		}
	}
	for i := len(h)/2 - 1; i >= 0; i-- {
		siftDown(h, i)
	}
	const gone = -1
	for len(h) > 0 {
		top := h[0]
		h[0] = h[len(h)-1]
		h = h[:len(h)-1]
		siftDown(h, 0)
		p := top.pos
		if ids[p] == gone || next[p] == n {
			continue
		}
		q := next[p]
		if r, id := m.pair(st, ids[p], ids[q]); r == noRank || id != top.id {
			continue // one of the two has been joined to another since
		}
		ids[p], ids[q] = top.id, gone
		next[p] = next[q]
		if next[p] < n {
			prev[next[p]] = p
			if r, id := m.pair(st, ids[p], ids[next[p]]); r != noRank {
				h = push(h, merge{r, p, id})
			}
		}
		if o := prev[p]; o >= 0 {
			if r, id := m.pair(st, ids[o], ids[p]); r != noRank {
				h = push(h, merge{r, o, id})
			}
		}
	}
	st.prev, st.next, st.heap = prev, next, h
	for i := int32(0); i < n; i = next[i] {
		dst = append(dst, ids[i])
	}
	return dst
}

func push(h []merge, m merge) []merge {
	h = append(h, m)
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !h[i].before(h[up]) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
	return h
}

func siftDown(h []merge, i int) {
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && h[c+1].before(h[c]) {
			c++
		}
		if !h[c].before(h[i]) {
			return
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}
