package ref

import (
	"fmt"

	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// Layout is the reference's kernels.Layout: everything is as large as its
// values are.
type Layout struct{}

var _ kernels.Layout = Layout{}

// ActType is F32.
func (Layout) ActType() tensor.DType { return tensor.F32 }

// KVType is F32.
func (Layout) KVType() tensor.DType { return tensor.F32 }

// WeightBytes is the matrix as it is stored, or as F32.
func (Layout) WeightBytes(rows, cols int, stored tensor.DType, f kernels.Format) (int64, error) {
	if f == kernels.F32 {
		stored = tensor.F32
	}
	n := int64(rows) * int64(cols) * int64(stored.Bits()) / 8
	if f != kernels.AsStored && f != kernels.F32 && f.String() != strings.ToLower(stored.String()) {
		return 0, fmt.Errorf("a %d×%d matrix of %v as %v: %w", rows, cols, stored, f, device.ErrNotSupported)
	}
	return n, nil
}

// AllocBytes is n.
func (Layout) AllocBytes(n int64) int64 { return n }

// OpsBytes is 0.
func (Layout) OpsBytes(kernels.OpsLimits) int64 { return 0 }
