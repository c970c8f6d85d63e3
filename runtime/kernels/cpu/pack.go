package cpu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// stagingBytes of rows are read at a time by each thread, or the 16 rows of a
// panel when they have more: few calls, and the second cache holds them.
const stagingBytes = 128 << 10

// Pack is PackAll of one matrix.
func (b *Backend) Pack(s device.Stream, m kernels.Matrix, f kernels.Format) (kernels.Weight, error) {
	all, _, err := b.PackAll(s, []kernels.PackJob{{Matrix: m, Format: f}})
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// PackAll lays matrices out in panels: besides the weights themselves it needs
// stagingBytes or 16 rows of memory for each thread, for Q8 and Q4 also 16 rows
// of float32. It stays with the threads for the next matrix. A weight that is
// not finite makes its whole output NaN in Q8 and Q4.
func (b *Backend) PackAll(_ device.Stream, jobs []kernels.PackJob) (all []kernels.Weight, failed int, err error) {
	defer func() {
		if err != nil {
			for _, w := range all {
				_ = w.Free()
			}
			m := jobs[failed].Matrix
			all, err = nil, fmt.Errorf("pack a %d×%d matrix of %v as %v: %w", m.Rows(), m.Cols(), m.DType(), jobs[failed].Format, err)
		}
	}()
	l := packList{b: b}
	for i, j := range jobs {
		w, err := b.newWeight(j)
		if err != nil {
			return all, i, err
		}
		all = append(all, w)
		if l.panels+w.panels() > maxItems {
			if failed, err := l.do(); err != nil {
				return all, failed, err
			}
		}
		t := packTask{m: j.Matrix, w: w, from: storedAs[j.Matrix.DType()], path: b.path, job: i}
		if w.format == fmtDense {
			t.rest = &denseRest{panels: make([][]rare, w.panels())}
		}
		l.add(t)
	}
	failed, err = l.do()
	return all, failed, err
}

// newWeight is the memory of a matrix, without content.
func (b *Backend) newWeight(j kernels.PackJob) (*weight, error) {
	to, err := packFormat(j.Matrix.DType(), j.Format)
	if err != nil {
		return nil, err
	}
	rows, cols := j.Matrix.Rows(), j.Matrix.Cols()
	if rows < 1 || cols < 1 || rows > maxItems*lanes || int64(cols) > math.MaxInt64/8/int64(rows+lanes) {
		return nil, errors.New("sizes out of range")
	}
	w := &weight{format: to, rows: rows, cols: cols}
	if b.path.dense != nil && to == fmtBF16 && cols%groupLen == 0 && j.Matrix.DType() == tensor.BF16 {
		w.format = fmtDense
	}
	return w, b.allocWeight(w)
}

// allocWeight leaves what w had when there is no more.
func (b *Backend) allocWeight(w *weight) error {
	buf, err := b.dev.alloc(int64(w.panels())*int64(w.panelBytes()), hugePages)
	if err != nil {
		return err
	}
	w.buf = buf
	return nil
}

// packList packs the panels of many matrices as one task: at the end of each
// task threads wait for the slowest, and the memory for a panel can take
// milliseconds. The first error ends it.
type packList struct {
	b      *Backend
	tasks  []packTask
	starts []int // the first panel of each
	panels int
	err    atomic.Pointer[packError]
}

type packError struct {
	job int
	err error
}

func (l *packList) add(t packTask) {
	l.tasks, l.starts = append(l.tasks, t), append(l.starts, l.panels)
	l.panels += t.w.panels()
}

// do packs what was added, and forgets it. What turns out not to be dense is read
// and packed again as it is stored.
func (l *packList) do() (failed int, err error) {
	for len(l.tasks) > 0 {
		l.b.dev.pool.run(l, l.panels, 8)
		if e := l.err.Load(); e != nil {
			return e.job, e.err
		}
		tasks := l.tasks
		l.tasks, l.starts, l.panels = nil, nil, 0
		for _, t := range tasks {
			switch {
			case t.rest == nil:
			case !t.rest.tooMuch.Load():
				t.w.list(t.rest.panels)
			default:
				if err := t.w.Free(); err != nil {
					return t.job, err
				}
				t.w.format, t.rest = fmtBF16, nil
				if err := l.b.allocWeight(t.w); err != nil {
					return t.job, err
				}
				l.add(t)
			}
		}
	}
	return 0, nil
}

func (l *packList) run(w *worker, lo, hi int) {
	i, _ := slices.BinarySearch(l.starts, lo+1)
	for i--; lo < hi && l.err.Load() == nil; i++ {
		t, start := &l.tasks[i], l.starts[i]
		end := min(hi, start+t.w.panels())
		if err := t.pack(w, lo-start, end-start); err != nil {
			l.err.CompareAndSwap(nil, &packError{t.job, err})
		}
		lo = end
	}
}

// packTask packs panels of a matrix.
type packTask struct {
	m    kernels.Matrix
	w    *weight
	from int
	path *path
	job  int
	rest *denseRest // of dense weights
}

func (t *packTask) pack(w *worker, lo, hi int) error {
	size := lanes * t.w.cols * t.m.DType().Bits() / 8 // of a panel's rows
	step := min(hi-lo, max(1, stagingBytes/size))
	raw := grow(&w.raw, step*size)
	var q *quantizer
	if t.w.integers() {
		q = &w.quant
		q.reset(t.path.quant, t.w.format, t.w.cols)
	}
	for p := lo; p < hi && !(t.rest != nil && t.rest.tooMuch.Load()); p += step {
		end := min(p+step, hi)
		if err := t.panels(w, q, raw[:(end-p)*size], p, end); err != nil {
			return err
		}
	}
	return nil
}

// panels fills panels lo..hi by way of raw, which has room for their rows.
func (t *packTask) panels(w *worker, q *quantizer, raw []byte, lo, hi int) error {
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
		case t.w.format == fmtDense:
			t.dense(w, panel, rows, p)
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
