// Package tensor has the nouns every room shares: element types, shapes, and
// Tensor, a view into memory of some device.
//
//	Buffer  ████████████████████████████  memory of one device, opaque here
//	Tensor      └── Offset ──┤ Shape × DType, row-major, contiguous ├
//
// A Tensor has no operations: kernels.Ops acts on it. The only computation in
// this package is the conversion of element types in host memory (convert.go).
//
// This package never allocates device memory and imports no other room.
package tensor
