package layers

import (
	"context"
	"fmt"
	"slices"

	"infer/runtime/loader"
	"infer/runtime/tensor"
)

// span is some rows of a tensor, whose outer dimensions count as rows; or rows
// of zeros, when there is no tensor.
type span struct {
	t    *loader.Tensor
	from int // row of t
	rows int
}

// whole is all of a tensor.
func whole(t *loader.Tensor) span { return span{t: t, rows: rowsOf(t)} }

func colsOf(t *loader.Tensor) int { return t.Shape[len(t.Shape)-1] }

func rowsOf(t *loader.Tensor) int {
	n := 1
	for _, d := range t.Shape[:len(t.Shape)-1] {
		n *= d
	}
	return n
}

// matrix is a kernels.Matrix over tensors of a checkpoint, one below the
// other: Q, K and V, or gate and up, become one weight, and so do experts.
type matrix struct {
	ctx    context.Context // ends reading
	spans  []span
	starts []int // row that each begins with
	dtype  tensor.DType
	rows   int
	cols   int
	done   func(bytes int64) // progress; may be nil
}

// newMatrix stacks the spans, which have equal columns; the first has a tensor.
// The type is that of the tensors; where they differ, or are F64, it is F32.
func newMatrix(ctx context.Context, done func(int64), spans ...span) *matrix {
	first := spans[0].t
	m := &matrix{ctx: ctx, spans: spans, starts: make([]int, len(spans)), dtype: first.DType, cols: colsOf(first), done: done}
	for i, s := range spans {
		m.starts[i] = m.rows
		m.rows += s.rows
		if s.t != nil && (s.t.DType != m.dtype || s.t.DType == tensor.F64) {
			m.dtype = tensor.F32
		}
	}
	return m
}

func (m *matrix) DType() tensor.DType { return m.dtype }
func (m *matrix) Rows() int           { return m.rows }
func (m *matrix) Cols() int           { return m.cols }

// ReadRows implements kernels.Matrix.
func (m *matrix) ReadRows(dst []byte, lo, hi int) error {
	row := m.cols * m.dtype.Bits() / 8
	if lo < 0 || hi < lo || hi > m.rows || len(dst) != (hi-lo)*row {
		return fmt.Errorf("read rows %d..%d of %d into %d bytes: want %d", lo, hi, m.rows, len(dst), (hi-lo)*row)
	}
	if lo == hi {
		return nil
	}
	i, _ := slices.BinarySearch(m.starts, lo+1) // the first that begins behind lo
	for i--; i < len(m.spans) && m.starts[i] < hi; i++ {
		first, s := m.starts[i], m.spans[i]
		from, to := max(lo, first), min(hi, first+s.rows)
		part := dst[(from-lo)*row : (to-lo)*row]
		if s.t == nil {
			clear(part)
			continue
		}
		if err := m.readPart(part, s.t, s.from+from-first, s.from+to-first); err != nil {
			return err
		}
	}
	return nil
}

func (m *matrix) readPart(dst []byte, t *loader.Tensor, lo, hi int) error {
	if err := context.Cause(m.ctx); err != nil {
		return fmt.Errorf("%s: load tensor %.120q: %w", t.File(), t.Name, err)
	}
	stored := int64(m.cols) * int64(t.DType.Bits()) / 8 // bytes of a row
	if t.DType == m.dtype {
		if _, err := t.ReadAt(dst, int64(lo)*stored); err != nil {
			return err
		}
	} else {
		// A bounded piece at a time: rows are short beside it.
		const piece = 1 << 20
		step := max(1, piece/int(stored))
		raw := make([]byte, min(step, hi-lo)*int(stored))
		vals := make([]float32, min(step, hi-lo)*m.cols)
		for at := lo; at < hi; at += step {
			n := min(step, hi-at)
			raw, vals := raw[:n*int(stored)], vals[:n*m.cols]
			if _, err := t.ReadAt(raw, int64(at)*stored); err != nil {
				return err
			}
			if err := tensor.ToF32(vals, raw, t.DType); err != nil {
				return fmt.Errorf("%s: tensor %.120q: %w", t.File(), t.Name, err)
			}
			putF32(dst[(at-lo)*m.cols*4:], vals)
		}
	}
	if m.done != nil {
		m.done(int64(hi-lo) * stored)
	}
	return nil
}

// readF32 reads a whole small tensor and appends its values.
func readF32(dst []float32, t *loader.Tensor) ([]float32, error) {
	raw := make([]byte, t.Bytes)
	if _, err := t.ReadAt(raw, 0); err != nil {
		return nil, err
	}
	n := len(dst)
	dst = slices.Grow(dst, t.Shape[0])[:n+t.Shape[0]]
	if err := tensor.ToF32(dst[n:], raw, t.DType); err != nil {
		return nil, fmt.Errorf("%s: tensor %.120q: %w", t.File(), t.Name, err)
	}
	return dst, nil
}
