package tokenizer

import (
	"hash/maphash"
	"unsafe"
)

// pieces is a set of strings with an id each, in the order in which they were
// added: a flat hash table over a list. It is made in a tenth of the time that a
// map takes, which every start of a program waits for.
type pieces struct {
	texts []string
	ids   []int32
	slots []uint32 // open addressing, a power of two long: place in the list plus one; 0 is free
	seed  maphash.Seed
	arena textArena
}

// newPieces makes an empty set with room for about n.
func newPieces(n int) *pieces {
	size := 16
	for size < 2*n {
		size *= 2
	}
	return &pieces{texts: make([]string, 0, n), ids: make([]int32, 0, n), slots: make([]uint32, size), seed: maphash.MakeSeed()}
}

// slot is where s is, or belongs.
func (p *pieces) slot(s string) *uint32 {
	mask := uint64(len(p.slots) - 1)
	for i := maphash.String(p.seed, s) & mask; ; i = (i + 1) & mask {
		if at := p.slots[i]; at == 0 || p.texts[at-1] == s {
			return &p.slots[i]
		}
	}
}

// place is where s stands in the list; -1: nowhere.
func (p *pieces) place(s string) int { return int(*p.slot(s)) - 1 }

func (p *pieces) get(s string) (int32, bool) {
	if at := p.place(s); at >= 0 {
		return p.ids[at], true
	}
	return 0, false
}

func (p *pieces) getBytes(s []byte) (int32, bool) { return p.get(bytesText(s)) }

// add adds a copy of s, unless it is there: then it returns the id it has.
func (p *pieces) add(s []byte, id int32) (old int32, known bool) {
	slot := p.slot(bytesText(s))
	if *slot != 0 {
		return p.ids[*slot-1], true
	}
	p.insert(slot, p.arena.keep(s), id)
	return id, false
}

// set gives s the id, whether it is there or not.
func (p *pieces) set(s string, id int32) {
	slot := p.slot(s)
	if *slot != 0 {
		p.ids[*slot-1] = id
		return
	}
	p.insert(slot, s, id)
}

func (p *pieces) insert(slot *uint32, s string, id int32) {
	p.texts, p.ids = append(p.texts, s), append(p.ids, id)
	*slot = uint32(len(p.texts))
	if 2*len(p.texts) <= len(p.slots) {
		return
	}
	p.slots = make([]uint32, 2*len(p.slots))
	for i, s := range p.texts {
		*p.slot(s) = uint32(i) + 1
	}
}

func (p *pieces) len() int { return len(p.texts) }

// textArena keeps many short strings in few pieces of memory.
type textArena struct{ free []byte }

func (a *textArena) keep(s []byte) string {
	const chunk = 16 << 10
	if len(s) > cap(a.free) {
		a.free = make([]byte, 0, max(chunk, len(s)))
	}
	kept := append(a.free, s...)
	a.free = kept[len(s):]
	return bytesText(kept)
}

// bytesText is b as a string, without a copy: for as long as b does not change.
func bytesText(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
