package asmgen

import (
	"fmt"
	"strings"
)

// quantFormats are those of integers with scales.
var quantFormats = []string{"Q8", "Q4"}

// constants of 64 bytes each.
var constants = constant("ones", 0x0001000100010001) + // 16 bits
	constant("nibbles", 0x0f0f0f0f0f0f0f0f) + // 8 bits
	constant("sixbits", 0x0000003f0000003f) // 32 bits

func constant(name string, word uint64) string {
	var b strings.Builder
	b.WriteByte('\n')
	for at := 0; at < 64; at += 8 {
		fmt.Fprintf(&b, "DATA %s<>+%d(SB)/8, $0x%016x\n", name, at, word)
	}
	fmt.Fprintf(&b, "GLOBL %s<>(SB), RODATA|NOPTR, $64\n", name)
	return b.String()
}

// A group of 32 k of a panel: the 16 outputs' scales, 16 bits each, then the
// values. See package cpu's quantMatMul for what they mean.
const (
	scaleBytes = 32
	groupQ8    = scaleBytes + 32*16
	groupQ4    = scaleBytes + 32*16/2
	// The same 32 k of a row of activations: values, then their scale, and in
	// Q4 what takes the weights' offsets away.
	actQ8 = 32*2 + 4
	actQ4 = 32 + 2*4
)

// quant writes a kernel for Q8 or Q4. All sums within a group are of integers,
// so that their order does not matter; then one multiply-add a group into the
// output, k ascending, beginning with what dst holds. Panels take turns group
// by group: one row reads as many places of memory at once as it has registers
// for the outputs of.
type quant struct {
	gen
	format   string
	inMemory bool // outputs stay in dst: there are no registers for them
}

// quantLog2P is the most panels (as a power of two) for so many rows.
func quantLog2P(rows int) int { return map[int]int{1: 2, 2: 1}[rows] }

func (q *quant) acc(row, vec int) string { return q.v(row*q.isa.vecs + vec) }

func (q *quant) out(row, panel, vec int) string {
	return q.v((q.rows+row*q.panels+panel)*q.isa.vecs + vec)
}

// panelBases are the base registers of the panels; the last three are those
// of rows when there is one panel.
var panelBases = []string{"BX", "DI", "R11", "R12"}

func (q *quant) w(panel, off int) string { return fmt.Sprintf("%d(%s)", off, panelBases[panel]) }

// unit addresses the units of a panel of Q4.
func (q *quant) unit(panel, vec int) string {
	return fmt.Sprintf("%d(R15)", 32*vec) + []string{"", "(R10*1)", "(R10*2)", "(R13*1)"}[panel]
}

// tmp is a register that is free: the last four with AVX2.
func (q *quant) tmp(i int) string {
	if q.isa.vecs == 2 {
		return q.v(12 + i)
	}
	return q.v(24 + i)
}

// nibbles is the mask of the low half of each byte: with one row there is a
// register for it.
func (q *quant) nibbles() string {
	if q.rows > 1 {
		return "nibbles<>(SB)"
	}
	return q.v(10)
}

// dst addresses a vector of a row of the result.
func (q *quant) dst(row, vec int) string {
	base := []string{"DX", "R12"}[row/3]
	return fmt.Sprintf("%d(%s)", vec*32, base) + []string{"", "(R13*1)", "(R13*2)"}[row%3]
}

func (q *quant) zero(r string) {
	if q.isa.vecs == 2 {
		q.op("VPXOR %s, %s, %s", r, r, r)
	} else {
		q.op("VPXORD %s, %s, %s", r, r, r)
	}
}

func (q *quant) and(m, a, dst string) {
	if q.isa.vecs == 2 {
		q.op("VPAND %s, %s, %s", m, a, dst)
	} else {
		q.op("VPANDD %s, %s, %s", m, a, dst)
	}
}

// eachOut visits the outputs in dst, moving DX from row to row.
func (q *quant) eachOut(do func(at, reg string)) {
	q.op("MOVQ 32(AX), DX")
	for r := range q.rows {
		for p := range q.panels {
			for v := range q.isa.vecs {
				do(fmt.Sprintf("%d(DX)", 64*p+32*v), q.out(r, p, v))
			}
		}
		if r < q.rows-1 {
			q.op("ADDQ R13, DX")
		}
	}
}

func quantName(isa ISA, format string, rows, log2p int) string {
	return fmt.Sprintf("mm%sR%dP%d%s", format, rows, 1<<log2p, isa.Name)
}

func (q *quant) q4() bool { return q.format == "Q4" }

func (q *quant) kernel(log2p int) {
	name := quantName(q.isa, q.format, q.rows, log2p)
	q.panels = 1 << log2p
	q.inMemory = q.isa.vecs == 2 && q.rows > 3
	fmt.Fprintf(q, "\n// func %s(a *mmArgs)\n", name)
	fmt.Fprintf(q, "TEXT ·%s(SB), NOSPLIT, $0-8\n", name)
	q.op("MOVQ a+0(FP), AX")
	q.op("MOVQ 0(AX), SI")
	q.op("MOVQ 8(AX), R9")
	q.op("MOVQ 16(AX), BX")
	q.op("MOVQ 40(AX), R13")
	q.op("MOVQ 48(AX), CX")
	q.op("MOVQ 72(AX), R14")
	if q.q4() {
		q.op("MOVQ 80(AX), R15")
		if q.rows == 1 {
			q.op("VMOVDQU%s nibbles<>(SB), %s", q.dq(), q.nibbles())
		}
	}
	if q.panels > 1 {
		q.op("MOVQ 24(AX), R10")
		for p := range q.panels - 1 {
			q.op("LEAQ (%s)(R10*1), %s", panelBases[p], panelBases[p+1])
		}
	}
	if q.panels > 2 { // of one row: no steps in dst
		q.op("LEAQ (R10)(R10*2), R13")
	}
	if q.rows > 3 {
		q.op("LEAQ (R9)(R9*2), R10")
		q.op("LEAQ (SI)(R10*1), DI")
	}
	for i := 2; 3*i < q.rows; i++ {
		q.op("LEAQ (%s)(R10*1), %s", quantBases[i-1], quantBases[i])
	}
	q.op("MOVQ 64(AX), R8")
	q.op("TESTQ R8, R8")
	q.op("JEQ fresh")
	if !q.inMemory {
		q.eachOut(func(at, r string) { q.op("VMOVUPS %s, %s", at, r) })
	}
	q.op("JMP start")
	q.label("fresh")
	if q.inMemory {
		q.zero(q.tmp(0))
		q.eachOut(func(at, _ string) { q.op("VMOVUPS %s, %s", q.tmp(0), at) })
	} else {
		for i := range q.rows * q.panels * q.isa.vecs {
			q.zero(q.out(0, 0, i))
		}
	}
	q.label("start")
	if q.inMemory {
		q.op("MOVQ 32(AX), DX")
		q.op("LEAQ (R13)(R13*2), R12")
		q.op("ADDQ DX, R12")
	}
	q.label("group")
	size, act := groupQ8, actQ8
	if q.q4() {
		size, act = groupQ4, actQ4
	}
	for p := range q.panels {
		for at := 0; at < size; at += 64 {
			q.op("PREFETCHT1 %s(R14*1)", q.w(p, at))
		}
		if q.q4() {
			q.sumQ4(p)
			q.scaleQ4(p)
		} else {
			q.sumQ8(p)
			q.scaleQ8(p)
		}
	}
	q.op("ADDQ 96(AX), R14")
	for _, base := range panelBases[:q.panels] {
		q.op("ADDQ $%d, %s", size, base)
	}
	for i := 0; 3*i < q.rows; i++ {
		q.op("ADDQ $%d, %s", act, quantBases[i])
	}
	q.op("DECQ CX")
	q.op("JNE group")
	if !q.inMemory {
		q.eachOut(func(at, r string) { q.op("VMOVUPS %s, %s", r, at) })
	}
	q.op("VZEROUPPER")
	q.op("RET")
}

// quantBases are the base registers of three rows each.
var quantBases = []string{"SI", "DI", "R11", "R12"}

func (q *quant) x(row, off int) string {
	return fmt.Sprintf("%d(%s)", off, quantBases[row/3]) + []string{"", "(R9*1)", "(R9*2)"}[row%3]
}

// sumQ8 multiplies a group in pairs of k: 16 bits by 16 bits, sums of 32 bits.
func (q *quant) sumQ8(panel int) {
	n := q.isa.vecs
	for k := range 16 {
		for v := range n {
			q.op("VPMOVSXBW %s, %s", q.w(panel, scaleBytes+32*k+32/n*v), q.tmp(v))
		}
		b, t := q.tmp(2), q.tmp(3)
		for r := range q.rows {
			if q.isa.dots && n == 1 && k > 0 {
				q.op("VPDPWSSD.BCST %s, %s, %s", q.x(r, 4*k), q.tmp(0), q.acc(r, 0))
				continue
			}
			q.op("VPBROADCASTD %s, %s", q.x(r, 4*k), b)
			for v := range n {
				if q.isa.dots && k > 0 {
					q.dot("VPDPWSSD", b, q.tmp(v), q.acc(r, v))
					continue
				}
				if k == 0 {
					q.op("VPMADDWD %s, %s, %s", q.tmp(v), b, q.acc(r, v))
					continue
				}
				p := t
				if v == n-1 {
					p = b
				}
				q.op("VPMADDWD %s, %s, %s", q.tmp(v), b, p)
				q.op("VPADDD %s, %s, %s", p, q.acc(r, v), q.acc(r, v))
			}
		}
	}
}

// scaleQ8 adds sum · (scale of the weights · scale of the row).
func (q *quant) scaleQ8(panel int) {
	n := q.isa.vecs
	for v := range n {
		q.op("VCVTPH2PS %s, %s", q.w(panel, scaleBytes/n*v), q.tmp(v))
	}
	b, t := q.tmp(2), q.tmp(3)
	for r := range q.rows {
		q.op("VBROADCASTSS %s, %s", q.x(r, 64), b)
		for v := range n {
			q.op("VCVTDQ2PS %s, %s", q.acc(r, v), q.acc(r, v))
			q.op("VMULPS %s, %s, %s", b, q.tmp(v), t)
			q.add(r, panel, v, t)
		}
	}
}

// add adds the sum, times t, to the output; when that is in memory the sum it
// then has is stored.
func (q *quant) add(r, panel, v int, t string) {
	if !q.inMemory {
		q.op("VFMADD231PS %s, %s, %s", t, q.acc(r, v), q.out(r, panel, v))
		return
	}
	q.op("VFMADD213PS %s, %s, %s", q.dst(r, v), t, q.acc(r, v))
	if !q.q4() {
		q.op("VMOVUPS %s, %s", q.acc(r, v), q.dst(r, v))
	}
}

// sumQ4 multiplies a group in fours of k: 4 unsigned bits by 8 signed ones,
// sums of 16 bits. They hold: 8 pairs of at most 2 · 15 · 127.
func (q *quant) sumQ4(panel int) {
	n := q.isa.vecs
	raw, lo, b, t := q.tmp(0), q.tmp(1), q.tmp(2), q.tmp(3)
	for k := range 4 {
		for v := range n {
			q.op("VMOVDQU%s %s, %s", q.dq(), q.w(panel, scaleBytes+64*k+32*v), raw)
			q.and(q.nibbles(), raw, lo)
			q.op("VPSRLW $4, %s, %s", raw, raw)
			q.and(q.nibbles(), raw, raw)
			for half, w := range []string{lo, raw} {
				for r := range q.rows {
					if q.isa.dots {
						if k == 0 && half == 0 {
							q.zero(q.acc(r, v))
						}
						if n == 1 {
							q.op("VPDPBUSD.BCST %s, %s, %s", q.x(r, 8*k+4*half), w, q.acc(r, v))
							continue
						}
					}
					b := b
					if r%2 == 1 {
						b = t
					}
					q.op("VPBROADCASTD %s, %s", q.x(r, 8*k+4*half), b)
					if q.isa.dots {
						q.dot("VPDPBUSD", b, w, q.acc(r, v))
						continue
					}
					if k == 0 && half == 0 {
						q.op("VPMADDUBSW %s, %s, %s", b, w, q.acc(r, v))
						continue
					}
					q.op("VPMADDUBSW %s, %s, %s", b, w, b)
					q.op("VPADDW %s, %s, %s", b, q.acc(r, v), q.acc(r, v))
				}
			}
		}
	}
}

// dot writes a dot product of registers in the encoding of processors without
// AVX-512 (VEX.256.66.0F38.W0), which the assembler does not know.
func (q *quant) dot(op, a, b, dst string) {
	reg := func(s string) int {
		var n int
		fmt.Sscanf(s, "Y%d", &n)
		return n
	}
	code := map[string]int{"VPDPBUSD": 0x50, "VPDPWSSD": 0x52}[op]
	d, v, m := reg(dst), reg(b), reg(a)
	q.op("BYTE $0xc4; BYTE $%#02x; BYTE $%#02x; BYTE $%#02x; BYTE $%#02x // %s %s, %s, %s",
		(1-d/8)<<7|1<<6|(1-m/8)<<5|2, (15-v)<<3|4|1, code, 0xc0|d%8<<3|m%8, op, a, b, dst)
}

func (q *quant) dq() string {
	if q.isa.vecs == 2 {
		return ""
	}
	return "32"
}

// scaleQ4 adds sum · (s · scale of the row) − z · (scale · Σ of the row).
func (q *quant) scaleQ4(panel int) {
	n := q.isa.vecs
	s, z, t := q.tmp(0), q.tmp(1), q.tmp(2)
	scale, sum := q.v(11), q.tmp(3) // of the row, when there is one: all panels'
	if q.rows == 1 && panel == 0 {
		q.op("VBROADCASTSS %s, %s", q.x(0, 32), scale)
		q.op("VBROADCASTSS %s, %s", q.x(0, 36), sum)
	}
	for v := range n {
		q.op("VPMOVZXWD %s, %s", q.w(panel, scaleBytes/n*v), s)
		q.op("VPSRLD $6, %s, %s", s, z)
		q.and("sixbits<>(SB)", s, s)
		for _, r := range []string{s, z} {
			q.op("VCVTDQ2PS %s, %s", r, r)
			q.op("VMULPS %s, %s, %s", q.unit(panel, v), r, r)
		}
		for r := range q.rows {
			a := q.acc(r, v)
			if !q.isa.dots { // of pairs of 16 bits, one of 32
				q.op("VPMADDWD ones<>(SB), %s, %s", a, a)
			}
			q.op("VCVTDQ2PS %s, %s", a, a)
			if q.rows == 1 {
				q.op("VMULPS %s, %s, %s", scale, s, s)
				q.add(r, panel, v, s)
				q.op("VFMADD231PS %s, %s, %s", sum, z, q.out(r, panel, v))
				continue
			}
			q.op("VBROADCASTSS %s, %s", q.x(r, 32), t)
			q.op("VMULPS %s, %s, %s", s, t, t)
			q.add(r, panel, v, t)
			q.op("VBROADCASTSS %s, %s", q.x(r, 36), t)
			if !q.inMemory {
				q.op("VFMADD231PS %s, %s, %s", z, t, q.out(r, panel, v))
				continue
			}
			q.op("VFMADD231PS %s, %s, %s", z, t, a)
			q.op("VMOVUPS %s, %s", a, q.dst(r, v))
		}
	}
}
