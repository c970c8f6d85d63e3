package asmgen

import (
	"bytes"
	"fmt"
	"strings"
)

// AMX: tiles are 16 rows of 64 bytes. A panel of bf16 weights is one already,
// 32 k after 32 k; 32 k of up to 16 rows of activations are two, of what
// bfloat16 says of them and of what is left (package cpu's splitGo). An
// output's sums are those of TDPBF16PS, 32 k after 32 k, beginning with what
// dst holds, whatever the number of rows.

// TileRows is the most rows of a tile.
const TileRows = 16

const (
	tileBytes = 16 * 64
	actTile   = 2 * 64 // 32 k of a row of activations
)

// tilePanels are the numbers of panels that there are kernels for.
var tilePanels = []int{1, 4}

func tileName(panels int) string { return fmt.Sprintf("mmTileP%dAMX", panels) }

// AMX is the assembly file.
func AMX() []byte {
	g := &gen{}
	g.WriteString(header)
	g.WriteString("//go:build !purego\n\n#include \"textflag.h\"\n\n")
	// By rows of activations: tiles 0 to 3 are outputs, 4 and 5 activations, 6
	// and 7 weights.
	for rows := range uint64(TileRows + 1) {
		shape := []uint64{1, 0, 0x0040004000400040, 0x0040004000400040, 0, 0, 0x1010<<48 | rows*0x010101010101, 0}
		for i, v := range shape {
			fmt.Fprintf(g, "DATA shapes<>+%d(SB)/8, $0x%016x\n", int(rows)*64+8*i, v)
		}
	}
	fmt.Fprintf(g, "GLOBL shapes<>(SB), RODATA|NOPTR, $%d\n", 64*(TileRows+1))
	for _, p := range tilePanels {
		g.tileKernel(p)
	}
	g.tilePeak()
	return g.Bytes()
}

// AMXTable is the Go file that declares the kernels and lists them.
func AMXTable() []byte {
	var b bytes.Buffer
	b.WriteString(header)
	b.WriteString("//go:build !purego\n\npackage cpu\n")
	for _, p := range tilePanels {
		fmt.Fprintf(&b, "\n//go:noescape\nfunc %s(a *mmArgs)\n", tileName(p))
	}
	b.WriteString("\nfunc peakTDPBF16PS(n int)\n")
	b.WriteString("\nfunc mmAMX() *mmSet {\n\ts := mmAVX512VNNI()\n\tfor r := 1; r <= amxRows; r++ {\n")
	for _, p := range tilePanels {
		fmt.Fprintf(&b, "\t\ts.kernels[fmtTile][r][%d] = %s\n", p/2, tileName(p)) // log2 of 1, 4
	}
	b.WriteString("\t}\n\treturn s\n}\n")
	return b.Bytes()
}

func (g *gen) tileKernel(panels int) {
	fmt.Fprintf(g, "\n// func %s(a *mmArgs)\n", tileName(panels))
	fmt.Fprintf(g, "TEXT ·%s(SB), NOSPLIT, $0-8\n", tileName(panels))
	g.op("MOVQ a+0(FP), AX")
	for i, r := range []string{"SI", "R9", "BX", "R11", "DX", "R13", "CX"} {
		g.op("MOVQ %d(AX), %s", 8*i, r)
	}
	g.op("MOVQ 88(AX), R15")
	g.op("SHLQ $6, R15")
	g.op("LEAQ shapes<>(SB), R8")
	g.op("ADDQ R15, R8")
	g.tile("LDTILECFG (R8)")
	g.op("MOVQ $64, R8")
	w := []string{"BX", "DI", "R10", "R12"}[:panels]
	for p := 1; p < panels; p++ {
		g.op("LEAQ (%s)(R11*1), %s", w[p-1], w[p])
	}
	g.op("MOVQ 64(AX), R14")
	g.op("TESTQ R14, R14")
	g.op("JEQ fresh")
	for p := range panels {
		g.tile("TILELOADD %d(DX)(R13*1), T%d", 64*p, p)
	}
	g.op("JMP group")
	g.label("fresh")
	for p := range panels {
		g.tile("TILEZERO T%d", p)
	}
	g.label("group")
	g.tile("TILELOADD 0(SI)(R9*1), T4")
	g.tile("TILELOADD 64(SI)(R9*1), T5")
	for p := range panels {
		t := 6 + p%2
		g.tile("TILELOADD 0(%s)(R8*1), T%d", w[p], t)
		g.tile("TDPBF16PS T%d, T4, T%d", t, p)
		g.tile("TDPBF16PS T%d, T5, T%d", t, p)
	}
	g.op("ADDQ $%d, SI", actTile)
	for p := range panels {
		g.op("ADDQ $%d, %s", tileBytes, w[p])
	}
	g.op("DECQ CX")
	g.op("JNE group")
	for p := range panels {
		g.tile("TILESTORED T%d, %d(DX)(R13*1)", p, 64*p)
	}
	g.tile("TILERELEASE")
	g.op("RET")
}

// tilePeak multiplies full tiles, n times four.
func (g *gen) tilePeak() {
	g.WriteString("\n// func peakTDPBF16PS(n int)\nTEXT ·peakTDPBF16PS(SB), NOSPLIT, $0-8\n")
	g.op("MOVQ n+0(FP), CX")
	g.op("LEAQ shapes<>(SB), R8")
	g.op("ADDQ $%d, R8", 64*TileRows)
	g.tile("LDTILECFG (R8)")
	for i := range 8 {
		g.tile("TILEZERO T%d", i)
	}
	g.label("loop")
	for i := range 4 {
		g.tile("TDPBF16PS T%d, T%d, T%d", 6+i%2, 4+i/2, i)
	}
	g.op("DECQ CX")
	g.op("JNE loop")
	g.tile("TILERELEASE")
	g.op("RET")
}

// tileCodes are the opcode, and the mandatory prefix as VEX has it, of the
// instructions for tiles (Intel SDM vol. 2), which the assembler does not know.
var tileCodes = map[string][2]int{
	"LDTILECFG": {0x49, 0}, "TILERELEASE": {0x49, 0}, "TILEZERO": {0x49, 3},
	"TILELOADD": {0x4b, 3}, "TILESTORED": {0x4b, 2}, "TDPBF16PS": {0x5c, 2},
}

var gprs = map[string]int{
	"AX": 0, "CX": 1, "DX": 2, "BX": 3, "SP": 4, "BP": 5, "SI": 6, "DI": 7,
	"R8": 8, "R9": 9, "R10": 10, "R11": 11, "R12": 12, "R13": 13, "R14": 14, "R15": 15,
}

// tile writes an instruction for tiles as bytes.
func (g *gen) tile(format string, a ...any) {
	ins := fmt.Sprintf(format, a...)
	op, rest, _ := strings.Cut(ins, " ")
	var args []string
	if rest != "" {
		args = strings.Split(rest, ", ")
	}
	reg, vvvv, mem := 0, 0, ""
	number := func(s string) (n int) {
		if _, err := fmt.Sscanf(s, "T%d", &n); err != nil {
			panic(ins)
		}
		return n
	}
	modrm := []int{0xc0}
	switch op {
	case "LDTILECFG":
		mem = args[0]
	case "TILEZERO":
		reg = number(args[0])
	case "TILELOADD":
		mem, reg = args[0], number(args[1])
	case "TILESTORED":
		reg, mem = number(args[0]), args[1]
	case "TDPBF16PS":
		vvvv, modrm[0], reg = number(args[0]), 0xc0|number(args[1]), number(args[2])
	}
	x, b := 0, 0
	if mem != "" {
		modrm, x, b = address(mem)
	}
	modrm[0] |= reg << 3
	code := tileCodes[op]
	out := append([]int{0xc4, 1<<7 | (1-x)<<6 | (1-b)<<5 | 2, (15-vvvv)<<3 | code[1], code[0]}, modrm...)
	var text []string
	for _, v := range out {
		text = append(text, fmt.Sprintf("BYTE $%#02x", v))
	}
	g.op("%s // %s", strings.Join(text, "; "), ins)
}

// address encodes (BASE), or d(BASE)(INDEX*1) with a SIB byte: ModRM and what
// comes behind it, and the high bits of index and base.
func address(s string) (bytes []int, x, b int) {
	off, rest, _ := strings.Cut(s, "(")
	base, index, ok := strings.Cut(strings.TrimSuffix(rest, ")"), ")(")
	r, known := gprs[base]
	if !known || r%8 == 5 {
		panic(s) // a base of BP or R13 always has an offset
	}
	if !ok {
		if r%8 == 4 {
			panic(s) // SP and R12 always have a SIB byte
		}
		return []int{r % 8}, 0, r / 8
	}
	i, known := gprs[strings.TrimSuffix(index, "*1")]
	if !known || i == 4 {
		panic(s)
	}
	d := 0
	if _, err := fmt.Sscan(off, &d); err != nil {
		panic(s)
	}
	bytes = []int{4, i%8<<3 | r%8}
	switch {
	case d == 0:
	case d < 128:
		bytes[0] |= 0x40
		bytes = append(bytes, d)
	default:
		bytes[0] |= 0x80
		bytes = append(bytes, d&255, d>>8, 0, 0)
	}
	return bytes, i / 8, r / 8
}
