package cpu

import "unsafe"

// Formats of packed weights, indices of mmSet.
const (
	fmtBF16 = iota
	fmtF16
	fmtF32
	fmtQ8
	fmtQ4
	fmtI8    // of K/V pages only
	fmtTile  // BF16 panels and activations that come in two parts, see tiles.go
	fmtDots  // BF16 panels and activations of bfloat16, see dots.go
	fmtPairs // the same of K/V pages, whose pairs lie anywhere; k counts these
	fmtDense // dense panels and activations of bfloat16, see dense.go
	fmtFlip  // the same of a group in which some weights are listed
	numFormats
)

// lanes is the number of outputs in a panel.
const lanes = 16

// mmArgs are the operands of a kernel that multiplies rows × panels: for each
// row r, panel p and lane n
//
//	dst[r, 16p+n] (+)= Σ_k x[r, k] · w[p, k, n]
//
// one chain of fused multiply-adds with k ascending. A panel holds 16 outputs,
// k after k; in bf16 two k share a 32-bit word (the even one in the low half):
//
//	bf16   [k/2][16][2]   step = bytes from one pair of k to the next
//	f16    [k][16]        step = bytes from one k to the next
//	f32    [k][16]        step = bytes from one k to the next
//	i8     [k][16]        step = bytes from one k to the next
//
// The quantised formats count in groups of 32 k and have activations of
// integers, see quant.go; their chain begins with what dst holds. So do those
// for tiles and for dot products of bfloat16.
//
// The assembly knows the offsets of the fields.
type mmArgs struct {
	x     unsafe.Pointer // 0: float32
	ldx   uintptr        // 8: bytes from row to row
	w     unsafe.Pointer // 16
	ldw   uintptr        // 24: bytes from panel to panel
	dst   unsafe.Pointer // 32: float32
	ldd   uintptr        // 40: bytes from row to row
	k     uintptr        // 48: ≥ 0; of formats with groups as many, ≥ 1
	step  uintptr        // 56
	add   uintptr        // 64: 0 to overwrite dst, 1 to add to it
	ahead uintptr        // 72: bytes from the weights to those that will be wanted soon
	unit  unsafe.Pointer // 80: Q4: the panel's 16 units, float32; dense: its head
	rows  uintptr        // 88: for kernels that come in one shape
	drift uintptr        // 96: what ahead changes by for each two k, or group: below 0
	flip  unsafe.Pointer // 104: Flip: what is to be XORed with the group as BF16 has it, [panels][16][16][2]uint16
}

// mmSet is the kernels of one instruction set: kernels[format][rows][log2
// panels], nil where there is none. One panel is always there.
type mmSet struct {
	maxRows int
	kernels [numFormats][amxRows + 1][4]func(*mmArgs)
}

// most is the most rows that one kernel takes.
func (s *mmSet) most(format int) int {
	if format == fmtTile {
		return amxRows
	}
	return s.maxRows
}

// mul multiplies any number of rows and panels with a's operands. It changes
// x, w and dst of a, but never to where the operands are not: the garbage
// collector sees them.
//
// The rows come in tiles as equal as can be. Each of them asks for its share of
// the weights that lie ahead, so that memory is read all the time.
func (s *mmSet) mul(a *mmArgs, format, rows, panels int) {
	x, dst, most, ahead := a.x, a.dst, s.most(format), a.ahead
	tiles := (rows + most - 1) / most
	steps, size := a.k, a.step
	if !grouped(format) {
		steps, size = a.k/2, 2*size/uintptr(stepLen[format])
	}
	share := size / uintptr(tiles)
	a.drift = share - size
	for at, tile := 0, 0; at < rows; tile++ {
		r := (rows - at + tiles - tile - 1) / (tiles - tile)
		a.x = unsafe.Add(x, uintptr(at)*a.ldx)
		a.dst = unsafe.Add(dst, uintptr(at)*a.ldd)
		a.ahead = ahead + uintptr(tile)*steps*share
		s.mulTile(a, format, r, panels)
		at += r
	}
	a.drift = 0
}

// mulTile multiplies at most so many rows, the widest kernels first.
func (s *mmSet) mulTile(a *mmArgs, format, rows, panels int) {
	ks := &s.kernels[format][rows]
	w, dst, unit := a.w, a.dst, a.unit
	a.rows = uintptr(rows)
	l := len(ks) - 1
	for at := 0; at < panels; {
		for ks[l] == nil || at+1<<l > panels {
			l--
		}
		a.w = unsafe.Add(w, uintptr(at)*a.ldw)
		a.dst = unsafe.Add(dst, at*lanes*4)
		if unit != nil {
			a.unit = unsafe.Add(unit, uintptr(at)*a.ldw)
		}
		ks[l](a)
		at += 1 << l
	}
	a.w, a.dst, a.unit = w, dst, unit
}
