package cpu

import (
	"unsafe"

	"infer/runtime/kernels"
)

// Blocking of large products: a k chunk of a panel and of a tile's rows stay
// in the first cache while they are used, a block of rows in the second.
const (
	chunkK    = 512
	blockRows = 96
	// grainBytes of weights are taken at a time: a kernel call is short, but
	// the memory is read in long runs.
	grainBytes = 128 << 10
)

// matMul is kernels.MatMulArgs as a task over panels.
type matMul struct {
	mm   *mmSet
	w    *weight
	x    []float32
	dst  []float32
	bias []float32 // nil: none
	add  bool
	rows int // of x and dst
}

func (o *ops) MatMul(a kernels.MatMulArgs) {
	w := a.W.(*weight)
	rows := a.X.Shape.Dim(0)
	if !(isMatrix(a.Dst, rows, w.rows) && isMatrix(a.X, rows, w.cols) &&
		(a.Bias.IsNone() || isVector(a.Bias, w.rows))) {
		mismatch("MatMul", a.Dst, a.X, a.Bias)
	}
	t := &o.matMul
	*t = matMul{mm: o.path.mm, w: w, x: floats(a.X), dst: floats(a.Dst), bias: floats(a.Bias), add: a.Add, rows: rows}
	if rows == 0 {
		return
	}
	// Enough pieces that all are busy to the end; whole numbers of the widest
	// kernel's panels.
	n := w.panels()
	grain := min(grainBytes/w.panelBytes(), n/(4*len(o.pool.workers)))
	o.pool.run(t, n, max(8, grain&^7))
	*t = matMul{} // keep no view of memory that may be freed
}

// chunk is the length of the parts that the sum over k is cut into; it depends
// on the weight's shape alone.
func chunk(cols int) int {
	n := (cols + chunkK - 1) / chunkK
	return ((cols+n-1)/n + 1) &^ 1
}

func (t *matMul) run(w *worker, lo, hi int) {
	if hi == t.w.panels() && t.w.rows%lanes != 0 {
		hi--
		t.ragged(w)
	}
	if lo >= hi {
		return
	}
	for row := 0; row < t.rows; row += blockRows {
		n := min(blockRows, t.rows-row)
		if t.bias != nil {
			t.addBias(row, n, lo*lanes, hi*lanes)
		}
		t.block(&w.mm, t.dst[row*t.w.rows+lo*lanes:], t.w.rows, row, n, lo, hi, t.add || t.bias != nil)
	}
}

// block multiplies n rows from row by panels lo..hi into dst, whose rows are
// ldd elements apart.
func (t *matMul) block(a *mmArgs, dst []float32, ldd, row, n, lo, hi int, add bool) {
	cols := t.w.cols
	c := chunk(cols)
	// Few rows: the weights come from memory, in the order in which they lie.
	// Many: a chunk of the rows stays in the cache while the panels pass.
	step := hi - lo
	if n <= t.mm.maxRows {
		step = t.mm.widest(t.w.format, n)
	}
	a.ldx, a.ldd = uintptr(cols)*4, uintptr(ldd)*4
	a.ldw, a.step = uintptr(t.w.panelBytes()), uintptr(panelStep[t.w.format])
	a.ahead = 0
	for ; lo < hi; lo += step {
		p := min(step, hi-lo)
		for k := 0; k < cols; k += c {
			a.k, a.add = uintptr(min(c, cols-k)), 1
			if k == 0 && !add {
				a.add = 0
			}
			w := unsafe.Add(t.w.at(lo), k/t.w.pairK()*panelStep[t.w.format])
			if n <= t.mm.maxRows {
				a.x, a.w, a.dst = unsafe.Pointer(&t.x[row*cols+k]), w, unsafe.Pointer(&dst[0])
				if a.ahead = uintptr(c / t.w.pairK() * panelStep[t.w.format]); c >= cols {
					a.ahead = a.ldw * uintptr(p) // the next panels
				}
				t.mm.mulTile(a, t.w.format, n, p)
				continue
			}
			for i := 0; i < p; {
				wide := min(t.mm.widest(t.w.format, t.mm.maxRows), p-i)
				a.x, a.dst = unsafe.Pointer(&t.x[row*cols+k]), unsafe.Pointer(&dst[i*lanes])
				a.w, a.ahead = unsafe.Add(w, a.ldw*uintptr(i)), a.ldw*uintptr(wide)
				t.mm.mul(a, t.w.format, n, wide)
				i += wide
			}
		}
		if lo+step < hi {
			dst = dst[step*lanes:]
		}
	}
}

// pairK is how many k a step of a panel has.
func (w *weight) pairK() int {
	if w.format == fmtBF16 {
		return 2
	}
	return 1
}

// widest is the most panels that one kernel takes with so many rows.
func (s *mmSet) widest(format, rows int) int {
	ks := &s.kernels[format][rows]
	for l := len(ks) - 1; l > 0; l-- {
		if ks[l] != nil {
			return 1 << l
		}
	}
	return 1
}

// ragged multiplies the last panel when it has fewer than 16 outputs, by way
// of a buffer with room for all of them.
func (t *matMul) ragged(w *worker) {
	last := t.w.panels() - 1
	first, n := last*lanes, t.w.rows-last*lanes
	for row := 0; row < t.rows; row += blockRows {
		rows := min(blockRows, t.rows-row)
		if t.bias != nil {
			t.addBias(row, rows, first, t.w.rows)
		}
		tile := w.ragged[:rows*lanes]
		add := t.add || t.bias != nil
		for r := 0; add && r < rows; r++ {
			copy(tile[r*lanes:][:n], t.dst[(row+r)*t.w.rows+first:])
		}
		t.block(&w.mm, tile, lanes, row, rows, last, last+1, add)
		for r := range rows {
			copy(t.dst[(row+r)*t.w.rows+first:][:n], tile[r*lanes:])
		}
	}
}

// addBias puts the bias of outputs lo..hi where the products will be added.
func (t *matMul) addBias(row, n, lo, hi int) {
	b := t.bias[lo:hi]
	for r := row; r < row+n; r++ {
		d := t.dst[r*t.w.rows+lo:][:len(b)]
		if !t.add {
			copy(d, b)
			continue
		}
		for i := range b {
			d[i] += b[i]
		}
	}
}
