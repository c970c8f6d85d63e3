package ref

import (
	"fmt"

	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// Backend computes on host memory.
type Backend struct {
	dev *Device
}

// Open makes a backend with a device of its own. It needs no closing.
func Open() *Backend { return &Backend{dev: &Device{}} }

// Device is the host's memory.
func (b *Backend) Device() device.Device { return b.dev }

// ActType is F32.
func (b *Backend) ActType() tensor.DType { return tensor.F32 }

// KVType is F32.
func (b *Backend) KVType() tensor.DType { return tensor.F32 }

// Layout implements kernels.Backend.
func (b *Backend) Layout() kernels.Layout { return Layout{} }

// Pack keeps the matrix as it is, row-major. Supported are the checkpoint's
// own type and F32.
func (b *Backend) Pack(_ device.Stream, m kernels.Matrix, f kernels.Format) (kernels.Weight, error) {
	rows, cols, d := m.Rows(), m.Cols(), m.DType()
	as, ok := map[tensor.DType]kernels.Format{
		tensor.F32: kernels.F32, tensor.F16: kernels.F16, tensor.BF16: kernels.BF16,
	}[d]
	if !ok {
		return nil, fmt.Errorf("pack a %d×%d matrix of %v: only F32, F16 and BF16 can be computed with: %w", rows, cols, d, device.ErrNotSupported)
	}
	if rows < 1 || cols < 1 || int64(rows) > maxBytes/8/int64(cols) {
		return nil, fmt.Errorf("pack a %d×%d matrix: sizes out of range", rows, cols)
	}
	if f != kernels.AsStored && f != kernels.F32 && f != as {
		return nil, fmt.Errorf("pack a %d×%d matrix of %v as %v: %w", rows, cols, d, f, device.ErrNotSupported)
	}
	w := &weight{format: as, dtype: d, rows: rows, cols: cols, mem: make([]byte, rows*cols*d.Bits()/8)}
	if err := m.ReadRows(w.mem, 0, rows); err != nil {
		return nil, fmt.Errorf("pack a %d×%d matrix of %v: %w", rows, cols, d, err)
	}
	if f == kernels.F32 { // widening is exact, so the stored type serves
		w.format = kernels.F32
	}
	return w, nil
}

// NewOps opens the operations.
func (b *Backend) NewOps(device.Stream) (kernels.Ops, error) { return &ops{}, nil }

type weight struct {
	format     kernels.Format
	dtype      tensor.DType // of mem
	rows, cols int
	mem        []byte
}

func (w *weight) Format() kernels.Format { return w.format }
func (w *weight) Rows() int              { return w.rows }
func (w *weight) Cols() int              { return w.cols }
func (w *weight) Bytes() int64           { return int64(len(w.mem)) }

func (w *weight) Free() error {
	w.mem = nil
	return nil
}

// row reads row n into dst.
func (w *weight) row(dst []float64, n int) { loadBytes(dst, w.mem, n*w.cols, w.dtype) }
