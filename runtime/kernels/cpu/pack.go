package cpu

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync/atomic"

	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// stagingBytes of rows are read at a time by each thread, or the 16 rows of a
// panel when they have more: few calls, and the second cache holds them.
const stagingBytes = 128 << 10

// Pack lays a matrix out in panels: besides the weight itself it needs
// stagingBytes or 16 rows of memory for each thread, for Q8 and Q4 also 16 rows
// of float32. It stays with the threads for the next matrix. A weight that is
// not finite makes its whole output NaN in Q8 and Q4.
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
	if w.buf, err = b.dev.alloc(int64(w.panels())*int64(w.panelBytes()), hugePages); err != nil {
		return nil, fmt.Errorf("%s: %w", what(), err)
	}
	t := &packTask{m: m, w: w, from: storedAs[m.DType()], path: b.path}
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
	path *path
	err  atomic.Pointer[error]
}

func (t *packTask) run(w *worker, lo, hi int) {
	size := lanes * t.w.cols * t.m.DType().Bits() / 8 // of a panel's rows
	step := min(hi-lo, max(1, stagingBytes/size))
	raw := grow(&w.raw, step*size)
	var q *quantizer
	if t.w.integers() {
		q = &w.quant
		q.reset(t.path.quant, t.w.format, t.w.cols)
	}
	for p := lo; p < hi && t.err.Load() == nil; p += step {
		end := min(p+step, hi)
		if err := t.panels(q, raw[:(end-p)*size], p, end); err != nil {
			t.err.CompareAndSwap(nil, &err)
			return
		}
	}
}

// panels fills panels lo..hi by way of raw, which has room for their rows.
func (t *packTask) panels(q *quantizer, raw []byte, lo, hi int) error {
	first, last := lo*lanes, min(hi*lanes, t.w.rows)
	size := len(raw) / (hi - lo)
	n := (last - first) * size / lanes
	if err := t.m.ReadRows(raw[:n], first, last); err != nil {
		return fmt.Errorf("rows %d..%d: %w", first, last, err)
	}
	clear(raw[n:]) // missing outputs of the last panel
	for p := lo; p < hi; p++ {
		panel, rows := t.w.buf.mem[p*t.w.panelBytes():][:t.w.panelBytes()], raw[(p-lo)*size:][:size]
		switch {
		case q != nil:
			if err := q.panel(panel, rows, t.m.DType(), t.w.format); err != nil {
				return err
			}
		case t.from == t.w.format:
			t.path.pack.panel(panel, rows, t.w.format)
		default:
			for n := range lanes {
				t.lane(panel, n, rows[n*size/lanes:][:size/lanes])
			}
		}
	}
	return nil
}

// lane writes one output's weights, in another format, into its panel.
func (t *packTask) lane(panel []byte, n int, raw []byte) {
	le := binary.LittleEndian
	for k := range t.w.cols {
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

// packSet transposes 16 rows with one instruction set. The rows are ld bytes
// apart; of each, n words of 32 bits are taken, n a multiple of 4.
type packSet struct {
	// words: dst[k][i] = word k of row i.
	words func(dst, src *byte, ld, n int)
	// halves: the same of 16 bits, two of which are a word: dst[2k+j][i] = half
	// j of word k of row i.
	halves func(dst, src *byte, ld, n int)
}

// wordStep is how many words packSet's functions do at least.
const wordStep = 4

// panel lays 16 whole rows out as they are stored.
func (s *packSet) panel(dst, rows []byte, format int) {
	ld := len(rows) / lanes
	do, unit := s.words, 4
	switch format {
	case fmtBF16: // pairs
	case fmtF16:
		do, unit = s.halves, 2
	}
	n := ld / 4 / wordStep * wordStep
	if n > 0 {
		do(&dst[0], &rows[0], ld, n)
	}
	for at := 4 * n; at < ld; at += unit {
		for i := range lanes {
			copy(dst[at*lanes+i*unit:][:unit], rows[i*ld+at:min(i*ld+at+unit, (i+1)*ld)])
		}
	}
}
