package ptx

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// FuzzParse feeds the parser any text, and runs what it accepts: no text may
// make it panic, hang, or touch memory it was not given.
func FuzzParse(f *testing.F) {
	names, _ := filepath.Glob("testdata/*.ptx")
	for _, n := range names {
		src, err := os.ReadFile(n)
		if err != nil {
			f.Fatal(err)
		}
		// One kernel each is small enough to be mutated fast.
		for i, part := range strings.Split(string(src), ".visible .entry") {
			if i > 0 {
				f.Add(".version 7.8\n.target sm_80\n.address_size 64\n.extern .shared .align 4 .b8 s[];\n.visible .entry" + part)
			}
		}
	}
	f.Add(program("", "st.global.u32 [%o], %i; bar.sync 0; shfl.sync.bfly.b32 %r1, %i, 1, 31, -1;"))
	f.Add(program(".const .align 4 .b32 c[2] = {1, 2};", "{ .param .b32 a; st.param.b32 [a], %i; } cp.async.ca.shared.global [%i], [%o], 4; atom.global.add.f32 %r1, [%o], 0f3F800000; L: @%p bra L;"))
	f.Add(program(".global .align 8 .u64 g[2] = {generic(h), 5};\n.func f(.param .b32 x) { ret; }", "mov.b64 {%r1, %r2}, %o; ld.global.v2.u32 {%r1, _}, [%o+-4];"))
	f.Fuzz(survive)
}

// survive parses and runs a text, which may be anything.
func survive(t *testing.T, src string) {
	if len(src) > 1<<16 {
		return
	}
	m, err := Parse(src)
	if err != nil {
		var se *SyntaxError
		if !errors.As(err, &se) || se.Line < 1 {
			t.Fatalf("error is not a SyntaxError with a line: %v", err)
		}
		return
	}
	for _, name := range m.Kernels() {
		k := m.Kernel(name)
		if k.ParamBytes() > 1<<12 || k.SharedBytes() > 1<<16 || k.LocalBytes() > 1<<10 {
			continue
		}
		d := newDevice()
		buf, _ := d.alloc("buf", 4096)
		params := make([]byte, k.ParamBytes())
		for _, p := range k.Params() {
			switch p.Size {
			case 8:
				copy(params[p.Offset:], pack(buf))
			case 4:
				params[p.Offset] = 16
			}
		}
		_, err := k.Launch(context.Background(), Config{Grid: grid(2, 1), Block: grid(40, 1), SharedBytes: 64}, params, d.regions,
			Options{Workers: 1, MaxInstructions: 1 << 10, Checks: CheckAll, Profile: true})
		if err != nil && strings.Contains(err.Error(), "internal error") {
			t.Fatalf("%v\n%s", err, src)
		}
	}
}

// TestMangled exchanges, drops and repeats words of real kernels, which keeps
// more of them meaningful than the fuzzer's changes of bytes do.
func TestMangled(t *testing.T) {
	rounds := 60
	if n, err := strconv.Atoi(os.Getenv("PTX_MANGLE_ROUNDS")); err == nil {
		rounds = n
	}
	r := rng(11)
	for _, file := range []string{"elem.ptx", "gemv.ptx", "gemm.ptx", "attn.ptx"} {
		src := source(t, file)
		for i, part := range strings.Split(src, ".visible .entry") {
			if i == 0 {
				continue
			}
			kernel := ".version 7.8\n.target sm_80\n.address_size 64\n.extern .shared .align 4 .b8 s[];\n.visible .entry" + part
			toks, err := lex(kernel)
			if err != nil {
				t.Fatal(err)
			}
			words := toks[8 : len(toks)-1]
			for range rounds {
				changed := kernel
				for range 1 + r.next()%3 {
					a, b := words[r.next()%uint64(len(words))], words[r.next()%uint64(len(words))]
					if a.end > len(changed) {
						continue
					}
					with := b.text
					switch r.next() % 8 {
					case 0:
						with = ""
					case 1:
						with = a.text + " " + b.text
					case 2:
						with = []string{"-1", "0", "0x7fffffff", "4294967295", "1000000", "%tid.x", "{", "_", "%r1|%p1", "[%rd1+3]", ".b8", "bar.sync"}[r.next()%12]
					}
					changed = changed[:a.start] + with + changed[a.end:]
				}
				survive(t, changed)
			}
		}
	}
}

// TestHostileText: texts that would take the stack, the memory or the time.
func TestHostileText(t *testing.T) {
	head := ".version 7.8\n.target sm_80\n.address_size 64\n"
	var calls, regs, branches strings.Builder
	for i := range 60 {
		fmt.Fprintf(&calls, ".func f%d() { call f%d, (); call f%d, (); ret; }\n", 60-i, 59-i, 59-i)
	}
	for i := range 40000 {
		fmt.Fprintf(&regs, "add.u32 %%r19, %%r19, %d;\n", i)
	}
	for i := range 10000 {
		fmt.Fprintf(&branches, "L%d: @%%p bra L%d;\n", i, 9999-i)
	}
	for name, src := range map[string]string{
		"braces":       head + ".visible .entry k() " + strings.Repeat("{", 1<<16),
		"operands":     head + ".visible .entry k() { mov.b32 " + strings.Repeat("{", 1<<16),
		"negations":    head + ".visible .entry k() { mov.b32 " + strings.Repeat("!", 1<<16),
		"initialisers": head + ".global .b32 x[2] = " + strings.Repeat("{", 1<<16),
		"addresses":    head + ".global .b64 x = " + strings.Repeat("generic(", 1<<16),
		"calls":        head + ".func f0() { ret; }\n" + calls.String() + ".visible .entry k() { call f60, (); ret; }",
		"constants":    program("", regs.String()),
		"branches":     program("", branches.String()),
		"registers":    head + ".visible .entry k() { .reg .b32 %r<4000000000>; }",
		"variables":    head + ".visible .entry k() { .local .b8 x[1000000][1000000]; }",
		"size":         strings.Repeat(" ", maxSource+1),
		"comment":      head + "/*",
		"string":       head + ".file 1 \"",
		"section":      head + ".section .debug_x {",
	} {
		begin := time.Now()
		_, err := Parse(src)
		var se *SyntaxError
		if !errors.As(err, &se) {
			t.Errorf("%s: error is %v", name, err)
		}
		if d := time.Since(begin); d > 20*time.Second {
			t.Errorf("%s: took %v", name, d)
		}
	}
}
