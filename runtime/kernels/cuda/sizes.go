package cuda

import (
	"fmt"

	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// Layout is a GPU's kernels.Layout. It needs neither a GPU nor a driver.
type Layout struct {
	Act, KV tensor.DType // Invalid: F32 activations, BF16 K/V pages
}

var _ kernels.Layout = Layout{}

// ActType is what was set.
func (l Layout) ActType() tensor.DType {
	if l.Act == tensor.Invalid {
		return tensor.F32
	}
	return l.Act
}

// KVType is what was set.
func (l Layout) KVType() tensor.DType {
	if l.KV == tensor.Invalid {
		return tensor.BF16
	}
	return l.KV
}

// WeightBytes counts tiles of 16 × 32 values, an even number of them across,
// and the scales of quantised formats.
func (l Layout) WeightBytes(rows, cols int, stored tensor.DType, f kernels.Format) (int64, error) {
	from, ok := map[tensor.DType]kernels.Format{tensor.BF16: kernels.BF16, tensor.F16: kernels.F16, tensor.F32: kernels.F32}[stored]
	if !ok {
		return 0, fmt.Errorf("a %d×%d matrix of %v: only F32, F16 and BF16 can be computed with: %w", rows, cols, stored, device.ErrNotSupported)
	}
	if f == kernels.AsStored {
		f = from
	}
	y := layout{format: f, rows: rows, cols: cols}
	n := l.AllocBytes(y.bytes())
	if s := y.scaleBytes(); s > 0 {
		n += l.AllocBytes(s)
	}
	return n, nil
}

// AllocBytes rounds up to what the driver aligns to.
func (l Layout) AllocBytes(n int64) int64 { return (n + 511) &^ 511 }

// OpsBytes: the batch's lists, and for decoding the partial results of
// attention that is split along the context: numerator, maximum and sum, in
// F32, of each sequence, head and piece.
func (l Layout) OpsBytes(o kernels.OpsLimits) int64 {
	const pieces = 32
	tables := o.Seqs * ((o.Context + kernels.BlockSize - 1) / kernels.BlockSize)
	lists := 4 * (4*o.Tokens + 4*o.Seqs + o.Logits + tables)
	partials := 4 * o.Seqs * o.Heads.Q * pieces * (o.Heads.Dim + 2)
	return l.AllocBytes(int64(lists)) + l.AllocBytes(int64(partials))
}
