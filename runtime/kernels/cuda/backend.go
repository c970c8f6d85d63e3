package cuda

import (
	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// Backend computes on one GPU.
type Backend struct {
	dev *Device
	act tensor.DType
	kv  tensor.DType
}

func newBackend(d *Device, p Precision) *Backend {
	b := &Backend{dev: d, act: tensor.F32, kv: tensor.BF16}
	switch p {
	case BF16:
		b.act = tensor.BF16
	case F32:
		b.kv = tensor.F32
	}
	return b
}

// Device is the GPU.
func (b *Backend) Device() device.Device { return b.dev }

// ActType is F32, or BF16; see Precision.
func (b *Backend) ActType() tensor.DType { return b.act }

// KVType is BF16, or F32; see Precision.
func (b *Backend) KVType() tensor.DType { return b.kv }

// NewOps opens the operations on a stream of this device.
func (b *Backend) NewOps(s device.Stream) (kernels.Ops, error) {
	o := &ops{
		stream: s.(*stream), fn: b.dev.fn, actType: b.act, kvType: b.kv,
		act: actIndex(b.act), pair: pairIndex(b.kv, b.act),
	}
	o.stream.ops = append(o.stream.ops, o)
	return o, nil
}

// WeightBytes is what Pack takes of the device's memory for a matrix whose
// checkpoint has type d: the layout is padded to whole tiles.
func (b *Backend) WeightBytes(rows, cols int, d tensor.DType, f kernels.Format) int64 {
	l := layout{format: resident(d, f), rows: rows, cols: cols}
	if n := l.bytes() + l.scaleBytes(); n > 0 {
		return (n + granule - 1) &^ (granule - 1)
	}
	return 0
}
