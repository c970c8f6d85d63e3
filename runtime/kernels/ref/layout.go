package ref

import (
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// Layout is the reference's kernels.Layout: everything is as large as its
// values are, as they are stored.
type Layout struct{}

var _ kernels.Layout = Layout{}

// ActType is F32.
func (Layout) ActType() tensor.DType { return tensor.F32 }

// KVType is F32.
func (Layout) KVType() tensor.DType { return tensor.F32 }

// WeightBytes is the matrix as it is stored; F32 is read from that too.
func (Layout) WeightBytes(rows, cols int, stored tensor.DType, _ kernels.Format) (int64, error) {
	return int64(rows) * int64(cols) * int64(stored.Bits()) / 8, nil
}

// AllocBytes is n.
func (Layout) AllocBytes(n int64) int64 { return n }

// OpsBytes is 0.
func (Layout) OpsBytes(kernels.OpsLimits) int64 { return 0 }
