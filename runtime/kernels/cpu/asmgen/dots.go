package asmgen

import (
	"bytes"
	"fmt"
	"strings"
)

// The dot products of bfloat16 in AVX-512 (AVX512_BF16) take pairs of k as panels
// of bf16 weights have them, and activations that are rounded to bfloat16: 32 k
// of a row in 64 bytes, k ascending. An output is one chain of VDPBF16PS with k
// ascending, beginning with what dst holds, whatever the number of rows.

// dots is the set of instructions.
var dots = ISA{Name: "AVX512BF16", reg: "Z", vecs: 1, MaxR: ISAs[1].MaxR, Log2P: ISAs[1].Log2P}

const (
	actDots = 64 // bytes of 32 k of a row
	actPair = 4  // of 2
)

func dotsName(rows, log2p int) string {
	return fmt.Sprintf("mmDotsR%dP%d%s", rows, 1<<log2p, dots.Name)
}

// Dots is the assembly file.
func Dots() []byte {
	g := &gen{isa: dots}
	g.WriteString(header)
	g.WriteString("//go:build !purego\n\n#include \"textflag.h\"\n")
	for r := 1; r <= dots.MaxR; r++ {
		for p := 0; p <= dots.Log2P(r); p++ {
			g.dotsKernel(r, p)
		}
	}
	for r := 1; r <= dots.MaxR; r++ {
		for p := 0; p <= pairsLog2P(r); p++ {
			g.pairsKernel(r, p)
		}
	}
	for f := range denseNames {
		for r := 1; r <= dots.MaxR; r++ {
			for p := 0; p <= denseLog2P(r); p++ {
				g.denseKernel(f, r, p)
			}
		}
	}
	g.denseUnpack()
	g.dotsRound()
	g.dotsPeak()
	return g.Bytes()
}

// DotsTable is the Go file that declares the kernels and lists them.
func DotsTable() []byte {
	var b, list bytes.Buffer
	b.WriteString(header)
	b.WriteString("//go:build !purego\n\npackage cpu\n")
	for r := 1; r <= dots.MaxR; r++ {
		for p := 0; p <= dots.Log2P(r); p++ {
			n := dotsName(r, p)
			fmt.Fprintf(&b, "\n//go:noescape\nfunc %s(a *mmArgs)\n", n)
			fmt.Fprintf(&list, "\ts.kernels[fmtDots][%d][%d] = %s\n", r, p, n)
		}
	}
	for r := 1; r <= dots.MaxR; r++ {
		for p := 0; p <= pairsLog2P(r); p++ {
			n := pairsName(r, p)
			fmt.Fprintf(&b, "\n//go:noescape\nfunc %s(a *mmArgs)\n", n)
			fmt.Fprintf(&list, "\ts.kernels[fmtPairs][%d][%d] = %s\n", r, p, n)
		}
	}
	for f, format := range denseNames {
		for r := 1; r <= dots.MaxR; r++ {
			for p := 0; p <= denseLog2P(r); p++ {
				n := denseName(f, r, p)
				fmt.Fprintf(&b, "\n//go:noescape\nfunc %s(a *mmArgs)\n", n)
				fmt.Fprintf(&list, "\ts.kernels[fmt%s][%d][%d] = %s\n", format, r, p, n)
			}
		}
	}
	fmt.Fprintf(&b, "\n//go:noescape\nfunc %s%s(a *denseArgs)\n", denseUnpack, dots.Name)
	fmt.Fprintf(&b, "\n//go:noescape\nfunc round%s(dst *byte, x *float32, groups int)\n", dots.Name)
	b.WriteString("\nfunc peakDPBF16PS512(n int)\n")
	fmt.Fprintf(&b, "\nfunc mm%s() *mmSet {\n\ts := mmAVX512VNNI()\n%s\treturn s\n}\n", dots.Name, list.String())
	return b.Bytes()
}

func (g *gen) dotsKernel(rows, log2p int) {
	g.rows, g.panels = rows, 1<<log2p
	fmt.Fprintf(g, "\n// func %s(a *mmArgs)\n", dotsName(rows, log2p))
	fmt.Fprintf(g, "TEXT ·%s(SB), NOSPLIT, $0-8\n", dotsName(rows, log2p))
	g.op("MOVQ a+0(FP), AX")
	g.begin()
	g.places()
	g.label("group")
	g.op("LEAQ (BX)(R14*1), R15")
	if g.panels > 4 { // of one row
		g.op("LEAQ (R10)(R14*1), R13")
	}
	for pair := range groupPairs {
		for p := range g.panels {
			base := "R15"
			if p > 3 {
				base = "R13"
			}
			g.op("PREFETCHT1 %d(%s)%s", 64*pair, base, []string{"", "(R11*1)", "(R11*2)", "(R12*1)"}[p%4])
			g.op("VMOVUPS %s, %s", g.w(p, 64*pair), g.weight(p, 0))
		}
		for r := range rows {
			g.op("VBROADCASTSS %s, %s", g.x(r, 4*pair), g.bcast())
			for p := range g.panels {
				g.evex("VDPBF16PS", g.weight(p, 0), g.bcast(), g.acc(r, p, 0))
			}
		}
	}
	g.op("ADDQ 96(AX), R14")
	g.op("ADDQ $%d, BX", 64*groupPairs)
	if g.panels > 4 {
		g.op("ADDQ $%d, R10", 64*groupPairs)
	}
	g.moveX(actDots)
	g.op("DECQ CX")
	g.op("JNE group")
	g.end()
}

// The same for K/V pages: k counts pairs of bfloat16, of which those of w lie step
// bytes apart.

func pairsName(rows, log2p int) string {
	return fmt.Sprintf("mmPairsR%dP%d%s", rows, 1<<log2p, dots.Name)
}

func pairsLog2P(rows int) int { return min(2, dots.Log2P(rows)) }

func (g *gen) pairsKernel(rows, log2p int) {
	g.rows, g.panels = rows, 1<<log2p
	fmt.Fprintf(g, "\n// func %s(a *mmArgs)\n", pairsName(rows, log2p))
	fmt.Fprintf(g, "TEXT ·%s(SB), NOSPLIT, $0-8\n", pairsName(rows, log2p))
	g.op("MOVQ a+0(FP), AX")
	g.begin()
	g.places()
	g.op("MOVQ 56(AX), R8")
	g.label("pair")
	g.op("LEAQ (BX)(R14*1), R15")
	for p := range g.panels {
		g.op("PREFETCHT1 (R15)%s", []string{"", "(R11*1)", "(R11*2)", "(R12*1)"}[p])
		g.op("VMOVUPS %s, %s", g.w(p, 0), g.weight(p, 0))
	}
	for r := range rows {
		g.op("VBROADCASTSS %s, %s", g.x(r, 0), g.bcast())
		for p := range g.panels {
			g.evex("VDPBF16PS", g.weight(p, 0), g.bcast(), g.acc(r, p, 0))
		}
	}
	g.op("ADDQ 96(AX), R14")
	g.op("ADDQ R8, BX")
	g.moveX(actPair)
	g.op("DECQ CX")
	g.op("JNE pair")
	g.end()
}

// begin sets the accumulators to 0 or to what dst has, and reads where x and w are
// and how many groups there are.
func (g *gen) begin() {
	g.op("MOVQ 32(AX), DX")
	g.op("MOVQ 40(AX), R13")
	g.op("MOVQ 64(AX), CX")
	g.op("TESTQ CX, CX")
	g.op("JEQ fresh")
	g.each(func(at, r string) { g.op("VMOVUPS %s, %s", at, r) })
	g.op("JMP start")
	g.label("fresh")
	for i := range g.rows * g.panels {
		g.op("VPXORD %s, %s, %s", g.v(i), g.v(i), g.v(i))
	}
	g.label("start")
	for i, r := range []string{"SI", "R9", "BX", "R11"} {
		g.op("MOVQ %d(AX), %s", 8*i, r)
	}
	g.op("MOVQ 48(AX), CX")
	g.op("MOVQ 72(AX), R14")
}

// end writes the accumulators to dst.
func (g *gen) end() {
	g.op("MOVQ 32(AX), DX")
	g.op("MOVQ 40(AX), R13")
	g.out(false)
	g.op("VZEROUPPER")
	g.op("RET")
}

// groupPairs is the pairs of k in a group.
const groupPairs = 16

// dotsRound makes activations of float32: rounded to the nearest even, what is
// below 2⁻¹²⁶ as 0.
func (g *gen) dotsRound() {
	fmt.Fprintf(g, "\n// func round%s(dst *byte, x *float32, groups int)\n", dots.Name)
	fmt.Fprintf(g, "TEXT ·round%s(SB), NOSPLIT, $0-24\n", dots.Name)
	g.op("MOVQ dst+0(FP), DI")
	g.op("MOVQ x+8(FP), SI")
	g.op("MOVQ groups+16(FP), CX")
	g.label("loop")
	g.op("VMOVUPS 0(SI), Z0")
	g.op("VMOVUPS 64(SI), Z1")
	g.evex("VCVTNE2PS2BF16", "Z0", "Z1", "Z2")
	g.op("VMOVUPS Z2, 0(DI)")
	g.op("ADDQ $128, SI")
	g.op("ADDQ $%d, DI", actDots)
	g.op("DECQ CX")
	g.op("JNE loop")
	g.op("VZEROUPPER")
	g.op("RET")
}

// dotsPeak multiplies in 12 registers, n times.
func (g *gen) dotsPeak() {
	g.WriteString("\n// func peakDPBF16PS512(n int)\nTEXT ·peakDPBF16PS512(SB), NOSPLIT, $0-8\n")
	g.op("MOVQ n+0(FP), CX")
	for i := range 14 {
		g.op("VPXORD Z%d, Z%d, Z%d", i, i, i)
	}
	g.label("loop")
	for i := range 12 {
		g.evex("VDPBF16PS", "Z12", "Z13", fmt.Sprintf("Z%d", i))
	}
	g.op("DECQ CX")
	g.op("JNE loop")
	g.op("VZEROUPPER")
	g.op("RET")
}

// evexCodes are the opcode and the mandatory prefix as EVEX has it, in map 0F38,
// of instructions that the assembler does not know (Intel SDM vol. 2).
var evexCodes = map[string][2]int{"VDPBF16PS": {0x52, 2}, "VCVTNE2PS2BF16": {0x72, 3}}

// evex writes an instruction of three registers of 512 bits as bytes.
func (g *gen) evex(op, a, b, dst string) {
	number := func(s string) (n int) {
		if _, err := fmt.Sscanf(s, "Z%d", &n); err != nil {
			panic(s)
		}
		return n
	}
	m, v, d := number(a), 31-number(b), 31-number(dst) // the latter two inverted
	code := evexCodes[op]
	out := []int{
		0x62,
		d>>3&1<<7 | (31-m)>>4<<6 | (31-m)>>3&1<<5 | d>>4<<4 | 2,
		v&15<<3 | 4 | code[1],
		2<<5 | v>>4<<3,
		code[0],
		0xc0 | (31-d)&7<<3 | m&7,
	}
	var text []string
	for _, x := range out {
		text = append(text, fmt.Sprintf("BYTE $%#02x", x))
	}
	g.op("%s // %s %s, %s, %s", strings.Join(text, "; "), op, a, b, dst)
}
