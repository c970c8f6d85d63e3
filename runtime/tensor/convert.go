package tensor

import (
	"encoding/binary"
	"fmt"
	"math"
)

// BF16ToF32 widens a bfloat16; exact.
func BF16ToF32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// F32ToBF16 rounds to nearest even; NaN stays NaN.
func F32ToBF16(f float32) uint16 {
	b := math.Float32bits(f)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// F16ToF32 widens an IEEE 754 binary16; exact.
func F16ToF32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exp := uint32(h >> 10 & 0x1f)
	man := uint32(h & 0x3ff)
	switch exp {
	case 0: // zero or subnormal: man × 2^-24
		f := float32(man) * (1.0 / (1 << 24))
		return math.Float32frombits(math.Float32bits(f) | sign)
	case 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | man<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | man<<13)
}

// F32ToF16 rounds to nearest even, with subnormals and overflow to infinity.
func F32ToF16(f float32) uint16 {
	b := math.Float32bits(f)
	sign := uint16(b >> 16 & 0x8000)
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000: // NaN
		return sign | 0x7e00
	case b >= 0x477ff000: // rounds to infinity: ≥ 65520
		return sign | 0x7c00
	case b < 0x38800000: // subnormal half: let float32 addition round at 2^-24
		r := math.Float32frombits(b) + 0.5 // ulp of 0.5 is 2^-24
		return sign | uint16(math.Float32bits(r)-0x3f000000)
	}
	return sign | uint16((b-0x38000000+0xfff+b>>13&1)>>13)
}

// ToF32 converts little-endian elements of type d in src to dst. It handles
// the types that weights are computed from: F32, F16, BF16, F64.
func ToF32(dst []float32, src []byte, d DType) error {
	if want := len(dst) * d.Bits() / 8; len(src) != want {
		return fmt.Errorf("convert %d %v elements: have %d bytes, want %d", len(dst), d, len(src), want)
	}
	switch d {
	case F32:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
		}
	case BF16:
		for ; len(dst) >= 4; dst, src = dst[4:], src[8:] {
			v := binary.LittleEndian.Uint64(src)
			dst[0], dst[1] = math.Float32frombits(uint32(v)<<16), math.Float32frombits(uint32(v)&0xffff0000)
			dst[2], dst[3] = math.Float32frombits(uint32(v>>32)<<16), math.Float32frombits(uint32(v>>32)&0xffff0000)
		}
		for i := range dst {
			dst[i] = BF16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
		}
	case F16:
		for i := range dst {
			dst[i] = F16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
		}
	case F64:
		for i := range dst {
			dst[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(src[8*i:])))
		}
	default:
		return fmt.Errorf("cannot compute with %v weights: convert the checkpoint to BF16, F16 or F32", d)
	}
	return nil
}
