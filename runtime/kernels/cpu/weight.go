package cpu

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"

	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// weight is a matrix in panels of 16 outputs, see mmArgs and quant.go. Missing
// outputs of the last panel, and the missing half of an odd last pair, are
// zero.
type weight struct {
	buf        *buffer
	format     int // fmtBF16 …
	rows, cols int
	first      int // panel of buf that this weight begins with: not 0 for an expert of a stack
}

// panelStep is the bytes from one k, pair of k, or group of k, to the next in
// a panel, and stepLen how many k that is.
var (
	panelStep = [numFormats]int{fmtBF16: lanes * 4, fmtF16: lanes * 2, fmtF32: lanes * 4, fmtI8: lanes, fmtQ8: groupQ8, fmtQ4: groupQ4}
	stepLen   = [numFormats]int{fmtBF16: 2, fmtF16: 1, fmtF32: 1, fmtQ8: groupLen, fmtQ4: groupLen}
)

// formatOf gives the kernels' index of a format; formats is the other way.
var (
	formats  = [numFormats]kernels.Format{fmtBF16: kernels.BF16, fmtF16: kernels.F16, fmtF32: kernels.F32, fmtQ8: kernels.Q8, fmtQ4: kernels.Q4}
	formatOf = map[kernels.Format]int{kernels.BF16: fmtBF16, kernels.F16: fmtF16, kernels.F32: fmtF32, kernels.Q8: fmtQ8, kernels.Q4: fmtQ4}
)

func (w *weight) Format() kernels.Format { return formats[w.format] }

func (w *weight) Rows() int    { return w.rows }
func (w *weight) Cols() int    { return w.cols }
func (w *weight) Bytes() int64 { return w.buf.Size() }
func (w *weight) Free() error  { return w.buf.Free() }

func (w *weight) panels() int { return (w.rows + lanes - 1) / lanes }

// panelBytes is the size of a panel.
func (w *weight) panelBytes() int { return panelBytes(w.format, w.cols) }

func panelBytes(format, cols int) int {
	n := (cols + stepLen[format] - 1) / stepLen[format] * panelStep[format]
	if format == fmtQ4 {
		n += unitBytes
	}
	return n
}

// integers tells whether the format is one that needs activations of integers.
func (w *weight) integers() bool { return w.format == fmtQ8 || w.format == fmtQ4 }

// at points to a panel.
func (w *weight) at(panel int) unsafe.Pointer {
	return unsafe.Pointer(&w.buf.mem[(w.first+panel)*w.panelBytes()])
}

// Pack lays a matrix out in panels, 16 rows at a time by each thread: besides
// the weight itself it needs 16 rows of staging memory for each, twice that
// for Q8 and Q4. A weight that is not finite makes its whole output NaN there.
func (b *Backend) Pack(_ device.Stream, m kernels.Matrix, f kernels.Format) (kernels.Weight, error) {
	what := func() string {
		return fmt.Sprintf("pack a %d×%d matrix of %v as %v", m.Rows(), m.Cols(), m.DType(), f)
	}
	to, err := packFormat(m.DType(), f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what(), err)
	}
	rows, cols := m.Rows(), m.Cols()
	if rows < 1 || cols < 1 || rows > math.MaxInt32 || int64(cols) > math.MaxInt64/8/int64(rows+lanes) {
		return nil, fmt.Errorf("%s: sizes out of range", what())
	}
	w := &weight{format: to, rows: rows, cols: cols}
	if w.buf, err = b.dev.alloc(int64(w.panels()) * int64(w.panelBytes())); err != nil {
		return nil, fmt.Errorf("%s: %w", what(), err)
	}
	t := &packTask{m: m, w: w, from: storedAs[m.DType()], set: b.path.quant}
	b.dev.pool.run(t, w.panels(), 8)
	if e := t.err.Load(); e != nil {
		_ = w.Free()
		return nil, fmt.Errorf("%s: %w", what(), *e)
	}
	return w, nil
}

// packTask packs panels; the first error ends it.
type packTask struct {
	m    kernels.Matrix
	w    *weight
	from int
	set  *quantSet
	err  atomic.Pointer[error]
}

func (t *packTask) run(_ *worker, lo, hi int) {
	size := t.m.DType().Bits() / 8
	row := t.w.cols * size
	raw := make([]byte, lanes*row)
	var q *quantizer
	if t.w.integers() {
		q = newQuantizer(t.set, t.w.format, t.w.cols)
	}
	for p := lo; p < hi && t.err.Load() == nil; p++ {
		first := p * lanes
		last := min(first+lanes, t.w.rows)
		if err := t.m.ReadRows(raw[:(last-first)*row], first, last); err != nil {
			err = fmt.Errorf("rows %d..%d: %w", first, last, err)
			t.err.CompareAndSwap(nil, &err)
			return
		}
		panel := t.w.buf.mem[p*t.w.panelBytes():][:t.w.panelBytes()]
		if q != nil {
			if err := q.panel(panel, raw[:(last-first)*row], t.m.DType(), t.w.format); err != nil {
				t.err.CompareAndSwap(nil, &err)
				return
			}
			continue
		}
		for n := range last - first {
			t.lane(panel, n, raw[n*row:][:row])
		}
	}
}

// lane writes one output's weights into its panel.
func (t *packTask) lane(panel []byte, n int, raw []byte) {
	le := binary.LittleEndian
	cols := t.w.cols
	switch {
	case t.from == fmtBF16 && t.w.format == fmtBF16: // pairs as they are
		at := 4 * n
		for ; len(raw) >= 4; raw = raw[4:] {
			le.PutUint32(panel[at:], le.Uint32(raw))
			at += 4 * lanes
		}
		if len(raw) > 0 {
			le.PutUint16(panel[at:], le.Uint16(raw))
		}
		return
	case t.from == fmtF16 && t.w.format == fmtF16:
		for k := range cols {
			le.PutUint16(panel[2*(k*lanes+n):], le.Uint16(raw[2*k:]))
		}
		return
	}
	for k := range cols {
		var v float32
		switch t.from {
		case fmtBF16:
			v = tensor.BF16ToF32(le.Uint16(raw[2*k:]))
		case fmtF16:
			v = tensor.F16ToF32(le.Uint16(raw[2*k:]))
		case fmtF32:
			v = math.Float32frombits(le.Uint32(raw[4*k:]))
		}
		switch t.w.format {
		case fmtBF16:
			le.PutUint16(panel[4*(k/2*lanes+n)+2*(k%2):], tensor.F32ToBF16(v))
		case fmtF16:
			le.PutUint16(panel[2*(k*lanes+n):], tensor.F32ToF16(v))
		case fmtF32:
			le.PutUint32(panel[4*(k*lanes+n):], math.Float32bits(v))
		}
	}
}

// row reads output n back, widened.
func (w *weight) row(dst []float32, n int) {
	p, n := unsafe.Slice((*byte)(w.at(n/lanes)), w.panelBytes()), n%lanes
	if w.integers() {
		w.quantRow(dst, p, n)
		return
	}
	le := binary.LittleEndian
	switch w.format {
	case fmtBF16:
		at := 4 * n
		for ; len(dst) >= 2; dst = dst[2:] {
			v := le.Uint32(p[at:])
			dst[0], dst[1] = math.Float32frombits(v<<16), math.Float32frombits(v&0xffff0000)
			at += 4 * lanes
		}
		if len(dst) > 0 {
			dst[0] = math.Float32frombits(le.Uint32(p[at:]) << 16)
		}
	case fmtF16:
		for k := range dst {
			dst[k] = tensor.F16ToF32(le.Uint16(p[2*(k*lanes+n):]))
		}
	case fmtF32:
		for k := range dst {
			dst[k] = math.Float32frombits(le.Uint32(p[4*(k*lanes+n):]))
		}
	}
}
