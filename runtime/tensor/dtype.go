package tensor

import "fmt"

// DType is an element type. The names are those of the safetensors format.
type DType uint8

// The element types of the safetensors format, version 0.8.
const (
	Invalid DType = iota
	Bool
	F4     // E2M1, two elements a byte
	F6E2M3 // four elements in three bytes
	F6E3M2
	U8
	I8
	F8E5M2
	F8E4M3
	F8E8M0 // a power of two, the scale of the MX formats
	F8E4M3FNUZ
	F8E5M2FNUZ
	I16
	U16
	F16
	BF16
	I32
	U32
	F32
	C64 // two F32: real, imaginary
	F64
	I64
	U64
	numDTypes
)

var dtypes = [numDTypes]struct {
	name string
	bits int
}{
	Invalid: {"INVALID", 0},
	Bool:    {"BOOL", 8},
	F4:      {"F4", 4}, F6E2M3: {"F6_E2M3", 6}, F6E3M2: {"F6_E3M2", 6},
	U8: {"U8", 8}, I8: {"I8", 8},
	F8E5M2: {"F8_E5M2", 8}, F8E4M3: {"F8_E4M3", 8}, F8E8M0: {"F8_E8M0", 8},
	F8E4M3FNUZ: {"F8_E4M3FNUZ", 8}, F8E5M2FNUZ: {"F8_E5M2FNUZ", 8},
	I16: {"I16", 16}, U16: {"U16", 16}, F16: {"F16", 16}, BF16: {"BF16", 16},
	I32: {"I32", 32}, U32: {"U32", 32}, F32: {"F32", 32},
	C64: {"C64", 64}, F64: {"F64", 64}, I64: {"I64", 64}, U64: {"U64", 64},
}

// Bits is the size of one element in bits; 0 for Invalid.
func (d DType) Bits() int {
	if d >= numDTypes {
		return 0
	}
	return dtypes[d].bits
}

// String is the type's name in the safetensors format.
func (d DType) String() string {
	if d >= numDTypes {
		return fmt.Sprintf("DType(%d)", uint8(d))
	}
	return dtypes[d].name
}

// ParseDType finds a type by its safetensors name; names are case-sensitive.
func ParseDType(name string) (DType, bool) {
	for d := Bool; d < numDTypes; d++ {
		if dtypes[d].name == name {
			return d, true
		}
	}
	return Invalid, false
}
