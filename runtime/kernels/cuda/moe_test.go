package cuda

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

func (d *gpu) decodeInts(b []byte) []int32 {
	v := make([]int32, len(b)/4)
	must(binary.Decode(b, binary.LittleEndian, v))
	return v
}

func (d *gpu) route(rows, e, k int, normalize bool, logits, ids, weights uint64) {
	d.t.Helper()
	norm := 0
	if normalize {
		norm = 1
	}
	d.launch(kernel(d.t, "moe", "moe_route"), [3]int{(rows + 3) / 4, 1, 1}, 128, logits, ids, weights, rows, e, k, norm)
}

func TestRoute(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, s := range [][2]int{{1, 1}, {8, 2}, {33, 5}, {60, 4}, {128, 8}, {1024, 32}} {
		e, k := s[0], s[1]
		const rows = 11
		d := newGPU(t)
		v := d.random(rows*e, 3)
		for i := range e {
			v[e+i] = 3                  // all equal
			v[2*e+i] = float32(i*7%5) - // equal in groups
				2
			v[3*e+i] = -inf // nothing above −Inf
			v[4*e+i] = -inf // one above −Inf
			v[5*e+i] *= 1e30
			v[6*e+i] = float32(math.Copysign(0, float64(i%2)-1))
			v[7*e+i] = float32(-i)
		}
		v[4*e+e/3], v[8*e+e-1], v[9*e+e/2] = 1, nan, inf
		raw := encode(tensor.F32, v)
		logits := d.put("logits", raw)
		for _, normalize := range []bool{false, true} {
			ids, _ := d.alloc("ids", rows*k*4)
			weights, _ := d.alloc("weights", rows*k*4)
			d.route(rows, e, k, normalize, logits, ids, weights)
			a := kernels.RouteArgs{
				IDs: d.tensor(tensor.I32, tensor.Of(rows, k), nil), Weights: d.tensor(tensor.F32, tensor.Of(rows, k), nil),
				Logits: d.tensor(tensor.F32, tensor.Of(rows, e), raw), Normalize: normalize,
			}
			d.ref.(kernels.MoEOps).Route(a)
			want := make([]byte, rows*k*4)
			d.stream.Download(want, a.IDs)
			what := fmt.Sprintf("E=%d K=%d normalize=%v", e, k, normalize)
			if got := d.decodeInts(d.bytes(ids)); !slices.Equal(got, d.decodeInts(want)) {
				t.Fatalf("%s: %v, want %v", what, got, d.decodeInts(want))
			}
			wf := d.refFloats(a.Weights)
			near(t, what, d.floats(weights, tensor.F32), wf, tensor.F32, func(i int) float64 {
				return (64 + math.Sqrt(float64(e))) * epsilon * math.Abs(float64(wf[i]))
			})
		}
	}
}

// mixture is a layer's experts and the rows that go to them.
type mixture struct {
	t, e, k, h, n int
	act           tensor.DType
	gateUp, down  packed
	x, init       []byte
	ids           []int32
	weights       []float32
}

func (d *gpu) mixture(f kernels.Format, act tensor.DType, t, e, k, h, n int) *mixture {
	stack := func(rows, cols int, scale float64) packed {
		full := kernels.ExpertRows(rows)
		v := make([]float32, e*full*cols)
		for i := range e {
			copy(v[i*full*cols:], d.random(rows*cols, scale))
		}
		return d.pack(f, e*full, cols, v)
	}
	m := &mixture{
		t: t, e: e, k: k, h: h, n: n, act: act, gateUp: stack(2*n, h, 1/math.Sqrt(float64(h))), down: stack(h, n, 1),
		x: encode(act, d.random(t*h, 1)), init: encode(act, d.random(t*h, 1)), weights: d.random(t*k, 1),
	}
	for range t {
		ids := d.rng.Perm(e)[:k]
		slices.Sort(ids)
		for _, id := range ids {
			m.ids = append(m.ids, int32(id))
		}
	}
	return m
}

// run launches the kernels for rows lo..hi, with tiles of 8 or of 64 pairs, and
// gives the bytes of dst. With gates the product of gates and ups gates itself.
func (m *mixture) run(d *gpu, lo, hi int, many, gates bool) []byte {
	d.t.Helper()
	rows, size := hi-lo, m.act.Bits()/8
	pairs := rows * m.k
	ids, weights := d.ints("ids", m.ids[lo*m.k:hi*m.k]), d.put("weights", encode(tensor.F32, m.weights[lo*m.k:hi*m.k]))
	x, dst := d.put("x", m.x[lo*m.h*size:hi*m.h*size]), d.fill("dst", m.init[lo*m.h*size:hi*m.h*size])
	order, _ := d.alloc("order", 4*kernels.ExpertsOrder(rows, m.k, m.e))
	hidden, _ := d.alloc("hidden", pairs*2*m.n*size)
	gated, _ := d.alloc("gated", pairs*m.n*size)
	out, _ := d.alloc("out", pairs*m.h*4)
	name := fmt.Sprintf("_%v_%s", m.gateUp.format, suffix(m.act))
	shift := 3
	if many {
		shift = 6
	}
	tiles := expertTiles(pairs, m.e, shift)
	d.launch(kernel(d.t, "moe", "moe_group"), [3]int{1, 1, 1}, 1024, ids, order, pairs, m.e, shift)
	product, outputs, flags := "moe_gemv", 32, 0
	if many {
		product, outputs = "moe_gemm", 128
	}
	if gates {
		flags = productGates
	}
	grid := func(n int) [3]int { return [3]int{(n + outputs - 1) / outputs, tiles, 1} }
	d.launch(kernel(d.t, "moe", product+name), grid(2*m.n), 256,
		m.gateUp.addr, m.gateUp.scales, x, hidden, order, pairs, m.e, 2*m.n, m.h, m.k, flags, gated, int(kernels.SiLU))
	if !gates {
		d.launch(kernel(d.t, "rows", "gated_"+suffix(m.act)), [3]int{(m.n + 255) / 256, pairs, 1}, 256, hidden, gated, m.n, int(kernels.SiLU))
	}
	d.launch(kernel(d.t, "moe", product+name), grid(m.h), 256,
		m.down.addr, m.down.scales, gated, out, order, pairs, m.e, m.h, m.n, 0, productF32, uint64(0), 0)
	d.launch(kernel(d.t, "moe", "moe_sum_"+suffix(m.act)), [3]int{(m.h + 255) / 256, rows, 1}, 256, out, weights, dst, m.h, m.k)
	return d.bytes(dst)
}

// want is the reference's result.
func (m *mixture) want(d *gpu) []float32 {
	pairs := m.t * m.k
	ids, _ := binary.Append(nil, binary.LittleEndian, m.ids)
	dst := d.tensor(m.act, tensor.Of(m.t, m.h), m.init)
	d.ref.(kernels.MoEOps).Experts(kernels.ExpertsArgs{
		Dst: dst, X: d.tensor(m.act, tensor.Of(m.t, m.h), m.x), IDs: d.tensor(tensor.I32, tensor.Of(m.t, m.k), ids),
		Weights: d.tensor(tensor.F32, tensor.Of(m.t, m.k), encode(tensor.F32, m.weights)),
		GateUp:  d.refWeight(m.gateUp.d, m.gateUp.rows, m.gateUp.cols, m.gateUp.raw), Down: d.refWeight(m.down.d, m.down.rows, m.down.cols, m.down.raw),
		Experts: m.e, Inter: m.n,
		Scratch: kernels.ExpertsScratch{
			Hidden: d.tensor(m.act, tensor.Of(pairs, 2*m.n), nil), Gated: d.tensor(m.act, tensor.Of(pairs, m.n), nil),
			Out: d.tensor(tensor.F32, tensor.Of(pairs, m.h), nil), Order: d.tensor(tensor.I32, tensor.Of(kernels.ExpertsOrder(m.t, m.k, m.e)), nil),
		},
	})
	return d.refFloats(dst)
}

func TestExperts(t *testing.T) {
	sizes := [][5]int{{1, 1, 1, 1, 1}, {3, 4, 2, 70, 48}, {11, 3, 2, 40, 33}}
	if sweep {
		sizes = append(sizes, [][5]int{{1, 128, 8, 64, 32}, {40, 9, 4, 136, 80}, {150, 2, 1, 64, 16}, {90, 300, 3, 32, 16}}...)
	}
	for _, f := range formats {
		for _, act := range actTypes {
			t.Run(fmt.Sprintf("%v_%v", f, act), func(t *testing.T) {
				for _, s := range brief(sizes, 2) {
					testExperts(t, f, act, s[0], s[1], s[2], s[3], s[4])
				}
			})
		}
	}
}

func testExperts(t *testing.T, f kernels.Format, act tensor.DType, rows, e, k, h, n int) {
	d := newGPU(t)
	m := d.mixture(f, act, rows, e, k, h, n)
	what := fmt.Sprintf("%v·%v T=%d E=%d K=%d H=%d I=%d", f, act, rows, e, k, h, n)
	few := m.run(d, 0, rows, false, false)
	got, want := decode(act, few), m.want(d)
	// Values have a magnitude of a few; sums of n products of the order of 1.
	bound := (64 + 4*math.Sqrt(float64(h)) + 4*math.Sqrt(float64(n))) * epsilon
	if act == tensor.BF16 {
		bound = 8 * ulp(act)
	}
	near(t, what, got, want, act, func(int) float64 { return bound * 4 * math.Sqrt(float64(n*k)) })
	sameBytes(t, what+": tiles of 64", m.run(d, 0, rows, true, false), few)
	if n%16 == 0 {
		sameBytes(t, what+": gated by the product", m.run(d, 0, rows, false, true), few)
		sameBytes(t, what+": tiles of 64 gated by the product", m.run(d, 0, rows, true, true), few)
	}
	if rows > 1 {
		size := len(few) / rows
		for _, r := range []int{0, rows - 1} {
			sameBytes(t, fmt.Sprintf("%s: row %d alone", what, r), m.run(d, r, r+1, false, false), few[r*size:(r+1)*size])
		}
	}
}

// Sorting puts every pair with its expert, in order, and every place into one
// tile; whatever the numbers of runs that threads look through.
func TestGroup(t *testing.T) {
	for _, s := range []struct{ pairs, e, shift int }{{1, 1, 3}, {8, 128, 3}, {100, 7, 3}, {1000, 300, 3}, {5000, 8, 6}, {700, 1024, 3}, {90, 600, 6}} {
		d := newGPU(t)
		ids := make([]int32, s.pairs)
		for i := range ids {
			ids[i] = int32(d.rng.IntN((s.e+1)/2) * (1 + d.rng.IntN(2)) % s.e)
		}
		starts, raw := d.alloc("order", 4*kernels.ExpertsOrder(s.pairs, 1, s.e))
		d.launch(kernel(t, "moe", "moe_group"), [3]int{1, 1, 1}, 1024, d.ints("ids", ids), starts, s.pairs, s.e, s.shift)
		v := d.decodeInts(raw)
		order, count, tiles := v[s.e+1:][:s.pairs], int(v[s.e+1+s.pairs]), v[s.e+2+s.pairs:]
		at, n := int32(0), 0
		for e := range s.e {
			if v[e] != at {
				t.Fatalf("%+v: expert %d begins at %d, want %d", s, e, v[e], at)
			}
			first := at
			for p, id := range ids {
				if int(id) == e {
					if order[at] != int32(p) {
						t.Fatalf("%+v: place %d has pair %d, want %d", s, at, order[at], p)
					}
					at++
				}
			}
			for ; first < at; first += 1 << s.shift {
				if tiles[2*n] != int32(e) || tiles[2*n+1] != first {
					t.Fatalf("%+v: tile %d is %v, want %d at %d", s, n, tiles[2*n:2*n+2], e, first)
				}
				n++
			}
		}
		if count != n || n > expertTiles(s.pairs, s.e, s.shift) || v[s.e] != int32(s.pairs) {
			t.Fatalf("%+v: %d tiles, want %d, at most %d", s, count, n, expertTiles(s.pairs, s.e, s.shift))
		}
	}
}

// The weights of an expert with rows are read once for 8 of them, those of the
// others not at all.
func TestExpertsTraffic(t *testing.T) {
	d := newGPU(t)
	const e, k, h, n = 16, 2, 1024, 64
	m := d.mixture(kernels.BF16, tensor.BF16, 1, e, k, h, n)
	pairs := k
	order, _ := d.alloc("order", 4*kernels.ExpertsOrder(1, k, e))
	d.launch(kernel(t, "moe", "moe_group"), [3]int{1, 1, 1}, 1024, d.ints("ids", m.ids), order, pairs, e, 3)
	hidden, _ := d.alloc("hidden", pairs*2*n*2)
	gated, _ := d.alloc("gated", pairs*n*2)
	s := d.launch(kernel(t, "moe", "moe_gemv_bf16_bf16"), [3]int{2 * n / 32, expertTiles(pairs, e, 3), 1}, 256,
		m.gateUp.addr, uint64(0), d.put("x", m.x), hidden, order, pairs, e, 2*n, h, k, productGates, gated, 0)
	size := int64(k * 2 * n * h * 2)
	if extra := 32*s.GlobalSectors - size; extra < 0 || extra > size/10 {
		t.Errorf("%d bytes moved for %d of weights in use", 32*s.GlobalSectors, size)
	}
}
