package asmgen

import "fmt"

// Dense panels, bf16 in 12 bits (see dense.go of the kernels): for few rows the
// weights are put together in registers and multiplied there, the others read
// panels that were unpacked. Groups of 32 k have four quarters, each of 128
// weights in 192 bytes.
const (
	denseQuarter  = 192
	denseQuarters = 4
	denseUnpack   = "denseUnpack"
)

// Registers of what puts weights together: of one panel or of two at a time, which
// share a broadcast pair of activations.
const (
	denseMask  = "Z31" // 0x0f in every byte
	denseX     = "Z30" // a pair of activations
	denseCodes = "Z29"
	denseBytes = "Z28" // low bytes
)

var (
	denseFirst = []string{"Z27", "Z26"} // the first pair
	denseHigh  = []string{"Z25", "Z24"} // high bytes; then the second pair
	denseBoth  = []string{"Z23", "Z22"} // the codes of a quarter
)

func denseLog2P(rows int) int {
	if rows <= 10 {
		return 1
	}
	return 0
}

// denseNames are the formats of kernels for dense panels: as they are, and a group
// with what flips its weights' bits.
var denseNames = []string{"Dense", "Flip"}

func denseName(f, rows, log2p int) string {
	return fmt.Sprintf("mm%sR%dP%d%s", denseNames[f], rows, 1<<log2p, dots.Name)
}

// table is the register of the high bytes of a panel's codes.
func (g *gen) table(panel int) string { return g.v(g.rows*g.panels + panel) }

func (g *gen) denseCodeMask() {
	g.op("MOVQ $0x0f0f0f0f, R8")
	g.op("VPBROADCASTD R8, %s", denseMask)
}

// denseWeights puts a quarter's weights of some panels together: do gets the
// registers of each of the four pairs of k. at gives the operand at an offset.
func (g *gen) denseWeights(panels []int, at func(panel, off int) string, do func(pair int, regs []string)) {
	for i, p := range panels {
		g.op("VMOVDQU32 %s, %s", at(p, 0), denseBoth[i])
	}
	for half := range 2 {
		for i, p := range panels {
			if half == 0 {
				g.op("VPANDD %s, %s, %s", denseMask, denseBoth[i], denseCodes)
			} else {
				g.op("VPSRLW $4, %s, %s", denseBoth[i], denseCodes)
				g.op("VPANDD %s, %s, %s", denseMask, denseCodes, denseCodes)
			}
			g.op("VMOVDQU32 %s, %s", at(p, 64+64*half), denseBytes)
			g.op("VPSHUFB %s, %s, %s", denseCodes, g.table(p), denseHigh[i])
			g.op("VPUNPCKLBW %s, %s, %s", denseHigh[i], denseBytes, denseFirst[i])
			g.op("VPUNPCKHBW %s, %s, %s", denseHigh[i], denseBytes, denseHigh[i])
		}
		do(2*half, denseFirst)
		do(2*half+1, denseHigh)
	}
}

// denseKernel is dotsKernel of dense panels: k counts groups, unit is the first
// panel's head. To flip, there is one group.
func (g *gen) denseKernel(f, rows, log2p int) {
	flip := denseNames[f] == "Flip"
	g.rows, g.panels = rows, 1<<log2p
	fmt.Fprintf(g, "\n// func %s(a *mmArgs)\n", denseName(f, rows, log2p))
	fmt.Fprintf(g, "TEXT ·%s(SB), NOSPLIT, $0-8\n", denseName(f, rows, log2p))
	g.op("MOVQ a+0(FP), AX")
	g.begin()
	g.op("MOVQ 80(AX), R10")
	for p := range g.panels {
		g.op("VBROADCASTI32X4 (R10)%s, %s", []string{"", "(R11*1)"}[p], g.table(p))
	}
	g.denseCodeMask()
	g.places()
	if flip {
		g.op("MOVQ 104(AX), R8")
	}
	g.op("SHLQ $2, CX")
	g.label("quarter")
	g.op("LEAQ (BX)(R14*1), R15")
	for p := range g.panels {
		for line := range denseQuarter / 64 {
			g.op("PREFETCHT1 %d(R15)%s", 64*line, []string{"", "(R11*1)"}[p])
		}
	}
	g.denseWeights([]int{0, 1}[:g.panels], g.w, func(pair int, regs []string) {
		for p := 0; flip && p < g.panels; p++ {
			g.op("VPXORD %d(R8), %s, %s", 64*(p*groupPairs+pair), regs[p], regs[p])
		}
		for r := range rows {
			g.op("VBROADCASTSS %s, %s", g.x(r, 4*pair), denseX)
			for p := range g.panels {
				g.evex("VDPBF16PS", regs[p], denseX, g.acc(r, p, 0))
			}
		}
	})
	g.op("ADDQ $%d, BX", denseQuarter)
	if flip {
		g.op("ADDQ $%d, R8", 64*groupPairs/denseQuarters)
	}
	g.moveX(actDots / denseQuarters)
	g.op("DECQ CX")
	g.op("JNE quarter")
	g.end()
}

// denseUnpack lays dense panels out as bf16 has them; the arguments are
// denseArgs.
func (g *gen) denseUnpack() {
	g.rows, g.panels = 0, 1
	name := denseUnpack + dots.Name
	fmt.Fprintf(g, "\n// func %s(a *denseArgs)\nTEXT ·%s(SB), NOSPLIT, $0-8\n", name, name)
	g.op("MOVQ a+0(FP), AX")
	g.denseCodeMask()
	for i, r := range []string{"R8", "R9", "R10", "R11", "R12"} {
		g.op("MOVQ %d(AX), %s", 8*i, r)
	}
	g.op("MOVQ 48(AX), BX")
	g.label("panel")
	g.op("MOVQ R8, DI")
	g.op("MOVQ R10, SI")
	g.op("MOVQ 40(AX), CX")
	g.op("SHLQ $2, CX")
	g.op("VBROADCASTI32X4 (R11), %s", g.table(0))
	g.label("quarter")
	g.denseWeights([]int{0}, func(_, off int) string { return fmt.Sprintf("%d(SI)", off) }, func(pair int, regs []string) {
		g.op("VMOVDQU32 %s, %d(DI)", regs[0], 64*pair)
	})
	g.op("ADDQ $%d, SI", denseQuarter)
	g.op("ADDQ $%d, DI", 64*groupPairs/denseQuarters)
	g.op("DECQ CX")
	g.op("JNE quarter")
	g.op("ADDQ R9, R8")
	g.op("ADDQ R12, R10")
	g.op("ADDQ R12, R11")
	g.op("DECQ BX")
	g.op("JNE panel")
	g.op("VZEROUPPER")
	g.op("RET")
}
