package ptx

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestManifest fails when a kernel's source and its committed PTX are not the
// ones that belong together: testdata/build.sh (clang) and testdata/nvrtc.py
// write both anew.
func TestManifest(t *testing.T) {
	for manifest, patterns := range map[string][]string{
		"MANIFEST":       {"*.ptx", "src/*"},
		"nvrtc/MANIFEST": {"nvrtc/*.gz", "src/*"},
	} {
		listed := map[string]bool{}
		for _, line := range strings.Split(source(t, manifest), "\n") {
			sum, name, ok := strings.Cut(line, "  ")
			if !ok {
				continue
			}
			listed[name] = true
			data, err := os.ReadFile(filepath.Join("testdata", filepath.FromSlash(name)))
			if err != nil {
				t.Error(err)
				continue
			}
			if got := sha256.Sum256(data); hex.EncodeToString(got[:]) != sum {
				t.Errorf("%s is not what %s says", name, manifest)
			}
		}
		for _, pattern := range patterns {
			names, _ := filepath.Glob(filepath.Join("testdata", filepath.FromSlash(pattern)))
			if len(names) < 4 {
				t.Errorf("only %d files %s", len(names), pattern)
			}
			for _, n := range names {
				if rel, _ := filepath.Rel("testdata", n); !listed[filepath.ToSlash(rel)] {
					t.Errorf("%s is not in %s", rel, manifest)
				}
			}
		}
	}
}

func TestModule(t *testing.T) {
	m := parse(t, source(t, "gemm.ptx"))
	if m.Version != "7.8" || m.Target != "sm_80" {
		t.Errorf("version %s target %s", m.Version, m.Target)
	}
	k := m.Kernel("gemm_bf16")
	if got := m.Kernels(); len(got) != 1 || k == nil || m.Kernel("nope") != nil {
		t.Errorf("kernels %v", got)
	}
	want := []int{0, 8, 16, 24, 28, 32}
	for i, p := range k.Params() {
		if p.Offset != want[i] {
			t.Errorf("parameter %d at %d, want %d", i, p.Offset, want[i])
		}
	}
	if k.ParamBytes() != 36 || k.SharedBytes() != 2*3*64*40*2 || k.MaxThreads() != 128 || k.LocalBytes() != 0 {
		t.Errorf("%d parameter bytes, %d shared, %d threads, %d local", k.ParamBytes(), k.SharedBytes(), k.MaxThreads(), k.LocalBytes())
	}
	ops := strings.Join(k.Opcodes(), " ")
	for _, op := range []string{"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "cp.async.wait_group", "bar.sync"} {
		if !strings.Contains(ops, op) {
			t.Errorf("opcodes lack %s: %s", op, ops)
		}
	}
}

// TestVariables reads and writes module variables, with and without device
// addresses, and a structure passed by value.
func TestVariables(t *testing.T) {
	src := `.version 7.8
.target sm_80, texmode_independent
.address_size 64
.global .align 8 .u64 ptrs[2] = {generic(nums)+4, 0};
.global .align 4 .u32 nums[3] = {10, 20, 0x1E};
.const .align 4 .f32 half = 0f3F000000;
.global .align 1 .b8 text[] = {104, 105, 0};
.visible .entry k(.param .u64 po, .param .align 8 .b8 st[24], .param .u8 tiny) {
	.reg .b64 %o, %p, %q; .reg .b32 %r<9>; .reg .b16 %h;
	ld.param.u64 %o, [po];
	ld.param.u32 %r0, [st+16];
	mov.b64 %p, st; ld.param.u32 %r1, [%p+8];
	ld.param.u8 %h, [tiny]; cvt.u32.u16 %r2, %h;
	ld.global.u32 %r3, [nums+8];
	ld.const.f32 %r4, [half];
	mov.u64 %p, text; ld.global.u8 %r5, [%p+1];
	add.u32 %r6, %r0, %r1; add.u32 %r6, %r6, %r2; add.u32 %r6, %r6, %r3; add.u32 %r6, %r6, %r5;
	st.global.v2.b32 [%o], {%r6, %r4};
	st.global.u32 [nums], 99;
	ret;
}`
	m := parse(t, src)
	vars := m.Variables()
	if len(vars) != 4 || vars[1].Name != "nums" || vars[1].Size != 12 || vars[1].Init[8] != 30 || !vars[2].Const || vars[3].Size != 3 {
		t.Errorf("variables %+v", vars)
	}
	k := m.Kernel("k")
	p := k.Params()
	if len(p) != 3 || p[1].Size != 24 || p[2].Offset != 32 || k.ParamBytes() != 33 {
		t.Fatalf("parameters %+v", p)
	}
	d := newDevice()
	out, _ := d.alloc("out", 8)
	params := append(pack(out, uint64(0), uint32(300), uint32(0), uint32(4000)), make([]byte, 4)...)
	params = append(params, 7)
	cfg := Config{Grid: grid(1, 1), Block: grid(1, 1)}
	var f *Fault
	if err := try(k, d, Options{}, cfg, params); !errors.As(err, &f) || f.Kind != FaultReadOnly {
		t.Errorf("a variable without a device address was written: %v", err)
	}
	const want = 4000 + 300 + 7 + 30 + 'i'
	if got := get[uint32](t, d, out, 2); got[0] != want || got[1] != math.Float32bits(0.5) {
		t.Errorf("sum is %d, want %d; half is %#x", got[0], want, got[1])
	}
	nums := put(d, "nums", []uint32{1, 2, 1030})
	cfg.Symbols = map[string]uint64{"nums": nums}
	if err := try(k, d, Options{}, cfg, params); err != nil {
		t.Fatal(err)
	}
	if got := get[uint32](t, d, out, 2)[0]; got != want+1000 {
		t.Errorf("sum is %d, want %d", got, want+1000)
	}
	if got := get[uint32](t, d, nums, 1)[0]; got != 99 {
		t.Errorf("nums[0] is %d, want 99", got)
	}
}

// TestAtomics lets many blocks on several workers update the same words.
func TestAtomics(t *testing.T) {
	m := parse(t, program("", `
	mov.u32 %r1, %ctaid.x; mad.lo.u32 %r1, %r1, 64, %i; // 0 to 1023
	red.global.add.u32 [%out], %r1;
	atom.global.add.u64 %A, [%out+8], 3;
	red.global.add.f32 [%out+16], 0f3F000000;
	red.global.max.s32 [%out+20], %r1;
	red.global.min.u32 [%out+24], %r1;
	and.b32 %r2, %r1, 31; mov.u32 %r3, 1; shl.b32 %r3, %r3, %r2; atom.global.or.b32 %r4, [%out+28], %r3;
	atom.inc.u32 %r4, [%out+32], 9;
	atom.global.cas.b32 %r4, [%out+36], 5, 6;
	atom.global.exch.b64 %A, [%out+40], 77;
	red.global.add.noftz.f16x2 [%out+48], 0x3c003c00;
	red.global.add.f64 [%out+56], 0d3FE0000000000000;
	atom.global.xor.b32 %r4, [%out+64], %r1;
	atom.dec.u32 %r4, [%out+68], 9;
	atom.global.cas.b16 %h1, [%out+74], 0, 9;
	st.volatile.global.u32 [%out+76], 5; ld.volatile.global.u32 %r4, [%out+76];
	membar.gl; fence.acq_rel.gpu;
`))
	d := newDevice()
	out, data := d.alloc("out", 256)
	for i := range 4 {
		data[24+i] = 0xff
	}
	data[36], data[68] = 5, 3
	if _, err := m.Kernel("k").Launch(context.Background(), Config{Grid: grid(16, 1), Block: grid(64, 1)}, pack(out), d.regions, Options{Workers: 4}); err != nil {
		t.Fatal(err)
	}
	w, q := get[uint32](t, d, out, 24), get[uint64](t, d, out, 8)
	dec := uint32(3)
	for range 1024 {
		if dec == 0 {
			dec = 9
		} else {
			dec--
		}
	}
	for i, c := range []struct{ got, want uint64 }{
		{uint64(w[0]), 1023 * 512},
		{q[1], 3072},
		{uint64(w[4]), uint64(math.Float32bits(512))},
		{uint64(w[5]), 1023},
		{uint64(w[6]), 0},
		{uint64(w[7]), 0xffffffff},
		{uint64(w[8]), 1024 % 10},
		{uint64(w[9]), 6},
		{q[5], 77},
		{uint64(w[12]), 0x64006400}, // 1024 in both halves
		{q[7], math.Float64bits(512)},
		{uint64(w[16]), 0},
		{uint64(w[17]), uint64(dec)},
		{uint64(w[18]), 9 << 16},
		{uint64(w[19]), 5},
	} {
		if c.got != c.want {
			t.Errorf("result %d is %#x, want %#x", i, c.got, c.want)
		}
	}
}

// TestDeterminism: with one worker float atomics give the same bits every time.
func TestDeterminism(t *testing.T) {
	m := parse(t, program("", "ld.global.f32 %r1, [%o+256]; red.global.add.f32 [%out], %r1;"))
	var first uint32
	for i := range 5 {
		d, r := newDevice(), rng(3)
		out := put(d, "out", append(make([]float32, 64), r.floats(64)...))
		if _, err := m.Kernel("k").Launch(context.Background(), Config{Grid: grid(50, 1), Block: grid(64, 1)}, pack(out), d.regions, Options{Workers: 1}); err != nil {
			t.Fatal(err)
		}
		got := get[uint32](t, d, out, 1)[0]
		if i == 0 {
			first = got
		} else if got != first {
			t.Fatalf("run %d gives %#x, the first gave %#x", i, got, first)
		}
	}
}

// TestRegions: read-only memory, memory that was never written, and the lowest
// faulty block among many workers.
func TestRegions(t *testing.T) {
	d := newDevice()
	ro := put(d, "weights", []uint32{1, 2, 3, 4})
	d.regions[0].ReadOnly = true
	k := parse(t, program("", "ld.global.u32 %r1, [%o]; st.global.u32 [%o], %r1;")).Kernel("k")
	var f *Fault
	if err := try(k, d, Options{}, Config{Grid: grid(1, 1), Block: grid(4, 1)}, pack(ro)); !errors.As(err, &f) || f.Kind != FaultReadOnly {
		t.Errorf("a read-only region was written: %v", err)
	}
	buf, _ := d.alloc("buf", 16)
	d.regions[1].Init = make([]byte, 16)
	copy(d.regions[1].Init, []byte{1, 1, 1, 1, 1, 1, 1, 1})
	if err := try(k, d, Options{Checks: CheckAll}, Config{Grid: grid(1, 1), Block: grid(2, 1)}, pack(buf)); err != nil {
		t.Error(err)
	}
	if err := try(k, d, Options{Checks: CheckAll}, Config{Grid: grid(1, 1), Block: grid(3, 1)}, pack(buf)); !errors.As(err, &f) || f.Kind != FaultUninitialised || f.Thread[0] != 2 {
		t.Errorf("memory that was never written: %v", err)
	}
	fresh, _ := d.alloc("fresh", 16)
	d.regions[2].Init = make([]byte, 16)
	if err := try(parse(t, program("", "st.global.u16 [%o], 1;")).Kernel("k"), d, Options{}, Config{Grid: grid(1, 1), Block: grid(2, 1)}, pack(fresh)); err != nil {
		t.Error(err)
	}
	if got := d.regions[2].Init; !bytes.Equal(got, []byte{1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}) {
		t.Errorf("marks of what a launch without checks wrote: %v", got)
	}
	k = parse(t, program("", "mov.u32 %r1, %ctaid.x; setp.lt.u32 %p, %r1, 37; @%p bra E; ld.global.u32 %r2, [%out+4096]; E:")).Kernel("k")
	for range 5 {
		err := try(k, d, Options{Workers: 4}, Config{Grid: grid(200, 1), Block: grid(32, 1)}, pack(buf))
		if !errors.As(err, &f) || f.Block[0] != 37 {
			t.Errorf("the lowest faulty block is not 37: %v", err)
		}
	}
}

// TestGlobalRaces: threads of one block that meet on a word of global memory.
func TestGlobalRaces(t *testing.T) {
	d := newDevice()
	buf, _ := d.alloc("buf", 4096)
	cfg := Config{Grid: grid(2, 1), Block: grid(64, 1)}
	bad := parse(t, program("", "st.global.u32 [%out], %i;")).Kernel("k")
	var f *Fault
	if err := try(bad, d, Options{Workers: 1, Checks: CheckGlobalRaces}, cfg, pack(buf)); !errors.As(err, &f) || f.Kind != FaultRace {
		t.Errorf("not found: %v", err)
	}
	good := parse(t, program("", "st.global.u32 [%o], %i; bar.sync 0; xor.b32 %r1, %i, 63; mad.wide.u32 %A, %r1, 4, %out; ld.global.u32 %r2, [%A];")).Kernel("k")
	if err := try(good, d, Options{Workers: 1, Checks: CheckGlobalRaces}, cfg, pack(buf)); err != nil {
		t.Error(err)
	}
}

// TestStats counts by hand what a small program does.
func TestStats(t *testing.T) {
	k := parse(t, program("", `
	.shared .align 16 .b32 s[1024];
	mov.u32 %r1, s; shl.b32 %r2, %i, 7; add.u32 %r2, %r1, %r2;   // one bank for all
	st.shared.u32 [%r2], %i;
	bar.sync 0;
	ld.shared.u32 %r3, [s];                                      // one word for all
	st.global.u32 [%o], %r3;                                     // 4 sectors
	shl.b32 %r4, %i, 5; cvt.u64.u32 %A, %r4; add.u64 %A, %out, %A;
	ld.global.u8 %r5, [%A];                                      // a sector each
	setp.lt.u32 %p, %i, 8; @%p ld.global.v4.u32 {%r6, %r7, %r8, %r9}, [%out];
`)).Kernel("k")
	d := newDevice()
	buf, _ := d.alloc("buf", 4096)
	s, err := k.Launch(context.Background(), Config{Grid: grid(3, 1), Block: grid(32, 1)}, pack(buf), d.regions, Options{Workers: 1, Profile: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		got, want int64
	}{
		{"blocks", s.Blocks, 3},
		{"threads", s.Threads, 96},
		{"global read", s.GlobalRead, 3 * (32 + 8*16)},
		{"global written", s.GlobalWritten, 3 * 128},
		{"shared read", s.SharedRead, 3 * 128},
		{"shared written", s.SharedWritten, 3 * 128},
		{"barriers", s.Barriers, 3},
		{"requests", s.GlobalRequests, 9},
		{"sectors", s.GlobalSectors, 3 * (4 + 32 + 1)},
		{"shared requests", s.SharedRequests, 6},
		{"conflicts", s.SharedConflicts, 3 * 31},
		{"loads", s.ByClass[ClassLoad], 3 * (32 + 32 + 32 + 8)},
		{"stores", s.ByClass[ClassStore], 3 * 64},
		{"warp instructions", s.WarpInstructions, 3 * int64(len(k.code))},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", c.name, c.got, c.want)
		}
	}
	if len(s.Lines) != len(k.code) {
		t.Errorf("%d lines of profile for %d instructions", len(s.Lines), len(k.code))
	}
}

// TestLaunchesAtOnce runs one kernel from many goroutines and on shapes that
// change, so that what a launch leaves for the next one is seen to be clean.
func TestLaunchesAtOnce(t *testing.T) {
	k := parse(t, program(".extern .shared .align 4 .b8 dyn[];", `
	mov.u32 %r1, dyn; shl.b32 %r2, %i, 2; add.u32 %r2, %r2, %r1;
	mov.u32 %r3, %ntid.x; mov.u32 %r4, %dynamic_smem_size; mad.lo.u32 %r3, %r3, 10000, %r4;
	st.shared.u32 [%r2], %r3; bar.sync 0;
	xor.b32 %r2, %r2, 4; ld.shared.u32 %r3, [%r2];
	add.u32 %r9, %r9, %r3; st.global.u32 [%o], %r9;`)).Kernel("k")
	done := make(chan error)
	for g := range 4 {
		go func() {
			var err error
			for i := range 20 {
				d := newDevice()
				threads := 32 * (1 + (g+i)%3)
				out, data := d.alloc("out", threads*4)
				cfg := Config{Grid: grid(1, 1), Block: grid(threads, 1), SharedBytes: threads*4 + 64*i}
				if e := try(k, d, Options{Workers: 1}, cfg, pack(out)); e != nil {
					err = e
				}
				want := uint32(threads*10000 + cfg.SharedBytes)
				for j := range threads {
					if got := uint32(readBytes(data[4*j:], 4)); got != want {
						err = fmt.Errorf("thread %d of %d gives %d, want %d", j, threads, got, want)
					}
				}
			}
			done <- err
		}()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
