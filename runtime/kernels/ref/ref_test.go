package ref

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// The expected values below are worked out by hand or with a calculator, not
// by code that shares anything with the package.

type fixture struct {
	t   *testing.T
	b   *Backend
	s   device.Stream
	ops kernels.Ops
}

func open(t *testing.T) fixture {
	b := Open()
	s, err := b.Device().NewStream()
	if err != nil {
		t.Fatal(err)
	}
	o, err := b.NewOps(s)
	if err != nil {
		t.Fatal(err)
	}
	return fixture{t, b, s, o}
}

// f32 makes a tensor; values may be fewer than the shape has, the rest is zero.
func (f fixture) f32(s tensor.Shape, v ...float32) tensor.Tensor {
	x := tensor.Tensor{DType: tensor.F32, Shape: s}
	buf, err := f.b.Device().Alloc(x.Bytes())
	if err != nil {
		f.t.Fatal(err)
	}
	x.Buf = buf
	raw := make([]byte, x.Bytes())
	for i, a := range v {
		binary.LittleEndian.PutUint32(raw[4*i:], math.Float32bits(a))
	}
	f.s.Upload(x, raw)
	return x
}

func (f fixture) want(what string, x tensor.Tensor, want ...float64) {
	f.t.Helper()
	got := all(x)
	if len(got) != len(want) {
		f.t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-6*max(1, math.Abs(want[i])) {
			f.t.Errorf("%s: element %d is %v, want %v (all: %v)", what, i, got[i], want[i], got)
		}
	}
}

type matrix struct {
	d          tensor.DType
	rows, cols int
	raw        []byte
	err        error
}

func (m matrix) DType() tensor.DType { return m.d }
func (m matrix) Rows() int           { return m.rows }
func (m matrix) Cols() int           { return m.cols }

func (m matrix) ReadRows(dst []byte, lo, hi int) error {
	n := m.cols * m.d.Bits() / 8
	copy(dst, m.raw[lo*n:hi*n])
	return m.err
}

func (f fixture) weight(rows, cols int, v ...float32) kernels.Weight {
	m := matrix{d: tensor.BF16, rows: rows, cols: cols, raw: make([]byte, 2*rows*cols)}
	for i, a := range v {
		binary.LittleEndian.PutUint16(m.raw[2*i:], tensor.F32ToBF16(a))
	}
	w, err := f.b.Pack(f.s, m, kernels.AsStored)
	if err != nil {
		f.t.Fatal(err)
	}
	return w
}

func TestEmbedAndMatMul(t *testing.T) {
	f := open(t)
	w := f.weight(3, 2, 1, 2, 3, 4, -5, 6)
	f.ops.Begin(&kernels.Batch{Tokens: []int32{2, 0}})
	x := f.f32(tensor.Of(2, 2))
	f.ops.Embed(x, w)
	f.want("embed", x, -5, 6, 1, 2)
	y := f.f32(tensor.Of(2, 3))
	bias := f.f32(tensor.Of(3), 0.5, 0, -1)
	f.ops.MatMul(kernels.MatMulArgs{Dst: y, X: x, W: w, Bias: bias})
	f.want("matmul", y, 7.5, 9, 60, 5.5, 11, 6)
	f.ops.MatMul(kernels.MatMulArgs{Dst: y, X: x, W: w, Add: true})
	f.want("matmul add", y, 14.5, 18, 121, 10.5, 22, 13)
}

func TestNormAndActivations(t *testing.T) {
	f := open(t)
	x := f.f32(tensor.Of(1, 2), 3, 4)
	f.ops.RMSNorm(x, x, f.f32(tensor.Of(2), 1, 10), 0) // mean square 12.5
	f.want("norm", x, 3/math.Sqrt(12.5), 40/math.Sqrt(12.5))

	g := f.f32(tensor.Of(1, 6), 1, -2, 30, 3, 1, 0.5)
	d := f.f32(tensor.Of(1, 3))
	f.ops.GatedAct(d, g, kernels.SiLU)
	f.want("silu", d, 3*0.7310585786300049, -2*0.11920292202211755, 15)
	f.ops.GatedAct(d, g, kernels.GELU) // Φ(1), Φ(−2) from a table of the normal distribution
	f.want("gelu", d, 3*0.8413447460685429, -2*0.02275013194817921, 15)
	f.ops.GatedAct(d, g, kernels.GELUTanh)
	f.want("gelu tanh", d, 3*0.8411919906082768, -0.04540230591222494, 15)
}

func TestRotaryAndAttention(t *testing.T) {
	f := open(t)
	h := kernels.Heads{Q: 2, KV: 1, Dim: 3} // rotary on the first two of three
	f.ops.Begin(&kernels.Batch{
		Positions: []int32{0, 1}, Slots: []int32{16, 17}, Starts: []int32{0, 2},
		Contexts: []int32{2}, BlockTables: [][]int32{{1}},
	})
	qkv := f.f32(tensor.Of(2, 12),
		1, 0, 2, 0, 1, 0, 1, 1, 1, 5, 6, 7,
		1, 0, 2, 0, 1, 0, 1, 1, 0, 8, 9, 10)
	kv := kernels.KVLayer{K: f.f32(tensor.Of(2, 1, 16, 3)), V: f.f32(tensor.Of(2, 1, 16, 3))}
	f.ops.Rotary(kernels.RotaryArgs{
		QKV: qkv, Heads: h, KV: kv,
		Cos: f.f32(tensor.Of(2, 1), 1, 0), Sin: f.f32(tensor.Of(2, 1), 0, 1), // a quarter turn at 1
	})
	f.want("rotary", qkv,
		1, 0, 2, 0, 1, 0, 1, 1, 1, 5, 6, 7,
		0, 1, 2, -1, 0, 0, -1, 1, 0, 8, 9, 10)
	f.want("K pages", kv.K.Rows(1, 2), append([]float64{1, 1, 1, -1, 1, 0}, make([]float64, 14*3)...)...)
	f.want("V pages", kv.V.Rows(1, 2), append([]float64{5, 6, 7, 8, 9, 10}, make([]float64, 14*3)...)...)

	// Row 1: head 0 scores 3 and 1, head 1 scores −1 and 1, each × ln 2 / 2.
	dst := f.f32(tensor.Of(2, 6))
	a := kernels.AttentionArgs{Dst: dst, QKV: qkv, Heads: h, KV: kv, Scale: math.Ln2 / 2}
	f.ops.Attention(a)
	f.want("attention", dst, 5, 6, 7, 5, 6, 7, 6, 7, 8, 7, 8, 9)
	a.Window = 1
	f.ops.Attention(a)
	f.want("attention, window of one", dst, 5, 6, 7, 5, 6, 7, 8, 9, 10, 8, 9, 10)
}

func TestQKNorm(t *testing.T) {
	f := open(t)
	f.ops.Begin(&kernels.Batch{Positions: []int32{0}, Slots: []int32{0}})
	qkv := f.f32(tensor.Of(1, 6), 3, 4, 6, 8, 3, 4)
	kv := kernels.KVLayer{K: f.f32(tensor.Of(1, 1, 16, 2)), V: f.f32(tensor.Of(1, 1, 16, 2))}
	f.ops.Rotary(kernels.RotaryArgs{
		QKV: qkv, Heads: kernels.Heads{Q: 1, KV: 1, Dim: 2}, KV: kv,
		QNorm: f.f32(tensor.Of(2), 1, 2), KNorm: f.f32(tensor.Of(2), 1, 1),
		Cos: f.f32(tensor.Of(1, 1), 1), Sin: f.f32(tensor.Of(1, 1), 0),
	})
	r := math.Sqrt(12.5)
	f.want("q/k norm", qkv, 3/r, 8/r, 6/math.Sqrt(50), 8/math.Sqrt(50), 3, 4)
}

func TestRowsArgmaxDigest(t *testing.T) {
	f := open(t)
	f.ops.Begin(&kernels.Batch{Logits: []int32{0, 2}})
	src := f.f32(tensor.Of(3, 2), 1, 2, 3, 4, 5, 6)
	dst := f.f32(tensor.Of(2, 2))
	f.ops.GatherRows(dst, src)
	f.want("gather", dst, 1, 2, 5, 6)

	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	l := f.f32(tensor.Of(5, 4), 1, 7, 7, 2, nan, -3, -2, nan, nan, nan, nan, nan, -inf, -inf, -inf, -inf, nan, -inf, 0, inf)
	at := f.f32(tensor.Of(5))
	at.DType = tensor.I32
	f.ops.Argmax(at, l)
	raw := make([]byte, 20)
	f.s.Download(raw, at)
	for r, want := range []int32{1, -1, -1, -1, -1} {
		if got := int32(binary.LittleEndian.Uint32(raw[4*r:])); got != want {
			t.Errorf("argmax of row %d is %d, want %d", r, got, want)
		}
	}
	var d kernels.Digest
	f.ops.Digest(&d, src)
	if d != kernels.DigestOf(mem(src)) {
		t.Error("digest")
	}
}

func TestErrors(t *testing.T) {
	f := open(t)
	if _, err := f.b.Device().Alloc(1 << 40); !errors.Is(err, device.ErrOutOfMemory) {
		t.Errorf("1 TiB: %v", err)
	}
	if _, err := f.b.Device().Alloc(-1); err == nil {
		t.Error("negative size")
	}
	if _, err := f.b.Pack(f.s, matrix{d: tensor.F8E4M3, rows: 1, cols: 1}, kernels.AsStored); !errors.Is(err, device.ErrNotSupported) {
		t.Errorf("F8: %v", err)
	}
	if _, err := f.b.Pack(f.s, matrix{d: tensor.F32, rows: 1 << 40, cols: 1 << 40}, kernels.AsStored); err == nil {
		t.Error("sizes that overflow")
	}
	broken := errors.New("broken")
	if _, err := f.b.Pack(f.s, matrix{d: tensor.F32, rows: 1, cols: 1, raw: make([]byte, 4), err: broken}, kernels.AsStored); !errors.Is(err, broken) {
		t.Errorf("reader's error: %v", err)
	}
}
