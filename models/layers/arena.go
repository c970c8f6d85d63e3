package layers

import (
	"encoding/binary"
	"math"

	"infer/runtime/device"
	"infer/runtime/tensor"
)

const align = 64 // bytes, of every tensor in an arena

// arena lays tensors out in one buffer of a device: first all are reserved,
// then the buffer is made.
type arena struct {
	size int64
	buf  device.Buffer
}

// vector is a tensor reserved in an arena; the zero vector is none.
type vector struct {
	offset int64
	shape  tensor.Shape
	dtype  tensor.DType
}

func (a *arena) reserve(d tensor.DType, shape tensor.Shape) vector {
	v := vector{offset: a.size, shape: shape, dtype: d}
	bytes := (int64(shape.Elems())*int64(d.Bits()) + 7) / 8
	a.size = (a.size + bytes + align - 1) &^ (align - 1)
	return v
}

func (a *arena) alloc(d device.Device) error {
	if a.size == 0 {
		return nil
	}
	buf, err := d.Alloc(a.size)
	if err != nil {
		return err
	}
	a.buf = buf
	return nil
}

// at is the tensor of a reserved vector, or none.
func (a *arena) at(v vector) tensor.Tensor {
	if v.dtype == tensor.Invalid {
		return tensor.Tensor{}
	}
	return tensor.Tensor{Buf: a.buf, Offset: v.offset, DType: v.dtype, Shape: v.shape}
}

func (a *arena) free() error {
	if a.buf == nil {
		return nil
	}
	buf := a.buf
	a.buf = nil
	return buf.Free()
}

// putF32 writes values little-endian.
func putF32(dst []byte, vals []float32) {
	for i, v := range vals {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
	}
}
