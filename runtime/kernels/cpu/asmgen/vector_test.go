package asmgen

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
)

// Lanes of a register or of memory.
func u32(b []byte, i int) uint32  { return binary.LittleEndian.Uint32(b[4*i:]) }
func f32(b []byte, i int) float32 { return math.Float32frombits(u32(b, i)) }
func i16(b []byte, i int) int32   { return int32(int16(binary.LittleEndian.Uint16(b[2*i:]))) }

func putU32(b []byte, i int, v uint32)  { binary.LittleEndian.PutUint32(b[4*i:], v) }
func putF32(b []byte, i int, v float32) { putU32(b, i, math.Float32bits(v)) }
func putI16(b []byte, i int, v int32)   { binary.LittleEndian.PutUint16(b[2*i:], uint16(v)) }

// half widens a float16.
func half(h uint16) float32 {
	sign, exp, frac := uint32(h>>15)<<31, uint32(h>>10&31), uint32(h&1023)
	switch exp {
	case 0:
		return math.Float32frombits(sign | math.Float32bits(float32(frac)/(1<<24))&^(1<<31))
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

// saturate keeps a sum within 16 bits.
func saturate(v int32) int32 { return min(max(v, math.MinInt16), math.MaxInt16) }

// flush makes 0 of what is below 2⁻¹²⁶.
func flush(x float32) float32 {
	if math.Abs(float64(x)) < 0x1p-126 {
		return float32(math.Copysign(0, float64(x)))
	}
	return x
}

// tiny is a number by its bits, flushed.
func tiny(bits uint32) float32 { return flush(math.Float32frombits(bits)) }

// bfloat16 rounds a float32 to the nearest even.
func bfloat16(bits uint32) int32 {
	if x := math.Float32frombits(bits); x != x {
		return int32(bits>>16 | 0x40)
	}
	bits = math.Float32bits(tiny(bits))
	return int32((bits + 0x7fff + bits>>16&1) >> 16)
}

// vector executes a vector instruction. Operands are in the assembler's order:
// the destination last, what may be memory first.
func (m *machine) vector(op string, args []string) {
	dst, size := vector(args[len(args)-1])
	n := size / 4
	if size == 0 { // a store
		r, size := vector(args[0])
		if op != "VMOVUPS" && op != "VMOVDQU32" {
			panic("no store " + op)
		}
		copy(m.at(m.address(args[1]), size), m.vec[r][:size])
		return
	}
	var out [64]byte // the rest of the register becomes 0
	d := m.vec[dst][:]
	op, broadcast := strings.CutSuffix(op, ".BCST")
	a := func(i int) []byte {
		if i == 0 && broadcast {
			return bytes.Repeat(m.source(args[0], 4), n)
		}
		return m.source(args[i], size)
	}
	lanes := func(do func(x, y []byte, i int)) {
		x, y := a(0), a(1)
		for i := range n {
			do(x, y, i)
		}
	}
	switch op {
	case "VMOVUPS", "VMOVDQU", "VMOVDQU32":
		copy(out[:], a(0))
	case "VBROADCASTSS", "VPBROADCASTD":
		v, ok := uint32(m.gpr[args[0]]), false
		if _, ok = m.gpr[args[0]]; !ok {
			v = u32(m.source(args[0], 4), 0)
		}
		for i := range n {
			putU32(out[:], i, v)
		}
	case "VBROADCASTI32X4":
		copy(out[:size], bytes.Repeat(m.source(args[0], 16), size/16))
	case "VPSHUFB": // y by x, within 16 bytes
		x, y := a(0), a(1)
		for i, v := range x {
			if v < 0x80 {
				out[i] = y[i&^15+int(v&15)]
			}
		}
	case "VPUNPCKLBW", "VPUNPCKHBW": // y and x in turns, within 16 bytes
		x, y := a(0), a(1)
		for i := range size {
			from := i&^15 + i%16/2
			if op == "VPUNPCKHBW" {
				from += 8
			}
			out[i] = [][]byte{y, x}[i%2][from]
		}
	case "VPMOVSXBW":
		for i, v := range m.source(args[0], size/2) {
			putI16(out[:], i, int32(int8(v)))
		}
	case "VPMOVSXBD":
		for i, v := range m.source(args[0], n) {
			putU32(out[:], i, uint32(int8(v)))
		}
	case "VPMOVZXWD", "VCVTPH2PS":
		b := m.source(args[0], size/2)
		for i := range n {
			v := binary.LittleEndian.Uint16(b[2*i:])
			if op == "VPMOVZXWD" {
				putU32(out[:], i, uint32(v))
			} else {
				putF32(out[:], i, half(v))
			}
		}
	case "VCVTDQ2PS":
		x := a(0)
		for i := range n {
			putF32(out[:], i, float32(int32(u32(x, i))))
		}
	case "VPAND", "VPANDD":
		lanes(func(x, y []byte, i int) { putU32(out[:], i, u32(x, i)&u32(y, i)) })
	case "VPXOR", "VPXORD", "VXORPS":
		lanes(func(x, y []byte, i int) { putU32(out[:], i, u32(x, i)^u32(y, i)) })
	case "VPCMPEQD":
		lanes(func(x, y []byte, i int) {
			if u32(x, i) == u32(y, i) {
				putU32(out[:], i, math.MaxUint32)
			}
		})
	case "VPTERNLOGD":
		if args[0] != "$0xff" {
			panic("only all ones")
		}
		for i := range n {
			putU32(out[:], i, math.MaxUint32)
		}
	case "VPSLLD", "VPSRLD", "VPSRLW":
		x, by := m.source(args[1], size), m.integer(args[0])
		for i := range n {
			switch op {
			case "VPSLLD":
				putU32(out[:], i, u32(x, i)<<by)
			case "VPSRLD":
				putU32(out[:], i, u32(x, i)>>by)
			default:
				putI16(out[:], 2*i, int32(binary.LittleEndian.Uint16(x[4*i:])>>by))
				putI16(out[:], 2*i+1, int32(binary.LittleEndian.Uint16(x[4*i+2:])>>by))
			}
		}
	case "VPADDD":
		lanes(func(x, y []byte, i int) { putU32(out[:], i, u32(x, i)+u32(y, i)) })
	case "VPADDW":
		lanes(func(x, y []byte, i int) {
			for j := 2 * i; j < 2*i+2; j++ {
				putI16(out[:], j, i16(x, j)+i16(y, j))
			}
		})
	case "VPMADDWD":
		lanes(func(x, y []byte, i int) {
			putU32(out[:], i, uint32(i16(x, 2*i)*i16(y, 2*i)+i16(x, 2*i+1)*i16(y, 2*i+1)))
		})
	case "VPMADDUBSW": // signed by unsigned
		lanes(func(x, y []byte, i int) {
			for j := 2 * i; j < 2*i+2; j++ {
				putI16(out[:], j, saturate(int32(int8(x[2*j]))*int32(y[2*j])+int32(int8(x[2*j+1]))*int32(y[2*j+1])))
			}
		})
	case "VPDPWSSD":
		lanes(func(x, y []byte, i int) {
			putU32(out[:], i, u32(d, i)+uint32(i16(x, 2*i)*i16(y, 2*i)+i16(x, 2*i+1)*i16(y, 2*i+1)))
		})
	case "VPDPBUSD":
		lanes(func(x, y []byte, i int) {
			v := int32(u32(d, i))
			for j := 4 * i; j < 4*i+4; j++ {
				v += int32(int8(x[j])) * int32(y[j])
			}
			putU32(out[:], i, uint32(v))
		})
	case "VDPBF16PS": // the odd k first, each a multiply-add
		lanes(func(x, y []byte, i int) {
			acc := f32(d, i)
			for _, shift := range []int{0, 16} {
				acc = flush(fma(tiny(u32(x, i)<<shift&^0xffff), tiny(u32(y, i)<<shift&^0xffff), acc))
			}
			putF32(out[:], i, acc)
		})
	case "VCVTNE2PS2BF16":
		x, y := a(0), a(1)
		for i := range n {
			putI16(out[:], i, bfloat16(u32(x, i)))
			putI16(out[:], n+i, bfloat16(u32(y, i)))
		}
	case "VMULPS":
		lanes(func(x, y []byte, i int) { putF32(out[:], i, f32(x, i)*f32(y, i)) })
	case "VADDPS":
		lanes(func(x, y []byte, i int) { putF32(out[:], i, f32(x, i)+f32(y, i)) })
	case "VFMADD231PS": // dst += y · x
		lanes(func(x, y []byte, i int) { putF32(out[:], i, fma(f32(y, i), f32(x, i), f32(d, i))) })
	case "VFMADD213PS": // dst = y · dst + x
		lanes(func(x, y []byte, i int) { putF32(out[:], i, fma(f32(y, i), f32(d, i), f32(x, i))) })
	default:
		panic("no instruction " + op)
	}
	m.vec[dst] = out
}
