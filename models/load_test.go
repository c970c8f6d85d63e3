package models_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"infer/models"
	"infer/models/modelstest"
	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/kernels/ref"
	"infer/runtime/loader"
	"infer/runtime/tensor"
)

// counting is a backend that only counts what is allocated and not given back,
// and that can be told to fail.
type counting struct {
	live  atomic.Int64
	calls atomic.Int64
	fail  int64 // this allocation or packing fails; 0: none
}

var errFull = errors.New("test: full")

func (c *counting) take(n int64) (*memory, error) {
	if c.calls.Add(1) == c.fail {
		return nil, errFull
	}
	c.live.Add(1)
	return &memory{c: c, n: n}, nil
}

func (c *counting) Device() device.Device                     { return place{c: c} }
func (c *counting) ActType() tensor.DType                     { return tensor.F32 }
func (c *counting) KVType() tensor.DType                      { return tensor.F32 }
func (c *counting) Layout() kernels.Layout                    { return ref.Layout{} }
func (c *counting) NewOps(device.Stream) (kernels.Ops, error) { return nil, nil }

// place is its device.
type place struct {
	device.Device
	c *counting
}

func (p place) Alloc(n int64) (device.Buffer, error) { return p.c.take(n) }

func (c *counting) Pack(_ device.Stream, m kernels.Matrix, f kernels.Format) (kernels.Weight, error) {
	row := m.Cols() * m.DType().Bits() / 8
	const step = 64 // rows
	buf := make([]byte, step*row)
	for i := 0; i < m.Rows(); i += step {
		n := min(step, m.Rows()-i)
		if err := m.ReadRows(buf[:n*row], i, i+n); err != nil {
			return nil, err
		}
	}
	mem, err := c.take(int64(m.Rows() * row))
	if err != nil {
		return nil, err
	}
	mem.rows, mem.cols = m.Rows(), m.Cols()
	return mem, nil
}

// memory is a buffer, or a weight.
type memory struct {
	c          *counting
	n          int64
	rows, cols int
}

func (m *memory) Size() int64            { return m.n }
func (m *memory) Device() device.ID      { return device.ID{Kind: device.CPU} }
func (m *memory) Format() kernels.Format { return kernels.F32 }
func (m *memory) Rows() int              { return m.rows }
func (m *memory) Cols() int              { return m.cols }
func (m *memory) Bytes() int64           { return m.n }

func (m *memory) Free() error {
	m.c.live.Add(-1)
	return nil
}

// sink is a stream that does nothing.
type sink struct{ device.Stream }

func (sink) Upload(tensor.Tensor, []byte) {}
func (sink) Sync(context.Context) error   { return nil }

// Whatever fails in a Load, and when it is cancelled, nothing stays behind.
func TestLoadFaults(t *testing.T) {
	ck := modelstest.OpenGolden(t, "llama_tied")
	m, err := models.Open(ck)
	if err != nil {
		t.Fatal(err)
	}
	load := func(ctx context.Context, c *counting, progress func(int64)) (models.Stage, error) {
		return m.Load(ctx, models.LoadOptions{
			Lo: 0, Hi: 2, Embed: true, Head: true, Checkpoint: ck, Backend: c, Stream: sink{},
			MaxTokens: 4, MaxLogits: 4, MaxPositions: 8, Progress: progress,
		})
	}
	c := &counting{}
	var read atomic.Int64
	s, err := load(t.Context(), c, func(n int64) { read.Add(n) })
	if err != nil {
		t.Fatal(err)
	}
	if read.Load() != ck.Bytes() {
		t.Errorf("progress of %d bytes, the checkpoint has %d", read.Load(), ck.Bytes())
	}
	if w, scratch := s.Bytes(); w < ck.Bytes() || w > ck.Bytes()+8192 || scratch < 4*(64+64+192+64)*4 || scratch > 16384 {
		t.Errorf("%d bytes of weights, %d of scratch", w, scratch)
	}
	if err := s.Close(); err != nil || c.live.Load() != 0 {
		t.Errorf("%d left after Close, %v", c.live.Load(), err)
	}
	for n := range c.calls.Load() {
		c := &counting{fail: n + 1}
		if _, err := load(t.Context(), c, nil); !errors.Is(err, errFull) || c.live.Load() != 0 {
			t.Errorf("failure %d: %v, %d left", n+1, err, c.live.Load())
		}
	}
	gone := errors.New("test: gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	var calls atomic.Int64
	c = &counting{}
	_, err = load(ctx, c, func(int64) {
		if calls.Add(1) == 25 {
			cancel(gone)
		}
	})
	if !errors.Is(err, gone) || c.live.Load() != 0 || calls.Load() != 25 {
		t.Errorf("cancelled: %v, %d left, %d reads", err, c.live.Load(), calls.Load())
	}
}

// Loading takes no memory of its own that grows with the weights: here they are
// 276 MB of a file with a hole.
func TestLoadMemory(t *testing.T) {
	const hidden, inter, vocab = 2048, 16384, 4096
	b := modelstest.FromGolden(t, "llama")
	maps.Copy(b.Config, map[string]any{
		"hidden_size": hidden, "intermediate_size": inter, "vocab_size": vocab, "num_hidden_layers": 1,
		"num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": 64, "tie_word_embeddings": true,
	})
	shapes := map[string][]int{
		"model.embed_tokens.weight": {vocab, hidden}, "model.norm.weight": {hidden},
		"model.layers.0.input_layernorm.weight": {hidden}, "model.layers.0.post_attention_layernorm.weight": {hidden},
		"model.layers.0.self_attn.q_proj.weight": {hidden, hidden}, "model.layers.0.self_attn.k_proj.weight": {hidden, hidden},
		"model.layers.0.self_attn.v_proj.weight": {hidden, hidden}, "model.layers.0.self_attn.o_proj.weight": {hidden, hidden},
		"model.layers.0.mlp.gate_proj.weight": {inter, hidden}, "model.layers.0.mlp.up_proj.weight": {inter, hidden},
		"model.layers.0.mlp.down_proj.weight": {hidden, inter},
	}
	header, size := "", int64(0)
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		n := int64(2)
		for _, d := range shapes[name] {
			n *= int64(d)
		}
		s, _ := json.Marshal(shapes[name])
		header += fmt.Sprintf(`,%q:{"dtype":"BF16","shape":%s,"data_offsets":[%d,%d]}`, name, s, size, size+n)
		size += n
	}
	header = "{" + header[1:] + "}"
	dir := t.TempDir()
	config, _ := json.Marshal(b.Config)
	file := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	for name, data := range map[string][]byte{"config.json": config, "model.safetensors": file} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(filepath.Join(dir, "model.safetensors"), int64(len(file))+size); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ck, err := loader.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ck.Close()
	m, err := models.Open(ck)
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Load(t.Context(), models.LoadOptions{
		Hi: 1, Embed: true, Head: true, Checkpoint: ck, Backend: &counting{}, Stream: sink{}, MaxTokens: 1, MaxLogits: 1, MaxPositions: 1 << 16,
	})
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
		t.Errorf("allocated %d bytes to load %d", took, size)
	}
	if w, _ := s.Bytes(); w < size {
		t.Errorf("%d bytes of weights, want at least %d", w, size)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestLoadOptions(t *testing.T) {
	ck := modelstest.OpenGolden(t, "llama")
	m, err := models.Open(ck)
	if err != nil {
		t.Fatal(err)
	}
	good := models.LoadOptions{Hi: 3, Head: true, Checkpoint: ck, Backend: ref.Open(), MaxTokens: 8, MaxLogits: 8, MaxPositions: 8}
	for _, change := range []func(*models.LoadOptions){
		func(o *models.LoadOptions) { o.Hi = 4 },
		func(o *models.LoadOptions) { o.Lo = -1 },
		func(o *models.LoadOptions) { o.Lo, o.Hi = 2, 1 },
		func(o *models.LoadOptions) { o.MaxTokens = 0 },
		func(o *models.LoadOptions) { o.MaxLogits = 9 },
		func(o *models.LoadOptions) { o.MaxPositions = 0 },
	} {
		o := good
		change(&o)
		if _, err := m.Load(t.Context(), o); err == nil || !strings.HasPrefix(err.Error(), "load LlamaForCausalLM: ") {
			t.Errorf("error %v", err)
		}
	}
	o := good
	o.Format = kernels.Q8
	if o.Stream, err = o.Backend.Device().NewStream(); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Load(t.Context(), o); err != nil && !errors.Is(err, device.ErrNotSupported) {
		t.Errorf("error %v", err)
	}
}

// still is Ops that do nothing.
type still struct{ kernels.Ops }

func (still) Embed(tensor.Tensor, kernels.Weight)                          {}
func (still) RMSNorm(tensor.Tensor, tensor.Tensor, tensor.Tensor, float32) {}
func (still) MatMul(kernels.MatMulArgs)                                    {}
func (still) Rotary(kernels.RotaryArgs)                                    {}
func (still) Attention(kernels.AttentionArgs)                              {}
func (still) GatedAct(tensor.Tensor, tensor.Tensor, kernels.Activation)    {}
func (still) GatherRows(tensor.Tensor, tensor.Tensor)                      {}

// marked keeps the layers that it is told of, and which had an attention.
type marked struct {
	still
	layer int
	seen  *[]int
}

func (m *marked) Layer(n int) { m.layer = n }

func (m *marked) Attention(kernels.AttentionArgs) { *m.seen = append(*m.seen, m.layer) }

// Operations are told the layer that they belong to, by its number in the model.
func TestForwardNamesLayers(t *testing.T) {
	m, err := models.Open(modelstest.OpenGolden(t, "qwen3"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Load(t.Context(), models.LoadOptions{
		Lo: 1, Hi: 3, Checkpoint: modelstest.OpenGolden(t, "qwen3"), Backend: &counting{}, Stream: sink{}, MaxTokens: 4, MaxPositions: 8,
	})
	if err != nil {
		t.Fatal(err)
	}
	var seen []int
	s.Forward(&marked{seen: &seen}, &kernels.Batch{Tokens: make([]int32, 1)}, make([]kernels.KVLayer, 2), tensor.Tensor{}, tensor.Tensor{})
	if !slices.Equal(seen, []int{1, 2}) {
		t.Errorf("attention of layers %v, want 1 and 2", seen)
	}
}

func TestForwardAllocatesNothing(t *testing.T) {
	ck := modelstest.OpenGolden(t, "qwen3")
	m, err := models.Open(ck)
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Load(t.Context(), models.LoadOptions{
		Hi: 3, Embed: true, Head: true, Checkpoint: ck, Backend: &counting{}, Stream: sink{}, MaxTokens: 4, MaxLogits: 4, MaxPositions: 8,
	})
	if err != nil {
		t.Fatal(err)
	}
	b := &kernels.Batch{Tokens: make([]int32, 3), Logits: []int32{0, 2}}
	kv := make([]kernels.KVLayer, 3)
	if n := testing.AllocsPerRun(20, func() { s.Forward(still{}, b, kv, tensor.Tensor{}, tensor.Tensor{}) }); n != 0 {
		t.Errorf("%g allocations in a step", n)
	}
}

// Stages without embedding, head, or layers have only what they need.
func TestStages(t *testing.T) {
	ck := modelstest.OpenGolden(t, "llama_tied")
	m, err := models.Open(ck)
	if err != nil {
		t.Fatal(err)
	}
	b := ref.Open()
	s, err := b.Device().NewStream()
	if err != nil {
		t.Fatal(err)
	}
	size := func(o models.LoadOptions) int64 {
		o.Checkpoint, o.Backend, o.Stream, o.MaxTokens, o.MaxLogits, o.MaxPositions = ck, b, s, 4, 4, 8
		st, err := m.Load(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		n, _ := st.Bytes()
		if err := st.Close(); err != nil {
			t.Error(err)
		}
		return n
	}
	whole := size(models.LoadOptions{Hi: 2, Embed: true, Head: true})
	embed, head := size(models.LoadOptions{Embed: true}), size(models.LoadOptions{Lo: 2, Hi: 2, Head: true})
	first, second := size(models.LoadOptions{Hi: 1}), size(models.LoadOptions{Lo: 1, Hi: 2})
	const table = 320 * 64 * 4
	if embed != table || head != table+256 || first != second || whole != first+second-2*8*8*4+table+256 {
		t.Errorf("whole %d, embedding %d, head %d, layers %d and %d", whole, embed, head, first, second)
	}
}
