package cuda

import (
	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// Backend computes on one GPU.
type Backend struct {
	dev    *Device
	layout Layout
	act    tensor.DType
	kv     tensor.DType
}

func newBackend(d *Device, p Precision) *Backend {
	l := p.Layout()
	return &Backend{dev: d, layout: l, act: l.ActType(), kv: l.KVType()}
}

// Layout of a backend of this precision.
func (p Precision) Layout() Layout {
	switch p {
	case BF16:
		return Layout{Act: tensor.BF16, KV: tensor.BF16}
	case F32:
		return Layout{Act: tensor.F32, KV: tensor.F32}
	}
	return Layout{Act: tensor.F32, KV: tensor.BF16}
}

// Device is the GPU.
func (b *Backend) Device() device.Device { return b.dev }

// ActType is F32, or BF16; see Precision.
func (b *Backend) ActType() tensor.DType { return b.act }

// KVType is BF16, or F32; see Precision.
func (b *Backend) KVType() tensor.DType { return b.kv }

// NewOps opens the operations on a stream of this device. It compiles the
// smallest kernel, so that a driver which refuses them says so before weights
// are read: device.ErrRefused.
func (b *Backend) NewOps(s device.Stream) (kernels.Ops, error) {
	if err := b.dev.do("open the operations", b.dev.fn.digest.resolve); err != nil {
		return nil, err
	}
	o := &ops{
		stream: s.(*stream), fn: b.dev.fn, actType: b.act, kvType: b.kv,
		act: actIndex(b.act), pair: pairIndex(b.kv, b.act),
	}
	o.stream.ops = append(o.stream.ops, o)
	return o, nil
}

// Layout implements kernels.Backend.
func (b *Backend) Layout() kernels.Layout { return b.layout }
