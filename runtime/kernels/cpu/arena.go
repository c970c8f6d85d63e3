package cpu

import "sync"

// Memory comes in slabs of huge pages, from which smaller buffers are cut one
// after the other: a weight of a megabyte in a mapping of its own would have
// small pages only, and reading it costs up to a third more.
const (
	slabBytes = 32 << 20
	ownBytes  = slabBytes / 4 // from here on a buffer has a mapping of its own
	alignment = 64
)

// arena cuts buffers from slabs. A slab is given back with its last buffer.
type arena struct {
	mu  sync.Mutex
	now *slab // the one that is cut from; nil: none
}

type slab struct {
	mem  []byte // from a huge page's border
	raw  []byte // as mapped
	used int
	live int // buffers
}

// get cuts n bytes, aligned to 64.
func (a *arena) get(n int) ([]byte, *slab, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n = max(1, n)
	if n >= ownBytes {
		s, err := newSlab(n)
		if err != nil {
			return nil, nil, err
		}
		s.live = 1
		return s.mem[:n:n], s, nil
	}
	if a.now == nil || n > len(a.now.mem)-a.now.used {
		s, err := newSlab(slabBytes)
		if err != nil {
			return nil, nil, err
		}
		a.now = s // the one before goes with its last buffer
	}
	s := a.now
	m := s.mem[s.used : s.used+n : s.used+n]
	s.used = min((s.used+n+alignment-1)&^(alignment-1), len(s.mem))
	s.live++
	return m, s, nil
}

// put gives a buffer's share of its slab back.
func (a *arena) put(s *slab) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.live--; s.live > 0 {
		return nil
	}
	if s == a.now {
		a.now = nil
	}
	return unmapMem(s.raw)
}

func newSlab(n int) (*slab, error) {
	raw, err := mapMem(n)
	if err != nil {
		return nil, err
	}
	return &slab{raw: raw, mem: aligned(raw, n)}, nil
}
