package cpu

import (
	"unsafe"

	"infer/runtime/kernels"
)

// Blocking of large products: a chunk of each of a block's rows stays in the
// second cache while the panels pass. That kernels are called seldom counts for
// more than that the first cache holds a panel's chunk; not so for tiles.
const (
	chunkBytes = 4 << 10 // of a row of activations
	chunkTile  = 16      // groups
	blockRows  = 96
	// grainBytes of weights are taken at a time: a kernel call is short, but
	// the memory is read in long runs.
	grainBytes = 128 << 10
)

// Weights are asked for before they are wanted, into the second cache: the first
// one can wait for too few lines at once to draw all that the memory gives. While
// some panels are multiplied the next ones come, or, when those are too large to
// stay, what lies so far ahead in the same ones.
const (
	nextBytes = 160 << 10
	farAhead  = 8 << 10
)

// matMul is kernels.MatMulArgs as a task. An item is a panel, or, when there are
// more rows than a block, a block of rows and some panels.
type matMul struct {
	path   *path
	format int // of the kernels
	w      *weight
	x      operand
	dst    []float32
	bias   []float32 // nil: none
	add    bool
	rows   int // of x and dst
	wide   int // with more than one block of rows: panels of an item
}

func (o *ops) MatMul(a kernels.MatMulArgs) {
	w := a.W.(*weight)
	rows := a.X.Shape.Dim(0)
	if !(isMatrix(a.Dst, rows, w.rows) && isMatrix(a.X, rows, w.cols) &&
		(a.Bias.IsNone() || isVector(a.Bias, w.rows))) {
		mismatch("MatMul", a.Dst, a.X, a.Bias)
	}
	if rows > 0 {
		o.multiply(floats(a.Dst), w, floats(a.X), floats(a.Bias), a.Add, rows)
	}
}

// multiply is MatMul of so many rows.
func (o *ops) multiply(dst []float32, w *weight, x, bias []float32, add bool, rows int) {
	t := &o.matMul
	format := o.path.mm.formatOf(w)
	*t = matMul{path: o.path, format: format, w: w, x: o.operand(format, w.cols, x), dst: dst, bias: bias, add: add, rows: rows}
	// Enough pieces that all are busy to the end; whole numbers of the widest
	// kernel's panels.
	n := w.panels()
	grain := max(8, min(grainBytes/w.panelBytes(), n/(4*len(o.pool.workers)))&^7)
	if rows > blockRows {
		t.wide = grain
		n, grain = t.blocks()*((n+grain-1)/grain), 1
	}
	o.pool.run(t, n, grain)
	*t = matMul{} // keep no view of memory that may be freed
}

// operand is the activations of a product as its kernels take them: float32,
// or groups of 32 of something else.
type operand struct {
	rows unsafe.Pointer
	ld   int // bytes from row to row
}

// from is the operand without its first rows.
func (x operand) from(row int) operand {
	x.rows = unsafe.Add(x.rows, row*x.ld)
	return x
}

// operand makes of the rows of x what the kernels need; it stays until the next
// product.
func (o *ops) operand(format, cols int, x []float32) operand {
	if !grouped(format) {
		return operand{unsafe.Pointer(&x[0]), 4 * cols}
	}
	ld, rows := actBytes(format, cols), len(x)/cols
	o.quant = grow(&o.quant, rows*ld)
	o.quantRows = quantRows{set: o.path.quant, format: format, x: x, cols: cols, dst: o.quant}
	o.pool.run(&o.quantRows, rows, max(1, rowGrain/cols))
	o.quantRows = quantRows{}
	return operand{unsafe.Pointer(&o.quant[0]), ld}
}

// chunk is the length of the parts that the sum over k is cut into; it depends
// on the weight's shape alone.
func chunk(cols int) int {
	n := (4*cols + chunkBytes - 1) / chunkBytes
	return ((cols+n-1)/n + 1) &^ 1
}

// blocks is how many there are of rows.
func (t *matMul) blocks() int { return (t.rows + blockRows - 1) / blockRows }

func (t *matMul) run(w *worker, lo, hi int) {
	if t.wide == 0 {
		t.panels(w, 0, t.rows, lo, hi)
		return
	}
	blocks := t.blocks()
	for i := lo; i < hi; i++ {
		row, panel := i%blocks*blockRows, i/blocks*t.wide
		t.panels(w, row, min(row+blockRows, t.rows), panel, min(panel+t.wide, t.w.panels()))
	}
}

// panels multiplies rows from..to by panels lo..hi.
func (t *matMul) panels(w *worker, from, to, lo, hi int) {
	if hi == t.w.panels() && t.w.rows%lanes != 0 {
		hi--
		t.ragged(w, from, to)
	}
	if lo >= hi {
		return
	}
	for row := from; row < to; row += blockRows {
		n := min(blockRows, to-row)
		if t.bias != nil {
			t.addBias(row, n, lo*lanes, hi*lanes)
		}
		t.block(w, t.dst[row*t.w.rows+lo*lanes:], t.w.rows, row, n, lo, hi, t.add || t.bias != nil)
	}
}

// block multiplies n rows from row by panels lo..hi into dst, whose rows are
// ldd elements apart.
func (t *matMul) block(wk *worker, dst []float32, ldd, row, n, lo, hi int, add bool) {
	if t.format == fmtDense && n <= t.path.mm.most(fmtDense) {
		t.fewDense(wk, dst, ldd, row, n, lo, hi, add)
		return
	}
	a, mm := &wk.mm, t.path.mm
	depth, unit, xUnit, c := t.units()
	// Few rows: the weights come from memory, in the order in which they lie.
	// Many: a chunk of the rows stays in the cache while the panels pass.
	step := hi - lo
	if n <= mm.most(t.format) {
		step = mm.widest(t.format, n)
		if grouped(t.format) {
			c = depth // the sums do not depend on it
		}
	}
	a.ldx, a.ldd = uintptr(t.x.ld), uintptr(ldd)*4
	size, head := t.w.panelBytes(), headBytes[t.format]
	a.step = uintptr(panelStep[t.format])
	for ; lo < hi; lo += step {
		p := min(step, hi-lo)
		for k := 0; k < depth; k += c {
			a.k, a.add = uintptr(min(c, depth-k)), 1
			if k == 0 && !add {
				a.add = 0
			}
			x := unsafe.Add(t.x.rows, row*t.x.ld+k*xUnit)
			at := func(panel int) {
				a.w, a.ldw, a.unit = unsafe.Add(t.w.at(panel), head+k*unit), uintptr(size), nil
				if head > 0 {
					a.unit = t.w.at(panel)
				}
			}
			if n <= mm.most(t.format) {
				at(lo)
				a.x, a.dst = x, unsafe.Pointer(&dst[0])
				switch {
				case grouped(t.format) && size*p > nextBytes:
					a.ahead = farAhead
				case c < depth:
					a.ahead = uintptr(c * unit)
				default:
					a.ahead = uintptr(size * p) // the next panels
				}
				mm.mulTile(a, t.format, n, p)
				continue
			}
			format := t.format
			if format == fmtDense { // unpacked
				format = fmtDots
			}
			for i := 0; i < p; {
				wide := min(mm.widest(format, mm.most(format)), p-i)
				at(lo + i)
				a.x, a.dst, a.ahead = x, unsafe.Pointer(&dst[i*lanes]), uintptr(size*wide)
				if t.format == fmtDense {
					t.unpack(wk, lo+i, wide, k)
				}
				mm.mul(a, format, n, wide)
				i += wide
			}
		}
		if lo+step < hi {
			dst = dst[step*lanes:]
		}
	}
}

// units tells what a kernel counts k in: how many there are, their bytes in a
// panel and in a row of x, and how many to take at a time.
func (t *matMul) units() (depth, w, x, chunkLen int) {
	if grouped(t.format) {
		size, c := actGroup[t.format], chunkTile
		if t.format != fmtTile {
			c = chunkBytes / size
		}
		return groupsOf(t.w.cols), panelStep[t.format], size, c
	}
	return t.w.cols, panelStep[t.format] / stepLen[t.format], 4, chunk(t.w.cols)
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
func (t *matMul) ragged(w *worker, from, to int) {
	last := t.w.panels() - 1
	first, n := last*lanes, t.w.rows-last*lanes
	for row := from; row < to; row += blockRows {
		rows := min(blockRows, to-row)
		if t.bias != nil {
			t.addBias(row, rows, first, t.w.rows)
		}
		tile := w.ragged[:rows*lanes]
		add := t.add || t.bias != nil
		for r := 0; add && r < rows; r++ {
			copy(tile[r*lanes:][:n], t.dst[(row+r)*t.w.rows+first:])
		}
		t.block(w, tile, lanes, row, rows, last, last+1, add)
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
