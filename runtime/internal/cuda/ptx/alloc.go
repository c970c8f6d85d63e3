package ptx

import "sort"

// slot is where a virtual register lives: a byte offset into the warp's
// register file (32 lanes of 4 or 8 bytes), or a predicate's number.
type slot struct {
	off  uintptr
	kind slotKind
}

type slotKind uint8

const (
	slot32 slotKind = iota
	slot64
	slotPred
)

func kindOf(t typ) slotKind {
	switch {
	case t == tPred:
		return slotPred
	case t.wide():
		return slot64
	}
	return slot32
}

// noResult lists the opcodes whose first operand is not a destination.
var noResult = map[string]bool{
	"st": true, "red": true, "membar": true, "fence": true, "bra": true, "brx": true, "ret": true, "exit": true,
	"trap": true, "brkpt": true, "cp": true, "prefetch": true, "prefetchu": true, "stmatrix": true, "nanosleep": true,
	"pmevent": true, "discard": true, "applypriority": true, "griddepcontrol": true,
}

func hasResult(s *stmt) bool {
	switch s.op {
	case "bar", "barrier":
		return s.has("red")
	}
	return !noResult[s.op]
}

// effects calls def and use for each register a statement writes and reads.
func effects(s *stmt, def, use func(*register)) {
	if s.guard != nil {
		use(s.guard)
	}
	var walk func(o *operand, f func(*register))
	walk = func(o *operand, f func(*register)) {
		if o.reg != nil {
			if o.kind == opAddr {
				f = use
			}
			f(o.reg)
		}
		for i := range o.list {
			walk(&o.list[i], f)
		}
	}
	for i := range s.args {
		if i == 0 && hasResult(s) {
			walk(&s.args[i], def)
			continue
		}
		walk(&s.args[i], use)
	}
}

type bitset []uint64

func (b bitset) has(i int) bool { return b[i>>6]>>(i&63)&1 != 0 }
func (b bitset) set(i int)      { b[i>>6] |= 1 << (i & 63) }

// allocation is the result of assigning registers to slots.
type allocation struct {
	slots []slot // by register id
	bytes int    // of the 32- and 64-bit slots
	npred int
	zero  []slot // live on entry: may be read before they are written
}

// allocate gives registers whose lives do not overlap the same slot, so that a
// warp's register file stays in the cache. bs is in layout order; the register
// lives are intervals of that order.
func allocate(stmts []*stmt, bs []*block, order []int, regs []*register) allocation {
	n := len(regs)
	words := (n + 63) / 64
	in := make([]bitset, len(bs))
	gen := make([]bitset, len(bs))
	kill := make([]bitset, len(bs))
	for _, bi := range order {
		b := bs[bi]
		in[bi], gen[bi], kill[bi] = make(bitset, words), make(bitset, words), make(bitset, words)
		for _, s := range stmts[b.start:b.end] {
			var defs []int
			effects(s, func(r *register) { defs = append(defs, r.id) }, func(r *register) {
				if !kill[bi].has(r.id) {
					gen[bi].set(r.id)
				}
			})
			for _, d := range defs {
				if s.guard == nil {
					kill[bi].set(d)
				} else if !kill[bi].has(d) {
					gen[bi].set(d) // lanes whose guard is false keep the old value
				}
			}
		}
	}
	out := make([]bitset, len(bs))
	for _, bi := range order {
		out[bi] = make(bitset, words)
	}
	for changed := true; changed; {
		changed = false
		for i := len(order) - 1; i >= 0; i-- {
			bi := order[i]
			for _, s := range bs[bi].succ {
				for w, v := range in[s] {
					out[bi][w] |= v
				}
			}
			for w := range in[bi] {
				v := gen[bi][w] | out[bi][w]&^kill[bi][w]
				if v != in[bi][w] {
					in[bi][w], changed = v, true
				}
			}
		}
	}
	first, last := make([]int, n), make([]int, n)
	for i := range first {
		first[i] = -1
	}
	touch := func(id, pos int) {
		if first[id] < 0 {
			first[id], last[id] = pos, pos
		}
		first[id], last[id] = min(first[id], pos), max(last[id], pos)
	}
	pos := 0
	for _, bi := range order {
		for id := range n {
			if in[bi].has(id) {
				touch(id, pos)
			}
		}
		for _, s := range stmts[bs[bi].start:bs[bi].end] {
			mark := func(r *register) { touch(r.id, pos) }
			effects(s, mark, mark)
			pos++
		}
		for id := range n {
			if out[bi].has(id) {
				touch(id, pos-1)
			}
		}
	}
	return assign(regs, first, last, in[order[0]])
}

// assign is linear scan over the intervals, one pool of slots per kind. A
// register's slot is free again only after its last statement, so that a
// result never shares a slot with a source of the same statement.
func assign(regs []*register, first, last []int, entry bitset) allocation {
	a := allocation{slots: make([]slot, len(regs))}
	ids := make([]int, 0, len(regs))
	for id := range regs {
		if first[id] >= 0 {
			ids = append(ids, id)
		}
	}
	sort.Slice(ids, func(i, j int) bool {
		if first[ids[i]] != first[ids[j]] {
			return first[ids[i]] < first[ids[j]]
		}
		return ids[i] < ids[j]
	})
	type use struct{ end, num int }
	var active, free [3][]use
	var count [3]int
	num := make([]int, len(regs))
	for _, id := range ids {
		k := kindOf(regs[id].typ)
		keep := active[k][:0]
		for _, u := range active[k] {
			if u.end < first[id] {
				free[k] = append(free[k], u)
			} else {
				keep = append(keep, u)
			}
		}
		active[k] = keep
		if f := free[k]; len(f) > 0 {
			num[id] = f[len(f)-1].num
			free[k] = f[:len(f)-1]
		} else {
			num[id] = count[k]
			count[k]++
		}
		active[k] = append(active[k], use{last[id], num[id]})
	}
	a.bytes = count[slot64]*256 + count[slot32]*128
	a.npred = count[slotPred]
	for _, id := range ids {
		s := slot{kind: kindOf(regs[id].typ)}
		switch s.kind {
		case slot64:
			s.off = uintptr(num[id] * 256)
		case slot32:
			s.off = uintptr(count[slot64]*256 + num[id]*128)
		case slotPred:
			s.off = uintptr(num[id])
		}
		a.slots[id] = s
		if entry.has(id) {
			a.zero = append(a.zero, s)
		}
	}
	return a
}
