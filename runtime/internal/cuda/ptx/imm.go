package ptx

import (
	"math"
	"strconv"
	"strings"
)

// immediate reads a PTX literal: integers in four bases with an optional U,
// 0f and 0d bit patterns, decimal fractions (which are f64).
func immediate(s string, neg bool) (operand, bool) {
	op := operand{kind: opImm}
	if s == "" {
		return op, false
	}
	if s == "WARP_SZ" {
		op.imm = 32
		return op, true
	}
	if s[0] < '0' || s[0] > '9' {
		return op, false
	}
	if len(s) > 2 && s[0] == '0' {
		switch s[1] {
		case 'f', 'F':
			bits, err := strconv.ParseUint(s[2:], 16, 32)
			if neg {
				bits ^= 1 << 31
			}
			op.imk, op.imm = immF32, bits
			return op, err == nil && len(s) == 10
		case 'd', 'D':
			bits, err := strconv.ParseUint(s[2:], 16, 64)
			if neg {
				bits ^= 1 << 63
			}
			op.imk, op.imm = immF64, bits
			return op, err == nil && len(s) == 18
		}
	}
	if strings.ContainsAny(s, ".") {
		f, err := strconv.ParseFloat(s, 64)
		if neg {
			f = -f
		}
		op.imk, op.imm = immF64, math.Float64bits(f)
		return op, err == nil
	}
	v, err := strconv.ParseUint(strings.TrimRight(s, "U"), 0, 64)
	if neg {
		v = -v
	}
	op.imm = v
	return op, err == nil
}

// immBits is an immediate's bit pattern as an operand of type t.
func immBits(op operand, t typ) uint64 {
	switch op.imk {
	case immF32:
		f := math.Float32frombits(uint32(op.imm))
		switch t {
		case tF64:
			return math.Float64bits(float64(f))
		case tF16:
			return uint64(f16FromFloat(float64(f), rndNearest))
		case tBF16:
			return uint64(bf16FromFloat(float64(f), rndNearest))
		}
	case immF64:
		f := math.Float64frombits(op.imm)
		switch t {
		case tF32:
			return uint64(math.Float32bits(float32(f)))
		case tF16:
			return uint64(f16FromFloat(f, rndNearest))
		case tBF16:
			return uint64(bf16FromFloat(f, rndNearest))
		}
	case immInt:
		switch t {
		case tF32, tTF32:
			return uint64(math.Float32bits(float32(int64(op.imm))))
		case tF64:
			return math.Float64bits(float64(int64(op.imm)))
		}
	}
	switch t.size() {
	case 1:
		return op.imm & 0xff
	case 2:
		return op.imm & 0xffff
	case 4:
		return op.imm & 0xffffffff
	}
	return op.imm
}
