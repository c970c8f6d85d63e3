package cuda

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"infer/runtime/internal/cuda/ptx"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// scenarios launch a kernel on a shape that uses all of it.
var scenarios = map[string]func(d *gpu){
	"rmsnorm_bf16": func(d *gpu) {
		y, _ := d.alloc("dst", 600*2)
		d.launch(kernel(d.t, "rows", "rmsnorm_bf16"), [3]int{2, 1, 1}, 256,
			d.put("x", encode(tensor.BF16, d.random(600, 1))), d.put("w", encode(tensor.F32, d.random(300, 1))), y, 300, float32(1e-5))
	},
	"gated_f32": func(d *gpu) {
		y, _ := d.alloc("dst", 300*4)
		d.launch(kernel(d.t, "rows", "gated_f32"), [3]int{2, 1, 1}, 256, d.put("x", encode(tensor.F32, d.random(600, 1))), y, 300, 1)
	},
	"argmax": func(d *gpu) {
		y, _ := d.alloc("dst", 8)
		d.launch(kernel(d.t, "rows", "argmax"), [3]int{2, 1, 1}, 512, d.put("x", encode(tensor.F32, d.random(2000, 1))), y, 1000)
	},
	"topk": func(d *gpu) {
		vals, _ := d.alloc("values", 12)
		idx, _ := d.alloc("indices", 12)
		d.launch(kernel(d.t, "rows", "topk"), [3]int{1, 1, 1}, 256, d.put("x", encode(tensor.F32, d.random(600, 1))), uint64(0), vals, idx, 600, 3)
	},
	"digest": func(d *gpu) {
		d.launch(kernel(d.t, "bytes", "digest"), [3]int{1, 1, 1}, 256, d.put("bytes", d.randomBytes(3000)), uint64(3000), d.fill("out", make([]byte, 16)))
	},
	"copy": func(d *gpu) {
		y, _ := d.alloc("dst", 3000)
		d.launch(kernel(d.t, "bytes", "copy"), [3]int{1, 1, 1}, 256, y, d.put("bytes", d.randomBytes(3000)), uint64(3000))
	},
	"gemv_bf16_bf16": func(d *gpu) { d.mutantProduct(kernels.BF16, tensor.BF16, 3) },
	"gemv_q8_bf16":   func(d *gpu) { d.mutantProduct(kernels.Q8, tensor.BF16, 3) },
	"gemm_bf16_bf16": func(d *gpu) { d.mutantProduct(kernels.BF16, tensor.BF16, 70) },
	"gemm_q4_f32":    func(d *gpu) { d.mutantProduct(kernels.Q4, tensor.F32, 70) },
	"moe_route": func(d *gpu) {
		ids, _ := d.alloc("ids", 24)
		weights, _ := d.alloc("weights", 24)
		d.route(3, 40, 2, true, d.put("logits", encode(tensor.F32, d.random(120, 1))), ids, weights)
	},
	"moe_group": func(d *gpu) {
		order, _ := d.alloc("order", 4*kernels.ExpertsOrder(300, 1, 3))
		ids := make([]int32, 300)
		for i := range ids {
			ids[i] = int32(i % 3)
		}
		d.launch(kernel(d.t, "moe", "moe_group"), [3]int{1, 1, 1}, 1024, d.ints("ids", ids), order, 300, 3, 3)
	},
	"moe_gemv_bf16_f32": func(d *gpu) { d.mixture(kernels.BF16, tensor.F32, 5, 3, 2, 40, 48).run(d, 0, 5, false, true) },
	"moe_gemm_q8_bf16":  func(d *gpu) { d.mixture(kernels.Q8, tensor.BF16, 5, 3, 2, 200, 48).run(d, 0, 5, true, false) },
	"moe_sum_f32":       func(d *gpu) { d.mixture(kernels.BF16, tensor.F32, 1, 2, 2, 40, 16).run(d, 0, 1, false, true) },
	"rotary_bf16_bf16": func(d *gpu) {
		const pages = 16 * 64 * 2
		d.launch(kernel(d.t, "rotary", "rotary_bf16_bf16"), [3]int{1, 1, 1}, 128,
			d.fill("qkv", encode(tensor.BF16, d.random(3*64, 1))), d.fill("K", make([]byte, pages)), d.fill("V", make([]byte, pages)),
			d.put("cos", encode(tensor.F32, d.random(64, 1))), d.put("sin", encode(tensor.F32, d.random(64, 1))),
			d.ints("positions", []int32{1}), d.ints("slots", []int32{1}), uint64(0), uint64(0), 1, 1, 64, 20, float32(1e-6))
	},
	"attn_prefill_64_bf16": func(d *gpu) { d.mutantAttention(64, []int{150}, []int{20}, (*scene).prefill) },
	"attn_prefill_256_f32": func(d *gpu) { d.mutantAttention(256, []int{150}, []int{20}, (*scene).prefill) },
	// One sequence's splits are taken by one block, the others' by two and three.
	"attn_split_64_f32":  func(d *gpu) { d.mutantAttention(64, []int{150, 700}, []int{20, 2}, (*scene).decode) },
	"attn_split_64_bf16": func(d *gpu) { d.mutantAttention(64, []int{1300}, []int{9}, (*scene).decode) },
	"attn_any_bf16_bf16": func(d *gpu) { d.mutantAttention(64, []int{150}, []int{20}, (*scene).any) },
}

func (d *gpu) mutantProduct(f kernels.Format, act tensor.DType, m int) {
	const n, k = 40, 200
	w := d.pack(f, n, k, d.random(n*k, 1))
	y, _ := d.alloc("dst", m*n*act.Bits()/8)
	d.product(w, act, m, d.put("x", encode(act, d.random(m*k, 1))), y, d.put("bias", encode(tensor.F32, d.random(n, 1))), 0)
}

func (d *gpu) mutantAttention(dim int, contexts, rows []int, run func(*scene, int) []byte) {
	act := tensor.BF16
	if d.mutant != nil && strings.HasSuffix(d.mutant.Name(), "_f32") {
		act = tensor.F32
	}
	s := newScene(d.t, kernels.Heads{Q: 2, KV: 1, Dim: dim}, act, tensor.BF16, contexts, rows)
	s.mutant, s.workers = d.mutant, d.workers
	run(s, 0)
	d.err = s.err
}

// mutate changes the n-th line (from 0) of a kernel that matches, and leaves
// out the module's other kernels.
func mutate(t *testing.T, src, kernel, line string, n int, change func(string) string) string {
	t.Helper()
	match := regexp.MustCompile(line)
	var out []string
	in, skip := false, false
	for l := range strings.Lines(src) {
		if strings.Contains(l, ".entry ") {
			in = strings.Contains(l, ".entry "+kernel+"(")
			skip = !in
		}
		if in && n >= 0 && match.MatchString(l) {
			if n == 0 {
				l = change(l)
			}
			n--
		}
		if !skip {
			out = append(out, l)
		}
		if strings.HasPrefix(l, "}") {
			in, skip = false, false
		}
	}
	if n >= 0 {
		t.Fatalf("kernel %s has no such line %q", kernel, line)
	}
	return strings.Join(out, "")
}

// TestMutations breaks kernels in the ways GPU code is broken, and wants each
// found by the checks that all tests here run with.
func TestMutations(t *testing.T) {
	sound := map[string]bool{} // kernels that pass as they ship
	drop := func(string) string { return "" }
	swap := func(old, with string) func(string) string {
		re := regexp.MustCompile(old)
		return func(l string) string { return re.ReplaceAllString(l, with) }
	}
	shared := []ptx.FaultKind{ptx.FaultRace, ptx.FaultUninitialised}
	flight := []ptx.FaultKind{ptx.FaultInFlight}
	type mutation struct {
		name, module, kernel, line string
		n                          int
		change                     func(string) string
		want                       []ptx.FaultKind
	}
	all := []mutation{
		{"norm without its barrier", "rows", "rmsnorm_bf16", `bar\.sync`, 0, drop, shared},
		{"norm with a shuffle that leaves out its own lane", "rows", "rmsnorm_bf16", `shfl\.sync`, 0, swap("-1;", "2;"), []ptx.FaultKind{ptx.FaultIllegalOperand}},
		{"activation without its bounds check", "rows", "gated_f32", `@.*bra`, 0, drop, []ptx.FaultKind{ptx.FaultIllegal}},
		{"argmax without its barrier", "rows", "argmax", `bar\.sync`, 0, drop, shared},
		{"top-k without the barrier after loading", "rows", "topk", `bar\.sync`, 0, drop, nil}, // each thread reads only what it loaded
		{"top-k without the barrier of a round", "rows", "topk", `bar\.sync`, 1, drop, shared},
		{"digest without its barrier", "bytes", "digest", `bar\.sync`, 0, drop, shared},
		{"copy off by four bytes", "bytes", "copy", `ld\..*v[24]`, 0, swap(`\]`, "+4]"), []ptx.FaultKind{ptx.FaultMisaligned}},
		{"gemv without its barrier", "gemv", "gemv_bf16_bf16", `bar\.sync`, 0, drop, shared},
		{"gemv that reads the next weights", "gemv", "gemv_bf16_bf16", `ld\.global.*v4`, 2, swap(`\[(%rd\d+)[^\]]*\]`, "[$1+1048576]"), []ptx.FaultKind{ptx.FaultIllegal}},
		{"gemv of q8 without its barrier", "gemv", "gemv_q8_bf16", `bar\.sync`, 0, drop, shared},
		{"gemm without its wait", "gemm", "gemm_bf16_bf16", `wait_group`, 0, drop, flight},
		{"gemm that waits a stage too little", "gemm", "gemm_bf16_bf16", `wait_group`, 0, swap("wait_group 1", "wait_group 2"), flight},
		{"gemm without its barrier", "gemm", "gemm_bf16_bf16", `bar\.sync`, 0, drop, append(flight, shared...)},
		{"gemm without a commit", "gemm", "gemm_bf16_bf16", `commit_group`, 2, drop, flight},
		{"gemm of q4 without its wait", "gemm", "gemm_q4_f32", `wait_group`, 0, drop, flight},
		{"gemm of q4 without its barrier", "gemm", "gemm_q4_f32", `bar\.sync`, 0, drop, append(flight, shared...)},
		{"routing with a shuffle that leaves out its own lane", "moe", "moe_route", `shfl\.sync`, 0, swap("-1;", "2;"), []ptx.FaultKind{ptx.FaultIllegalOperand}},
		{"routing without its bounds check", "moe", "moe_route", `@.*bra`, 0, drop, []ptx.FaultKind{ptx.FaultIllegal, ptx.FaultUninitialised}},
		{"sorting without the barrier after counting", "moe", "moe_group", `bar\.sync`, 0, drop, shared},
		{"sorting without the barrier after summing", "moe", "moe_group", `bar\.sync`, 1, drop, shared},
		{"sorting without the barrier before placing", "moe", "moe_group", `bar\.sync`, 2, drop, shared},
		{"experts without their barrier", "moe", "moe_gemv_bf16_f32", `bar\.sync`, 0, drop, shared},
		{"experts that read the next tile", "moe", "moe_gemv_bf16_f32", `ld\.global.*u32`, 0, swap(`\[(%rd\d+)[^\]]*\]`, "[$1+1048576]"), []ptx.FaultKind{ptx.FaultIllegal}},
		{"many rows of experts without their wait", "moe", "moe_gemm_q8_bf16", `wait_group`, 0, drop, flight},
		{"sum of experts without its bounds check", "moe", "moe_sum_f32", `@.*bra`, 0, drop, []ptx.FaultKind{ptx.FaultIllegal}},
		{"rotary without its barrier", "rotary", "rotary_bf16_bf16", `bar\.warp\.sync`, 0, drop, shared},
		{"prefill without its wait", "attention", "attn_prefill_64_bf16", `wait_group`, 0, drop, flight},
		{"prefill without its first commit", "attention", "attn_prefill_64_bf16", `commit_group`, 0, drop, flight},
		{"prefill without a commit in its loop", "attention", "attn_prefill_64_bf16", `commit_group`, 1, drop, flight},
		{"prefill without its barrier", "attention", "attn_prefill_64_bf16", `bar\.sync`, 0, drop, append(flight, shared...)},
		{"prefill that reads positions never written", "attention", "attn_prefill_64_bf16", `cp\.async\.cg.*16,%r`, 2, swap(`,%r\d+;`, ",16;"), []ptx.FaultKind{ptx.FaultUninitialised}},
		{"prefill of wide heads without its wait", "attention", "attn_prefill_256_f32", `wait_group`, 0, drop, flight},
		{"any without its barrier", "attention", "attn_any_bf16_bf16", `bar\.warp\.sync`, 0, drop, shared},
	}
	// What the last of a sequence's blocks merges the others have released: by
	// results, barrier, fence, count; and count, fence, barrier, merge.
	race := []ptx.FaultKind{ptx.FaultRace}
	block := swap(`\.gpu`, ".cta")
	for _, k := range []string{"attn_split_64_f32", "attn_split_64_bf16"} {
		all = append(all,
			mutation{"decode without the barrier before counting", "attention", k, `bar\.sync`, 0, drop, shared},
			mutation{"decode without the fence before counting", "attention", k, `fence`, 0, drop, race},
			mutation{"decode with a fence of the block before counting", "attention", k, `fence`, 0, block, race},
			mutation{"decode that counts for the block", "attention", k, `atom\.global`, 0, swap(`atom\.global`, "atom.relaxed.cta.global"), race},
			mutation{"decode without the fence after counting", "attention", k, `fence`, 1, drop, race},
			mutation{"decode with a fence of the block after counting", "attention", k, `fence`, 1, block, race},
			mutation{"decode without the barrier before merging", "attention", k, `bar\.sync`, 1, drop, shared},
			mutation{"decode with fences for a barrier before merging", "attention", k, `bar\.sync`, 1, swap(`bar.*;`, "fence.acq_rel.gpu;"), shared},
		)
		for _, c := range []struct {
			name, line string
			n          int
			to         string // the line is moved behind this one
			toN        int
		}{
			{"decode that counts before its fence", `fence`, 0, `atom\.global`, 0},
			{"decode that acquires behind the barrier", `fence`, 1, `bar\.sync`, 1},
		} {
			line := ""
			src := mutate(t, Module("attention"), k, c.line, c.n, func(l string) string { line = l; return "" })
			broken(t, c.name, "attention", k, mutate(t, src, k, c.to, c.toN, func(l string) string { return l + line }), race)
		}
	}
	for _, c := range all {
		if !sound[c.kernel] {
			sound[c.kernel] = true
			d := newGPU(t)
			d.mutant = kernel(t, c.module, c.kernel)
			if scenarios[c.kernel](d); d.err != nil {
				t.Errorf("%s fails before it is broken: %v", c.kernel, d.err)
			}
		}
		broken(t, c.name, c.module, c.kernel, mutate(t, Module(c.module), c.kernel, c.line, c.n, c.change), c.want)
	}
}

// broken wants one of these faults of a kernel in src.
func broken(t *testing.T, name, module, k, src string, want []ptx.FaultKind) {
	t.Helper()
	m, err := ptx.Parse(src)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	workers := []int{0}
	if strings.HasPrefix(k, "attn_split") {
		workers = brief([]int{1, 2, 4}, 3) // blocks that talk, in several orders
	}
	for _, n := range workers {
		d := newGPU(t)
		d.mutant, d.workers = m.Kernel(k), n
		scenarios[k](d)
		t.Logf("%s: %v", name, d.err)
		var f *ptx.Fault
		switch {
		case want == nil && d.err != nil:
			t.Errorf("%s: harmless, but: %v", name, d.err)
		case want != nil && (!errors.As(d.err, &f) || !slices.Contains(want, f.Kind) || f.Kernel != k || f.Line == 0):
			t.Errorf("%s: found as %v", name, d.err)
		}
	}
}

// Shared memory is laid out so that accesses do not wait for each other.
func TestBankConflicts(t *testing.T) {
	d := newGPU(t)
	const m, n, k = 9, 20, 72
	for _, f := range []kernels.Format{kernels.BF16, kernels.Q8} {
		for _, act := range actTypes {
			w := d.pack(f, n, k, d.random(n*k, 1))
			y, _ := d.alloc("dst", m*n*act.Bits()/8)
			s := d.product(w, act, m, d.put("x", encode(act, d.random(m*k, 1))), y, 0, 0)
			if s.SharedConflicts > 0 {
				t.Errorf("gemm %v %v: %d bank conflicts in %d accesses", f, act, s.SharedConflicts, s.SharedRequests)
			}
		}
	}
}
