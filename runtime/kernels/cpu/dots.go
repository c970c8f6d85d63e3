package cpu

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// Dot products of bfloat16 (AVX512_BF16) take pairs of k as a panel of BF16
// weights has them, twice the multiply-adds of float32's instructions, and
// activations rounded to bfloat16: 32 k of a row after the other. PyTorch and
// llama.cpp round them too. So do attention's queries and probabilities for pages
// of BF16. An output is one chain of float32 multiply-adds, in a
// pair of k the second first; what is below 2⁻¹²⁶ counts as 0.
const (
	actDots = 2 * groupLen
	actPair = 2 * 2
)

// formatOf is the format of the kernels for a weight. Tiles and dot products of
// bfloat16 want whole groups.
func (s *mmSet) formatOf(w *weight) int {
	if w.format == fmtBF16 && w.cols%groupLen == 0 {
		for _, f := range []int{fmtTile, fmtDots} {
			if s.kernels[f][1][0] != nil {
				return f
			}
		}
	}
	return w.format
}

// roundGo rounds to the nearest even.
func roundGo(dst *byte, x *float32, groups int) {
	d := unsafe.Slice(dst, groups*actDots)
	for i, v := range slice(x, groups*groupLen) {
		binary.LittleEndian.PutUint16(d[2*i:], bfloat16(v))
	}
}

func bfloat16(x float32) uint16 {
	bits := math.Float32bits(x)
	switch {
	case x != x:
		return uint16(bits>>16 | 0x40)
	case bits&0x7f800000 == 0:
		return uint16(bits >> 16 & 0x8000)
	}
	return uint16(roundBF16(bits) >> 16)
}
