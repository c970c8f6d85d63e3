package tokenizer

import (
	"hash/maphash"
	"sync/atomic"
)

const (
	cacheSlots   = 1 << 15
	cacheMaxWord = 64 // longer words seldom come twice
)

// wordCache remembers the ids of words. It is bounded (a new word takes the slot
// of an older one with the same hash), needs no lock, and lives in memory of at
// most some 12 MB.
type wordCache struct {
	seed  maphash.Seed
	slots [cacheSlots]atomic.Pointer[cachedWord]
}

type cachedWord struct {
	word string
	ids  []int32
}

func newWordCache() *wordCache { return &wordCache{seed: maphash.MakeSeed()} }

func (c *wordCache) slot(w string) *atomic.Pointer[cachedWord] {
	return &c.slots[maphash.String(c.seed, w)%cacheSlots]
}

// get returns the ids of w; they belong to the cache.
func (*wordCache) get(slot *atomic.Pointer[cachedWord], w string) ([]int32, bool) {
	if e := slot.Load(); e != nil && e.word == w {
		return e.ids, true
	}
	return nil, false
}

// put keeps copies of w and its ids.
func (*wordCache) put(slot *atomic.Pointer[cachedWord], w string, ids []int32) {
	slot.Store(&cachedWord{string([]byte(w)), append([]int32(nil), ids...)})
}
