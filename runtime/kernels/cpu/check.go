package cpu

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"unsafe"

	"infer/runtime/tensor"
)

// A check multiplies weights of every format by one row and more, up to more
// than a kernel takes, so that each kernel of weights has its turn: with 8, 4, 2
// panels and 1, a last one that is not whole, an odd number of columns, and whole
// groups of them. Those of 8-bit K/V and what is no product are left to the tests.
// One weight or activation that is left out changes a product by far more than
// checkBound; rounding by less (activations are bfloat16, which no path rounds).
const (
	checkOutputs = 15*lanes + 5
	checkCols    = groupLen + 7
	wholeCols    = 2 * groupLen
	checkBound   = 2e-3
)

// checks are the weights: bfloat16 in whole groups may have other kernels.
var checks = []struct{ format, cols int }{
	{fmtBF16, checkCols}, {fmtBF16, wholeCols}, {fmtF16, checkCols}, {fmtF32, checkCols}, {fmtQ8, checkCols}, {fmtQ4, checkCols},
}

var (
	checking sync.Mutex
	checked  = map[string]error{} // by the path's name
)

// check compares the path's products with those in Go, which takes about two
// milliseconds, once in a process.
func (p *path) check() error {
	checking.Lock()
	defer checking.Unlock()
	for _, q := range []*path{p, p.exact} {
		if q == nil || q.name == purego.name {
			continue
		}
		err, known := checked[q.name]
		if !known {
			err = q.compare()
			checked[q.name] = err
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *path) compare() error {
	one := newPool(1)
	defer one.close()
	rng := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, (amxRows+1)*wholeCols)
	for i := range x {
		x[i] = tensor.BF16ToF32(tensor.F32ToBF16(float32(rng.NormFloat64())))
	}
	for _, c := range checks {
		w := randomWeight(rng, c.format, c.cols)
		if err := p.multiplies(one, w, w, x); err != nil {
			return err
		}
		if p.dense != nil && c.format == fmtBF16 && c.cols%groupLen == 0 {
			if err := p.multiplies(one, w, w.densely(p.dense), x); err != nil {
				return err
			}
		}
		if p.mm.kernels[fmtPairs][1][0] != nil && c.format == fmtBF16 && c.cols%groupLen == 0 {
			if err := p.multipliesPairs(one, w, x); err != nil {
				return err
			}
		}
	}
	return nil
}

// multiplies compares products of x and w with those in Go of the same weights.
func (p *path) multiplies(one *pool, same, w *weight, x []float32) error {
	o := &ops{pool: one, path: p}
	return p.compareRows(one, same, x, p.mm.most(p.mm.formatOf(w))+1, func(got []float32, rows int) {
		o.multiply(got, w, x[:rows*w.cols], nil, false, rows)
	})
}

// multipliesPairs does so with the kernels for K/V pages, as if w were one; its
// last panel is left out.
func (p *path) multipliesPairs(one *pool, w *weight, x []float32) error {
	halves, whole := make([]byte, 2*len(x)), *w
	whole.rows = w.rows / lanes * lanes
	p.quant.round(&halves[0], &x[0], len(x)/groupLen)
	return p.compareRows(one, &whole, x, p.mm.maxRows+1, func(got []float32, rows int) {
		p.mm.mul(&mmArgs{
			x: unsafe.Pointer(&halves[0]), ldx: uintptr(2 * w.cols), w: w.at(0), ldw: uintptr(w.panelBytes()),
			dst: unsafe.Pointer(&got[0]), ldd: uintptr(4 * whole.rows), k: uintptr(w.cols / 2), step: 4 * lanes,
		}, fmtPairs, rows, whole.panels())
	})
}

// compareRows compares what multiply makes of one row and more with products in Go.
func (p *path) compareRows(one *pool, w *weight, x []float32, most int, multiply func(got []float32, rows int)) error {
	want, got := make([]float32, most*w.rows), make([]float32, most*w.rows)
	(&ops{pool: one, path: &purego}).multiply(want, w, x[:most*w.cols], nil, false, most)
	for rows := 1; rows <= most; rows++ {
		clear(got)
		multiply(got, rows)
		for i, v := range got[:rows*w.rows] {
			if !(math.Abs(float64(v-want[i])) <= checkBound) {
				return fmt.Errorf("%s multiplies wrongly on this processor: %v weights, %d rows: output %d of row %d is %g, want %g",
					p.name, formats[w.format], rows, i%w.rows, i/w.rows, v, want[i])
			}
		}
	}
	return nil
}

// randomWeight has values of about 1.
func randomWeight(rng *rand.Rand, format, cols int) *weight {
	w := &weight{format: format, rows: checkOutputs, cols: cols}
	size := w.panelBytes()
	mem := make([]byte, w.panels()*size+guard)
	w.buf = &buffer{mem: mem}
	le := binary.LittleEndian
	normal := func() float32 { return float32(rng.NormFloat64()) }
	for p := range w.panels() {
		panel := mem[p*size:][:size]
		switch format {
		case fmtBF16:
			for i := 0; i < size; i += 2 {
				v := normal()
				if i%194 == 0 && i < size/2 { // too small for dense panels, which list it
					v *= 1e-6
				}
				le.PutUint16(panel[i:], tensor.F32ToBF16(v))
			}
		case fmtF16:
			for i := 0; i < size; i += 2 {
				le.PutUint16(panel[i:], tensor.F32ToF16(normal()))
			}
		case fmtF32:
			for i := 0; i < size; i += 4 {
				le.PutUint32(panel[i:], math.Float32bits(normal()))
			}
		default: // integers of any value, with scales that make them about 1
			for i := range panel {
				panel[i] = byte(rng.IntN(255) - topQ8)
			}
			head, group := 0, groupQ8
			if format == fmtQ4 {
				head, group = unitBytes, groupQ4
				for n := range lanes {
					le.PutUint32(panel[4*n:], math.Float32bits(0.003*(1+rng.Float32())))
				}
			}
			for g := head; format == fmtQ8 && g < size; g += group {
				for n := range lanes {
					le.PutUint16(panel[g+2*n:], tensor.F32ToF16(0.01*(1+rng.Float32())))
				}
			}
		}
	}
	return w
}

// densely is a weight of BF16 in dense panels.
func (w *weight) densely(s *denseSet) *weight {
	d := &weight{format: fmtDense, rows: w.rows, cols: w.cols}
	d.buf = &buffer{mem: make([]byte, d.panels()*d.panelBytes()+guard)}
	lists, missed := make([][]rare, d.panels()), make([]uint32, 16*w.cols/groupLen)
	for p := range d.panels() {
		lists[p], _ = s.panel(d.buf.mem[p*d.panelBytes():][:d.panelBytes()], w.buf.mem[p*w.panelBytes():][:w.panelBytes()], missed)
	}
	d.list(lists)
	return d
}
