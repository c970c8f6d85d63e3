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

// prompt is longer than the goldens' windows.
var prompt = []int32{5, 17, 250, 3, 99, 42, 42, 7, 201, 13, 77, 180, 260, 31, 8, 119, 64, 2, 300, 11, 150, 45, 6}

func logits(t *testing.T, ck *loader.Checkpoint) [][]float32 {
	t.Helper()
	r := modelstest.New(t, ck, ref.Open(), modelstest.Options{MaxTokens: 64, Positions: 64, Blocks: 8})
	return r.Step(modelstest.Run{Seq: &modelstest.Seq{}, IDs: prompt})
}

func equal(a, b [][]float32) bool {
	return slices.EqualFunc(a, b, slices.Equal[[]float32])
}

// How a checkpoint stores the embedding and the head of a tied model does not
// matter, unless it has both and they differ: then it is not tied.
func TestTied(t *testing.T) {
	const embed, head = "model.embed_tokens.weight", "lm_head.weight"
	b := modelstest.FromGolden(t, "llama_tied")
	want := logits(t, b.Open(t))

	b.Tensors[head] = b.Tensors[embed]
	if !equal(logits(t, b.Open(t)), want) {
		t.Error("both, equal: other logits")
	}
	if m, err := models.Open(b.Open(t)); err != nil || !m.Config().Tied {
		t.Errorf("both, equal: not tied, %v", err)
	}
	delete(b.Tensors, embed)
	if !equal(logits(t, b.Open(t)), want) {
		t.Error("only the head: other logits")
	}

	untied := modelstest.FromGolden(t, "llama")
	want = logits(t, untied.Open(t))
	untied.Config["tie_word_embeddings"] = true
	if !equal(logits(t, untied.Open(t)), want) {
		t.Error("both, different: other logits than untied")
	}
	if m, err := models.Open(untied.Open(t)); err != nil || m.Config().Tied {
		t.Errorf("both, different: tied, %v", err)
	}
	delete(untied.Tensors, embed)
	delete(untied.Tensors, head)
	if _, err := models.Open(untied.Open(t)); err == nil || !strings.Contains(err.Error(), embed) {
		t.Errorf("neither: %v", err)
	}
}

// Weights may be stored in any type that holds the values, and in different
// ones within a fused matrix.
func TestStoredTypes(t *testing.T) {
	for name, pick := range map[string]func(string) bool{
		"all":    func(string) bool { return true },
		"k, up":  func(n string) bool { return strings.Contains(n, "k_proj") || strings.Contains(n, "up_proj") },
		"norms":  func(n string) bool { return strings.Contains(n, "norm") },
		"o only": func(n string) bool { return strings.Contains(n, "o_proj") },
	} {
		for _, to := range []tensor.DType{tensor.F32, tensor.F64} {
			b := modelstest.FromGolden(t, "qwen2")
			want := logits(t, b.Open(t))
			b.Convert(t, to, pick)
			if !equal(logits(t, b.Open(t)), want) {
				t.Errorf("%s as %v: other logits", name, to)
			}
		}
	}
}

// A Qwen2 with a window on all layers, and with biases of 0, is a Mistral.
func TestUpperWindows(t *testing.T) {
	mistral := modelstest.FromGolden(t, "mistral")
	want := logits(t, mistral.Open(t))
	b := modelstest.FromGolden(t, "mistral")
	b.Config["architectures"], b.Config["model_type"] = []string{"Qwen2ForCausalLM"}, "qwen2"
	for _, name := range slices.Collect(maps.Keys(b.Tensors)) {
		base, _ := strings.CutSuffix(name, ".weight")
		if p := base[max(0, len(base)-6):]; p == "q_proj" || p == "k_proj" || p == "v_proj" {
			b.Tensors[base+".bias"] = modelstest.Zeros(tensor.F16, b.Tensors[name].Shape[0])
		}
	}
	b.Config["use_sliding_window"], b.Config["max_window_layers"] = true, 0
	if !equal(logits(t, b.Open(t)), want) {
		t.Error("windows from layer 0: other logits than Mistral")
	}
	b.Config["layer_types"] = []string{"sliding_attention", "sliding_attention", "sliding_attention"}
	b.Config["max_window_layers"] = 28
	if !equal(logits(t, b.Open(t)), want) {
		t.Error("windows by layer_types: other logits than Mistral")
	}
	delete(b.Config, "layer_types")
	mistral.Config["sliding_window"] = nil
	full := logits(t, mistral.Open(t))
	if equal(full, want) {
		t.Fatal("the window makes no difference")
	}
	if !equal(logits(t, b.Open(t)), full) {
		t.Error("windows from layer 28: other logits than full attention")
	}
	b.Config["max_window_layers"] = 2
	some := logits(t, b.Open(t))
	b.Config["layer_types"] = []string{"full_attention", "full_attention", "sliding_attention"}
	if equal(some, full) || equal(some, want) || !equal(logits(t, b.Open(t)), some) {
		t.Error("a window on the last layer only")
	}
}

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
