package cpu

import "sync"

// Memory comes in slabs, from which smaller buffers are cut one after the other.
//
// Weights have slabs of huge pages: a weight of a megabyte in a mapping of its
// own would have small pages only, and reading it costs up to a third more.
//
// All other buffers, K/V and activations, have slabs of small pages. They are
// made for the largest context and step, and mostly little of them is used:
// with huge pages the first token would take 2 MiB of every layer's K and V.
// Where K/V is really used it gets huge pages then (widen): attention over a
// long context is a tenth faster with them. All layers come to that in the same
// step, and a huge page can take 5 ms to make: a step makes one (turn).
const (
	hugePage  = 2 << 20
	slabBytes = 32 << 20
	ownBytes  = slabBytes / 4 // from here on a buffer has a mapping of its own
	alignment = 64
)

// arena cuts buffers from slabs. A slab is given back with its last buffer.
type arena struct {
	mu  sync.Mutex
	now [2]*slab // of small and of huge pages, those that are cut from; nil: none
	due bool     // a huge page may be made
}

type slab struct {
	mem  []byte // from a huge page's border
	raw  []byte // as mapped
	used int
	live int // buffers
	kind pageKind
	wide []bool // of smallPages: which 2 MiB have become a huge page
}

type pageKind uint8

const (
	smallPages pageKind = iota
	hugePages
)

// piece is a buffer's share of a slab: bytes at..at+n.
type piece struct {
	slab  *slab
	at, n int
	// The first bytes of it that were used so far, and the next 2 MiB of the
	// slab that are a huge page when enough of them is used.
	used, next int
}

func (p *piece) mem() []byte { return p.slab.mem[p.at : p.at+p.n : p.at+p.n] }

// get cuts n bytes, aligned to 64.
func (a *arena) get(n int, kind pageKind) (piece, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n = max(1, n)
	if n >= ownBytes {
		s, err := newSlab(n, kind)
		if err != nil {
			return piece{}, err
		}
		s.live = 1
		return piece{slab: s, n: n}, nil
	}
	if now := a.now[kind]; now == nil || n > len(now.mem)-now.used {
		s, err := newSlab(slabBytes, kind)
		if err != nil {
			return piece{}, err
		}
		a.now[kind] = s // the one before goes with its last buffer
	}
	s := a.now[kind]
	p := piece{slab: s, at: s.used, n: n, next: s.used / hugePage}
	s.used = min((s.used+n+alignment-1)&^(alignment-1), len(s.mem))
	s.live++
	return p, nil
}

// turn allows another huge page.
func (a *arena) turn() {
	a.mu.Lock()
	a.due = true
	a.mu.Unlock()
}

// widen notes that the first n bytes of a piece are used. Every 2 MiB of the
// slab of whose share in the piece half is used becomes a huge page, in its turn.
func (a *arena) widen(p *piece, n int) {
	for p.used = max(p.used, n); ; p.next++ {
		lo, hi := max(p.next*hugePage, p.at), min((p.next+1)*hugePage, p.at+p.n)
		if lo >= hi || p.at+p.used < lo+(hi-lo)/2 || !a.widenAt(p.slab, p.next) {
			return
		}
	}
}

// widenAt makes a huge page of a slab's 2 MiB; false: it is not due.
func (a *arena) widenAt(s *slab, i int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i >= len(s.wide) || s.wide[i] {
		return true
	}
	if !a.due {
		return false
	}
	a.due, s.wide[i] = false, true
	widenMem(s.mem[i*hugePage:][:hugePage])
	return true
}

// put gives a buffer's share of its slab back.
func (a *arena) put(s *slab) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.live--; s.live > 0 {
		return nil
	}
	if s == a.now[s.kind] {
		a.now[s.kind] = nil
	}
	return unmapMem(s.raw)
}

func newSlab(n int, kind pageKind) (*slab, error) {
	raw, err := mapMem(n, kind)
	if err != nil {
		return nil, err
	}
	s := &slab{raw: raw, mem: aligned(raw, n), kind: kind}
	if kind == smallPages {
		s.wide = make([]bool, n/hugePage)
	}
	return s, nil
}
