package tensor

import (
	"fmt"
	"slices"
	"strings"
)

// MaxRank is the largest number of dimensions of a Tensor that kernels see.
// (Checkpoints may hold tensors of higher rank; the loader keeps those shapes
// as plain slices.)
const MaxRank = 4

// Shape has up to MaxRank dimensions, outermost first. It is comparable and
// copied by value, so that building a view never allocates.
type Shape struct {
	rank int
	dims [MaxRank]int
}

// Of makes a shape. It panics on more than MaxRank or on negative dimensions:
// both are programming errors, sizes from files are checked before.
func Of(dims ...int) Shape {
	if len(dims) > MaxRank {
		panic(fmt.Sprintf("tensor: rank %d is above %d", len(dims), MaxRank))
	}
	s := Shape{rank: len(dims)}
	for i, d := range dims {
		if d < 0 {
			panic(fmt.Sprintf("tensor: negative dimension in %v", slices.Clone(dims))) // dims itself stays on the stack
		}
		s.dims[i] = d
	}
	return s
}

// Rank is the number of dimensions.
func (s Shape) Rank() int { return s.rank }

// Dim is the size of dimension i, 0 being the outermost.
func (s Shape) Dim(i int) int { return s.dims[i] }

// Elems is the number of elements; 1 for rank 0.
func (s Shape) Elems() int {
	n := 1
	for i := range s.rank {
		n *= s.dims[i]
	}
	return n
}

// String is like [2, 3].
func (s Shape) String() string {
	var b strings.Builder
	b.WriteByte('[')
	for i := range s.rank {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, s.dims[i])
	}
	b.WriteByte(']')
	return b.String()
}

// Buffer is memory of one device. Only that device's backend can look inside.
type Buffer interface {
	// Size in bytes.
	Size() int64
}

// Tensor is a contiguous row-major view into a Buffer. The zero Tensor stands
// for "none" where an operation has an optional operand.
type Tensor struct {
	Buf    Buffer
	Offset int64 // bytes from the start of Buf
	DType  DType
	Shape  Shape
}

// IsNone tells whether t is the zero Tensor.
func (t Tensor) IsNone() bool { return t.Buf == nil }

// Bytes is the size of the view in bytes.
func (t Tensor) Bytes() int64 {
	return (int64(t.Shape.Elems())*int64(t.DType.Bits()) + 7) / 8
}

// Rows is the view of rows lo..hi (half-open) of the outermost dimension.
func (t Tensor) Rows(lo, hi int) Tensor {
	if lo < 0 || hi < lo || hi > t.Shape.dims[0] {
		panic(fmt.Sprintf("tensor: rows %d..%d of %v", lo, hi, t.Shape))
	}
	row := int64(t.DType.Bits())
	for i := 1; i < t.Shape.rank; i++ {
		row *= int64(t.Shape.dims[i])
	}
	t.Offset += int64(lo) * row / 8
	t.Shape.dims[0] = hi - lo
	return t
}
