package layers

import (
	"context"
	"fmt"
	"slices"

	"infer/runtime/loader"
	"infer/runtime/tensor"
)

// matrix is a kernels.Matrix over tensors of a checkpoint, one below the
// other: Q, K and V, or gate and up, become one weight.
type matrix struct {
	ctx   context.Context // ends reading
	parts []*loader.Tensor
	dtype tensor.DType
	rows  int
	cols  int
	done  func(bytes int64) // progress; may be nil
}

// newMatrix stacks the parts, which have equal columns. The type is that of
// the parts; where they differ, or are F64, it is F32.
func newMatrix(ctx context.Context, done func(int64), parts ...*loader.Tensor) *matrix {
	m := &matrix{ctx: ctx, parts: parts, dtype: parts[0].DType, cols: parts[0].Shape[1], done: done}
	for _, t := range parts {
		m.rows += t.Shape[0]
		if t.DType != m.dtype || t.DType == tensor.F64 {
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
	first := 0 // row of the matrix that the part begins with
	for _, t := range m.parts {
		n := t.Shape[0]
		from, to := max(lo, first), min(hi, first+n)
		if from < to {
			if err := m.readPart(dst[(from-lo)*row:(to-lo)*row], t, from-first, to-first); err != nil {
				return err
			}
		}
		first += n
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
