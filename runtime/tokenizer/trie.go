package tokenizer

// byteTrie is a set of byte strings with a value each, walked byte by byte. Its
// edges are one flat hash table, so that a vocabulary of a quarter million
// pieces costs some megabytes and no allocation per node.
type byteTrie struct {
	root  [256]int32 // first step, the most frequent: 0 is none
	edges []trieEdge // open addressing, a power of two long
	used  int
	value []int32 // by node, -1 is none; node 0 is the root
}

type trieEdge struct {
	key  uint64 // node<<8 | byte; 0 is free: edges of the root are not here
	next int32
}

func newByteTrie() *byteTrie {
	return &byteTrie{edges: make([]trieEdge, 64), value: []int32{-1}}
}

func trieHash(key uint64) uint64 {
	key *= 0x9E3779B97F4A7C15
	return key ^ key>>29
}

// step follows the edge of b from node; 0 is none.
func (t *byteTrie) step(node int32, b byte) int32 {
	if node == 0 {
		return t.root[b]
	}
	key := uint64(node)<<8 | uint64(b)
	mask := uint64(len(t.edges) - 1)
	for i := trieHash(key) & mask; ; i = (i + 1) & mask {
		switch e := &t.edges[i]; e.key {
		case key:
			return e.next
		case 0:
			return 0
		}
	}
}

// insert gives s (not empty) the value v; a later value of the same string
// replaces the earlier.
func (t *byteTrie) insert(s string, v int32) {
	node := int32(0)
	for i := range len(s) {
		next := t.step(node, s[i])
		if next == 0 {
			next = int32(len(t.value))
			t.value = append(t.value, -1)
			t.link(node, s[i], next)
		}
		node = next
	}
	t.value[node] = v
}

func (t *byteTrie) link(node int32, b byte, next int32) {
	if node == 0 {
		t.root[b] = next
		return
	}
	if 2*(t.used+1) > len(t.edges) {
		old := t.edges
		t.edges = make([]trieEdge, 2*len(old))
		for _, e := range old {
			if e.key != 0 {
				t.place(e)
			}
		}
	}
	t.place(trieEdge{uint64(node)<<8 | uint64(b), next})
	t.used++
}

func (t *byteTrie) place(e trieEdge) {
	mask := uint64(len(t.edges) - 1)
	i := trieHash(e.key) & mask
	for t.edges[i].key != 0 {
		i = (i + 1) & mask
	}
	t.edges[i] = e
}

// longest returns the value of the longest string of the set that s starts with
// at byte i, and where it ends; -1 where there is none. Strings whose value is in
// skip do not count.
func (t *byteTrie) longest(s string, i int, skip map[int32]bool) (v int32, end int) {
	v = -1
	node := int32(0)
	for ; i < len(s); i++ {
		if node = t.step(node, s[i]); node == 0 {
			break
		}
		if got := t.value[node]; got >= 0 && !skip[got] {
			v, end = got, i+1
		}
	}
	return v, end
}
