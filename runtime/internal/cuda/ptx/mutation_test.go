package ptx

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// scenarios launch a kernel of testdata on a shape that uses all of it.
var scenarios = map[string]struct {
	file string
	run  func(k *Kernel, opts Options) error
}{
	"embedding": {"elem.ptx", func(k *Kernel, o Options) error {
		d, r := newDevice(), rng(1)
		out, _ := d.alloc("out", 4*64*2)
		return try(k, d, o, Config{Grid: grid(4, 1), Block: grid(32, 1)},
			pack(put(d, "table", toBF16(r.floats(10*64))), put(d, "ids", []int32{1, 5, -3, 900000}), out, int32(64), int32(10)))
	}},
	"rmsnorm": {"elem.ptx", func(k *Kernel, o Options) error {
		d, r := newDevice(), rng(1)
		out, _ := d.alloc("out", 600*2)
		return try(k, d, o, Config{Grid: grid(2, 1), Block: grid(256, 1)},
			pack(put(d, "x", r.floats(600)), put(d, "res", r.floats(600)), put(d, "w", toBF16(r.floats(300))), out, int32(300), float32(1e-5)))
	}},
	"silu_mul": {"elem.ptx", func(k *Kernel, o Options) error {
		d, r := newDevice(), rng(1)
		out, _ := d.alloc("out", 300*2)
		return try(k, d, o, Config{Grid: grid(2, 1), Block: grid(256, 1)},
			pack(put(d, "gate", toBF16(r.floats(300))), put(d, "up", toBF16(r.floats(300))), out, int32(300)))
	}},
	"argmax": {"elem.ptx", func(k *Kernel, o Options) error {
		d, r := newDevice(), rng(1)
		out, _ := d.alloc("out", 8)
		return try(k, d, o, Config{Grid: grid(2, 1), Block: grid(256, 1)}, pack(put(d, "x", r.floats(600)), out, int32(300)))
	}},
	"topk": {"elem.ptx", func(k *Kernel, o Options) error {
		d, r := newDevice(), rng(1)
		vals, _ := d.alloc("vals", 3*4)
		idx, _ := d.alloc("idx", 3*4)
		return try(k, d, o, Config{Grid: grid(1, 1), Block: grid(128, 1), SharedBytes: 4 * 300},
			pack(put(d, "x", r.floats(300)), vals, idx, int32(300), int32(3)))
	}},
	"gemv_bf16": {"gemv.ptx", func(k *Kernel, o Options) error {
		d, r := newDevice(), rng(1)
		y, _ := d.alloc("y", 6*4)
		return try(k, d, o, Config{Grid: grid(2, 1), Block: grid(128, 1), SharedBytes: 4 * 512},
			pack(put(d, "w", toBF16(r.floats(6*512))), put(d, "x", r.floats(512)), y, int32(6), int32(512)))
	}},
	"gemm_bf16": {"gemm.ptx", func(k *Kernel, o Options) error {
		d, r := newDevice(), rng(1)
		c, _ := d.alloc("C", 70*66*4)
		return try(k, d, o, Config{Grid: grid(2, 2), Block: grid(128, 1)},
			pack(put(d, "A", toBF16(r.floats(70*192))), put(d, "B", toBF16(r.floats(66*192))), c, int32(70), int32(66), int32(192)))
	}},
	"decode_split": {"attn.ptx", func(k *Kernel, o Options) error {
		d, r := newDevice(), rng(1)
		kc, vc, table := pagedCache(&r, 50, 1)
		part, _ := d.alloc("part", 2*66*4)
		return try(k, d, o, Config{Grid: grid(1, 2), Block: grid(128, 1)},
			pack(put(d, "q", toBF16(r.floats(64))), put(d, "k", kc), put(d, "v", vc), put(d, "table", table), part,
				int32(50), int32(1), int32(1), int32(25), float32(0.125)))
	}},
	"prefill": {"attn.ptx", func(k *Kernel, o Options) error {
		d, r := newDevice(), rng(1)
		kc, vc, table := pagedCache(&r, 40, 1)
		out, _ := d.alloc("out", 40*64*2)
		return try(k, d, o, Config{Grid: grid(1, 3), Block: grid(32, 1)},
			pack(put(d, "q", toBF16(r.floats(40*64))), put(d, "k", kc), put(d, "v", vc), put(d, "table", table), out,
				int32(40), int32(0), int32(1), int32(1), float32(0.125)))
	}},
}

func try(k *Kernel, d *device, opts Options, cfg Config, params []byte) error {
	_, err := k.Launch(context.Background(), cfg, params, d.regions, opts)
	return err
}

// mutate replaces the n-th line (from 0) of a kernel that contains old by what
// new makes of it.
func mutate(t *testing.T, src, kernel, old string, n int, change func(line string) string) string {
	t.Helper()
	lines := strings.Split(src, "\n")
	in := false
	for i, l := range lines {
		if strings.Contains(l, ".entry ") {
			in = strings.Contains(l, ".entry "+kernel+"(")
		}
		if !in || !strings.Contains(l, old) {
			continue
		}
		if n > 0 {
			n--
			continue
		}
		lines[i] = change(l)
		return strings.Join(lines, "\n")
	}
	t.Fatalf("kernel %s has no such line %q", kernel, old)
	return ""
}

// TestMutations breaks kernels in the ways GPU code is broken, and wants each
// found and named.
func TestMutations(t *testing.T) {
	drop := func(string) string { return "" }
	swap := func(old, new string) func(string) string {
		return func(l string) string { return strings.Replace(l, old, new, 1) }
	}
	for _, c := range []struct {
		name, kernel, line string
		n                  int
		change             func(string) string
		want               []FaultKind
		inst               string // part of the instruction that is named
		source             string // file that is named
	}{
		{"norm without its barrier", "rmsnorm", "bar.sync", 0, drop, []FaultKind{FaultRace, FaultUninitialised}, "ld.shared", "elem.cu"},
		{"argmax without its barrier", "argmax", "bar.sync", 0, drop, []FaultKind{FaultRace, FaultUninitialised}, "ld.shared", "elem.cu"},
		{"top-k without the barrier after loading", "topk", "bar.sync", 0, drop, nil, "", ""}, // each thread reads only what it loaded
		{"top-k without the barrier of a round's end", "topk", "bar.sync", 1, drop, []FaultKind{FaultRace}, "shared", "elem.cu"},
		{"top-k without the barrier inside a round", "topk", "bar.sync", 2, drop, []FaultKind{FaultRace, FaultUninitialised}, "shared", "elem.cu"},
		{"vector staged without a barrier", "gemv_bf16", "bar.sync", 0, drop, []FaultKind{FaultRace, FaultUninitialised}, "ld.shared", "gemv.cu"},
		{"pipeline without its wait", "gemm_bf16", "wait_group", 0, drop, []FaultKind{FaultInFlight}, "ldmatrix", "shim.h"},
		{"pipeline that waits a stage too little", "gemm_bf16", "wait_group", 0, swap("wait_group 1", "wait_group 2"), []FaultKind{FaultInFlight}, "ldmatrix", "shim.h"},
		{"pipeline without its barrier", "gemm_bf16", "bar.sync", 0, drop, []FaultKind{FaultRace, FaultInFlight, FaultUninitialised}, "", "shim.h"},
		{"pipeline without a commit", "gemm_bf16", "commit_group", 2, drop, []FaultKind{FaultInFlight}, "ldmatrix", "shim.h"},
		{"activation without its bounds check", "silu_mul", "bra", 0, drop, []FaultKind{FaultIllegal}, "ld.global", "shim.h"},
		{"embedding without its range check", "embedding", "bra", 0, drop, []FaultKind{FaultIllegal}, "ld.global", "elem.cu"},
		{"decode without its barrier", "decode_split", "bar.sync", 0, drop, []FaultKind{FaultRace, FaultUninitialised}, "ld.shared", "attn.cu"},
		{"prefill without its wait", "prefill", "wait_group", 0, drop, []FaultKind{FaultInFlight}, "ldmatrix", "shim.h"},
		{"prefill without the warp's barrier", "prefill", "bar.warp.sync", 0, drop, []FaultKind{FaultRace}, "ldmatrix", "shim.h"},
		{"prefill without the barrier before the next page", "prefill", "bar.warp.sync", 1, drop, []FaultKind{FaultRace}, "cp.async", "shim.h"},
		{"barrier only some threads reach", "rmsnorm", "bar.sync", 0, swap("bar.sync", "@%p4 bar.sync"), []FaultKind{FaultDivergence, FaultRace, FaultUninitialised, FaultDeadlock}, "", "elem.cu"},
		{"shuffle with a mask that leaves out its own lane", "rmsnorm", "shfl.sync", 0, swap("-1;", "2;"), []FaultKind{FaultIllegalOperand}, "shfl.sync", "shim.h"},
		{"loads off by four bytes", "gemv_bf16", "ld.global.v4", 0, swap("+-8]", "+-4]"), []FaultKind{FaultMisaligned}, "ld.global.v4", "gemv.cu"},
	} {
		sc := scenarios[c.kernel]
		src := source(t, sc.file)
		opts := Options{Workers: 1, Checks: CheckAll}
		if err := sc.run(parse(t, src).Kernel(c.kernel), opts); err != nil {
			t.Errorf("%s: the kernel fails before it is broken: %v", c.name, err)
			continue
		}
		m, err := Parse(mutate(t, src, c.kernel, c.line, c.n, c.change))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		err = sc.run(m.Kernel(c.kernel), opts)
		t.Logf("%s: %v", c.name, err)
		if c.want == nil {
			if err != nil {
				t.Errorf("%s: harmless, but: %v", c.name, err)
			}
			continue
		}
		var f *Fault
		if !errors.As(err, &f) {
			t.Errorf("%s: not found: %v", c.name, err)
			continue
		}
		ok := false
		for _, k := range c.want {
			ok = ok || f.Kind == k
		}
		if !ok || f.Kernel != c.kernel || !strings.Contains(f.Inst, c.inst) || !strings.Contains(f.Source, c.source) || f.Line == 0 {
			t.Errorf("%s: found as %v", c.name, err)
		}
	}
}
