package ref

import (
	"encoding/binary"
	"fmt"
	"math"

	"infer/runtime/tensor"
)

// load reads elements lo..lo+len(dst) of t.
func load(dst []float64, t tensor.Tensor, lo int) {
	loadBytes(dst, mem(t), lo, t.DType)
}

func loadBytes(dst []float64, b []byte, lo int, d tensor.DType) {
	switch d {
	case tensor.F32:
		for i := range dst {
			dst[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*(lo+i):])))
		}
	case tensor.F16:
		for i := range dst {
			dst[i] = float64(tensor.F16ToF32(binary.LittleEndian.Uint16(b[2*(lo+i):])))
		}
	case tensor.BF16:
		for i := range dst {
			dst[i] = float64(tensor.BF16ToF32(binary.LittleEndian.Uint16(b[2*(lo+i):])))
		}
	default:
		panic(fmt.Sprintf("ref: cannot compute with %v", d))
	}
}

// store writes elements lo..lo+len(src) of t, rounding to its type. (To 16
// bits by way of float32, as a device does that accumulates in float32.)
func store(t tensor.Tensor, lo int, src []float64) {
	b := mem(t)
	switch t.DType {
	case tensor.F32:
		for i, v := range src {
			binary.LittleEndian.PutUint32(b[4*(lo+i):], math.Float32bits(float32(v)))
		}
	case tensor.F16:
		for i, v := range src {
			binary.LittleEndian.PutUint16(b[2*(lo+i):], tensor.F32ToF16(float32(v)))
		}
	case tensor.BF16:
		for i, v := range src {
			binary.LittleEndian.PutUint16(b[2*(lo+i):], tensor.F32ToBF16(float32(v)))
		}
	default:
		panic(fmt.Sprintf("ref: cannot compute with %v", t.DType))
	}
}

// all is the whole of t.
func all(t tensor.Tensor) []float64 {
	v := make([]float64, t.Shape.Elems())
	load(v, t, 0)
	return v
}

// must panics with the op's name when operands do not fit together: that is a
// programming error.
func must(ok bool, op string, ts ...tensor.Tensor) {
	if ok {
		return
	}
	s := "ref: " + op + ": operands do not fit together:"
	for _, t := range ts {
		s += fmt.Sprintf(" %v%v", t.DType, t.Shape)
	}
	panic(s)
}

func isMatrix(t tensor.Tensor, rows, cols int) bool { return t.Shape == tensor.Of(rows, cols) }
