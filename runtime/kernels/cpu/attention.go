package cpu

import (
	"math"
	"sync/atomic"
	"unsafe"

	"infer/runtime/kernels"
)

// A context is cut into parts of partLen positions, from position 0. Each
// part's softmax is made by itself and then merged into the sum of those
// before it, always in this order: so it does not matter whether one worker
// goes through all parts or several share them.
const (
	partLen   = 256
	partPages = partLen / kernels.BlockSize
	// tileRows rows of Q (tokens × heads that share a K/V head) go through the
	// pages together.
	tileRows = 32
	// pagesAhead pages before they are wanted K and V are fetched: a head's part
	// of a page is too short for the processor to see that it is read in order.
	pagesAhead = 4
	// pagesOnce pages of K are multiplied at a time, as panels that are as far apart
	// as the pages happen to be.
	pagesOnce = 2
	// maxSplitBytes bounds the memory for the parts' results when a context is
	// shared by several workers.
	maxSplitBytes = 64 << 20
)

// attnState is the softmax of some rows over some parts: Σ e^(s−top)·v, not
// yet divided by sum = Σ e^(s−top). rows × dim, rows, rows. A row that has
// seen no position has sum 0.
type attnState struct {
	acc, top, sum []float32
}

func (s *attnState) grow(rows, dim int) {
	s.acc = grow(&s.acc, rows*dim)
	s.top = grow(&s.top, rows)
	s.sum = grow(&s.sum, rows)
}

// tile is some tokens of one sequence, whose rows of Q are worked on together.
type tile struct {
	seq    int32
	lo, hi int32 // rows of the batch
	part   int32 // first part that they see
	parts  int32 // parts that they see
	split  int32 // items of the tiles before, when parts are items
}

// attention is kernels.AttentionArgs as a task. An item is a tile and a K/V
// head, or, when those are few, also a part of the context.
type attention struct {
	path   *path
	batch  *kernels.Batch
	pages  pages
	format int // of the kernels
	dst    []float32
	qkv    []float32
	window int
	scale  float32
	ldAcc  int // Dim, rounded up to whole panels

	tiles []tile
	split bool
	parts []float32      // when split: [item][group × (ldAcc + 2)]
	left  []atomic.Int32 // when split: parts to do, by tile and head
}

func (o *ops) Attention(a kernels.AttentionArgs) {
	h, rows := a.Heads, len(o.batch.Positions)
	if !(isMatrix(a.Dst, rows, h.Q*h.Dim) && isMatrix(a.QKV, rows, h.Cols()) && a.Window >= 0) {
		mismatch("Attention", a.Dst, a.QKV)
	}
	t := &o.attention
	t.path, t.batch, t.pages = o.path, o.batch, newPages("Attention", a.KV, h)
	t.format = t.pages.format
	if t.format == fmtBF16 && o.path.mm.kernels[fmtPairs][1][0] != nil {
		t.format = fmtPairs
	}
	t.dst, t.qkv, t.window, t.scale = floats(a.Dst), floats(a.QKV), a.Window, a.Scale
	t.ldAcc = (h.Dim + lanes - 1) / lanes * lanes
	items, one := t.plan(len(o.pool.workers))
	grain := 1
	if work := one * h.Dim * (h.Q / h.KV); work > 0 { // multiplications in an item, about
		grain = max(1, 4*rowGrain/work)
	}
	o.pool.run(t, items, grain)
	t.batch, t.pages, t.dst, t.qkv = nil, pages{}, nil, nil
}

// plan makes the tiles, and decides what an item is; one is the positions that
// an item goes through, at most.
func (t *attention) plan(workers int) (items, one int) {
	h, b := t.pages.heads, t.batch
	tokens := int32(max(1, tileRows/(h.Q/h.KV)))
	t.tiles = t.tiles[:0]
	split := int32(0)
	for s := range b.BlockTables {
		for lo := b.Starts[s]; lo < b.Starts[s+1]; lo += tokens {
			hi := min(lo+tokens, b.Starts[s+1])
			first, last := 0, int(b.Positions[hi-1])
			if t.window > 0 {
				first = max(0, int(b.Positions[lo])-t.window+1)
			}
			p := int32(first / partLen)
			n := int32(last/partLen) - p + 1
			t.tiles = append(t.tiles, tile{seq: int32(s), lo: lo, hi: hi, part: p, parts: n, split: split})
			split += n * int32(h.KV)
			one = max(one, (last-first+1)*int(hi-lo))
		}
	}
	items = len(t.tiles) * h.KV
	size := int(tokens) * h.Q / h.KV * (t.ldAcc + 2)
	t.split = workers > 1 && items < 4*workers && int(split) > items && int(split)*size*4 <= maxSplitBytes
	if !t.split {
		return items, one
	}
	t.parts = grow(&t.parts, int(split)*size)
	t.left = grow(&t.left, items)
	for i := range t.left {
		t.left[i].Store(t.tiles[i/h.KV].parts)
	}
	return int(split), min(one, partLen*int(tokens))
}

func (t *attention) run(w *worker, lo, hi int) {
	kv := t.pages.heads.KV
	for i := lo; i < hi; i++ {
		if !t.split {
			t.whole(w, &t.tiles[i/kv], i%kv)
			continue
		}
		// The tile that item i is of: there are few.
		j := len(t.tiles) - 1
		for int(t.tiles[j].split) > i {
			j--
		}
		tl := &t.tiles[j]
		head, part := (i-int(tl.split))/int(tl.parts), (i-int(tl.split))%int(tl.parts)
		s := t.stored(tl, head, part)
		t.queries(w, tl, head)
		t.onePart(w, tl, head, int(tl.part)+part, &s)
		if t.left[j*kv+head].Add(-1) > 0 {
			continue
		}
		// The last one of this tile and head puts the parts together.
		sum := t.stored(tl, head, 0)
		for p := 1; p < int(tl.parts); p++ {
			s := t.stored(tl, head, p)
			t.merge(&sum, &s, len(sum.sum))
		}
		t.finish(tl, head, &sum)
	}
}

// stored is where a part's result is kept.
func (t *attention) stored(tl *tile, head, part int) attnState {
	g := t.pages.heads.Q / t.pages.heads.KV
	size := max(1, tileRows/g) * g * (t.ldAcc + 2)
	m := t.parts[(int(tl.split)+head*int(tl.parts)+part)*size:][:size]
	n := int(tl.hi-tl.lo) * g
	return attnState{acc: m[:n*t.ldAcc], top: m[n*t.ldAcc:][:n], sum: m[n*(t.ldAcc+1):][:n]}
}

// whole does all parts of a tile, one after the other.
func (t *attention) whole(w *worker, tl *tile, head int) {
	n := t.queries(w, tl, head)
	w.sum.grow(n, t.ldAcc)
	t.onePart(w, tl, head, int(tl.part), &w.sum)
	for p := 1; p < int(tl.parts); p++ {
		w.part.grow(n, t.ldAcc)
		t.onePart(w, tl, head, int(tl.part)+p, &w.part)
		t.merge(&w.sum, &w.part, n)
	}
	t.finish(tl, head, &w.sum)
}

// queries copies the tile's rows of Q for one K/V head, scaled, to w.q: token
// after token, the heads that share the K/V head side by side.
func (t *attention) queries(w *worker, tl *tile, head int) (rows int) {
	h := t.pages.heads
	g := h.Q / h.KV
	rows = int(tl.hi-tl.lo) * g
	q := grow(&w.q, (rows*h.Dim+groupLen-1)/groupLen*groupLen)
	w.q = q
	for r := tl.lo; r < tl.hi; r++ {
		for _, x := range t.qkv[int(r)*h.Cols()+head*g*h.Dim:][:g*h.Dim] {
			q[0] = x * t.scale
			q = q[1:]
		}
	}
	return rows
}

// onePart is the softmax of the queries in w.q over one part.
func (t *attention) onePart(w *worker, tl *tile, head, part int, out *attnState) {
	h, a, mm := t.pages.heads, &w.mm, t.path.mm
	g := h.Q / h.KV
	rows := int(tl.hi-tl.lo) * g
	// Positions from..to of the part are seen by some row; all are written.
	base := part * partLen
	from, to := 0, min(partLen, int(t.batch.Positions[tl.hi-1])+1-base)
	if t.window > 0 {
		from = max(0, int(t.batch.Positions[tl.lo])-t.window+1-base)
	}
	p0, p1 := from/kernels.BlockSize, (to+kernels.BlockSize-1)/kernels.BlockSize
	table := t.batch.BlockTables[tl.seq][part*partPages:]
	size := t.pages.size()
	// page is where the head's part of a page is, or of the last one.
	page := func(p int) uintptr { return uintptr((int(table[min(p, p1-1)])*h.KV + head) * size) }

	scores := grow(&w.scores, rows*partLen)
	w.scores = scores
	x := unsafe.Pointer(&w.q[0])
	a.ldx, a.ldd, a.k, a.add = uintptr(h.Dim)*4, partLen*4, uintptr(h.Dim), 0
	a.step = uintptr(panelStep[t.pages.format])
	if t.format == fmtPairs {
		w.halves = grow(&w.halves, 2*max(len(w.q), len(scores)))
		x = unsafe.Pointer(&w.halves[0])
		t.path.quant.round(&w.halves[0], &w.q[0], len(w.q)/groupLen)
		a.ldx, a.k = a.ldx/2, a.k/2
	}
	for p := p0; p < p1; p += pagesOnce {
		a.x, a.dst = x, unsafe.Pointer(&scores[p*kernels.BlockSize])
		a.w, a.ldw = unsafe.Pointer(&t.pages.k[page(p)]), page(p+1)-page(p)
		later := page(p + pagesAhead)
		if p+pagesAhead >= p1 {
			later = uintptr(unsafe.Pointer(&t.pages.v[0])) - uintptr(unsafe.Pointer(&t.pages.k[0])) + page(p0+p+pagesAhead-p1)
		}
		a.ahead = later - page(p)
		mm.mul(a, t.format, rows, min(pagesOnce, p1-p))
	}
	if t.pages.format == fmtI8 {
		t.scalePages(w, t.pages.k, table[p0:p1], head, p0, rows)
	}

	for r := range rows {
		pos := int(t.batch.Positions[int(tl.lo)+r/g]) - base
		lo, hi := 0, min(pos+1, partLen)
		if t.window > 0 {
			lo = max(0, pos-t.window+1)
		}
		s := scores[r*partLen:][:partLen]
		if lo >= hi { // this row sees nothing of the part
			out.sum[r], out.top[r] = 0, float32(math.Inf(-1))
			clear(s[p0*kernels.BlockSize : p1*kernels.BlockSize])
			continue
		}
		out.top[r] = t.path.vec.max(s[lo:hi])
		out.sum[r] = t.path.vec.exps(s[lo:hi], out.top[r])
		clear(s[p0*kernels.BlockSize : lo])
		clear(s[hi:max(hi, p1*kernels.BlockSize)])
	}

	a.ldx, a.ldw, a.ldd = partLen*4, lanes*4, uintptr(t.ldAcc)*4
	a.step = uintptr(h.Dim) * 4 // a pair of positions in bf16, one in f32
	if t.pages.format == fmtI8 {
		t.scalePages(w, t.pages.v, table[p0:p1], head, p0, rows)
		a.ldw, a.step = lanes, uintptr(h.Dim)
	}
	x, position := unsafe.Pointer(&scores[0]), 4
	if t.format == fmtPairs {
		x, position = unsafe.Pointer(&w.halves[0]), 2
		a.ldx /= 2
		first, end := p0*kernels.BlockSize/groupLen, (p1*kernels.BlockSize+groupLen-1)/groupLen
		for at := first * groupLen; at < len(scores); at += partLen {
			t.path.quant.round(&w.halves[2*at], &scores[at], end-first)
		}
	}
	for p := p0; p < p1; p++ {
		a.x, a.dst = unsafe.Add(x, p*kernels.BlockSize*position), unsafe.Pointer(&out.acc[0])
		a.w = unsafe.Pointer(&t.pages.v[page(p)])
		a.ahead = page(p+pagesAhead) - page(p)
		a.k = uintptr(min(kernels.BlockSize, to-p*kernels.BlockSize))
		if t.format == fmtPairs {
			a.k = (a.k + 1) / 2 // the last position's partner has probability and V 0
		}
		mm.mul(a, t.format, rows, t.ldAcc/lanes)
		a.add = 1
	}
}

// scalePages multiplies scores by the scales of pages: K's make scores of sums, V's
// turn probabilities into what the integers are multiplied by.
func (t *attention) scalePages(w *worker, kv []byte, table []int32, head, page, rows int) {
	size := t.pages.size()
	for i, b := range table {
		f := t.pages.scales(kv[(int(b)*t.pages.heads.KV+head)*size:][:size])
		for r := range rows {
			s := &w.scores[r*partLen+(page+i)*kernels.BlockSize]
			t.path.vec.scaleMul(s, s, &f[0], 1, kernels.BlockSize)
		}
	}
}

// merge adds a later part to sum.
func (t *attention) merge(sum, part *attnState, rows int) {
	n := t.ldAcc
	for r := range rows {
		s := part.sum[r]
		if s == 0 {
			continue
		}
		a, b, top := float32(0), float32(1), part.top[r]
		if sum.sum[r] != 0 {
			top = max(sum.top[r], part.top[r])
			a, b = exp32(sum.top[r]-top), exp32(part.top[r]-top)
		}
		t.path.vec.mix(sum.acc[r*n:][:n], part.acc[r*n:][:n], a, b)
		sum.sum[r] = sum.sum[r]*a + s*b
		sum.top[r] = top
	}
}

// finish divides and writes the tile's rows of the result.
func (t *attention) finish(tl *tile, head int, s *attnState) {
	h := t.pages.heads
	g := h.Q / h.KV
	for r := range int(tl.hi-tl.lo) * g {
		d := t.dst[((int(tl.lo)+r/g)*h.Q+head*g+r%g)*h.Dim:][:h.Dim]
		f := 1 / s.sum[r]
		for i, x := range s.acc[r*t.ldAcc:][:h.Dim] {
			d[i] = x * f
		}
	}
}
