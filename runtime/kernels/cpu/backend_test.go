package cpu

import (
	"errors"
	"strings"
	"testing"
	"unsafe"

	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

func openFor(t *testing.T, o Options) *Backend {
	t.Helper()
	b, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Device().Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func TestMemoryLimit(t *testing.T) {
	b := openFor(t, Options{Threads: 1, MemoryLimit: 1 << 20})
	d := b.Device()
	x, err := d.Alloc(1<<20 - 1000)
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Info().FreeBytes; got != 1000 {
		t.Errorf("%d bytes free, want 1000", got)
	}
	_, err = d.Alloc(1001)
	if !errors.Is(err, device.ErrOutOfMemory) {
		t.Fatalf("above the limit: %v", err)
	}
	for _, number := range []string{"1001", "1000 of 1048576"} {
		if !strings.Contains(err.Error(), number) {
			t.Errorf("%q does not say %s", err, number)
		}
	}
	if _, err := b.Pack(nil, flat{100, 100}, kernels.AsStored); !errors.Is(err, device.ErrOutOfMemory) {
		t.Errorf("a weight above the limit: %v", err)
	}
	if err := x.Free(); err != nil {
		t.Fatal(err)
	}
	if err := x.Free(); err != nil { // twice is once
		t.Fatal(err)
	}
	if x, err = d.Alloc(1 << 20); err != nil {
		t.Fatalf("after Free: %v", err)
	}
	_ = x.Free()
}

// flat is a BF16 matrix of ones.
type flat struct{ rows, cols int }

func (m flat) DType() tensor.DType { return tensor.BF16 }
func (m flat) Rows() int           { return m.rows }
func (m flat) Cols() int           { return m.cols }

func (m flat) ReadRows(dst []byte, _, _ int) error {
	for i := 0; i < len(dst); i += 2 {
		dst[i], dst[i+1] = 0x80, 0x3f
	}
	return nil
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string // in the error
	}{
		{Options{Threads: -1}, "-1 threads"},
		{Options{Threads: 5000}, "5000 threads"},
		{Options{Precision: "f64"}, `"f64"`},
		{Options{KV: tensor.F8E4M3}, "F8_E4M3"},
		{Options{MemoryLimit: -5}, "-5 bytes"},
	} {
		if _, err := Open(c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want an error with %q", c.o, err, c.want)
		}
	}
	t.Setenv("INFER_CPU", "mmx")
	if _, err := Open(Options{}); !errors.Is(err, device.ErrNotSupported) || !strings.Contains(err.Error(), "purego") {
		t.Errorf("INFER_CPU=mmx: %v, want ErrNotSupported and the paths that there are", err)
	}
	t.Setenv("INFER_CPU", "")
	for _, c := range []struct {
		o    Options
		want tensor.DType
	}{
		{Options{}, tensor.BF16},
		{Options{Precision: F32}, tensor.F32},
		{Options{Precision: F32, KV: tensor.BF16}, tensor.BF16},
		{Options{KV: tensor.F32}, tensor.F32},
	} {
		c.o.Threads = 1
		if got := openFor(t, c.o).KVType(); got != c.want {
			t.Errorf("%+v: K/V of %v, want %v", c.o, got, c.want)
		}
	}
	if Features() == "" || openFor(t, Options{}).Device().Info().Units < 1 {
		t.Error("no features, or no threads by default")
	}
}

// A step allocates nothing once it has been done. (Of many steps, that the
// runtime's own few allocations for sleepers do not count.)
func TestNoAllocation(t *testing.T) {
	b := openFor(t, Options{Threads: 3})
	o, err := b.NewOps(nil)
	if err != nil {
		t.Fatal(err)
	}
	alloc := func(d tensor.DType, dims ...int) tensor.Tensor {
		x := tensor.Tensor{DType: d, Shape: tensor.Of(dims...)}
		buf, err := b.dev.Alloc(x.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = buf.Free() })
		x.Buf = buf
		return x
	}
	w, err := b.Pack(nil, flat{640, 256}, kernels.AsStored)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Free() })
	h := kernels.Heads{Q: 6, KV: 2, Dim: 64}
	const ctx, blocks = 700, 50
	for _, rows := range []int{1, 40} {
		batch := &kernels.Batch{Starts: []int32{0, int32(rows)}, Contexts: []int32{ctx}, BlockTables: [][]int32{nil}, Logits: []int32{0}}
		for i := range blocks {
			batch.BlockTables[0] = append(batch.BlockTables[0], int32(i))
		}
		for i := range rows {
			batch.Tokens = append(batch.Tokens, int32(i))
			batch.Positions = append(batch.Positions, int32(ctx-rows+i))
			batch.Slots = append(batch.Slots, int32(ctx-rows+i))
		}
		kv := kernels.KVLayer{K: alloc(b.KVType(), blocks, h.KV, 16, h.Dim), V: alloc(b.KVType(), blocks, h.KV, 16, h.Dim)}
		x, qkv, a := alloc(tensor.F32, rows, 256), alloc(tensor.F32, rows, h.Cols()), alloc(tensor.F32, rows, h.Q*h.Dim)
		gate, norm, cos := alloc(tensor.F32, rows, 320), alloc(tensor.F32, 256), alloc(tensor.F32, ctx, 32)
		ids := alloc(tensor.I32, rows)
		var d kernels.Digest
		if n := testing.AllocsPerRun(50, func() {
			o.Begin(batch)
			o.Embed(x, w)
			o.RMSNorm(x, x, norm, 1e-5)
			o.MatMul(kernels.MatMulArgs{Dst: qkv, X: x, W: w})
			o.Rotary(kernels.RotaryArgs{QKV: qkv, Heads: h, Cos: cos, Sin: cos, KV: kv})
			o.Attention(kernels.AttentionArgs{Dst: a, QKV: qkv, Heads: h, KV: kv, Scale: 1})
			o.GatedAct(gate, qkv, kernels.SiLU)
			o.GatherRows(x.Rows(0, 1), x)
			o.Argmax(ids, a)
			o.Copy(qkv, qkv)
			o.Digest(&d, qkv)
		}); n != 0 {
			t.Errorf("a step of %d rows allocates %v times", rows, n)
		}
	}
}

// Buffers do not overlap, keep what is written, and their memory goes back.
func TestArena(t *testing.T) {
	d := openFor(t, Options{Threads: 1}).dev
	var bufs []*buffer
	for i := range 400 {
		n := int64(i*i*i) % 700_000
		if i%100 == 99 {
			n = ownBytes + int64(i)
		}
		b, err := d.alloc(n, pageKind(i/7%2))
		if err != nil {
			t.Fatal(err)
		}
		m := b.mem[:n+guard]
		if uintptr(unsafe.Pointer(&m[0]))%alignment != 0 {
			t.Fatalf("buffer %d of %d bytes is not aligned", i, n)
		}
		for j := range m {
			m[j] = byte(i)
		}
		bufs = append(bufs, b)
		if i%3 == 2 { // some go again at once
			if err := bufs[i/2].Free(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, b := range bufs {
		for j, x := range b.mem {
			if x != byte(i) {
				t.Fatalf("byte %d of buffer %d was overwritten", j, i)
			}
		}
		if err := b.Free(); err != nil {
			t.Fatal(err)
		}
	}
	if d.used.Load() != 0 || d.arena.now != [2]*slab{} {
		t.Errorf("%d bytes and a slab stay behind", d.used.Load())
	}
}
