package gpucheck

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"sync"
	"time"

	"infer/models"
	"infer/runtime/loader"
	"infer/runtime/tensor"
)

// noise is a block of random bf16 values of deviation 0.02, over which every
// random tensor goes round and round. Its length is odd in values, so that
// rows differ. It is made when it is first needed: every start of the program
// would pay for it.
var noise = sync.OnceValue(func() []byte {
	rng := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 0, 2*(1<<20+7))
	for range 1<<20 + 7 {
		v := tensor.F32ToBF16(float32(rng.NormFloat64() * 0.02))
		b = append(b, byte(v), byte(v>>8))
	}
	return b
})

// readNoise fills p as if it were bytes off… of an endless tensor.
func readNoise(p []byte, off int64) {
	all := noise()
	at := int(off % int64(len(all)))
	for len(p) > 0 {
		n := copy(p, all[at:])
		p, at = p[n:], 0
	}
}

// matrix is a kernels.Matrix of random bf16 values.
type matrix struct{ rows, cols int }

func (m matrix) DType() tensor.DType { return tensor.BF16 }
func (m matrix) Rows() int           { return m.rows }
func (m matrix) Cols() int           { return m.cols }

func (m matrix) ReadRows(dst []byte, lo, hi int) error {
	readNoise(dst, 2*int64(m.cols)*int64(lo))
	return nil
}

// folder is a model folder with random weights, made as they are read: an 8B
// model takes no disk.
type folder struct {
	config, header []byte
	size           int64 // of the weights' file
}

func newFolder(config []byte) (*folder, error) {
	m, err := models.FromConfig(&loader.Checkpoint{Name: "random", Config: config})
	if err != nil {
		return nil, err
	}
	type entry struct {
		DType   string   `json:"dtype"`
		Shape   []int    `json:"shape"`
		Offsets [2]int64 `json:"data_offsets"`
	}
	header, end := map[string]entry{}, int64(0)
	for _, t := range m.Tensors() {
		n := int64(2)
		for _, d := range t.Shape {
			n *= int64(d)
		}
		header[t.Name] = entry{"BF16", t.Shape, [2]int64{end, end + n}}
		end += n
	}
	text, err := json.Marshal(header)
	if err != nil {
		return nil, err
	}
	for len(text)%8 != 0 {
		text = append(text, ' ')
	}
	f := &folder{config: config}
	for i := range 8 {
		f.header = append(f.header, byte(len(text)>>(8*i)))
	}
	f.header = append(f.header, text...)
	f.size = int64(len(f.header)) + end
	return f, nil
}

// Open implements fs.FS.
func (f *folder) Open(name string) (fs.File, error) {
	switch name {
	case loader.ConfigName:
		return &file{name: name, size: int64(len(f.config)), head: f.config}, nil
	case loader.SingleName:
		return &file{name: name, size: f.size, head: f.header}, nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// file begins with head; noise follows.
type file struct {
	name string
	size int64
	head []byte
	at   int64
}

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off > f.size {
		return 0, fmt.Errorf("read at %d of %d bytes", off, f.size)
	}
	short := int64(len(p)) > f.size-off
	if short {
		p = p[:f.size-off]
	}
	n := 0
	if off < int64(len(f.head)) {
		n = copy(p, f.head[off:])
	}
	readNoise(p[n:], off+int64(n))
	if short {
		return len(p), io.EOF
	}
	return len(p), nil
}

func (f *file) Read(p []byte) (int, error) {
	n, err := f.ReadAt(p, f.at)
	f.at += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

func (f *file) Close() error               { return nil }
func (f *file) Stat() (fs.FileInfo, error) { return f, nil }
func (f *file) Name() string               { return f.name }
func (f *file) Size() int64                { return f.size }
func (f *file) Mode() fs.FileMode          { return 0o444 }
func (f *file) ModTime() time.Time         { return time.Time{} }
func (f *file) IsDir() bool                { return false }
func (f *file) Sys() any                   { return nil }

// shape is a model by the numbers of its config.json.
type shape struct {
	name   string
	config map[string]any
}

func llama(name string, hidden, inner, layers, heads, kvHeads, headDim, vocab int, tied bool) shape {
	return shape{name, map[string]any{
		"architectures": []string{"LlamaForCausalLM"}, "model_type": "llama", "hidden_act": "silu",
		"hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers,
		"num_attention_heads": heads, "num_key_value_heads": kvHeads, "head_dim": headDim,
		"vocab_size": vocab, "tie_word_embeddings": tied, "max_position_embeddings": 8192,
		"rms_norm_eps": 1e-5, "rope_theta": 500000.0, "torch_dtype": "bfloat16",
	}}
}

func (s shape) json() []byte {
	var b bytes.Buffer
	_ = json.NewEncoder(&b).Encode(s.config) // numbers, texts and lists: it cannot fail
	return b.Bytes()
}

// The shapes of Llama 3.2 1B and Llama 3.1 8B; the small one is for simulated
// machines.
var (
	shape1B    = llama("1B", 2048, 8192, 16, 32, 8, 64, 128256, true)
	shape8B    = llama("8B", 4096, 14336, 32, 32, 8, 128, 128256, false)
	shapeSmall = llama("small", 64, 128, 2, 4, 2, 64, 256, true)
)
