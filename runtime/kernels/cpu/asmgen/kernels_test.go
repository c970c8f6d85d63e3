package asmgen

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// call is a kernel's operands in a machine's memory.
type call struct {
	m                   *machine
	rng                 *rand.Rand
	rows, panels, k     int
	x, w, dst           uint64
	unit, flip          uint64
	ldx, ldw, ldd, step int
	add                 bool
	before              []byte
}

func newCall(data map[string][]byte, rng *rand.Rand) *call {
	c := &call{rng: rng, m: &machine{gpr: map[string]uint64{}, symbols: map[string]uint64{}}}
	for name, b := range data {
		at := c.m.region(len(b))
		copy(c.m.mem[at:], b)
		c.m.symbols[name] = at
	}
	return c
}

// ahead is where kernels are to fetch.
const ahead = 1 << 20

// fetches compares what was fetched first in each panel's place.
func (c *call) fetches(t *testing.T, name string) {
	t.Helper()
	for p := range c.panels {
		if at := c.w + uint64(p*c.ldw) + ahead; !slices.Contains(c.m.fetched, at) {
			t.Fatalf("%s: nothing is fetched ahead of panel %d", name, p)
		}
	}
}

// run calls the kernel; its result is in c.dst.
func (c *call) run(p *program) {
	m := c.m
	c.dst = m.region(c.ldd*(c.rows-1) + 64*c.panels)
	c.before = make([]byte, c.ldd*c.rows)
	for i := range len(c.before) / 4 {
		putF32(c.before, i, float32(c.rng.NormFloat64()))
	}
	copy(m.mem[c.dst:], c.before[:c.ldd*(c.rows-1)+64*c.panels])
	add := 0
	if c.add {
		add = 1
	}
	arg := m.region(112)
	for i, v := range []uint64{
		c.x, uint64(c.ldx), c.w, uint64(c.ldw), c.dst, uint64(c.ldd), uint64(c.k), uint64(c.step), uint64(add), ahead, c.unit, uint64(c.rows), 1 << 20, c.flip,
	} {
		binary.LittleEndian.PutUint64(m.mem[arg+uint64(8*i):], v)
	}
	m.gpr["arg"] = arg
	m.run(p)
}

// check compares an output's bits.
func (c *call) check(t *testing.T, name string, r, p, n int, want float32) {
	t.Helper()
	at := c.dst + uint64(r*c.ldd+64*p+4*n)
	if got := f32(c.m.mem[at:], 0); math.Float32bits(got) != math.Float32bits(want) {
		t.Fatalf("%s: k=%d add=%v: row %d, panel %d, output %d is %g, want %g", name, c.k, c.add, r, p, n, got, want)
	}
}

func (c *call) was(r, p, n int) float32 { return f32(c.before[r*c.ldd+64*p+4*n:], 0) }

// Every generated kernel, on every processor's instructions, gives the very
// bits of the chain that it stands for, and touches no other memory.
func TestKernels(t *testing.T) {
	for _, isa := range ISAs {
		programs, data := parse(MatMul(isa))
		rng := rand.New(rand.NewPCG(3, 5))
		for f := range formats {
			for r := 1; r <= isa.MaxR; r++ {
				for p := 0; p <= isa.Log2P(r); p++ {
					for i, k := range []int{1, 4, 7, 10, 19} {
						floatKernel(t, newCall(data, rng), programs, name(isa, f, r, p), formats[f], r, 1<<p, k, i%2 == 0)
					}
				}
			}
		}
		for _, v := range isa.quant() {
			for _, f := range quantFormats {
				for r := 1; r <= isa.MaxR; r++ {
					for p := 0; p <= quantLog2P(r); p++ {
						for _, add := range []bool{false, true} {
							n, do := quantName(v, f, r, p), kernelQ8
							if f == "Q4" {
								do = kernelQ4
							}
							do(t, newCall(data, rng), programs[n], n, r, 1<<p, add)
						}
					}
				}
			}
		}
	}
}

func floatKernel(t *testing.T, c *call, programs map[string]*program, name, format string, rows, panels, k int, add bool) {
	t.Helper()
	size := map[string]int{"BF16": 64, "F16": 32, "F32": 64, "I8": 16}[format] // of a step
	steps := k
	if format == "BF16" {
		steps = (k + 1) / 2
	}
	c.rows, c.panels, c.k, c.add = rows, panels, k, add
	c.ldx, c.step, c.ldw, c.ldd = 4*k+8, size+16, steps*(size+16)+48, 64*panels+12
	c.x, c.w = c.m.region(c.ldx*(rows-1)+4*k), c.m.region(c.ldw*(panels-1)+(steps-1)*c.step+size)
	x, w := c.m.mem[c.x:], c.m.mem[c.w:]
	for r := range rows {
		for i := range k {
			putF32(x[r*c.ldx:], i, float32(c.rng.NormFloat64()))
		}
	}
	weight := func(p, i, n int) float32 { return 0 }
	switch format {
	case "BF16":
		weight = func(p, i, n int) float32 {
			return math.Float32frombits(uint32(binary.LittleEndian.Uint16(w[p*c.ldw+i/2*c.step+4*n+2*(i%2):])) << 16)
		}
	case "F16":
		weight = func(p, i, n int) float32 { return half(binary.LittleEndian.Uint16(w[p*c.ldw+i*c.step+2*n:])) }
	case "F32":
		weight = func(p, i, n int) float32 { return f32(w[p*c.ldw+i*c.step:], n) }
	case "I8":
		weight = func(p, i, n int) float32 { return float32(int8(w[p*c.ldw+i*c.step+n])) }
	}
	for p := range panels {
		for s := range steps {
			for i := range size {
				b := byte(c.rng.Uint32())
				if format != "I8" && i%2 == 1 { // numbers of an ordinary size
					b = b&0x83 | 0x3c
				}
				w[p*c.ldw+s*c.step+i] = b
			}
		}
	}
	c.run(programs[name])
	if k > 1 { // an odd last k fetches nothing
		c.fetches(t, name)
	}
	for r := range rows {
		for p := range panels {
			for n := range 16 {
				var acc float32
				for i := range k {
					acc = fma(f32(x[r*c.ldx:], i), weight(p, i, n), acc)
				}
				if add {
					acc += c.was(r, p, n)
				}
				c.check(t, name, r, p, n, acc)
			}
		}
	}
}

func kernelQ8(t *testing.T, c *call, prog *program, name string, rows, panels int, add bool) {
	t.Helper()
	c.rows, c.panels, c.k, c.add = rows, panels, 2, add
	c.ldx, c.ldw, c.ldd = 2*actQ8, 2*groupQ8+80, 64*panels+12
	c.x, c.w = c.m.region(c.ldx*rows), c.m.region(c.ldw*(panels-1)+2*groupQ8)
	x, w := c.m.mem[c.x:], c.m.mem[c.w:]
	for i := range 2 * rows {
		a := x[i*actQ8:]
		for k := range 32 {
			putI16(a, k, c.rng.Int32N(65535)-32767)
		}
		putF32(a, 16, c.rng.Float32())
	}
	for i := range c.ldw*(panels-1) + 2*groupQ8 {
		w[i] = byte(c.rng.Int32N(255) - 127)
		if i%c.ldw%groupQ8 < scaleBytes && i%c.ldw%2 == 1 {
			w[i] = 0x34
		}
	}
	c.run(prog)
	c.fetches(t, name)
	for r := range rows {
		for i := range 16 * panels {
			p, n := i/16, i%16
			var acc float32
			if add {
				acc = c.was(r, p, n)
			}
			for g := range 2 {
				a, b := x[r*c.ldx+g*actQ8:], w[p*c.ldw+g*groupQ8:]
				var sum int32
				for k := range 32 {
					sum += i16(a, k) * int32(int8(b[scaleBytes+k/2*32+2*n+k%2]))
				}
				acc = fma(float32(sum), half(binary.LittleEndian.Uint16(b[2*n:]))*f32(a, 16), acc)
			}
			c.check(t, name, r, p, n, acc)
		}
	}
}

func kernelQ4(t *testing.T, c *call, prog *program, name string, rows, panels int, add bool) {
	t.Helper()
	c.rows, c.panels, c.k, c.add = rows, panels, 2, add
	c.ldx, c.ldw, c.ldd = 2*actQ4, 2*groupQ4+80, 64*panels+12
	c.x, c.w, c.unit = c.m.region(c.ldx*rows), c.m.region(c.ldw*(panels-1)+2*groupQ4), c.m.region(c.ldw*(panels-1)+64)
	x, w, unit := c.m.mem[c.x:], c.m.mem[c.w:], c.m.mem[c.unit:]
	extreme := c.rng.IntN(2) == 0 // the largest sums there are
	for i := range 2 * rows {
		a := x[i*actQ4:]
		for k := range 32 {
			a[k] = byte(c.rng.Int32N(255) - 127)
			if extreme {
				a[k] = 0x80
			}
		}
		putF32(a, 8, c.rng.Float32())
		putF32(a, 9, c.rng.Float32()-0.5)
	}
	for i := range c.ldw*(panels-1) + 2*groupQ4 {
		w[i] = byte(c.rng.Uint32())
		if extreme {
			w[i] = 0xff
		}
	}
	for n := range 16 * panels {
		putF32(unit[n/16*c.ldw:], n%16, c.rng.Float32())
	}
	c.run(prog)
	c.fetches(t, name)
	for r := range rows {
		for i := range 16 * panels {
			p, n := i/16, i%16
			var acc float32
			if add {
				acc = c.was(r, p, n)
			}
			for g := range 2 {
				a, b := x[r*c.ldx+g*actQ4:], w[p*c.ldw+g*groupQ4:]
				var sum int32
				for k := range 32 {
					q := b[scaleBytes+k/8*64+4*n+k%4] >> (k / 4 % 2 * 4) & 15
					sum += int32(int8(a[k])) * int32(q)
				}
				v := binary.LittleEndian.Uint16(b[2*n:])
				u := f32(unit[p*c.ldw:], n)
				acc = fma(float32(sum), float32(v&63)*u*f32(a, 8), acc)
				acc = fma(float32(v>>6)*u, f32(a, 9), acc)
			}
			c.check(t, name, r, p, n, acc)
		}
	}
}

// atnt makes GNU as's operands of the assembler's.
func atnt(args string) string {
	args = strings.NewReplacer("Y", "%ymm", "Z", "%zmm", "T", "%tmm", ")(", ",", "*1)", ",1)").Replace(args)
	return regexp.MustCompile(`[(,][A-Z][A-Z0-9]*`).ReplaceAllStringFunc(args, func(s string) string {
		return s[:1] + "%r" + strings.ToLower(strings.TrimPrefix(s[1:], "R"))
	})
}

// The bytes written for what the assembler does not know are those that GNU as
// makes of it.
func TestBytes(t *testing.T) {
	as, err := exec.LookPath("as")
	if err != nil {
		t.Skipf("GNU as is needed: %v: %v", err, errors.ErrUnsupported)
	}
	var want []string // byte codes, by instruction
	var source strings.Builder
	seen := map[string]bool{}
	files := [][]byte{AMX(), Dots()}
	for _, isa := range ISAs {
		files = append(files, MatMul(isa))
	}
	for _, file := range files {
		for line := range strings.Lines(string(file)) {
			code, ins, ok := strings.Cut(strings.TrimSpace(line), " // ")
			if !ok || !strings.HasPrefix(code, "BYTE") || seen[ins] {
				continue
			}
			seen[ins] = true
			want = append(want, strings.NewReplacer("BYTE $0x", "", "; ", "").Replace(code))
			op, args, _ := strings.Cut(ins, " ")
			encoding := "vex"
			if strings.Contains(args, "Z") {
				encoding = "evex"
			}
			fmt.Fprintf(&source, "{%s} %s %s\n", encoding, strings.ToLower(op), atnt(args))
		}
	}
	if len(want) < 30 {
		t.Fatalf("only %d instructions in bytes", len(want))
	}
	cmd := exec.Command(as, "-aln", "--listing-lhs-width=4", "-o", filepath.Join(t.TempDir(), "out.o"), "-")
	cmd.Stdin = strings.NewReader(source.String())
	list, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, list)
	}
	var got []string
	for line := range strings.Lines(string(list)) {
		if before, _, ok := strings.Cut(line, "vex} "); ok { // line, offset, bytes in words
			before = strings.TrimRight(before, "{e")
			got = append(got, strings.ToLower(strings.Join(strings.Fields(before)[2:], "")))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("as gives %v, want %v", got, want)
	}
}
