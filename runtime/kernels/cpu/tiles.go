package cpu

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// Matrix units (Intel AMX) multiply bfloat16 only: 16 rows of activations by a
// panel, 32 k at a time. A panel of BF16 weights is what they take as it lies.
// An activation is given in two parts that have its first 16 bits, what
// bfloat16 says of it and what bfloat16 says of the rest, each multiplied by
// the weights: answers stay those of float32 activations, at half the speed of
// the units, which is still many times that of vectors. Of a row, group after
// group:
//
//	[32] bfloat16 of x, [32] bfloat16 of what is left
//
// The units take numbers below 2⁻¹²⁶ as 0, and what is above 3.39e38 counts as
// infinite. An infinity makes a NaN of its outputs, since its second part is one.
//
// The order of the sums is not that of other kernels, so that products of one
// row take the units too: a row has the same bits in any batch.
const (
	amxRows   = 16
	tileBytes = lanes * 2 * groupLen // of weights
	actTile   = 2 * 2 * groupLen
	// Rows this far apart would take turns in one set of the first cache.
	badStride = 4096
)

// splitGo rounds both parts to the nearest even. The second is a NaN where x is
// not finite.
func splitGo(dst *byte, x *float32, groups int) {
	d := unsafe.Slice(dst, groups*actTile)
	for i, v := range slice(x, groups*groupLen) {
		high := roundBF16(math.Float32bits(v)) &^ 0xffff
		rest := v - math.Float32frombits(high)
		low := roundBF16(math.Float32bits(rest))
		if rest != rest {
			low = math.MaxUint32
		}
		at := i/groupLen*actTile + i%groupLen*2
		binary.LittleEndian.PutUint16(d[at:], uint16(high>>16))
		binary.LittleEndian.PutUint16(d[at+actTile/2:], uint16(low>>16))
	}
}

func roundBF16(bits uint32) uint32 { return bits + 0x7fff + bits>>16&1 }
