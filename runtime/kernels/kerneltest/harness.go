package kerneltest

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/kernels/ref"
	"infer/runtime/tensor"
)

// Opener opens the backend to test, and closes it in a Cleanup of the test.
type Opener func(testing.TB) kernels.Backend

// Run is the whole suite.
func Run(t *testing.T, open Opener) {
	t.Run("MatMul", func(t *testing.T) { matMul(t, open) })
	t.Run("MatMulSpecial", func(t *testing.T) { matMulSpecial(t, open) })
	t.Run("QuantPack", func(t *testing.T) { quantPack(t, open) })
	t.Run("QuantMatMul", func(t *testing.T) { quantMatMul(t, open) })
	t.Run("QuantSpecial", func(t *testing.T) { quantSpecial(t, open) })
	t.Run("QuantInvariance", func(t *testing.T) { quantInvariance(t, open) })
	t.Run("Pack", func(t *testing.T) { pack(t, open) })
	t.Run("Embed", func(t *testing.T) { embed(t, open) })
	t.Run("RMSNorm", func(t *testing.T) { rmsNorm(t, open) })
	t.Run("GatedAct", func(t *testing.T) { gatedAct(t, open) })
	t.Run("Argmax", func(t *testing.T) { argmax(t, open) })
	t.Run("Move", func(t *testing.T) { move(t, open) })
	t.Run("Digest", func(t *testing.T) { digest(t, open) })
	RunKV(t, open)
	t.Run("Invariance", func(t *testing.T) { invariance(t, open) })
	t.Run("Route", func(t *testing.T) { route(t, open) })
	t.Run("Experts", func(t *testing.T) { experts(t, open) })
	t.Run("ExpertsComposed", func(t *testing.T) { expertsComposed(t, open) })
	t.Run("ExpertsInvariance", func(t *testing.T) { expertsInvariance(t, open) })
	t.Run("Memory", func(t *testing.T) { memory(t, open) })
}

// RunKV is the part of the suite that the type of K/V pages matters to.
func RunKV(t *testing.T, open Opener) {
	t.Run("Rotary", func(t *testing.T) { rotary(t, open) })
	t.Run("Attention", func(t *testing.T) { attention(t, open) })
	t.Run("AttentionRandom", func(t *testing.T) { attentionRandom(t, open) })
	t.Run("AttentionInvariance", func(t *testing.T) { attentionInvariance(t, open) })
}

// canary surrounds results in memory.
const canary = 64

// side is one of the two backends that are compared.
type side struct {
	t   testing.TB
	b   kernels.Backend
	s   device.Stream
	ops kernels.Ops
}

func newSide(t testing.TB, b kernels.Backend) side {
	t.Helper()
	s, err := b.Device().NewStream()
	if err != nil {
		t.Fatalf("open a stream: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the stream: %v", err)
		}
	})
	o, err := b.NewOps(s)
	if err != nil {
		t.Fatalf("open the operations: %v", err)
	}
	return side{t, b, s, o}
}

// tensor allocates and fills the bytes around it with canaries, itself with
// 0xff: NaN in every float type.
func (s side) tensor(d tensor.DType, shape tensor.Shape) tensor.Tensor {
	s.t.Helper()
	x := tensor.Tensor{Offset: canary, DType: d, Shape: shape}
	all := tensor.Tensor{DType: tensor.U8, Shape: tensor.Of(int(x.Bytes()) + 2*canary)}
	buf, err := s.b.Device().Alloc(all.Bytes())
	if err != nil {
		s.t.Fatalf("allocate %v%v: %v", d, shape, err)
	}
	s.t.Cleanup(func() {
		if err := buf.Free(); err != nil {
			s.t.Errorf("free %v%v: %v", d, shape, err)
		}
	})
	x.Buf, all.Buf = buf, buf
	raw := make([]byte, all.Bytes())
	for i := range raw {
		raw[i] = 0xa5
		if i >= canary && i < len(raw)-canary {
			raw[i] = 0xff
		}
	}
	s.s.Upload(all, raw)
	s.sync()
	return x
}

func (s side) sync() {
	s.t.Helper()
	if err := s.s.Sync(context.Background()); err != nil {
		s.t.Fatalf("sync: %v", err)
	}
}

// bytes reads x back and checks the canaries around it.
func (s side) bytes(x tensor.Tensor) []byte {
	s.t.Helper()
	all := tensor.Tensor{Buf: x.Buf, DType: tensor.U8, Shape: tensor.Of(int(x.Buf.Size()))}
	raw := make([]byte, all.Bytes())
	s.s.Download(raw, all)
	s.sync()
	for i := range canary {
		if raw[i] != 0xa5 || raw[len(raw)-1-i] != 0xa5 {
			s.t.Fatalf("memory around %v%v was written to", x.DType, x.Shape)
		}
	}
	return raw[x.Offset : x.Offset+x.Bytes()]
}

func (s side) floats(x tensor.Tensor) []float32 {
	s.t.Helper()
	v := make([]float32, x.Shape.Elems())
	if err := tensor.ToF32(v, s.bytes(x), x.DType); err != nil {
		s.t.Fatal(err)
	}
	return v
}

// upload puts values into a new tensor, rounded to its type.
func (s side) upload(d tensor.DType, shape tensor.Shape, v []float32) tensor.Tensor {
	s.t.Helper()
	x := s.tensor(d, shape)
	s.s.Upload(x, encode(d, v))
	s.sync()
	return x
}

func encode(d tensor.DType, v []float32) []byte {
	b := make([]byte, 0, 4*len(v))
	le := binary.LittleEndian
	for _, a := range v {
		switch d {
		case tensor.F32:
			b = le.AppendUint32(b, math.Float32bits(a))
		case tensor.BF16:
			b = le.AppendUint16(b, tensor.F32ToBF16(a))
		case tensor.F16:
			b = le.AppendUint16(b, tensor.F32ToF16(a))
		default:
			panic(fmt.Sprintf("kerneltest: encode %v", d))
		}
	}
	return b
}

// pair is the backend under test and the reference.
type pair struct {
	t        testing.TB
	dev, ref side
	rng      *rand.Rand

	every, cases int // see Sample
}

func open2(t testing.TB, open Opener) *pair {
	t.Helper()
	p := &pair{t: t, rng: rand.New(rand.NewPCG(7, 11))}
	b := open(t)
	if s, ok := b.(sampled); ok {
		b, p.every = s.Backend, s.every
	}
	p.dev, p.ref = newSide(t, b), newSide(t, ref.Open())
	return p
}

// both is a tensor on each side.
type both struct{ dev, ref tensor.Tensor }

func (p *pair) random(n int, scale float64) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(p.rng.NormFloat64() * scale)
	}
	return v
}

// act is a tensor of activations with these values; nil: not yet written.
func (p *pair) act(shape tensor.Shape, v []float32) both {
	p.t.Helper()
	return p.typed(p.dev.b.ActType(), shape, v)
}

// operand is the type that activations have in products with weights of d.
func (p *pair) operand(d tensor.DType) tensor.DType {
	if r, ok := p.dev.b.(kernels.Rounder); ok {
		return r.OperandType(d)
	}
	return p.dev.b.ActType()
}

// factors are values that are such operands already.
func (p *pair) factors(d tensor.DType, n int) []float32 {
	p.t.Helper()
	v, d := p.random(n, 1), p.operand(d)
	if err := tensor.ToF32(v, encode(d, v), d); err != nil {
		p.t.Fatal(err)
	}
	return v
}

func (p *pair) f32(shape tensor.Shape, v []float32) both {
	p.t.Helper()
	return p.typed(tensor.F32, shape, v)
}

func (p *pair) typed(d tensor.DType, shape tensor.Shape, v []float32) both {
	p.t.Helper()
	if v == nil {
		return both{p.dev.tensor(d, shape), p.ref.tensor(d, shape)}
	}
	return both{p.dev.upload(d, shape, v), p.ref.upload(d, shape, v)}
}

func (p *pair) begin(b *kernels.Batch) {
	p.dev.ops.Begin(b)
	p.ref.ops.Begin(b)
}

// same compares with the reference: |difference| ≤ bound of the element, and
// one rounding to the result's type. bound may be nil: 0.
func (p *pair) same(what string, x both, bound func(i int) float64) {
	p.t.Helper()
	got, want := p.dev.floats(x.dev), p.ref.floats(x.ref)
	worst, at, bad := 0.0, -1, 0
	for i := range want {
		g, w := float64(got[i]), float64(want[i])
		if g == w || g != g && w != w {
			continue
		}
		limit := math.Abs(w) * ulp(x.dev.DType)
		if bound != nil {
			limit += bound(i)
		}
		if d := math.Abs(g - w); !(d <= limit) {
			bad++
			if r := d / limit; at < 0 || r > worst || r != r {
				worst, at = r, i
			}
		}
	}
	if bad > 0 {
		p.t.Fatalf("%s: %d of %d elements are off; the worst, %d of %v, is %g, want %g: %.1f times the bound",
			what, bad, len(want), at, x.dev.Shape, got[at], want[at], worst)
	}
}

// ulp is the relative distance of neighbours.
func ulp(d tensor.DType) float64 {
	switch d {
	case tensor.BF16:
		return 1.0 / (1 << 7)
	case tensor.F16:
		return 1.0 / (1 << 10)
	}
	return 1.0 / (1 << 23)
}

const epsilon = 1.0 / (1 << 24) // rounding of a float32 operation

// matrix is a kernels.Matrix in memory.
type matrix struct {
	d          tensor.DType
	rows, cols int
	raw        []byte
	err        error
}

func (m *matrix) DType() tensor.DType { return m.d }
func (m *matrix) Rows() int           { return m.rows }
func (m *matrix) Cols() int           { return m.cols }

func (m *matrix) ReadRows(dst []byte, lo, hi int) error {
	n := m.cols * m.d.Bits() / 8
	if lo < 0 || hi > m.rows || len(dst) != (hi-lo)*n {
		return fmt.Errorf("rows %d..%d of %d into %d bytes", lo, hi, m.rows, len(dst))
	}
	copy(dst, m.raw[lo*n:hi*n])
	return m.err
}

// weights is a weight on each side.
type weights struct{ dev, ref kernels.Weight }

func (p *pair) pack(d tensor.DType, f kernels.Format, rows, cols int, v []float32) weights {
	p.t.Helper()
	m := &matrix{d: d, rows: rows, cols: cols, raw: encode(d, v)}
	var w weights
	var err error
	if w.dev, err = p.dev.b.Pack(p.dev.s, m, f); err != nil {
		p.t.Fatalf("pack: %v", err)
	}
	p.t.Cleanup(func() {
		if err := w.dev.Free(); err != nil {
			p.t.Errorf("free a weight: %v", err)
		}
	})
	if w.ref, err = p.ref.b.Pack(p.ref.s, m, f); err != nil {
		p.t.Fatalf("pack for the reference: %v", err)
	}
	return w
}

func abs(v []float32) []float32 {
	a := make([]float32, len(v))
	for i := range v {
		a[i] = float32(math.Abs(float64(v[i])))
	}
	return a
}
