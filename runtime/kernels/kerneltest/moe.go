package kerneltest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// openMoE is open2 for backends with mixtures of experts.
func openMoE(t *testing.T, open Opener) (p *pair, dev, ref kernels.MoEOps) {
	t.Helper()
	p = open2(t, open)
	dev, ok := p.dev.ops.(kernels.MoEOps)
	if !ok {
		t.Skipf("mixtures of experts on %v: %v", p.dev.b.Device().Info().ID, device.ErrNotSupported)
	}
	return p, dev, p.ref.ops.(kernels.MoEOps)
}

func (s side) ints(x tensor.Tensor) []int32 {
	s.t.Helper()
	v := make([]int32, x.Shape.Elems())
	if _, err := binary.Decode(s.bytes(x), binary.LittleEndian, v); err != nil {
		s.t.Fatal(err)
	}
	return v
}

func (s side) uploadInts(shape tensor.Shape, v []int32) tensor.Tensor {
	s.t.Helper()
	x := s.tensor(tensor.I32, shape)
	b, err := binary.Append(nil, binary.LittleEndian, v)
	if err != nil {
		s.t.Fatal(err)
	}
	s.s.Upload(x, b)
	s.sync()
	return x
}

func route(t *testing.T, open Opener) {
	p, dev, ref := openMoE(t, open)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, s := range [][2]int{{1, 1}, {2, 1}, {4, 2}, {7, 7}, {8, 2}, {40, 5}, {60, 4}, {128, 8}, {512, 10}, {1000, 32}} {
		e, k := s[0], s[1]
		const rows = 37
		v := p.random(rows*e, 2)
		row := func(i int) []float32 { return v[i*e : (i+1)*e] }
		for i := range row(1) { // all equal
			row(1)[i] = 3
		}
		for i := range row(2) { // equal in groups
			row(2)[i] = float32(i * 7 % 5)
		}
		row(3)[e-1] = nan
		row(4)[e/2] = inf
		for i := range row(5) { // nothing above −Inf
			row(5)[i] = -inf
		}
		for i := range row(6) { // one above −Inf
			row(6)[i] = -inf
		}
		row(6)[e/3] = -2
		for i := range row(7) { // far apart
			row(7)[i] *= 1e30
		}
		for i := range row(8) { // nothing but zeros, of both signs
			row(8)[i] = float32(math.Copysign(0, float64(i%2)-1))
		}
		for i := range row(9) { // ascending: all change place
			row(9)[i] = float32(i) / 8
		}
		logits := p.f32(tensor.Of(rows, e), v)
		for _, normalize := range []bool{false, true} {
			what := fmt.Sprintf("E=%d K=%d normalize=%v", e, k, normalize)
			w := p.f32(tensor.Of(rows, k), nil)
			ids := both{p.dev.tensor(tensor.I32, tensor.Of(rows, k)), p.ref.tensor(tensor.I32, tensor.Of(rows, k))}
			dev.Route(kernels.RouteArgs{IDs: ids.dev, Weights: w.dev, Logits: logits.dev, Normalize: normalize})
			ref.Route(kernels.RouteArgs{IDs: ids.ref, Weights: w.ref, Logits: logits.ref, Normalize: normalize})
			got, want := p.dev.ints(ids.dev), p.ref.ints(ids.ref)
			for i := range rows {
				if !slices.Equal(got[i*k:(i+1)*k], want[i*k:(i+1)*k]) {
					t.Fatalf("%s: row %d goes to %v, want %v", what, i, got[i*k:(i+1)*k], want[i*k:(i+1)*k])
				}
			}
			weights := p.ref.floats(w.ref)
			for _, i := range []int{3, 4, 5} {
				if g := p.dev.floats(w.dev)[i*k]; g == g {
					t.Errorf("%s: row %d, whose logits are not numbers, has weight %g", what, i, g)
				}
			}
			// e^x of a float32 difference, sum and quotient.
			p.same(what, w, func(i int) float64 {
				return (64 + math.Sqrt(float64(e))) * epsilon * math.Abs(float64(weights[i]))
			})
		}
	}
}

// mixture is an Experts operation's operands.
type mixture struct {
	p             *pair
	d             tensor.DType // of the weights
	t, e, k, h, n int          // rows, experts, chosen, hidden, width of an expert
	gateUp, down  weights
	gv, dv        []float32 // of the stacks, as stored
	x, w          both
	xv, wv, init  []float32
	ids           []int32
}

// stack is count matrices of rows × cols, each padded to ExpertRows.
func (p *pair) stack(d tensor.DType, count, rows, cols int, scale float64) (weights, []float32) {
	p.t.Helper()
	full := kernels.ExpertRows(rows)
	v := make([]float32, count*full*cols)
	for e := range count {
		copy(v[e*full*cols:], p.random(rows*cols, scale))
	}
	w := p.pack(d, kernels.AsStored, count*full, cols, v)
	if err := tensor.ToF32(v, encode(d, v), d); err != nil {
		p.t.Fatal(err)
	}
	return w, v
}

func (p *pair) mixture(d tensor.DType, t, e, k, h, n int, pick func(row int) []int32) *mixture {
	p.t.Helper()
	m := &mixture{p: p, d: d, t: t, e: e, k: k, h: h, n: n}
	m.gateUp, m.gv = p.stack(d, e, 2*n, h, 1/math.Sqrt(float64(h)))
	m.down, m.dv = p.stack(d, e, h, n, 1)
	for r := range t {
		m.ids = append(m.ids, pick(r)...)
	}
	m.xv, m.wv, m.init = p.factors(d, t*h), p.random(t*k, 1), p.random(t*h, 1)
	m.x, m.w = p.act(tensor.Of(t, h), m.xv), p.f32(tensor.Of(t, k), m.wv)
	copy(m.xv, p.ref.floats(m.x.ref)) // as rounded
	if err := tensor.ToF32(m.init, encode(m.x.dev.DType, m.init), m.x.dev.DType); err != nil {
		p.t.Fatal(err)
	}
	return m
}

// on runs rows lo..hi on one side, into a new tensor.
func (m *mixture) on(s side, gateUp, down kernels.Weight, x, w tensor.Tensor, act kernels.Activation, lo, hi int) tensor.Tensor {
	m.p.t.Helper()
	d := m.p.dev.b.ActType()
	rows := hi - lo
	y := s.upload(d, tensor.Of(rows, m.h), m.init[lo*m.h:hi*m.h])
	s.ops.(kernels.MoEOps).Experts(kernels.ExpertsArgs{
		Dst: y, X: x.Rows(lo, hi), IDs: s.uploadInts(tensor.Of(rows, m.k), m.ids[lo*m.k:hi*m.k]), Weights: w.Rows(lo, hi),
		GateUp: gateUp, Down: down, Experts: m.e, Inter: m.n, Act: act,
		Scratch: kernels.ExpertsScratch{
			Hidden: s.tensor(d, tensor.Of(rows*m.k, 2*m.n)), Gated: s.tensor(d, tensor.Of(rows*m.k, m.n)),
			Out: s.tensor(tensor.F32, tensor.Of(rows*m.k, m.h)), Order: s.tensor(tensor.I32, tensor.Of(kernels.ExpertsOrder(rows, m.k, m.e))),
		},
	})
	return y
}

func (m *mixture) onDev(act kernels.Activation, lo, hi int) tensor.Tensor {
	m.p.t.Helper()
	return m.on(m.p.dev, m.gateUp.dev, m.down.dev, m.x.dev, m.w.dev, act, lo, hi)
}

// limits bounds the error of each element: so many roundings of the sum of all
// magnitudes that are multiplied and added.
func (m *mixture) limits() []float64 {
	f := (24 + 4*math.Sqrt(float64(m.h)) + 2*math.Sqrt(float64(m.n))) * epsilon
	if d := m.p.operand(m.d); d != tensor.F32 {
		f += 3 * ulp(d)
	}
	out := make([]float64, m.t*m.h)
	g := make([]float64, m.n)
	for r := range m.t {
		x := m.xv[r*m.h : (r+1)*m.h]
		for j := range m.k {
			e := int(m.ids[r*m.k+j])
			gateUp := m.gv[e*kernels.ExpertRows(2*m.n)*m.h:]
			down := m.dv[e*kernels.ExpertRows(m.h)*m.n:]
			for i := range g {
				g[i] = absDot(gateUp[i*m.h:][:m.h], x) * absDot(gateUp[(m.n+i)*m.h:][:m.h], x)
			}
			for c := range m.h {
				sum := 0.0
				for i, v := range down[c*m.n:][:m.n] {
					sum += math.Abs(float64(v)) * g[i]
				}
				out[r*m.h+c] += f * math.Abs(float64(m.wv[r*m.k+j])) * sum
			}
		}
		for c := range m.h {
			out[r*m.h+c] += f * math.Abs(float64(m.init[r*m.h+c]))
		}
	}
	return out
}

func absDot(a, b []float32) float64 {
	sum := 0.0
	for i, v := range a {
		sum += math.Abs(float64(v) * float64(b[i]))
	}
	return sum
}

// chosen picks k of e at random, ascending.
func (p *pair) chosen(e, k int) []int32 {
	ids := p.rng.Perm(e)[:k]
	slices.Sort(ids)
	out := make([]int32, k)
	for i, id := range ids {
		out[i] = int32(id)
	}
	return out
}

func experts(t *testing.T, open Opener) {
	sizes := []struct{ t, e, k, h, n int }{
		{1, 1, 1, 1, 1}, {1, 8, 2, 64, 96}, {3, 4, 2, 48, 17}, {5, 3, 3, 33, 40}, {16, 9, 4, 65, 24}, {40, 4, 2, 64, 96}, {130, 6, 1, 70, 31}, {9, 128, 8, 64, 32},
	}
	for _, d := range weightTypes {
		t.Run(d.String(), func(t *testing.T) {
			p, _, _ := openMoE(t, open)
			for i, s := range sizes {
				pick := func(int) []int32 { return p.chosen(s.e, s.k) }
				if i%3 == 1 { // all to the same ones, the last among them
					pick = func(int) []int32 {
						ids := make([]int32, s.k)
						for j := range ids {
							ids[j] = int32(s.e - s.k + j)
						}
						return ids
					}
				}
				m := p.mixture(d, s.t, s.e, s.k, s.h, s.n, pick)
				act := kernels.Activation(i % 3)
				y := both{m.onDev(act, 0, m.t), m.on(p.ref, m.gateUp.ref, m.down.ref, m.x.ref, m.w.ref, act, 0, m.t)}
				limits := m.limits()
				p.same(fmt.Sprintf("T=%d E=%d K=%d H=%d I=%d", s.t, s.e, s.k, s.h, s.n), y, func(i int) float64 { return limits[i] })
			}
		})
	}
}

// expertsComposed: Experts is what MatMul and GatedAct make of each expert by
// itself, in every format; the other operations are under test elsewhere.
func expertsComposed(t *testing.T, open Opener) {
	for _, f := range []kernels.Format{kernels.AsStored, kernels.Q8, kernels.Q4} {
		t.Run(f.String(), func(t *testing.T) {
			p, _, _ := openMoE(t, open)
			for _, s := range []struct{ t, e, k, h, n int }{{1, 5, 2, 64, 96}, {37, 5, 3, 96, 40}, {9, 40, 4, 160, 32}} {
				m := p.mixture(tensor.BF16, s.t, s.e, s.k, s.h, s.n, func(int) []int32 { return p.chosen(s.e, s.k) })
				stack := func(rows, cols int, v []float32) kernels.Weight {
					return p.quantized(t, tensor.BF16, f, s.e*kernels.ExpertRows(rows), cols, v)
				}
				gateUp, down := stack(2*s.n, s.h, m.gv), stack(s.h, s.n, m.dv)
				d, act := p.dev, p.dev.b.ActType()
				got := d.floats(m.on(d, gateUp, down, m.x.dev, m.w.dev, kernels.SiLU, 0, s.t))
				want, size := make([]float64, s.t*s.h), make([]float64, s.t*s.h)
				for i, v := range m.init {
					want[i], size[i] = float64(v), math.Abs(float64(v))
				}
				for e := range s.e {
					w := p.quantized(t, tensor.BF16, f, 2*s.n, s.h, m.gv[e*kernels.ExpertRows(2*s.n)*s.h:][:2*s.n*s.h])
					hidden, gated := d.tensor(act, tensor.Of(s.t, 2*s.n)), d.tensor(act, tensor.Of(s.t, s.n))
					y := d.tensor(tensor.F32, tensor.Of(s.t, s.h))
					d.ops.MatMul(kernels.MatMulArgs{Dst: hidden, X: m.x.dev, W: w})
					d.ops.GatedAct(gated, hidden, kernels.SiLU)
					w = p.quantized(t, tensor.BF16, f, s.h, s.n, m.dv[e*kernels.ExpertRows(s.h)*s.n:][:s.h*s.n])
					d.ops.MatMul(kernels.MatMulArgs{Dst: y, X: gated, W: w})
					for i, v := range d.floats(y) {
						for j := range s.k {
							if pair := i/s.h*s.k + j; int(m.ids[pair]) == e {
								want[i] += float64(m.wv[pair]) * float64(v)
								size[i] += math.Abs(float64(m.wv[pair]) * float64(v))
							}
						}
					}
				}
				for i := range want {
					if diff := math.Abs(float64(got[i]) - want[i]); !(diff <= 1e-4*size[i]+ulp(act)*math.Abs(want[i])) {
						t.Fatalf("%+v: element %d is %g, want %g", s, i, got[i], want[i])
					}
				}
			}
		})
	}
}

// expertsInvariance: a row has the same bits alone, in chunks, and among rows
// that go to the same experts; a weight of NaN makes its own row NaN, no other.
func expertsInvariance(t *testing.T, open Opener) {
	p, _, _ := openMoE(t, open)
	for _, s := range []struct{ t, e, k, h, n int }{{101, 8, 2, 64, 96}, {101, 2, 2, 50, 33}, {75, 33, 4, 96, 20}} {
		m := p.mixture(tensor.BF16, s.t, s.e, s.k, s.h, s.n, func(int) []int32 { return p.chosen(s.e, s.k) })
		whole := p.dev.bytes(m.onDev(kernels.SiLU, 0, m.t))
		size := len(whole) / m.t
		for _, step := range []int{1, 2, 3, 5, 8, 9, 33, 64} {
			for lo := 0; lo < m.t; lo += step {
				hi := min(lo+step, m.t)
				if p.skip() {
					continue
				}
				if !bytes.Equal(p.dev.bytes(m.onDev(kernels.SiLU, lo, hi)), whole[lo*size:hi*size]) {
					t.Fatalf("%+v: rows %d..%d alone differ from the same rows among %d", s, lo, hi, m.t)
				}
				if step < 8 && lo > 20 { // enough of these
					break
				}
			}
		}
		const bad = 7
		m.wv[bad*m.k+m.k-1] = float32(math.NaN())
		m.w = p.f32(tensor.Of(m.t, m.k), m.wv)
		y := m.onDev(kernels.SiLU, 0, m.t)
		for i, v := range p.dev.floats(y)[bad*m.h : (bad+1)*m.h] {
			if v == v {
				t.Fatalf("%+v: element %d of a row with a weight of NaN is %g", s, i, v)
			}
		}
		b := p.dev.bytes(y)
		if !bytes.Equal(b[:bad*size], whole[:bad*size]) || !bytes.Equal(b[(bad+1)*size:], whole[(bad+1)*size:]) {
			t.Fatalf("%+v: a weight of NaN changes other rows", s)
		}
	}
}
