package cpu

import (
	"fmt"

	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// Layout is the CPU's kernels.Layout.
type Layout struct {
	KV tensor.DType // F32, BF16 or I8; Invalid: BF16, as with Auto
}

var _ kernels.Layout = Layout{}

// ActType is F32.
func (l Layout) ActType() tensor.DType { return tensor.F32 }

// KVType is what was set.
func (l Layout) KVType() tensor.DType {
	if l.KV == tensor.Invalid {
		return tensor.BF16
	}
	return l.KV
}

// WeightBytes counts panels of 16 outputs, as Pack makes them, dense ones as those
// of BF16: which there will be only the values tell.
func (l Layout) WeightBytes(rows, cols int, stored tensor.DType, f kernels.Format) (int64, error) {
	format, err := packFormat(stored, f)
	if err != nil {
		return 0, fmt.Errorf("a %d×%d matrix of %v as %v: %w", rows, cols, stored, f, err)
	}
	return int64((rows+lanes-1)/lanes) * int64(panelBytes(format, cols)), nil
}

// storedAs has the types of checkpoints that can be packed.
var storedAs = map[tensor.DType]int{tensor.BF16: fmtBF16, tensor.F16: fmtF16, tensor.F32: fmtF32}

// packFormat is the format that Pack holds a matrix in.
func packFormat(stored tensor.DType, f kernels.Format) (int, error) {
	from, ok := storedAs[stored]
	if !ok {
		return 0, fmt.Errorf("only F32, F16 and BF16 can be computed with: %w", device.ErrNotSupported)
	}
	if f == kernels.AsStored {
		return from, nil
	}
	to, ok := formatOf[f]
	if !ok {
		return 0, device.ErrNotSupported
	}
	return to, nil
}

// AllocBytes is n: slabs and guards are the system's memory, not the limit's.
func (l Layout) AllocBytes(n int64) int64 { return n }

// OpsBytes is 0: workers' scratch is small and on the heap.
func (l Layout) OpsBytes(kernels.OpsLimits) int64 { return 0 }

// Layout implements kernels.Backend.
func (b *Backend) Layout() kernels.Layout { return Layout{KV: b.kv} }
