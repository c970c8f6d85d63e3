package asmgen

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// machine runs generated kernels instruction by instruction, so that those for
// processors that the tests do not run on are tested too. Vector registers
// have 64 bytes; memory is one array, addressed from 0, and every access is
// checked against the regions that the kernel may read or write.
type machine struct {
	mem      []byte
	regions  [][2]uint64 // what may be accessed
	symbols  map[string]uint64
	gpr      map[string]uint64
	vec      [32][64]byte
	tiles    tiles
	zero, lt bool
	fetched  []uint64
}

// program is the instructions of one function, and where its labels are.
type program struct {
	code   [][]string // operation, then operands
	labels map[string]int
}

// parse finds the functions and the constants of an assembly file.
func parse(file []byte) (map[string]*program, map[string][]byte) {
	programs, data := map[string]*program{}, map[string][]byte{}
	var p *program
	for line := range strings.Lines(string(file)) {
		line, comment, _ := strings.Cut(strings.TrimSpace(line), " // ")
		if strings.HasPrefix(line, "BYTE") {
			line = comment
		}
		op, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "" || line[0] == '#' || line[0] == '/' || op == "GLOBL":
		case op == "DATA":
			var name string
			var at int
			var v uint64
			fmt.Sscanf(strings.NewReplacer("<>+", " ", "(SB)/8, $", " ").Replace(rest), "%s %d %v", &name, &at, &v)
			data[name] = binary.LittleEndian.AppendUint64(data[name], v)
		case op == "TEXT":
			p = &program{labels: map[string]int{}}
			name, _, _ := strings.Cut(strings.TrimPrefix(rest, "·"), "(")
			programs[name] = p
		case strings.HasSuffix(line, ":"):
			p.labels[strings.TrimSuffix(line, ":")] = len(p.code)
		default:
			ins := []string{op}
			if rest != "" {
				ins = append(ins, strings.Split(rest, ", ")...)
			}
			p.code = append(p.code, ins)
		}
	}
	return programs, data
}

// region takes n bytes of memory that may be accessed, with room that may not
// around them.
func (m *machine) region(n int) uint64 {
	at := uint64(len(m.mem)+4096) &^ 63
	m.mem = append(m.mem, make([]byte, int(at)-len(m.mem)+n+4096)...)
	m.regions = append(m.regions, [2]uint64{at, at + uint64(n)})
	return at
}

func (m *machine) at(addr uint64, n int) []byte {
	for _, r := range m.regions {
		if addr >= r[0] && addr+uint64(n) <= r[1] {
			return m.mem[addr:][:n]
		}
	}
	panic(fmt.Sprintf("access to %d bytes at %#x", n, addr))
}

// address of an operand like 8(AX), (SI)(R9*2), name<>(SB).
func (m *machine) address(s string) uint64 {
	if name, ok := strings.CutSuffix(s, "<>(SB)"); ok {
		return m.symbols[name]
	}
	off, rest, _ := strings.Cut(s, "(")
	n, _ := strconv.ParseInt(off, 10, 64)
	base, index, ok := strings.Cut(rest, ")(")
	addr := uint64(n) + m.gpr[strings.TrimSuffix(base, ")")]
	if ok {
		r, scale, _ := strings.Cut(strings.TrimSuffix(index, ")"), "*")
		k, _ := strconv.Atoi(scale)
		addr += m.gpr[r] * uint64(k)
	}
	return addr
}

func vector(s string) (reg, size int) {
	if len(s) < 2 || !strings.ContainsAny(s[:1], "XYZ") {
		return 0, 0
	}
	n, err := strconv.Atoi(s[1:])
	if err != nil {
		return 0, 0
	}
	return n, map[byte]int{'X': 16, 'Y': 32, 'Z': 64}[s[0]]
}

// source is n bytes of a register or of memory.
func (m *machine) source(s string, n int) []byte {
	if r, size := vector(s); size > 0 {
		return bytes.Clone(m.vec[r][:n])
	}
	return bytes.Clone(m.at(m.address(s), n))
}

func (m *machine) integer(s string) uint64 {
	if v, ok := strings.CutPrefix(s, "$"); ok {
		n, err := strconv.ParseInt(v, 0, 64)
		if err != nil {
			panic(err)
		}
		return uint64(n)
	}
	if v, ok := m.gpr[s]; ok {
		return v
	}
	if s == "a+0(FP)" {
		return m.gpr["arg"]
	}
	return binary.LittleEndian.Uint64(m.at(m.address(s), 8))
}

// run executes a program to its RET.
func (m *machine) run(p *program) {
	for pc := 0; ; pc++ {
		ins := p.code[pc]
		op, args := ins[0], ins[1:]
		switch {
		case op == "RET":
			return
		case op[0] == 'J':
			if map[string]bool{"JMP": true, "JEQ": m.zero, "JNE": !m.zero, "JLT": m.lt, "JGE": !m.lt}[op] {
				pc = p.labels[args[0]] - 1
			}
		case op == "VZEROUPPER":
		case op == "PREFETCHT1":
			m.fetched = append(m.fetched, m.address(args[0]))
		case strings.HasPrefix(op, "T") && op != "TESTQ" || op == "LDTILECFG":
			m.tile(op, args)
		case op[0] != 'V':
			m.scalar(op, args)
		default:
			m.vector(op, args)
		}
	}
}

func (m *machine) scalar(op string, args []string) {
	dst := args[len(args)-1]
	var v uint64
	switch op {
	case "MOVQ":
		m.gpr[dst] = m.integer(args[0])
		return
	case "LEAQ":
		m.gpr[dst] = m.address(args[0])
		return
	case "ADDQ":
		v = m.gpr[dst] + m.integer(args[0])
	case "SUBQ":
		v = m.gpr[dst] - m.integer(args[0])
	case "DECQ":
		v = m.gpr[dst] - 1
	case "SHRQ":
		v = m.gpr[dst] >> m.integer(args[0])
	case "SHLQ":
		v = m.gpr[dst] << m.integer(args[0])
	case "TESTQ":
		v = m.gpr[dst] & m.integer(args[0])
		m.zero, m.lt = v == 0, int64(v) < 0
		return
	default:
		panic("no instruction " + op)
	}
	m.gpr[dst], m.zero, m.lt = v, v == 0, int64(v) < 0
}

// fma is float32's fused multiply-add: the product is exact in float64, and
// rounding to odd there keeps the second rounding from mattering.
func fma(x, y, z float32) float32 {
	p, c := float64(x)*float64(y), float64(z)
	s := p + c
	if !(math.Abs(s) <= math.MaxFloat64) {
		return float32(s)
	}
	t := s - p
	err := (p - (s - t)) + (c - t)
	if err != 0 && math.Float64bits(s)&1 == 0 {
		if (err > 0) == (s > 0) {
			s = math.Float64frombits(math.Float64bits(s) + 1)
		} else {
			s = math.Float64frombits(math.Float64bits(s) - 1)
		}
	}
	return float32(s)
}
