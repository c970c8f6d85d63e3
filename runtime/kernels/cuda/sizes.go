package cuda

import (
	"fmt"
	"math"

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

// WeightBytes is the matrix padded to whole tiles, with its scales.
func (l Layout) WeightBytes(rows, cols int, stored tensor.DType, f kernels.Format) (int64, error) {
	w, err := newLayout(rows, cols, stored, f)
	if err != nil {
		return 0, err
	}
	return roundUp(w.bytes() + w.scaleBytes()), nil
}

// AllocBytes is n in whole granules of the driver.
func (l Layout) AllocBytes(n int64) int64 { return roundUp(n) }

func roundUp(n int64) int64 { return (max(n, 1) + granule - 1) &^ (granule - 1) }

// OpsBytes bounds the batch's tables, attention's scratch memory and the
// results of digests.
func (l Layout) OpsBytes(o kernels.OpsLimits) int64 {
	h, seqs := o.Heads, min(o.Seqs, o.Tokens)
	group := max(1, h.Q/max(1, h.KV))
	stride := powerOfTwo(max((o.Context+kernels.BlockSize-1)/kernels.BlockSize, 4))
	splits := powerOfTwo((o.Context + splitLen - 1) / splitLen)
	items := 4 * (seqs + (o.Tokens*max(group, reservedGroup)+itemFew-1)/itemFew)
	tables := 4 * int64(4*o.Tokens+o.Logits+seqs*stride+items)
	counters := 4 * int64(items/4) * int64(2*h.KV)
	return roomFor(tables) + roomFor(scratchFor(o.Tokens, splits, h)) + roomFor(counters) + roundUp(maxResults*16)
}

// roomFor is what grow takes for n bytes: somewhat more, so that growing is
// rare.
func roomFor(n int64) int64 {
	step := int64(64 << 10)
	for 8*step < n {
		step *= 2
	}
	return (n + step - 1) / step * step
}

// scratchBytes is what attention takes for the results of splits, or for those
// of one sequence where that is more.
const scratchBytes = 64 << 20

// splitBytes is the results of one row's splits.
func splitBytes(splits int, h kernels.Heads) int64 {
	return int64(splits) * int64(h.Q) * 4 * int64(h.Dim+2*halves(h.Dim))
}

// halves is how many blocks share a row's values.
func halves(dim int) int {
	if dim > 128 {
		return 2
	}
	return 1
}

// scratchFor bounds the scratch memory of a step with rows.
func scratchFor(rows, splits int, h kernels.Heads) int64 {
	row := splitBytes(splits, h)
	group := max(1, h.Q/max(1, h.KV))
	one := min(int64(rows), int64(max(1, fewFlats/group))) * row // a sequence is not divided
	return max(min(int64(rows)*row, max(scratchBytes, one)), 1) + int64(rows)*int64(h.Q)*int64(h.Dim)*4
}

// newLayout is the layout that a matrix of a type gets in a format.
func newLayout(rows, cols int, stored tensor.DType, f kernels.Format) (layout, error) {
	if formatOf(stored) == kernels.AsStored || int(f) >= numFormats {
		return layout{}, fmt.Errorf("a %d×%d matrix of %v as %v: only F32, F16 and BF16 can be computed with: %w",
			rows, cols, stored, f, device.ErrNotSupported)
	}
	if rows < 1 || cols < 1 || rows > math.MaxInt32-tileRows || cols > math.MaxInt32-pairCols ||
		int64(cols) > math.MaxInt64/64/int64(rows+tileRows) {
		return layout{}, fmt.Errorf("a %d×%d matrix of %v as %v: sizes out of range", rows, cols, stored, f)
	}
	return layout{format: resident(stored, f), rows: rows, cols: cols}, nil
}
