package cpu

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
	"unsafe"

	"infer/runtime/tensor"
)

// Dense panels hold BF16 weights in 12 bits and lose nothing: a weight is its low
// byte, which has an exponent's last bit and the mantissa, and a code of 4 bits for
// its high byte. Of those a panel's weights have few: two signs, and the exponents
// from its largest down. The codes are for the 16 highest; weights that are smaller,
// a few of 10,000, are listed. In a panel with many zeros the code of the two
// lowest of these is for zeros. Memory is what limits few sequences: a quarter less
// of it is up to a third more tokens. (Exponents in few bits: Zhang et al., "70%
// Size, 100% Accuracy", arXiv:2504.11651.)
//
// A panel is 64 bytes, the first 16 of them the codes' high bytes, and groups of
// 32 k in 4 quarters of 128 weights:
//
//	[64] codes: low 4 bits of the first 64, high 4 bits of the others
//	[64] low bytes of the first 64 weights
//	[64] low bytes of the others
//
// 64 weights are 128 bytes of a BF16 panel; their bytes lie as VPACKUSWB packs the
// two halves: in 16 bytes 8 of the first half and 8 of the second.
//
// Kernels for few rows put the weights together in registers, and others of them a
// group in which some are listed. For more rows panels are unpacked and multiplied
// as BF16, which has the same bits.
const (
	denseGroup   = 768
	denseQuarter = denseGroup / 4
	denseHead    = alignment
	densePanel   = lanes * groupLen * 2 // of a group as BF16
	// denseMost is the share of a panel's weights that may be listed.
	denseMost = 1. / 64
	denseWide = 2 // panels that a kernel takes at most
)

// rare is a weight that a dense panel has no code for.
type rare struct {
	at   uint32 // in the BF16 panel, in weights
	flip uint16 // bits in which it is not what the dense panel says
}

// group is the group of 32 k that it is in.
func (r rare) group() int { return int(r.at) / (lanes * groupLen) }

// denseArgs are panels to unpack, or one to pack. The assembly knows the offsets.
type denseArgs struct {
	panel  unsafe.Pointer // 0: BF16, from the first group
	ldp    uintptr        // 8: bytes from panel to panel
	dense  unsafe.Pointer // 16: the first group
	head   unsafe.Pointer // 24: the panel's
	ldd    uintptr        // 32: bytes from dense panel to dense panel
	groups uintptr        // 40: ≥ 1
	panels uintptr        // 48: ≥ 1
	base   uintptr        // 56: pack: high bytes base+1..base+7 have codes 1..7, with sign 8 more
	zero   uintptr        // 64: pack: what has code 0
	missed unsafe.Pointer // 72: pack: [groups][4][4]uint32, a bit for each weight without a code
}

// denseSet packs and unpacks with one instruction set.
type denseSet struct {
	// top is the largest high byte of a BF16 panel's groups, without sign.
	top          func(panel *byte, groups int) int
	pack, unpack func(*denseArgs)
}

// panel packs a BF16 panel and lists what has no code; false: that is too much.
// missed has room for 16 numbers of each group.
func (s *denseSet) panel(dst, panel []byte, missed []uint32) (list []rare, ok bool) {
	groups := len(panel) / densePanel
	base := max(0, s.top(&panel[0], groups)-7)
	n := s.withZero(dst, panel, missed, base, base)
	if n > groups && base > 0 {
		if zeros := s.withZero(dst, panel, missed, base, 0); zeros < n {
			n = zeros
		} else {
			n = s.withZero(dst, panel, missed, base, base)
		}
	}
	if float64(n) > denseMost*float64(len(panel)/2) {
		return nil, false
	}
	if n == 0 {
		return nil, true
	}
	list = make([]rare, 0, n)
	for i, m := range missed {
		for ; m != 0; m &= m - 1 {
			at := i/4*128 + denseWord(i%4, bits.TrailingZeros32(m))
			high := panel[2*at+1]
			list = append(list, rare{uint32(at), uint16(high^dst[high>>7*8]) << 8}) // it has code 0, and its sign
		}
	}
	slices.SortFunc(list, func(a, b rare) int { return cmp.Compare(a.at, b.at) })
	return list, true
}

// withZero packs with one set of codes and returns how many weights have none.
func (s *denseSet) withZero(dst, panel []byte, missed []uint32, base, zero int) (n int) {
	clear(dst[:denseHead])
	for c := range 8 {
		high := base + c
		if c == 0 {
			high = zero
		}
		dst[c], dst[8+c] = byte(high), byte(0x80|high)
	}
	s.pack(&denseArgs{
		panel: unsafe.Pointer(&panel[0]), dense: unsafe.Pointer(&dst[denseHead]),
		groups: uintptr(len(panel) / densePanel), base: uintptr(base), zero: uintptr(zero), missed: unsafe.Pointer(&missed[0]),
	})
	for _, m := range missed {
		n += bits.OnesCount32(m)
	}
	return n
}

// denseWord is which of a quarter's 128 weights has byte b of 32 bytes: the first
// half (j = 0) or the second one of the first 64, of the others (2, 3).
func denseWord(j, b int) int {
	return j/2*64 + b%16/8*32 + j%2*16 + b/16*8 + b%8
}

// denseRow reads output n of a dense weight back, widened.
func (w *weight) denseRow(dst []float32, panel []byte, n int) {
	// Of 32 words of an output two each lie together.
	lane := n % lanes
	byteOf := lane/8*32 + lane%8/4*16 + lane%4*2
	for k := range dst {
		q, pair := k/8, k/2%4
		at := byteOf + pair%2*8 + k%2
		d := panel[denseHead+q*denseQuarter:][:denseQuarter]
		high := panel[d[at]>>(pair/2*4)&15]
		dst[k] = tensor.BF16ToF32(uint16(high)<<8 | uint16(d[64+pair/2*64+at]))
	}
	for _, r := range w.listed(n / lanes) {
		if at := int(r.at); at%(2*lanes)/2 == lane {
			v := &dst[at/(2*lanes)*2+at%2]
			*v = math.Float32frombits(math.Float32bits(*v) ^ uint32(r.flip)<<16)
		}
	}
}

// listed is what is listed of a panel, in its order.
func (w *weight) listed(panel int) []rare {
	return w.rare[w.rareAt[w.first+panel]:w.rareAt[w.first+panel+1]]
}

// denseRest is what is listed of a weight that is being packed.
type denseRest struct {
	tooMuch atomic.Bool
	panels  [][]rare
}

// dense packs a panel out of its rows as they are stored.
func (t *packTask) dense(w *worker, panel, rows []byte, p int) {
	groups := t.w.cols / groupLen
	w.panels = grow(&w.panels, groups*densePanel)
	w.missed = grow(&w.missed, groups*16)
	t.path.pack.panel(w.panels, rows, fmtBF16)
	list, ok := t.path.dense.panel(panel, w.panels, w.missed)
	if !ok {
		t.rest.tooMuch.Store(true)
	}
	t.rest.panels[p] = list
}

// list takes what is listed of each panel.
func (w *weight) list(panels [][]rare) {
	w.rareAt = make([]uint32, w.panels()+1)
	for p := range w.panels() {
		w.rareAt[p+1] = w.rareAt[p] + uint32(len(panels[p]))
	}
	w.rare = slices.Concat(panels...)
}

// fewDense is block of no more rows than a kernel takes.
func (t *matMul) fewDense(w *worker, dst []float32, ldd, row, n, lo, hi int, add bool) {
	a, mm, depth, size := &w.mm, t.path.mm, groupsOf(t.w.cols), t.w.panelBytes()
	step := mm.widest(fmtDense, n)
	a.ldx, a.ldd = uintptr(t.x.ld), uintptr(ldd)*4
	for ; lo < hi; lo += step {
		p := min(step, hi-lo)
		ahead := uintptr(size * p) // the next panels
		if ahead > nextBytes {
			ahead = farAhead
		}
		a.dst, a.add = unsafe.Pointer(&dst[0]), 0
		if add {
			a.add = 1
		}
		var lists [denseWide][]rare
		for i := range p {
			lists[i] = t.w.listed(lo + i)
		}
		for k := 0; k < depth; {
			next := depth // group with a weight that is listed
			for _, l := range lists[:p] {
				if len(l) > 0 {
					next = min(next, l[0].group())
				}
			}
			a.x = unsafe.Add(t.x.rows, row*t.x.ld+k*actDots)
			a.unit, a.ldw, a.ahead = t.w.at(lo), uintptr(size), ahead
			a.w = unsafe.Add(a.unit, denseHead+k*denseGroup)
			if next > k {
				a.k = uintptr(next - k)
				mm.mulTile(a, fmtDense, n, p)
			} else {
				a.k, a.flip = 1, unsafe.Pointer(&w.flip)
				w.flipGroup(k, lists[:p])
				mm.mulTile(a, fmtFlip, n, p)
				w.flipGroup(k, lists[:p]) // 0 again
				for i := range lists[:p] {
					for len(lists[i]) > 0 && lists[i][0].group() == k {
						lists[i] = lists[i][1:]
					}
				}
			}
			k += int(a.k)
			a.add = 1
		}
		if lo+step < hi {
			dst = dst[step*lanes:]
		}
	}
}

// flipGroup flips what is listed of a group; the lists begin there.
func (w *worker) flipGroup(k int, lists [][]rare) {
	for i, l := range lists {
		for ; len(l) > 0 && l[0].group() == k; l = l[1:] {
			w.flip[i][l[0].at%(lanes*groupLen)] ^= l[0].flip
		}
	}
}

// unpack points the kernels' operands, groups of dense panels from lo and from, to
// the same unpacked. The kernels ask for the next panels meanwhile: these lie as far
// apart as those, or, if whole, one after the other (so that they ask for a third
// more).
func (t *matMul) unpack(w *worker, lo, panels, from int) {
	m, a := &w.mm, &w.dense
	*a = denseArgs{ldp: max(m.k*densePanel, m.ldw), dense: m.w, head: m.unit, ldd: m.ldw, groups: m.k, panels: uintptr(panels)}
	w.panels = grow(&w.panels, panels*int(a.ldp))
	a.panel = unsafe.Pointer(&w.panels[0])
	t.path.dense.unpack(a)
	for p := range panels {
		list := t.w.listed(lo + p)
		first, _ := slices.BinarySearchFunc(list, from, func(r rare, group int) int { return cmp.Compare(r.group(), group) })
		for _, r := range list[first:] {
			if r.group() >= from+int(m.k) {
				break
			}
			*(*uint16)(unsafe.Add(a.panel, p*int(a.ldp)+2*int(r.at)-from*densePanel)) ^= r.flip
		}
	}
	m.ahead += uintptr(m.w) - uintptr(a.panel)
	m.w, m.ldw, m.unit = a.panel, a.ldp, nil
	*a = denseArgs{} // keep no view of memory that may be freed
}
