package ptx

import (
	"math"
	"reflect"
	"runtime"
	"sort"
	"strings"
	"testing"
)

func grid(x, y int) [3]int { return [3]int{x, y, 1} }

func widen(v []uint16) []float64 {
	out := make([]float64, len(v))
	for i, h := range v {
		out[i] = fromBF16(h)
	}
	return out
}

func widen32(v []float32) []float64 {
	out := make([]float64, len(v))
	for i, f := range v {
		out[i] = float64(f)
	}
	return out
}

const bf16Eps = 1.0 / 256 // half a unit of bf16's last place, relative

// TestKernels runs every kernel, as clang and as NVRTC compile it, against its
// definition in double precision.
func TestKernels(t *testing.T) {
	for _, c := range []struct {
		file string
		test func(*testing.T, *Module)
	}{
		{"elem", testEmbedding},
		{"elem", testRMSNorm},
		{"elem", testRotary},
		{"elem", testGatedActivation},
		{"elem", testArgmaxAndTopK},
		{"elem", testDigestFillCompare},
		{"elem", testConvertKernel},
		{"gemv", testGemv},
		{"gemm", testGemm},
		{"attn", testDecodeAttention},
		{"attn", testPrefillAttention},
	} {
		name := runtime.FuncForPC(reflect.ValueOf(c.test).Pointer()).Name()
		name = name[strings.LastIndex(name, "test")+len("test"):]
		t.Run(name+"/clang", func(t *testing.T) { c.test(t, parse(t, source(t, c.file+".ptx"))) })
		t.Run(name+"/nvrtc", func(t *testing.T) { c.test(t, parse(t, source(t, "nvrtc/"+c.file+".ptx.gz"))) })
	}
}

func testEmbedding(t *testing.T, mod *Module) {
	k := mod.Kernel("embedding")
	d, r := newDevice(), rng(1)
	const dim, vocab = 72, 10
	table := toBF16(r.floats(vocab * dim))
	ids := []int32{3, 0, 9, 3, -1, 10}
	out, _ := d.alloc("out", len(ids)*dim*2)
	run(t, k, d, Config{Grid: grid(len(ids), 1), Block: grid(32, 1)},
		pack(put(d, "table", table), put(d, "ids", ids), out, int32(dim), int32(vocab)))
	got := get[uint16](t, d, out, len(ids)*dim)
	for i, id := range ids {
		for j := range dim {
			want := uint16(0) // rows of bad ids are left alone
			if id >= 0 && id < vocab {
				want = table[int(id)*dim+j]
			}
			if got[i*dim+j] != want {
				t.Fatalf("row %d element %d is %#x, want %#x", i, j, got[i*dim+j], want)
			}
		}
	}
}

func testRMSNorm(t *testing.T, mod *Module) {
	k := mod.Kernel("rmsnorm")
	for _, n := range []int{1, 33, 100, 513} {
		d, r := newDevice(), rng(n)
		const rows, eps = 3, 1e-5
		x, res, w := r.floats(rows*n), r.floats(rows*n), toBF16(r.floats(n))
		px := put(d, "x", x)
		out, _ := d.alloc("out", rows*n*2)
		run(t, k, d, Config{Grid: grid(rows, 1), Block: grid(256, 1)},
			pack(px, put(d, "res", res), put(d, "w", w), out, int32(n), float32(eps)))
		var sums, want []float64
		for i := range rows {
			s := 0.0
			for j := range n {
				v := float64(x[i*n+j] + res[i*n+j])
				sums = append(sums, v)
				s += v * v
			}
			for j := range n {
				want = append(want, sums[i*n+j]/math.Sqrt(s/float64(n)+eps)*fromBF16(w[j]))
			}
		}
		near(t, "x", widen32(get[float32](t, d, px, rows*n)), sums, 0, 0)
		near(t, "out", widen(get[uint16](t, d, out, rows*n)), want, bf16Eps, 1e-6)
	}
}

func testRotary(t *testing.T, mod *Module) {
	k := mod.Kernel("rotary")
	d, r := newDevice(), rng(2)
	const tokens, heads, half, maxPos = 3, 5, 20, 50
	q := toBF16(r.floats(tokens * heads * 2 * half))
	cs, sn := make([]float32, maxPos*half), make([]float32, maxPos*half)
	for i := range cs {
		a := float64(i/half) * math.Pow(10000, -float64(i%half)/half)
		cs[i], sn[i] = float32(math.Cos(a)), float32(math.Sin(a))
	}
	pos := []int32{0, 17, 49}
	pq := put(d, "q", q)
	run(t, k, d, Config{Grid: grid(tokens, 1), Block: grid(64, 1)},
		pack(pq, put(d, "cos", cs), put(d, "sin", sn), put(d, "pos", pos), int32(heads), int32(half)))
	want := make([]float64, len(q))
	for i := range tokens {
		for h := range heads {
			for j := range half {
				at, p := (i*heads+h)*2*half+j, int(pos[i])*half+j
				a, b, c, s := fromBF16(q[at]), fromBF16(q[at+half]), float64(cs[p]), float64(sn[p])
				want[at], want[at+half] = a*c-b*s, b*c+a*s
			}
		}
	}
	near(t, "q", widen(get[uint16](t, d, pq, len(q))), want, bf16Eps, 1e-6)
}

func testGatedActivation(t *testing.T, m *Module) {
	for name, act := range map[string]struct {
		f   func(g float64) float64
		abs float64
	}{
		"silu_mul": {func(g float64) float64 { return g / (1 + math.Exp(-g)) }, 1e-6},
		// tanh.approx has 11 good bits, so that small results are less exact.
		"gelu_mul": {func(g float64) float64 {
			return 0.5 * g * (1 + math.Tanh(0.7978845608028654*(g+0.044715*g*g*g)))
		}, 4e-4},
	} {
		d, r := newDevice(), rng(3)
		const n = 1000
		gate, up := toBF16(r.floats(n)), toBF16(r.floats(n))
		out, _ := d.alloc("out", n*2)
		run(t, m.Kernel(name), d, Config{Grid: grid(4, 1), Block: grid(256, 1)},
			pack(put(d, "gate", gate), put(d, "up", up), out, int32(n)))
		want := make([]float64, n)
		for i := range want {
			want[i] = act.f(fromBF16(gate[i])) * fromBF16(up[i])
		}
		near(t, name, widen(get[uint16](t, d, out, n)), want, bf16Eps, act.abs)
	}
}

func testArgmaxAndTopK(t *testing.T, m *Module) {
	d, r := newDevice(), rng(4)
	const rows, n, k = 3, 777, 9
	x := r.floats(rows * n)
	x[5], x[600] = 2, 2 // equal: the lower index wins
	px := put(d, "x", x)
	out, _ := d.alloc("out", rows*4)
	run(t, m.Kernel("argmax"), d, Config{Grid: grid(rows, 1), Block: grid(256, 1)}, pack(px, out, int32(n)))
	vals, _ := d.alloc("vals", rows*k*4)
	idx, _ := d.alloc("idx", rows*k*4)
	run(t, m.Kernel("topk"), d, Config{Grid: grid(rows, 1), Block: grid(128, 1), SharedBytes: n * 4},
		pack(px, vals, idx, int32(n), int32(k)))
	gotMax, gotIdx, gotVals := get[int32](t, d, out, rows), get[int32](t, d, idx, rows*k), get[float32](t, d, vals, rows*k)
	for i := range rows {
		row := x[i*n : (i+1)*n]
		order := make([]int, n)
		for j := range order {
			order[j] = j
		}
		sort.SliceStable(order, func(a, b int) bool { return row[order[a]] > row[order[b]] })
		if int(gotMax[i]) != order[0] {
			t.Errorf("row %d: argmax is %d, want %d", i, gotMax[i], order[0])
		}
		for j := range k {
			if int(gotIdx[i*k+j]) != order[j] || gotVals[i*k+j] != row[order[j]] {
				t.Errorf("row %d: number %d is %d (%g), want %d", i, j, gotIdx[i*k+j], gotVals[i*k+j], order[j])
			}
		}
	}
}

func testDigestFillCompare(t *testing.T, m *Module) {
	d := newDevice()
	const words = 10001
	p, _ := d.alloc("p", words*4)
	cfg := Config{Grid: grid(7, 1), Block: grid(96, 1)}
	run(t, m.Kernel("fill"), d, cfg, pack(p, uint64(words), uint32(77)))
	got := get[uint32](t, d, p, words)
	for i, v := range got {
		if want := 77 + uint32(i)*2654435761; v != want {
			t.Fatalf("word %d is %d, want %d", i, v, want)
		}
	}
	bad, first := put(d, "bad", []uint32{0}), put(d, "first", []uint64{math.MaxUint64})
	for _, i := range []int{9000, 4321, 10000} {
		d.regions[0].Data[4*i] ^= 1
	}
	run(t, m.Kernel("compare"), d, cfg, pack(p, uint64(words), uint32(77), bad, first))
	if n, f := get[uint32](t, d, bad, 1)[0], get[uint64](t, d, first, 1)[0]; n != 3 || f != 4321 {
		t.Errorf("compare found %d differences, the first at %d; want 3, at 4321", n, f)
	}

	r := rng(5)
	data := make([]uint64, 5000)
	var a, b uint64
	for i := range data {
		data[i] = r.next()
		a += data[i]
		mix := (data[i] ^ uint64(i)*0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9
		b += mix ^ mix>>29
	}
	sum := put(d, "sum", []uint64{0, 0})
	run(t, m.Kernel("digest"), d, cfg, pack(put(d, "data", data), sum, uint64(len(data))))
	if s := get[uint64](t, d, sum, 2); s[0] != a || s[1] != b {
		t.Errorf("digest is %#x, want %#x %#x", s, a, b)
	}
}

func testConvertKernel(t *testing.T, mod *Module) {
	k := mod.Kernel("convert")
	d, r := newDevice(), rng(6)
	x := append(r.floats(300), 0, -0.5, 100, -100, 1e-7, 65519, 1e30)
	n := len(x)
	pb, _ := d.alloc("b", n*2)
	ph, _ := d.alloc("h", n*2)
	pq, _ := d.alloc("q", n)
	back, _ := d.alloc("back", n*4)
	const scale = 0.01
	run(t, k, d, Config{Grid: grid(2, 1), Block: grid(256, 1)}, pack(put(d, "x", x), pb, ph, pq, back, float32(scale), int32(n)))
	b, q := get[uint16](t, d, pb, n), get[int8](t, d, pq, n)
	for i, v := range toBF16(x) {
		want := max(-128, min(127, math.RoundToEven(float64(float32(x[i]/float32(scale))))))
		if b[i] != v || float64(q[i]) != want {
			t.Errorf("%g: bf16 %#x s8 %d, want %#x %g", x[i], b[i], q[i], v, want)
		}
	}
}

func testGemv(t *testing.T, m *Module) {
	for _, shape := range [][2]int{{5, 64}, {33, 320}, {4, 1024}} {
		rows, k := shape[0], shape[1]
		d, r := newDevice(), rng(rows)
		x := r.floats(k)
		px := put(d, "x", x)
		y, _ := d.alloc("y", rows*4)
		cfg := Config{Grid: grid((rows+3)/4, 1), Block: grid(128, 1)}

		w := toBF16(r.floats(rows * k))
		cfg.SharedBytes = k * 4
		s := run(t, m.Kernel("gemv_bf16"), d, cfg, pack(put(d, "w", w), px, y, int32(rows), int32(k)))
		want := make([]float64, rows)
		for i := range want {
			for j := range k {
				want[i] += fromBF16(w[i*k+j]) * float64(x[j])
			}
		}
		near(t, "bf16", widen32(get[float32](t, d, y, rows)), want, 1e-5, 1e-5)
		blocks := (rows + 3) / 4
		if wantRead := int64(rows*k*2 + blocks*k*4); s.GlobalRead != wantRead || s.GlobalWritten != int64(rows*4) {
			t.Errorf("%d×%d: read %d bytes and wrote %d, want %d and %d", rows, k, s.GlobalRead, s.GlobalWritten, wantRead, rows*4)
		}

		cfg.SharedBytes = 0
		q, qx := make([]int8, rows*k), make([]int8, k)
		for i := range q {
			q[i] = int8(r.next())
		}
		for i := range qx {
			qx[i] = int8(r.next())
		}
		ws, xs := r.floats(rows*k/32), r.floats(k/32)
		run(t, m.Kernel("gemv_q8"), d, cfg,
			pack(put(d, "q", q), put(d, "ws", ws), put(d, "qx", qx), put(d, "xs", xs), y, int32(rows), int32(k)))
		for i := range want {
			want[i] = 0
			for j := range k {
				want[i] += float64(q[i*k+j]) * float64(qx[j]) * float64(ws[(i*k+j)/32]) * float64(xs[j/32])
			}
		}
		near(t, "q8", widen32(get[float32](t, d, y, rows)), want, 1e-4, 0.5)

		packed, hs := make([]uint32, rows*k/8), make([]uint16, rows*k/32)
		for i := range packed {
			packed[i] = uint32(r.next())
		}
		for i := range hs {
			hs[i] = uint16(0x3000 + r.next()%0x800) // f16 of about 0.125 to 0.5
		}
		run(t, m.Kernel("gemv_q4"), d, cfg,
			pack(put(d, "q", packed), put(d, "hs", hs), px, y, int32(rows), int32(k)))
		for i := range want {
			want[i] = 0
			for j := range k {
				v := float64(packed[(i*k+j)/8]>>(4*(j%8))&15) - 8
				h := hs[(i*k+j)/32]
				scale := math.Ldexp(float64(1024+h&0x3ff), int(h>>10)-25)
				want[i] += v * scale * float64(x[j])
			}
		}
		near(t, "q4", widen32(get[float32](t, d, y, rows)), want, 1e-5, 1e-3)
	}
}

func testGemm(t *testing.T, mod *Module) {
	k := mod.Kernel("gemm_bf16")
	for _, shape := range [][3]int{{1, 1, 32}, {16, 64, 64}, {70, 130, 160}, {64, 64, 256}} {
		m, n, kk := shape[0], shape[1], shape[2]
		d, r := newDevice(), rng(m)
		a, b := toBF16(r.floats(m*kk)), toBF16(r.floats(n*kk))
		c, _ := d.alloc("C", m*n*4)
		s := run(t, k, d, Config{Grid: grid((n+63)/64, (m+63)/64), Block: grid(128, 1)},
			pack(put(d, "A", a), put(d, "B", b), c, int32(m), int32(n), int32(kk)))
		want := make([]float64, m*n)
		for i := range m {
			for j := range n {
				for x := range kk {
					want[i*n+j] += fromBF16(a[i*kk+x]) * fromBF16(b[j*kk+x])
				}
			}
		}
		near(t, "C", widen32(get[float32](t, d, c, m*n)), want, 1e-5, 1e-4)
		tiles := int64((n+63)/64) * int64((m+63)/64)
		if macs := tiles * 64 * 64 * int64(kk); s.MatrixMACs != macs {
			t.Errorf("%v: %d multiply-adds, want %d", shape, s.MatrixMACs, macs)
		}
		if s.SharedConflicts > s.SharedRequests/10 {
			t.Errorf("%v: %d bank conflicts in %d accesses; the tiles are padded against them", shape, s.SharedConflicts, s.SharedRequests)
		}
	}
}
