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

func TestEmbed(t *testing.T) {
	ids := []int32{0, 50, 17, 17, 15, 16, 49}
	for _, f := range formats {
		for _, act := range actTypes {
			for _, dim := range []int{1, 7, 64, 130} {
				d := newGPU(t)
				w := d.pack(f, 51, dim, d.random(51*dim, 1))
				y, _ := d.alloc("dst", len(ids)*dim*act.Bits()/8)
				d.launch(kernel(t, "rows", fmt.Sprintf("embed_%v_%s", f, suffix(act))), [3]int{len(ids), 1, 1}, 128,
					w.addr, w.scales, d.ints("ids", ids), y, 51, dim)
				d.ref.Begin(&kernels.Batch{Tokens: ids})
				want := d.tensor(act, tensor.Of(len(ids), dim), nil)
				d.ref.Embed(want, d.refWeight(w.d, 51, dim, w.raw))
				near(t, fmt.Sprintf("%v %v dim %d", f, act, dim), d.floats(y, act), d.refFloats(want), act, func(int) float64 { return -1 }) // exact
			}
		}
	}
	d := newGPU(t)
	w := d.pack(kernels.BF16, 3, 8, d.random(24, 1))
	y, b := d.alloc("dst", 2*8*4)
	d.launch(kernel(t, "rows", "embed_bf16_f32"), [3]int{2, 1, 1}, 128, w.addr, w.scales, d.ints("ids", []int32{-1, 3}), y, 3, 8)
	sameBytes(t, "ids out of range", b, make([]byte, 64))
}

func TestRMSNorm(t *testing.T) {
	for _, act := range actTypes {
		for _, h := range []int{1, 7, 64, 257, 1023, 4096} {
			for _, scale := range []float64{1e-4, 1, 1e4} {
				const m = 2
				d := newGPU(t)
				x, w := encode(act, d.random(m*h, scale)), d.random(h, 1)
				y, _ := d.alloc("dst", len(x))
				k, wa := kernel(t, "rows", "rmsnorm_"+suffix(act)), d.put("w", encode(tensor.F32, w))
				d.launch(k, [3]int{m, 1, 1}, 256, d.put("x", x), wa, y, h, float32(1e-5))
				want := d.tensor(act, tensor.Of(m, h), nil)
				d.ref.RMSNorm(want, d.tensor(act, tensor.Of(m, h), x), d.tensor(tensor.F32, tensor.Of(h), encode(tensor.F32, w)), 1e-5)
				wf := d.refFloats(want)
				near(t, fmt.Sprintf("%v H=%d scale=%g", act, h, scale), d.floats(y, act), wf, act, func(i int) float64 {
					return (8 + math.Sqrt(float64(h))) * epsilon * math.Abs(float64(wf[i]))
				})
				in := d.fill("in place", x)
				d.launch(k, [3]int{m, 1, 1}, 256, in, wa, in, h, float32(1e-5))
				sameBytes(t, "in place", d.bytes(in), d.bytes(y))
			}
		}
	}
}

func TestGated(t *testing.T) {
	for act := kernels.SiLU; act <= kernels.GELUTanh; act++ {
		for _, typ := range actTypes {
			for _, n := range []int{1, 33, 700} {
				const m = 3
				d := newGPU(t)
				v := d.random(m*2*n, 4)
				for i := range v { // the whole range of the exponential
					if i%2 == 0 {
						v[i] = float32((d.rng.Float64() - 0.5) * 240)
					}
				}
				if n > 7 {
					v[1], v[2], v[3], v[n+2] = 0, float32(math.Copysign(0, -1)), float32(math.NaN()), 5
				}
				x := encode(typ, v)
				y, _ := d.alloc("dst", len(x)/2)
				d.launch(kernel(t, "rows", "gated_"+suffix(typ)), [3]int{(n + 255) / 256, m, 1}, 256, d.put("x", x), y, n, int(act))
				want := d.tensor(typ, tensor.Of(m, n), nil)
				d.ref.GatedAct(want, d.tensor(typ, tensor.Of(m, 2*n), x), act)
				wf, in := d.refFloats(want), decode(typ, x)
				near(t, fmt.Sprintf("act %d %v n=%d", act, typ, n), d.floats(y, typ), wf, typ, func(i int) float64 {
					x := min(0, float64(in[i/n*2*n+i%n]))
					return (8-4*x-x*x*x/2)*epsilon*math.Abs(float64(wf[i])) + 1e-32
				})
			}
		}
	}
}

// hardLogits are rows with every kind of tie and oddity.
func (d *gpu) hardLogits(n int) (v []float32, rows int) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	rows = 9
	v = d.random(rows*n, 1)
	at := func(row, i int, x float32) { v[row*n+i%n] = x }
	at(0, n-1, 100)
	at(1, 0, 100)
	at(2, n/2, 100) // the first of equals
	at(2, n-1, 100)
	for i := range n {
		at(3, i, -inf)
		at(4, i, nan)
		at(5, i, -5)
		at(6, i, nan)
	}
	at(6, n/3, -7)
	at(7, n/2, nan)
	at(8, n/4, inf)
	return v, rows
}

func TestArgmax(t *testing.T) {
	for _, n := range []int{1, 2, 33, 513, 5000} {
		d := newGPU(t)
		v, m := d.hardLogits(n)
		x := encode(tensor.F32, v)
		y, got := d.alloc("dst", 4*m)
		d.launch(kernel(t, "rows", "argmax"), [3]int{m, 1, 1}, 512, d.put("x", x), y, n)
		want := d.tensor(tensor.I32, tensor.Of(m), nil)
		d.ref.Argmax(want, d.tensor(tensor.F32, tensor.Of(m, n), x))
		b := make([]byte, 4*m)
		d.stream.Download(b, want)
		sameBytes(t, fmt.Sprintf("V=%d: %x, want %x", n, got, b), got, b)
	}
}

func TestTopK(t *testing.T) {
	for _, s := range [][2]int{{1, 1}, {33, 5}, {2048, 3}, {5000, 20}} {
		n, k := s[0], s[1]
		d := newGPU(t)
		v, m := d.hardLogits(n)
		for i := range n / 2 {
			v[i] = float32(i % 7) // many equals
		}
		chunks := (n + 2047) / 2048
		kern := kernel(t, "rows", "topk")
		vals, vb := d.alloc("values", 4*m*chunks*k)
		idx, ib := d.alloc("indices", 4*m*chunks*k)
		d.launch(kern, [3]int{chunks, m, 1}, 256, d.put("x", encode(tensor.F32, v)), uint64(0), vals, idx, n, k)
		if chunks > 1 {
			var v2, i2 uint64
			v2, vb = d.alloc("values", 4*m*k)
			i2, ib = d.alloc("indices", 4*m*k)
			d.launch(kern, [3]int{1, m, 1}, 256, vals, idx, v2, i2, chunks*k, k)
		}
		for r := range m {
			row := v[r*n : (r+1)*n]
			var order []int
			for i, x := range row {
				if x == x {
					order = append(order, i)
				}
			}
			slices.SortStableFunc(order, func(a, b int) int {
				switch {
				case row[a] > row[b]:
					return -1
				case row[a] < row[b]:
					return 1
				}
				return 0
			})
			for i := range k {
				at, x := -1, float32(math.Inf(-1))
				if i < len(order) {
					at, x = order[i], row[order[i]]
				}
				gi := int32(binary.LittleEndian.Uint32(ib[4*(r*k+i):]))
				gv := math.Float32frombits(binary.LittleEndian.Uint32(vb[4*(r*k+i):]))
				if int(gi) != at || gv != x {
					t.Fatalf("n=%d k=%d row %d: %d is %d (%g), want %d (%g)", n, k, r, i, gi, gv, at, x)
				}
			}
		}
	}
}

func TestRotary(t *testing.T) {
	types := [][2]tensor.DType{{tensor.BF16, tensor.BF16}, {tensor.BF16, tensor.F32}, {tensor.F32, tensor.F32}} // pages, activations
	for i, h := range []kernels.Heads{{Q: 1, KV: 1, Dim: 16}, {Q: 9, KV: 3, Dim: 64}, {Q: 4, KV: 2, Dim: 80}, {Q: 8, KV: 1, Dim: 96}, {Q: 2, KV: 2, Dim: 128}, {Q: 2, KV: 1, Dim: 256}} {
		for j, rot := range []int{h.Dim, h.Dim / 2} {
			kv, act := types[(i+j)%3][0], types[(i+j)%3][1]
			testRotary(t, h, rot, (i/2+j)%2 == 0, kv, act)
		}
	}
}

func testRotary(t *testing.T, h kernels.Heads, rot int, norm bool, kv, act tensor.DType) {
	const m, positions, blocks = 5, 70, 6
	d := newGPU(t)
	half := rot / 2
	cos, sin := make([]float32, positions*half), make([]float32, positions*half)
	for i := range cos {
		a := float64(i/half) * math.Pow(10000, -float64(i%half)/float64(half))
		cos[i], sin[i] = float32(math.Cos(a)), float32(math.Sin(a))
	}
	pos, slots := []int32{3, 4, 5, 0, 69}, []int32{16, 31, 95, 0, 50}
	x := encode(act, d.random(m*h.Cols(), 1))
	old := encode(kv, d.random(blocks*h.KV*16*h.Dim, 1))
	qkv, k, v := d.fill("qkv", x), d.fill("K", old), d.fill("V", old)
	var qn, kn tensor.Tensor
	var qa, ka uint64
	if norm {
		q, k := encode(tensor.F32, d.random(h.Dim, 1)), encode(tensor.F32, d.random(h.Dim, 1))
		qn, kn = d.tensor(tensor.F32, tensor.Of(h.Dim), q), d.tensor(tensor.F32, tensor.Of(h.Dim), k)
		qa, ka = d.put("q norm", q), d.put("k norm", k)
	}
	cb, sb := encode(tensor.F32, cos), encode(tensor.F32, sin)
	d.launch(kernel(t, "rotary", "rotary_"+suffix(kv)+"_"+suffix(act)), [3]int{m, (h.Q + 2*h.KV + 3) / 4, 1}, 128,
		qkv, k, v, d.put("cos", cb), d.put("sin", sb), d.ints("positions", pos), d.ints("slots", slots), qa, ka,
		h.Q, h.KV, h.Dim, half, float32(1e-6))
	d.ref.Begin(&kernels.Batch{Positions: pos, Slots: slots})
	shape := tensor.Of(blocks, h.KV, 16, h.Dim)
	a := kernels.RotaryArgs{
		QKV: d.tensor(act, tensor.Of(m, h.Cols()), x), Heads: h, QNorm: qn, KNorm: kn, Eps: 1e-6,
		Cos: d.tensor(tensor.F32, tensor.Of(positions, half), cb), Sin: d.tensor(tensor.F32, tensor.Of(positions, half), sb),
		KV: kernels.KVLayer{K: d.tensor(kv, shape, old), V: d.tensor(kv, shape, old)},
	}
	d.ref.Rotary(a)
	what := fmt.Sprintf("%+v rot=%d norm=%v %v %v", h, rot, norm, kv, act)
	bound := func(int) float64 { return 40 * epsilon }
	near(t, what+" qkv", d.floats(qkv, act), d.refFloats(a.QKV), act, bound)
	near(t, what+" K", d.floats(k, kv), d.refFloats(a.KV.K), kv, bound)
	near(t, what+" V", d.floats(v, kv), d.refFloats(a.KV.V), kv, func(int) float64 { return -1 })
}
