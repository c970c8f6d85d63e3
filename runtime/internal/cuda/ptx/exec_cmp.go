package ptx

type cmpOp uint8

const (
	cmpNone cmpOp = iota
	cmpEQ
	cmpNE
	cmpLT
	cmpLE
	cmpGT
	cmpGE
	cmpNum // neither is NaN
	cmpNan // one is NaN
)

// cmpNames maps a modifier to its comparison; unordered ones (NaN gives true)
// are marked.
var cmpNames = map[string]struct {
	op        cmpOp
	unordered bool
}{
	"eq": {cmpEQ, false}, "ne": {cmpNE, false}, "lt": {cmpLT, false}, "le": {cmpLE, false}, "gt": {cmpGT, false}, "ge": {cmpGE, false},
	"lo": {cmpLT, false}, "ls": {cmpLE, false}, "hi": {cmpGT, false}, "hs": {cmpGE, false},
	"equ": {cmpEQ, true}, "neu": {cmpNE, true}, "ltu": {cmpLT, true}, "leu": {cmpLE, true}, "gtu": {cmpGT, true}, "geu": {cmpGE, true},
	"num": {cmpNum, false}, "nan": {cmpNan, true},
}

// comparison builds the function that gives the lanes for which the comparison
// of operands i and i+1 holds.
func (b *builder) comparison(i int, t typ) func(w *warp, m uint32) uint32 {
	var op cmpOp
	var unordered bool
	for _, m := range b.s.mods {
		if c, ok := cmpNames[m]; ok {
			op, unordered = c.op, c.unordered
			break
		}
	}
	if op == cmpNone {
		b.fail("no comparison that is known")
	}
	x, y := b.src(i, t), b.src(i+1, t)
	switch t {
	case tF32:
		if b.s.has("ftz") {
			return func(w *warp, m uint32) uint32 {
				p, q := *view[float32](w, x), *view[float32](w, y)
				for l := range p {
					p[l], q[l] = ftz32(p[l]), ftz32(q[l])
				}
				return compareFloats(&p, &q, m, op, unordered)
			}
		}
		return func(w *warp, m uint32) uint32 {
			return compareFloats(view[float32](w, x), view[float32](w, y), m, op, unordered)
		}
	case tF64:
		return func(w *warp, m uint32) uint32 {
			return compareFloats(view[float64](w, x), view[float64](w, y), m, op, unordered)
		}
	case tF16, tBF16:
		widen := f16ToF32
		if t == tBF16 {
			widen = bf16ToF32
		}
		return func(w *warp, m uint32) uint32 {
			var p, q [lanesPerWarp]float32
			for l := range p {
				p[l], q[l] = widen(view[uint32](w, x)[l]&0xffff), widen(view[uint32](w, y)[l]&0xffff)
			}
			return compareFloats(&p, &q, m, op, unordered)
		}
	case tU64, tB64:
		return func(w *warp, m uint32) uint32 {
			return compareLanes(view[uint64](w, x), view[uint64](w, y), m, op)
		}
	case tS64:
		return func(w *warp, m uint32) uint32 {
			return compareLanes(view[int64](w, x), view[int64](w, y), m, op)
		}
	case tS32:
		return func(w *warp, m uint32) uint32 {
			return compareLanes(view[int32](w, x), view[int32](w, y), m, op)
		}
	case tU32, tB32:
		return func(w *warp, m uint32) uint32 {
			return compareLanes(view[uint32](w, x), view[uint32](w, y), m, op)
		}
	case tU16, tB16, tS16:
		ext := word(t)
		return func(w *warp, m uint32) uint32 {
			var p, q [lanesPerWarp]int32
			for l := range p {
				p[l], q[l] = int32(ext(view[uint32](w, x)[l])), int32(ext(view[uint32](w, y)[l]))
			}
			return compareLanes(&p, &q, m, op)
		}
	}
	b.fail("values of type %s are not compared", t)
	return nil
}

func compareFloats[T float32 | float64](x, y *[lanesPerWarp]T, m uint32, op cmpOp, unordered bool) uint32 {
	switch op {
	case cmpNum:
		return m &^ nans(x, y, m)
	case cmpNan:
		return nans(x, y, m)
	case cmpNE:
		// Go's != is true for NaN; PTX's ne is not.
		r := compareLanes(x, y, m, op)
		if !unordered && r != 0 {
			r &^= nans(x, y, r)
		}
		return r
	}
	r := compareLanes(x, y, m, op)
	if unordered && r != m {
		r |= nans(x, y, m)
	}
	return r
}

// boolOp is how setp and set combine the comparison with a predicate.
func (b *builder) boolOp() string {
	for _, m := range b.s.mods {
		if m == "and" || m == "or" || m == "xor" {
			return m
		}
	}
	return ""
}

func combine(op string, r, c uint32) uint32 {
	switch op {
	case "and":
		return r & c
	case "or":
		return r | c
	case "xor":
		return r ^ c
	}
	return r
}

// buildSetp writes a comparison, and its opposite, to predicates.
func buildSetp(b *builder) exec {
	t := b.s.typ()
	if t == tF16x2 || t == tBF16x2 {
		return buildSetp2(b, t)
	}
	op := b.boolOp()
	dst := b.arg(0)
	second := -1
	var d int
	if dst.kind == opPair {
		d, _ = b.pred(&dst.list[0])
		second, _ = b.pred(&dst.list[1])
	} else {
		d, _ = b.pred(dst)
	}
	cmp := b.comparison(1, t)
	if op == "" {
		b.args(3)
		if second < 0 {
			return func(w *warp, m uint32) { w.preds[d] = w.preds[d]&^m | cmp(w, m) }
		}
		return func(w *warp, m uint32) {
			r := cmp(w, m)
			w.preds[d] = w.preds[d]&^m | r
			w.preds[second] = w.preds[second]&^m | ^r&m
		}
	}
	b.args(4)
	c, inv := b.pred(b.arg(3))
	return func(w *warp, m uint32) {
		r, with := cmp(w, m), w.preds[c]^inv
		w.preds[d] = w.preds[d]&^m | combine(op, r, with)&m
		if second >= 0 {
			w.preds[second] = w.preds[second]&^m | combine(op, ^r, with)&m
		}
	}
}

// buildSetp2 compares pairs of halves: one predicate for each.
func buildSetp2(b *builder, t typ) exec {
	dst := b.arg(0)
	if dst.kind != opPair || b.boolOp() != "" {
		return nil
	}
	b.args(3)
	lo, _ := b.pred(&dst.list[0])
	hi, _ := b.pred(&dst.list[1])
	var name string
	for _, m := range b.s.mods {
		if _, ok := cmpNames[m]; ok {
			name = m
			break
		}
	}
	c, ok := cmpNames[name]
	if !ok {
		return nil
	}
	x, y := b.src(1, t), b.src(2, t)
	widen := f16ToF32
	if t == tBF16x2 {
		widen = bf16ToF32
	}
	return func(w *warp, m uint32) {
		var p, q [2][lanesPerWarp]float32
		for l := range p[0] {
			a, b := view[uint32](w, x)[l], view[uint32](w, y)[l]
			p[0][l], p[1][l] = widen(a&0xffff), widen(a>>16)
			q[0][l], q[1][l] = widen(b&0xffff), widen(b>>16)
		}
		w.preds[lo] = w.preds[lo]&^m | compareFloats(&p[0], &q[0], m, c.op, c.unordered)
		w.preds[hi] = w.preds[hi]&^m | compareFloats(&p[1], &q[1], m, c.op, c.unordered)
	}
}

// buildSet writes a comparison as a number: all ones, or 1.0 for a float.
func buildSet(b *builder) exec {
	ts := b.s.typs()
	if len(ts) != 2 {
		return nil
	}
	op := b.boolOp()
	d := b.dst(0, ts[0])
	cmp := b.comparison(1, ts[1])
	yes := uint32(allLanes)
	switch ts[0] {
	case tF32:
		yes = 0x3f800000
	case tF16:
		yes = 0x3c00
	case tBF16:
		yes = 0x3f80
	case tU16, tS16:
		yes = 0xffff
	case tU32, tS32:
	default:
		return nil
	}
	c, inv := 0, uint32(0)
	if op != "" {
		b.args(4)
		c, inv = b.pred(b.arg(3))
	} else {
		b.args(3)
	}
	return func(w *warp, m uint32) {
		r := cmp(w, m)
		if op != "" {
			r = combine(op, r, w.preds[c]^inv)
		}
		out := view[uint32](w, d)
		for left := m; left != 0; {
			l := lane(&left)
			out[l] = -(r >> l & 1) & yes
		}
	}
}
