package ptx

// buildMov copies a register, an address or a constant, and packs or unpacks
// vectors.
func buildMov(b *builder) exec {
	b.args(2)
	t := b.s.typ()
	dst, src := b.arg(0), b.arg(1)
	switch {
	case t == tPred:
		d, _ := b.pred(dst)
		if src.kind == opImm {
			v := -bit(src.imm != 0)
			return func(w *warp, m uint32) { w.preds[d] = w.preds[d]&^m | v&m }
		}
		s, inv := b.pred(src)
		return func(w *warp, m uint32) { w.preds[d] = w.preds[d]&^m | (w.preds[s]^inv)&m }
	case dst.kind == opVec:
		return b.unpack(dst.list, src, t)
	case src.kind == opVec:
		return b.pack(dst, src.list, t)
	case src.kind == opSpecial:
		if _, clock := clocks[src.name]; clock {
			d, wide := b.anyDst(dst, t)
			return func(w *warp, m uint32) {
				now := w.blk.now()
				for m != 0 {
					l := lane(&m)
					if wide {
						view[uint64](w, d)[l] = now
					} else {
						view[uint32](w, d)[l] = uint32(now)
					}
				}
			}
		}
		off, wide := b.anySrc(src, t)
		d, dwide := b.anyDst(dst, t)
		return convertLanes(d, dwide, off, wide)
	}
	if src.kind == opVar && !t.wide() { // the low half of an address
		return convertLanes(b.dst(0, t), false, b.symbol(src), true)
	}
	d, s := b.dst(0, t), b.src(1, t)
	if t.wide() {
		return opMove[uint64](d, s)
	}
	return opMove[uint32](d, s)
}

// now is a clock that only moves forward: it counts how often it was read.
func (b *blockRun) now() uint64 {
	b.ticks++
	return b.ticks * 16
}

// convertLanes copies between lanes of 32 and 64 bits, zero-extended.
func convertLanes(d uintptr, dwide bool, s uintptr, swide bool) exec {
	switch {
	case dwide && swide:
		return opMove[uint64](d, s)
	case dwide:
		return opWiden[uint64, uint32](d, s)
	case swide:
		return opWiden[uint32, uint64](d, s)
	}
	return opMove[uint32](d, s)
}

// unpack splits a register into equal parts, the lowest bits first.
func (b *builder) unpack(parts []operand, src *operand, t typ) exec {
	n := len(parts)
	if n != 2 && n != 4 {
		return nil
	}
	s := b.srcOp(src, t)
	width := 8 * t.size() / n
	type part struct {
		off  uintptr
		wide bool
	}
	pt := map[int]typ{32: tB32, 16: tB16, 8: tB8}[width]
	if pt == tNone {
		return nil
	}
	out := make([]part, n)
	for i := range parts {
		out[i].off, out[i].wide = b.anyDst(&parts[i], pt)
	}
	mask := uint64(1)<<width - 1
	return func(w *warp, m uint32) {
		for m != 0 {
			l := lane(&m)
			v := uint64(view[uint32](w, s)[l])
			if t.wide() {
				v = view[uint64](w, s)[l]
			}
			for i, p := range out {
				x := v >> (i * width) & mask
				if p.wide {
					view[uint64](w, p.off)[l] = x
				} else {
					view[uint32](w, p.off)[l] = uint32(x)
				}
			}
		}
	}
}

// pack joins equal parts into a register.
func (b *builder) pack(dst *operand, parts []operand, t typ) exec {
	n := len(parts)
	if n != 2 && n != 4 {
		return nil
	}
	d := b.dstOp(dst, t)
	width := 8 * t.size() / n
	pt := map[int]typ{32: tB32, 16: tB16, 8: tB8}[width]
	if pt == tNone {
		return nil
	}
	in := make([]uintptr, n)
	for i := range parts {
		in[i] = b.srcOp(&parts[i], pt)
	}
	mask := uint64(1)<<width - 1
	return func(w *warp, m uint32) {
		for m != 0 {
			l := lane(&m)
			v := uint64(0)
			for i, off := range in {
				v |= uint64(view[uint32](w, off)[l]) & mask << (i * width)
			}
			if t.wide() {
				view[uint64](w, d)[l] = v
			} else {
				view[uint32](w, d)[l] = uint32(v)
			}
		}
	}
}

func buildSelp(b *builder) exec {
	b.args(4)
	t := b.s.typ()
	d, x, y := b.dst(0, t), b.src(1, t), b.src(2, t)
	p, inv := b.pred(b.arg(3))
	if t.wide() {
		return selectLanes[uint64](d, x, y, p, inv)
	}
	return selectLanes[uint32](d, x, y, p, inv)
}

func selectLanes[T any](d, x, y uintptr, p int, inv uint32) exec {
	return func(w *warp, m uint32) {
		d, x, y := view[T](w, d), view[T](w, x), view[T](w, y)
		c := w.preds[p] ^ inv
		for left := m & c; left != 0; {
			l := lane(&left)
			d[l] = x[l]
		}
		for left := m &^ c; left != 0; {
			l := lane(&left)
			d[l] = y[l]
		}
	}
}

// buildSlct selects by the sign of its last operand.
func buildSlct(b *builder) exec {
	b.args(4)
	ts := b.s.typs()
	if len(ts) != 2 {
		return nil
	}
	t := ts[0]
	d, x, y, c := b.dst(0, t), b.src(1, t), b.src(2, t), b.src(3, ts[1])
	ftz := b.s.has("ftz")
	take := func(w *warp, l int) bool {
		if ts[1] == tF32 {
			v := view[float32](w, c)[l]
			if ftz {
				v = ftz32(v)
			}
			return v >= 0
		}
		return view[int32](w, c)[l] >= 0
	}
	return func(w *warp, m uint32) {
		for m != 0 {
			l := lane(&m)
			from := y
			if take(w, l) {
				from = x
			}
			if t.wide() {
				view[uint64](w, d)[l] = view[uint64](w, from)[l]
			} else {
				view[uint32](w, d)[l] = view[uint32](w, from)[l]
			}
		}
	}
}

// buildCvta converts between a space's own addresses and generic ones.
func buildCvta(b *builder) exec {
	b.args(2)
	t := b.s.typ()
	if !t.wide() {
		return nil
	}
	base := uint64(0)
	for _, m := range b.s.mods {
		switch spaceNames[m] {
		case spShared:
			base = sharedWindow
		case spLocal:
			base = localWindow
		case spParam:
			base = paramWindow
		}
	}
	d, s := b.dst(0, t), b.src(1, t)
	if base == 0 {
		return opMove[uint64](d, s)
	}
	if b.s.has("to") {
		base = -base
	}
	return opAdd[uint64](d, s, b.constant(base, true))
}

// buildIsspacep tells whether a generic address lies in a space's window.
func buildIsspacep(b *builder) exec {
	b.args(2)
	d, _ := b.pred(b.arg(0))
	s := b.src(1, tU64)
	if len(b.s.mods) == 0 {
		return nil
	}
	sp, ok := spaceNames[b.s.mods[0]]
	if !ok {
		return nil
	}
	want := map[space]uint64{spShared: sharedWindow, spLocal: localWindow, spParam: paramWindow, spConst: staticWindow}[sp] >> windowShift
	return func(w *warp, m uint32) {
		a, r := view[uint64](w, s), uint32(0)
		for left := m; left != 0; {
			l := lane(&left)
			r |= bit(a[l]>>windowShift == want) << l
		}
		w.preds[d] = w.preds[d]&^m | r
	}
}

func buildNop(*builder) exec { return func(*warp, uint32) {} }

// buildPolicy makes a cache policy: a number nothing reads.
func buildPolicy(b *builder) exec {
	d := b.dst(0, tB64)
	return func(w *warp, m uint32) {
		for m != 0 {
			view[uint64](w, d)[lane(&m)] = 0
		}
	}
}

func buildTrap(b *builder) exec {
	b.in.kind = kMem
	return func(w *warp, m uint32) { w.fail(FaultTrap, lowest(m), "") }
}
