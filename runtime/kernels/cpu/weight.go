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

// weight is a matrix in panels of 16 outputs, see mmArgs. Missing outputs of
// the last panel, and the missing half of an odd last pair, are zero.
type weight struct {
	buf        *buffer
	format     int // fmtBF16 …
	rows, cols int
	first      int // panel of buf that this weight begins with: not 0 for an expert of a stack
}

// step is the bytes from one k, or pair of k, to the next in a panel.
var panelStep = [numFormats]int{fmtBF16: lanes * 4, fmtF16: lanes * 2, fmtF32: lanes * 4}

func (w *weight) Format() kernels.Format {
	return [numFormats]kernels.Format{fmtBF16: kernels.BF16, fmtF16: kernels.F16, fmtF32: kernels.F32}[w.format]
}

func (w *weight) Rows() int    { return w.rows }
func (w *weight) Cols() int    { return w.cols }
func (w *weight) Bytes() int64 { return w.buf.Size() }
func (w *weight) Free() error  { return w.buf.Free() }

func (w *weight) panels() int { return (w.rows + lanes - 1) / lanes }

// panelBytes is the size of a panel.
func (w *weight) panelBytes() int { return panelBytes(w.format, w.cols) }

func panelBytes(format, cols int) int {
	if format == fmtBF16 {
		return (cols + 1) / 2 * panelStep[fmtBF16]
	}
	return cols * panelStep[format]
}

// at points to a panel.
func (w *weight) at(panel int) unsafe.Pointer {
	return unsafe.Pointer(&w.buf.mem[(w.first+panel)*w.panelBytes()])
}

// Pack lays a matrix out in panels, 16 rows at a time by each thread: besides
// the weight itself it needs 16 rows of staging memory for each. Formats are
// F32, F16 and BF16, or the checkpoint's own.
func (b *Backend) Pack(_ device.Stream, m kernels.Matrix, f kernels.Format) (kernels.Weight, error) {
	what := func() string {
		return fmt.Sprintf("pack a %d×%d matrix of %v as %v", m.Rows(), m.Cols(), m.DType(), f)
	}
	from, ok := map[tensor.DType]int{tensor.BF16: fmtBF16, tensor.F16: fmtF16, tensor.F32: fmtF32}[m.DType()]
	if !ok {
		return nil, fmt.Errorf("%s: only F32, F16 and BF16 can be computed with: %w", what(), device.ErrNotSupported)
	}
	to, ok := map[kernels.Format]int{
		kernels.AsStored: from, kernels.BF16: fmtBF16, kernels.F16: fmtF16, kernels.F32: fmtF32,
	}[f]
	if !ok {
		return nil, fmt.Errorf("%s: %w", what(), device.ErrNotSupported)
	}
	rows, cols := m.Rows(), m.Cols()
	if rows < 1 || cols < 1 || rows > math.MaxInt32 || int64(cols) > math.MaxInt64/8/int64(rows+lanes) {
		return nil, fmt.Errorf("%s: sizes out of range", what())
	}
	w := &weight{format: to, rows: rows, cols: cols}
	var err error
	if w.buf, err = b.dev.alloc(int64(w.panels()) * int64(w.panelBytes())); err != nil {
		return nil, fmt.Errorf("%s: %w", what(), err)
	}
	t := &packTask{m: m, w: w, from: from}
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
	err  atomic.Pointer[error]
}

func (t *packTask) run(_ *worker, lo, hi int) {
	size := t.m.DType().Bits() / 8
	row := t.w.cols * size
	raw := make([]byte, lanes*row)
	for p := lo; p < hi && t.err.Load() == nil; p++ {
		first := p * lanes
		last := min(first+lanes, t.w.rows)
		if err := t.m.ReadRows(raw[:(last-first)*row], first, last); err != nil {
			err = fmt.Errorf("rows %d..%d: %w", first, last, err)
			t.err.CompareAndSwap(nil, &err)
			return
		}
		panel := t.w.buf.mem[p*t.w.panelBytes():][:t.w.panelBytes()]
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
