package modelstest

import (
	"encoding/binary"
	"encoding/json"
	"io/fs"
	"maps"
	"slices"
	"testing"
	"testing/fstest"

	"infer/runtime/loader"
	"infer/runtime/tensor"
)

// Build is a checkpoint that a test changes before it is opened.
type Build struct {
	Config  map[string]any
	Tensors map[string]Blob
}

// Blob is a tensor's values as a file has them.
type Blob struct {
	DType tensor.DType
	Shape []int
	Data  []byte
}

// FromGolden takes one of the repository's goldens apart.
func FromGolden(t testing.TB, name string) *Build {
	t.Helper()
	ck := OpenGolden(t, name)
	b := &Build{Tensors: map[string]Blob{}}
	if err := json.Unmarshal(ck.Config, &b.Config); err != nil {
		t.Fatal(err)
	}
	for _, f := range ck.Files {
		for _, x := range f.Tensors {
			data := make([]byte, x.Bytes)
			if _, err := x.ReadAt(data, 0); err != nil {
				t.Fatal(err)
			}
			b.Tensors[x.Name] = Blob{x.DType, x.Shape, data}
		}
	}
	return b
}

// Convert changes the element type of the tensors that pick names. F64 and
// F32 only, which keep every value of the goldens.
func (b *Build) Convert(t testing.TB, to tensor.DType, pick func(name string) bool) {
	t.Helper()
	for name, x := range b.Tensors {
		if !pick(name) {
			continue
		}
		vals := make([]float32, len(x.Data)*8/x.DType.Bits())
		if err := tensor.ToF32(vals, x.Data, x.DType); err != nil {
			t.Fatal(err)
		}
		var data []byte
		for _, v := range vals {
			var err error
			if to == tensor.F64 {
				data, err = binary.Append(data, binary.LittleEndian, float64(v))
			} else {
				data, err = binary.Append(data, binary.LittleEndian, v)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		b.Tensors[name] = Blob{to, x.Shape, data}
	}
}

// FS is the checkpoint as a folder.
func (b *Build) FS(t testing.TB) fs.FS {
	t.Helper()
	type entry struct {
		DType   string `json:"dtype"`
		Shape   []int  `json:"shape"`
		Offsets [2]int `json:"data_offsets"`
	}
	header := map[string]entry{}
	var data []byte
	for _, name := range slices.Sorted(maps.Keys(b.Tensors)) {
		x := b.Tensors[name]
		header[name] = entry{x.DType.String(), x.Shape, [2]int{len(data), len(data) + len(x.Data)}}
		data = append(data, x.Data...)
	}
	h, err := json.Marshal(header)
	if err != nil {
		t.Fatal(err)
	}
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(h)))
	config, err := json.Marshal(b.Config)
	if err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{
		loader.ConfigName: {Data: config},
		loader.SingleName: {Data: append(append(file, h...), data...)},
	}
}

// Open opens the checkpoint.
func (b *Build) Open(t testing.TB) *loader.Checkpoint {
	t.Helper()
	return openCheckpoint(t, b.FS(t), loader.ConfigName)
}

// Zeros is a tensor of zeros.
func Zeros(d tensor.DType, shape ...int) Blob {
	n := d.Bits()
	for _, s := range shape {
		n *= s
	}
	return Blob{d, shape, make([]byte, n/8)}
}
