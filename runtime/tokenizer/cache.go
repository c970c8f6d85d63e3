package tokenizer

import (
	"hash/maphash"
	"sync/atomic"
)

const (
	cacheSlots   = 1 << 15
	cacheMaxWord = 30 // bytes; longer words seldom come twice
	cacheMaxIDs  = 8
)

// wordCache remembers the ids of words. It is bounded (a new word takes the place
// of an older one with the same hash), needs no lock, and takes 2.3 MB at most.
type wordCache struct {
	seed  maphash.Seed
	slots [cacheSlots]atomic.Pointer[cachedWord]
}

// cachedWord is one cache line. It does not change once it is in the cache.
type cachedWord struct {
	length, count uint8
	word          [cacheMaxWord]byte
	ids           [cacheMaxIDs]int32
}

func newWordCache() *wordCache { return &wordCache{seed: maphash.MakeSeed()} }

func (c *wordCache) slot(w string) *atomic.Pointer[cachedWord] {
	return &c.slots[maphash.String(c.seed, w)%cacheSlots]
}

// add appends the ids of w to dst if slot has them.
func (*wordCache) add(dst []int32, slot *atomic.Pointer[cachedWord], w string) ([]int32, bool) {
	e := slot.Load()
	if e == nil || string(e.word[:e.length]) != w {
		return dst, false
	}
	return append(dst, e.ids[:e.count]...), true
}

// put remembers w, of at most cacheMaxWord bytes, if it has few ids.
func (*wordCache) put(slot *atomic.Pointer[cachedWord], w string, ids []int32) {
	if len(ids) > cacheMaxIDs {
		return
	}
	e := &cachedWord{length: uint8(len(w)), count: uint8(len(ids))}
	copy(e.word[:], w)
	copy(e.ids[:], ids)
	slot.Store(e)
}
