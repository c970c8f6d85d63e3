package ptx

import (
	"context"
	"testing"
)

// benchmark launches over and over without checks and reports thread
// instructions a second.
func benchmark(b *testing.B, k *Kernel, d *device, cfg Config, params []byte, flops float64, opts Options) {
	b.Helper()
	var total Stats
	for b.Loop() {
		s, err := k.Launch(context.Background(), cfg, params, d.regions, opts)
		if err != nil {
			b.Fatal(err)
		}
		total.Add(s)
	}
	sec := b.Elapsed().Seconds()
	b.ReportMetric(float64(total.ThreadInstructions)/sec/1e6, "Minst/s")
	b.ReportMetric(flops*float64(b.N)/sec/1e6, "Mflop/s")
}

func BenchmarkGemv(b *testing.B) {
	const rows, n = 768, 768
	d, r := newDevice(), rng(1)
	w, x := put(d, "w", toBF16(r.floats(rows*n))), put(d, "x", r.floats(n))
	y, _ := d.alloc("y", rows*4)
	k := parse(b, source(b, "gemv.ptx")).Kernel("gemv_bf16")
	for name, opts := range map[string]Options{
		"1": {Workers: 1}, "2": {Workers: 2}, "checked": {Workers: 1, Checks: CheckAll}, "profile": {Workers: 1, Profile: true},
	} {
		b.Run(name, func(b *testing.B) {
			benchmark(b, k, d, Config{Grid: grid(rows/4, 1), Block: grid(128, 1), SharedBytes: n * 4},
				pack(w, x, y, int32(rows), int32(n)), 2*rows*n, opts)
		})
	}
}

func BenchmarkGemm(b *testing.B) {
	const m, n, k = 64, 256, 256
	d, r := newDevice(), rng(1)
	pa, pb := put(d, "a", toBF16(r.floats(m*k))), put(d, "b", toBF16(r.floats(n*k)))
	pc, _ := d.alloc("c", m*n*4)
	kern := parse(b, source(b, "gemm.ptx")).Kernel("gemm_bf16")
	for name, opts := range map[string]Options{"1": {Workers: 1}, "checked": {Workers: 1, Checks: CheckAll}} {
		b.Run(name, func(b *testing.B) {
			benchmark(b, kern, d, Config{Grid: grid(n/64, m/64), Block: grid(128, 1)},
				pack(pa, pb, pc, int32(m), int32(n), int32(k)), 2*m*n*k, opts)
		})
	}
}

func BenchmarkRMSNorm(b *testing.B) {
	const rows, n = 16, 768
	d, r := newDevice(), rng(1)
	x, res, w := put(d, "x", r.floats(rows*n)), put(d, "res", r.floats(rows*n)), put(d, "w", toBF16(r.floats(n)))
	out, _ := d.alloc("out", rows*n*2)
	k := parse(b, source(b, "elem.ptx")).Kernel("rmsnorm")
	benchmark(b, k, d, Config{Grid: grid(rows, 1), Block: grid(256, 1)}, pack(x, res, w, out, int32(n), float32(1e-5)), 4*rows*n, Options{Workers: 1})
}

// BenchmarkLaunch is the cost of a launch that does next to nothing, on a block
// of 256 threads.
func BenchmarkLaunch(b *testing.B) {
	d := newDevice()
	x, res, w := put(d, "x", make([]float32, 1)), put(d, "res", make([]float32, 1)), put(d, "w", make([]uint16, 1))
	out, _ := d.alloc("out", 2)
	k := parse(b, source(b, "elem.ptx")).Kernel("rmsnorm")
	benchmark(b, k, d, Config{Grid: grid(1, 1), Block: grid(256, 1)}, pack(x, res, w, out, int32(1), float32(1e-5)), 0, Options{Workers: 1})
}

func BenchmarkDecodeAttention(b *testing.B) {
	const n, kvheads, group, splits = 512, 2, 4, 4
	d, r := newDevice(), rng(1)
	kc, vc, table := pagedCache(&r, n, kvheads)
	part, _ := d.alloc("part", kvheads*group*splits*66*4)
	params := pack(put(d, "q", toBF16(r.floats(kvheads*group*64))), put(d, "k", kc), put(d, "v", vc), put(d, "table", table), part,
		int32(n), int32(kvheads), int32(group), int32(n/splits), float32(0.125))
	k := parse(b, source(b, "attn.ptx")).Kernel("decode_split")
	benchmark(b, k, d, Config{Grid: grid(kvheads*group, splits), Block: grid(128, 1)}, params, 4*kvheads*group*n*64, Options{Workers: 1})
}

func BenchmarkParse(b *testing.B) {
	src := source(b, "attn.ptx")
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		parse(b, src)
	}
}
