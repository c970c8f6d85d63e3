package ptx

import "math/bits"

// member makes the instruction wait for the lanes that its executing lanes name
// in operand i, their member masks. Lanes may come with different masks: each
// set then executes on its own.
func (b *builder) member(i int) {
	b.in.kind = kSync
	mask := b.src(i, tB32)
	b.in.member = mask
	b.in.need = func(w *warp, m uint32) uint32 {
		v := view[uint32](w, mask)
		need := uint32(0)
		for left := m; left != 0; {
			l := lane(&left)
			if v[l]>>l&1 == 0 {
				w.fail(FaultIllegalOperand, l, "the member mask %#x does not name the thread that executes", v[l])
				return 0
			}
			need |= v[l]
		}
		return need
	}
}

// bySet runs exec for each set of lanes that have the same member mask.
func bySet(mask uintptr, run exec) exec {
	return func(w *warp, m uint32) {
		v := view[uint32](w, mask)
		for m != 0 {
			first := v[lowest(m)]
			set := uint32(0)
			for left := m; left != 0; {
				l := lane(&left)
				set |= bit(v[l] == first) << l
			}
			if run(w, set); w.fault != nil {
				return
			}
			m &^= set
		}
	}
}

// buildShfl exchanges values between the lanes of a warp. Reading a lane that
// takes no part gives an undefined value on a GPU, and is a fault here.
func buildShfl(b *builder) exec {
	if !b.s.has("sync") {
		return nil
	}
	b.args(5)
	b.member(4)
	dst, p := b.arg(0), -1
	if dst.kind == opPair {
		p, _ = b.pred(&dst.list[1])
		dst = &dst.list[0]
	}
	d, src := b.dstOp(dst, tB32), b.src(1, tB32)
	lanes, clamp := b.src(2, tB32), b.src(3, tB32)
	mode := b.s.mods[1]
	switch mode {
	case "up", "down", "bfly", "idx":
	default:
		return nil
	}
	general := func(w *warp, m uint32) {
		v := *view[uint32](w, src)
		n, c, out := view[uint32](w, lanes), view[uint32](w, clamp), view[uint32](w, d)
		valid := uint32(0)
		for left := m; left != 0; {
			l := lane(&left)
			k, seg := int(n[l]&31), int(c[l]>>8&31)
			lim := int(c[l] & 31)
			lim = l&seg | lim&^seg
			from, ok := l, false
			switch mode {
			case "up":
				from = l - k
				ok = from >= lim
			case "down":
				from = l + k
				ok = from <= lim
			case "bfly":
				from = l ^ k
				ok = from <= lim
			case "idx":
				from = l&seg | k&^seg
				ok = from <= lim
			}
			if !ok {
				from = l
			}
			if m>>from&1 == 0 {
				w.fail(FaultIllegalOperand, l, "reads lane %d, which does not execute it", from)
				return
			}
			out[l] = v[from]
			valid |= bit(ok) << l
		}
		if p >= 0 {
			w.preds[p] = w.preds[p]&^m | valid
		}
	}
	k, c := b.arg(2), b.arg(3)
	if mode != "bfly" || k.kind != opImm || c.kind != opImm || c.imm != 31 || p >= 0 {
		return general
	}
	// The step of a reduction over a whole warp.
	step := int(k.imm & 31)
	return func(w *warp, m uint32) {
		if m != allLanes {
			general(w, m)
			return
		}
		v, out := *view[uint32](w, src), view[uint32](w, d)
		for l := range out {
			out[l] = v[(l^step)&31]
		}
	}
}

// buildVote is vote.sync: all, any, uni and ballot.
func buildVote(b *builder) exec {
	if !b.s.has("sync") {
		return nil
	}
	b.args(3)
	b.member(2)
	var src int
	var inv uint32
	if o := b.arg(1); o.kind == opImm {
		src, inv = int(b.sink[slotPred]), 0
		want := -bit(o.imm != 0)
		return b.vote(func(*warp) uint32 { return want })
	}
	src, inv = b.pred(b.arg(1))
	return b.vote(func(w *warp) uint32 { return w.preds[src] ^ inv })
}

func (b *builder) vote(value func(*warp) uint32) exec {
	if b.s.has("ballot") {
		d := b.dst(0, tB32)
		return func(w *warp, m uint32) {
			v := value(w) & m
			for left := m; left != 0; {
				view[uint32](w, d)[lane(&left)] = v
			}
		}
	}
	d, _ := b.pred(b.arg(0))
	all, any := b.s.has("all"), b.s.has("any")
	if !all && !any && !b.s.has("uni") {
		return nil
	}
	return func(w *warp, m uint32) {
		v := value(w) & m
		r := v == m
		switch {
		case any:
			r = v != 0
		case !all:
			r = v == m || v == 0
		}
		w.preds[d] = w.preds[d]&^m | -bit(r)&m
	}
}

// buildMatch finds the lanes that hold the same value.
func buildMatch(b *builder) exec {
	b.args(3)
	b.member(2)
	t, all := b.s.typ(), b.s.has("all")
	dst, p := b.arg(0), -1
	if dst.kind == opPair {
		p, _ = b.pred(&dst.list[1])
		dst = &dst.list[0]
	}
	d := b.dstOp(dst, tB32)
	src := part{b.src(1, t), t.wide()}
	return func(w *warp, m uint32) {
		var v [lanesPerWarp]uint64
		for left := m; left != 0; {
			l := lane(&left)
			v[l] = src.get(w, l)
		}
		for left := m; left != 0; {
			l := lane(&left)
			same := uint32(0)
			for others := m; others != 0; {
				o := lane(&others)
				same |= bit(v[o] == v[l]) << o
			}
			if all {
				if same != m {
					same = 0
				}
				if p >= 0 {
					w.preds[p] = w.preds[p]&^(1<<l) | bit(same != 0)<<l
				}
			}
			view[uint32](w, d)[l] = same
		}
	}
}

// buildRedux reduces a value over the lanes of a warp.
func buildRedux(b *builder) exec {
	b.args(3)
	b.member(2)
	t := b.s.typ()
	if t.size() != 4 || t.float() {
		return nil
	}
	d, src := b.dst(0, t), b.src(1, t)
	var f func(x, y uint32) uint32
	switch {
	case b.s.has("add"):
		f = func(x, y uint32) uint32 { return x + y }
	case b.s.has("min"), b.s.has("max"):
		larger := b.s.has("max")
		f = func(x, y uint32) uint32 { return pick(x, y, larger) }
		if t.signed() {
			f = func(x, y uint32) uint32 { return uint32(pick(int32(x), int32(y), larger)) }
		}
	case b.s.has("and"):
		f = func(x, y uint32) uint32 { return x & y }
	case b.s.has("or"):
		f = func(x, y uint32) uint32 { return x | y }
	case b.s.has("xor"):
		f = func(x, y uint32) uint32 { return x ^ y }
	default:
		return nil
	}
	return func(w *warp, m uint32) {
		v := view[uint32](w, src)
		left := m
		r := v[lane(&left)]
		for left != 0 {
			r = f(r, v[lane(&left)])
		}
		for left = m; left != 0; {
			view[uint32](w, d)[lane(&left)] = r
		}
	}
}

func buildActivemask(b *builder) exec {
	b.args(1)
	d := b.dst(0, tB32)
	return func(w *warp, m uint32) {
		for left := m; left != 0; {
			view[uint32](w, d)[lane(&left)] = m
		}
	}
}

// buildElect chooses the lowest lane of the member mask.
func buildElect(b *builder) exec {
	b.args(2)
	b.member(1)
	dst := b.arg(0)
	if dst.kind != opPair {
		return nil
	}
	d := b.dstOp(&dst.list[0], tB32)
	p, _ := b.pred(&dst.list[1])
	return func(w *warp, m uint32) {
		first := bits.TrailingZeros32(m)
		for left := m; left != 0; {
			view[uint32](w, d)[lane(&left)] = uint32(first)
		}
		w.preds[p] = w.preds[p]&^m | 1<<first
	}
}
