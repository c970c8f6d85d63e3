package asmgen

import (
	"bytes"
	"fmt"
)

// Formats of the weights that are multiplied as float32.
var formats = []string{"BF16", "F16", "F32", "I8"}

// ISA is a set of instructions to write for.
type ISA struct {
	Name  string // as in file and function names
	reg   string // prefix of a vector register
	vecs  int    // vectors in a panel of 16 float32
	dots  bool   // has VPDPWSSD and VPDPBUSD
	MaxR  int
	Log2P func(rows int) int // most panels (as a power of two) for so many rows
}

// ISAs are those that there are kernels for.
var ISAs = []ISA{
	{Name: "AVX2", reg: "Y", vecs: 2, MaxR: 6, Log2P: func(rows int) int {
		return map[int]int{1: 2, 2: 1, 3: 1}[rows] // at most 12 accumulators
	}},
	{Name: "AVX512", reg: "Z", vecs: 1, MaxR: 12, Log2P: func(rows int) int {
		return max(1, map[int]int{1: 3, 2: 2, 3: 2, 4: 2}[rows]) // at most 24 accumulators
	}},
}

// quant lists the sets of instructions that there are kernels for integers
// for: the ISA's own, and those with instructions for their dot products.
func (isa ISA) quant() []ISA {
	dots := isa
	dots.Name, dots.dots = isa.Name+"VNNI", true
	if isa.vecs == 2 {
		dots.Name = "AVXVNNI"
	}
	return []ISA{isa, dots}
}

func name(isa ISA, f, rows, log2p int) string {
	return fmt.Sprintf("mm%sR%dP%d%s", formats[f], rows, 1<<log2p, isa.Name)
}

const header = "// Written by asmgen; do not edit. go test ./runtime/kernels/cpu/asmgen -update\n\n"

// MatMul is the assembly file for an ISA.
func MatMul(isa ISA) []byte {
	g := &gen{isa: isa}
	g.WriteString(header)
	g.WriteString("//go:build !purego\n\n#include \"textflag.h\"\n")
	g.WriteString(constants)
	for f := range formats {
		for r := 1; r <= isa.MaxR; r++ {
			for p := 0; p <= isa.Log2P(r); p++ {
				g.kernel(f, r, p)
			}
		}
	}
	for _, v := range isa.quant() {
		for _, f := range quantFormats {
			for r := 1; r <= isa.MaxR; r++ {
				for p := 0; p <= quantLog2P(r); p++ {
					q := quant{gen: gen{isa: v, rows: r}, format: f}
					q.kernel(p)
					g.Write(q.Bytes())
				}
			}
		}
	}
	return g.Bytes()
}

// Table is the Go file that declares an ISA's kernels and lists them.
func Table(isa ISA) []byte {
	var b bytes.Buffer
	b.WriteString(header)
	b.WriteString("//go:build !purego\n\npackage cpu\n")
	var list bytes.Buffer
	for f := range formats {
		for r := 1; r <= isa.MaxR; r++ {
			for p := 0; p <= isa.Log2P(r); p++ {
				n := name(isa, f, r, p)
				fmt.Fprintf(&b, "\n//go:noescape\nfunc %s(a *mmArgs)\n", n)
				fmt.Fprintf(&list, "\ts.kernels[fmt%s][%d][%d] = %s\n", formats[f], r, p, n)
			}
		}
	}
	for i, v := range isa.quant() {
		if i > 0 { // the same with other kernels for integers
			fmt.Fprintf(&b, "\nfunc mm%s() *mmSet {\n\ts := &mmSet{maxRows: %d}\n%s\treturn s\n}\n", isa.Name, isa.MaxR, list.String())
			list.Reset()
			fmt.Fprintf(&list, "\t*s = *mm%s()\n", isa.Name)
			isa = v
		}
		for _, f := range quantFormats {
			for r := 1; r <= isa.MaxR; r++ {
				for p := 0; p <= quantLog2P(r); p++ {
					n := quantName(v, f, r, p)
					fmt.Fprintf(&b, "\n//go:noescape\nfunc %s(a *mmArgs)\n", n)
					fmt.Fprintf(&list, "\ts.kernels[fmt%s][%d][%d] = %s\n", f, r, p, n)
				}
			}
		}
	}
	fmt.Fprintf(&b, "\nfunc mm%s() *mmSet {\n\ts := &mmSet{maxRows: %d}\n%s\treturn s\n}\n", isa.Name, isa.MaxR, list.String())
	return b.Bytes()
}

type gen struct {
	bytes.Buffer
	isa          ISA
	rows, panels int
	f            int
}

func (g *gen) op(format string, a ...any) { fmt.Fprintf(g, "\t"+format+"\n", a...) }

func (g *gen) label(l string) { fmt.Fprintf(g, "\n%s:\n", l) }

func (g *gen) v(i int) string { return fmt.Sprintf("%s%d", g.isa.reg, i) }

// Registers: accumulators first, then the panels' weights, then the broadcast
// activation; the last one is the mask of the odd bf16 halves.
func (g *gen) acc(row, panel, vec int) string {
	return g.v((row*g.panels+panel)*g.isa.vecs + vec)
}

// weight is the register of a vector of a panel's weights. With 16 registers
// the panels take turns in one pair of them.
func (g *gen) weight(panel, vec int) string {
	if g.isa.vecs == 2 {
		return g.v(12 + vec)
	}
	return g.v(g.rows*g.panels + panel)
}

func (g *gen) bcast() string {
	if g.isa.vecs == 2 {
		return g.v(14)
	}
	return g.v(30)
}

func (g *gen) mask() string {
	if g.isa.vecs == 2 {
		return g.v(15)
	}
	return g.v(31)
}

// pairsPerLoop is how many times two k a loop does: its own instructions would
// show.
const (
	log2Pairs    = 2
	pairsPerLoop = 1 << log2Pairs
)

// Three rows share a base register: base, base + ldx, base + 2 ldx.
var bases = []string{"SI", "DI", "DX", "R13"}

func (g *gen) x(row, off int) string {
	return fmt.Sprintf("%d(%s)", off, bases[row/3]) + []string{"", "(R9*1)", "(R9*2)"}[row%3]
}

func (g *gen) w(panel, off int) string {
	base := "BX"
	if panel >= 4 {
		base = "R10" // BX + 4 ldw
	}
	return fmt.Sprintf("%d(%s)", off, base) + []string{"", "(R11*1)", "(R11*2)", "(R12*1)"}[panel%4]
}

// loadWeights widens one k of a panel: the even or the odd half of bf16 pairs.
func (g *gen) loadWeights(panel int, odd bool) {
	for vec := range g.isa.vecs {
		r, size := g.weight(panel, vec), 64/g.isa.vecs
		switch {
		case formats[g.f] == "F32":
			g.op("VMOVUPS %s, %s", g.w(panel, vec*size), r)
		case formats[g.f] == "I8":
			g.op("VPMOVSXBD %s, %s", g.w(panel, vec*size/4), r)
			g.op("VCVTDQ2PS %s, %s", r, r)
		case formats[g.f] == "F16":
			g.op("VCVTPH2PS %s, %s", g.w(panel, vec*size/2), r)
		case odd && g.isa.vecs == 2:
			g.op("VPAND %s, %s, %s", g.w(panel, vec*size), g.mask(), r)
		case odd:
			g.op("VPANDD %s, %s, %s", g.w(panel, vec*size), g.mask(), r)
		case g.isa.vecs == 2:
			g.op("VMOVDQU %s, %s", g.w(panel, vec*size), r)
			g.op("VPSLLD $16, %s, %s", r, r)
		default:
			g.op("VPSLLD $16, %s, %s", g.w(panel, vec*size), r)
		}
	}
}

// one multiplies one k; the activation is at byte offset off.
func (g *gen) one(off int, odd bool) {
	if g.isa.vecs == 2 && g.rows > 1 { // panel after panel
		for p := range g.panels {
			g.loadWeights(p, odd)
			for r := range g.rows {
				g.op("VBROADCASTSS %s, %s", g.x(r, off), g.bcast())
				g.fma(r, p)
			}
		}
		return
	}
	if g.isa.vecs == 1 { // all panels' weights at once, each activation read once
		for p := range g.panels {
			g.loadWeights(p, odd)
		}
		for r := range g.rows {
			g.op("VBROADCASTSS %s, %s", g.x(r, off), g.bcast())
			for p := range g.panels {
				g.fma(r, p)
			}
		}
		return
	}
	g.op("VBROADCASTSS %s, %s", g.x(0, off), g.bcast())
	for p := range g.panels {
		g.loadWeights(p, odd)
		g.fma(0, p)
	}
}

func (g *gen) fma(row, panel int) {
	for vec := range g.isa.vecs {
		g.op("VFMADD231PS %s, %s, %s", g.weight(panel, vec), g.bcast(), g.acc(row, panel, vec))
	}
}

// pairs multiplies so many times two k.
func (g *gen) pairs(n int) {
	for i := range n {
		g.prefetch()
		g.pair(8 * i)
	}
	g.moveX(8 * n)
	if n == 1 {
		g.op("ADDQ 96(AX), R14")
	} else {
		g.op("ADDQ %s, R14", g.drift())
	}
}

// pair multiplies two k and moves the weights on.
func (g *gen) pair(off int) {
	g.one(off, false)
	if formats[g.f] != "BF16" {
		g.advance()
	}
	if formats[g.f] == "F32" { // each k is a cache line of its own
		g.prefetch()
	}
	g.one(off+4, true)
	g.advance()
}

// prefetch asks for what comes later in each panel's place, for the second cache.
func (g *gen) prefetch() {
	if g.panels > 1 {
		g.op("LEAQ (BX)(R14*1), R15")
	}
	if g.panels > 4 { // of one row
		g.op("LEAQ (R10)(R14*1), R13")
	}
	for p := range g.panels {
		g.op("PREFETCHT1 %s", []string{
			"(BX)(R14*1)", "(R15)(R11*1)", "(R15)(R11*2)", "(R15)(R12*1)", "(R13)", "(R13)(R11*1)", "(R13)(R11*2)", "(R13)(R12*1)",
		}[p])
	}
}

// drift is the register of what ahead changes by in a loop.
func (g *gen) drift() string {
	if g.panels > 4 {
		return "DI"
	}
	return "R10"
}

func (g *gen) advance() {
	g.op("ADDQ R8, BX")
	if g.panels > 4 {
		g.op("ADDQ R8, R10")
	}
}

func (g *gen) moveX(by int) {
	for i := 0; i*3 < g.rows; i++ {
		g.op("ADDQ $%d, %s", by, bases[i])
	}
}

// places makes what x and w need of SI, R9, BX and R11.
func (g *gen) places() {
	if g.rows > 3 {
		g.op("LEAQ (R9)(R9*2), R10")
		for i := 1; 3*i < g.rows; i++ {
			g.op("LEAQ (%s)(R10*1), %s", bases[i-1], bases[i])
		}
	}
	if g.panels > 2 {
		g.op("LEAQ (R11)(R11*2), R12")
	}
	if g.panels > 4 {
		g.op("LEAQ (BX)(R11*4), R10")
	}
}

func (g *gen) kernel(f, rows, log2p int) {
	g.f, g.rows, g.panels = f, rows, 1<<log2p
	fmt.Fprintf(g, "\n// func %s(a *mmArgs)\n", name(g.isa, f, rows, log2p))
	fmt.Fprintf(g, "TEXT ·%s(SB), NOSPLIT, $0-8\n", name(g.isa, f, rows, log2p))
	g.op("MOVQ a+0(FP), AX")
	for i, r := range []string{"SI", "R9", "BX", "R11"} {
		g.op("MOVQ %d(AX), %s", 8*i, r)
	}
	g.op("MOVQ 48(AX), CX")
	g.op("MOVQ 56(AX), R8")
	g.op("MOVQ 72(AX), R14")
	g.places()
	if formats[f] == "BF16" { // 0xffff0000 in every lane
		if g.isa.vecs == 2 {
			g.op("VPCMPEQD %s, %s, %s", g.mask(), g.mask(), g.mask())
		} else {
			g.op("VPTERNLOGD $0xff, %s, %s, %s", g.mask(), g.mask(), g.mask())
		}
		g.op("VPSLLD $16, %s, %s", g.mask(), g.mask())
	}
	for i := range rows * g.panels * g.isa.vecs {
		if g.isa.vecs == 2 {
			g.op("VXORPS %s, %s, %s", g.v(i), g.v(i), g.v(i))
		} else {
			g.op("VPXORD %s, %s, %s", g.v(i), g.v(i), g.v(i))
		}
	}
	g.op("MOVQ 96(AX), %s", g.drift())
	g.op("SHLQ $%d, %s", log2Pairs, g.drift())
	g.op("SHRQ $1, CX")
	g.op("SUBQ $%d, CX", pairsPerLoop)
	g.op("JLT rest")
	g.label("loop")
	g.pairs(pairsPerLoop)
	g.op("SUBQ $%d, CX", pairsPerLoop)
	g.op("JGE loop")
	g.label("rest")
	g.op("ADDQ $%d, CX", pairsPerLoop)
	g.op("JEQ odd")
	g.label("one")
	g.pairs(1)
	g.op("DECQ CX")
	g.op("JNE one")
	g.label("odd")
	g.op("MOVQ 48(AX), CX")
	g.op("TESTQ $1, CX")
	g.op("JEQ store")
	g.one(0, false)
	g.label("store")
	g.op("MOVQ 32(AX), DX")
	g.op("MOVQ 40(AX), R13")
	g.op("MOVQ 64(AX), CX")
	g.op("TESTQ CX, CX")
	g.op("JEQ put")
	g.out(true)
	g.op("VZEROUPPER")
	g.op("RET")
	g.label("put")
	g.out(false)
	g.op("VZEROUPPER")
	g.op("RET")
}

// out writes the accumulators, added to what is there or not.
func (g *gen) out(add bool) {
	if add {
		g.op("MOVQ DX, SI")
		g.each(func(at, r string) { g.op("VADDPS %s, %s, %s", at, r, r) })
		g.op("MOVQ SI, DX")
	}
	g.each(func(at, r string) { g.op("VMOVUPS %s, %s", r, at) })
}

func (g *gen) each(do func(at, reg string)) {
	for r := range g.rows {
		for p := range g.panels {
			for vec := range g.isa.vecs {
				do(fmt.Sprintf("%d(DX)", 64*p+vec*64/g.isa.vecs), g.acc(r, p, vec))
			}
		}
		if r < g.rows-1 {
			g.op("ADDQ R13, DX")
		}
	}
}
