package loader_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"infer/runtime/loader"
)

// file makes a safetensors file of a header and data.
func file(header string, data []byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

// tensorFile is a file of U8 tensors with the names given, of n bytes each.
func tensorFile(n int, names ...string) []byte {
	var h []string
	for i, name := range names {
		q, _ := json.Marshal(name)
		h = append(h, fmt.Sprintf(`%s:{"dtype":"U8","shape":[%d],"data_offsets":[%d,%d]}`, q, n, i*n, (i+1)*n))
	}
	data := make([]byte, n*len(names))
	for i := range data {
		data[i] = byte(i)
	}
	return file("{"+strings.Join(h, ",")+"}", data)
}

func write(t testing.TB, dir, name string, b []byte) string {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := os.WriteFile(p, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// testdata/alltypes.* were written by Python's safetensors 0.8.0: one tensor
// of every type it can write, and what it reads back.
func TestEveryDType(t *testing.T) {
	var want []struct {
		Name, DType, Hex string
		Shape            []int
	}
	b, err := os.ReadFile("testdata/alltypes.json")
	if err == nil {
		err = json.Unmarshal(b, &want)
	}
	if err != nil || len(want) != 20 {
		t.Fatalf("%d tensors, %v", len(want), err)
	}
	for _, opts := range [][]loader.Option{nil, {loader.Mmap()}} {
		f, err := loader.OpenFile("testdata/alltypes.safetensors", opts...)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if f.Metadata["note"] != "every element type" || len(f.Tensors) != len(want) {
			t.Errorf("metadata %v, %d tensors", f.Metadata, len(f.Tensors))
		}
		for _, w := range want {
			i := slices.IndexFunc(f.Tensors, func(t *loader.Tensor) bool { return t.Name == w.Name })
			got := f.Tensors[i]
			data := make([]byte, got.Bytes)
			if _, err := got.ReadAt(data, 0); err != nil {
				t.Error(err)
			}
			if got.DType.String() != w.DType || !slices.Equal(got.Shape, w.Shape) || hex.EncodeToString(data) != w.Hex {
				t.Errorf("%s: %v %v differs", w.Name, got.DType, got.Shape)
			}
		}
	}
}

// Headers that no case covers, and a part of the error each must give.
func TestHeaders(t *testing.T) {
	deep := strings.Repeat("[", 20000) + strings.Repeat("]", 20000)
	for name, c := range map[string]struct {
		header string
		data   int
		err    string // "" for a good one
	}{
		"packed types":        {`{"a":{"dtype":"F6_E2M3","shape":[2,4],"data_offsets":[0,6]},"b":{"dtype":"F4","shape":[2],"data_offsets":[6,7]}}`, 7, ""},
		"part of a byte":      {`{"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}}`, 2, "12 bits, not a whole number"},
		"scalar":              {`{"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}`, 4, ""},
		"padded":              {`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}` + "   ", 1, ""},
		"space in front":      {` {"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1, `starts with ' '`},
		"text behind":         {`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}{}`, 1, "more text"},
		"zeros behind":        {`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}` + "\x00", 1, "at start of value"},
		"key twice":           {`{"a":{"dtype":"U8","dtype":"I8","shape":[1],"data_offsets":[0,1]}}`, 1, `duplicate`},
		"same name escaped":   {`{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"\u0061":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, 0, `duplicate`},
		"further key":         {`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"note":{"x":[1]}}}`, 1, ""},
		"further key, deep":   {`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"note":` + deep + `}}`, 1, "depth"},
		"fraction":            {`{"a":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}}`, 1, "1.0 is not an integer"},
		"exponent":            {`{"a":{"dtype":"U8","shape":[1e0],"data_offsets":[0,1]}}`, 1, "1e0 is not an integer"},
		"minus zero":          {`{"a":{"dtype":"U8","shape":[-0],"data_offsets":[0,0]}}`, 0, "-0 is not an integer"},
		"shape is a string":   {`{"a":{"dtype":"U8","shape":"1","data_offsets":[0,1]}}`, 1, `"shape": is a string, want an array`},
		"no shape":            {`{"a":{"dtype":"U8","data_offsets":[0,1]}}`, 1, "shape is missing"},
		"no offsets":          {`{"a":{"dtype":"U8","shape":[1]}}`, 1, "data_offsets has 0 numbers"},
		"null entry":          {`{"a":null}`, 0, "is null, want an object"},
		"dtype in lower case": {`{"a":{"dtype":"u8","shape":[1],"data_offsets":[0,1]}}`, 1, `unknown dtype "u8"`},
		"rank 1000":           {`{"a":{"dtype":"U8","shape":[` + strings.Repeat("1,", 999) + `1],"data_offsets":[0,1]}}`, 1, ""},
		"rank 1000, wrong":    {`{"a":{"dtype":"U8","shape":[` + strings.Repeat("1,", 999) + `2],"data_offsets":[0,1]}}`, 1, "… of U8 needs 2 bytes"},
		"too many dimensions": {`{"a":{"dtype":"U8","shape":[` + strings.Repeat("1,", 1<<20) + `1],"data_offsets":[0,1]}}`, 1, "more than 1048576 numbers"},
		"metadata is null":    {`{"__metadata__":null}`, 0, ""},
		"overflow in bits":    {`{"a":{"dtype":"U64","shape":[9223372036854775807],"data_offsets":[0,8]}}`, 8, "more bits than"},
		"metadata is a list":  {`{"__metadata__":[]}`, 0, "is an array, want an object"},
		"metadata twice":      {`{"__metadata__":{},"__metadata__":{}}`, 0, "duplicate"},
		"same range twice":    {`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1, `tensor "b": data_offsets [0 1] overlap tensor "a"`},
		"name with a newline": {`{"a\nb":{"dtype":"U8","shape":[2],"data_offsets":[0,1]}}`, 1, `tensor "a\nb": shape [2] of U8 needs 2 bytes`},
		"lone surrogate":      {`{"\ud800":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1, "surrogate"},
		"cut off":             {`{"a":{"dtype":"U8","shape":[1],"data_off`, 1, "unexpected EOF"},
		"no brace at the end": {`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}`, 1, "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			b := file(c.header, make([]byte, c.data))
			_, err := loader.NewFile("x.safetensors", bytes.NewReader(b), int64(len(b)))
			switch {
			case c.err == "" && err != nil:
				t.Errorf("want it accepted: %v", err)
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err) || !strings.HasPrefix(err.Error(), "x.safetensors: ")):
				t.Errorf("want an error with %q, got %v", c.err, err)
			}
		})
	}
}

// What git leaves in place of a large file that was not fetched.
func TestGitLFSPointer(t *testing.T) {
	b := []byte("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n")
	_, err := loader.NewFile("x.safetensors", bytes.NewReader(b), int64(len(b)))
	if err == nil || !strings.Contains(err.Error(), "git lfs pull") {
		t.Error(err)
	}
}

// A header may be up to 100 MB; what is in it decides the memory, not its
// length.
func TestHeaderMemory(t *testing.T) {
	long := strings.Repeat("a", 9<<20)
	many := func(n int, entry string) string {
		var b strings.Builder
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, entry, i)
		}
		return b.String()
	}
	for name, c := range map[string]struct{ header, err string }{
		"long name":     {`{"` + long + `":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, "8388608 bytes without the end"},
		"long metadata": {`{"__metadata__":{"k":"` + long + `"}}`, "8388608 bytes without the end"},
		"spaces":        {`{` + strings.Repeat(" ", 9<<20) + `}`, "8388608 bytes without the end"},
		"many keys":     {`{"__metadata__":{` + many(1<<17+1, `"%d":"value"`) + `}}`, "more than 131072 keys"},
		"many tensors":  {`{` + many(1<<17+1, `"%d":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}`) + `}`, "more than 131072 tensors"},
		"hole":          {`{` + strings.Repeat("\x00", 9<<20), "invalid character"},
	} {
		t.Run(name, func(t *testing.T) {
			b := file(c.header, nil)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			f, err := loader.NewFile("x.safetensors", bytes.NewReader(b), int64(len(b)))
			runtime.ReadMemStats(&after)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("want an error with %q, got %v", c.err, err)
			}
			if mb := (int64(after.HeapAlloc) - int64(before.HeapAlloc)) >> 20; mb > 64 {
				t.Errorf("took %d MB", mb)
			}
			runtime.KeepAlive(f)
		})
	}
}

func TestReadAt(t *testing.T) {
	data := make([]byte, 21<<20) // more than one piece, and an odd rest
	rnd := rand.New(rand.NewPCG(3, 4))
	for i := 0; i+8 <= len(data); i += 8 {
		binary.LittleEndian.PutUint64(data[i:], rnd.Uint64())
	}
	header := fmt.Sprintf(`{"a":{"dtype":"U8","shape":[5],"data_offsets":[0,5]},"b":{"dtype":"U8","shape":[%d],"data_offsets":[5,%d]}}`, len(data)-5, len(data))
	path := write(t, t.TempDir(), "x.safetensors", file(header, data))
	for _, opts := range [][]loader.Option{nil, {loader.Mmap()}} {
		f, err := loader.OpenFile(path, opts...)
		if err != nil {
			t.Fatal(err)
		}
		b := f.Tensors[1]
		for _, r := range [][2]int{{0, len(data) - 5}, {0, 0}, {len(data) - 5, len(data) - 5}, {7, 12}, {1, 9 << 20}, {3 << 20, len(data) - 5}} {
			got := make([]byte, r[1]-r[0])
			if n, err := b.ReadAt(got, int64(r[0])); err != nil || n != len(got) || !bytes.Equal(got, data[5+r[0]:5+r[1]]) {
				t.Errorf("%v: %d bytes, %v, or wrong bytes", r, n, err)
			}
		}
		for _, r := range [][2]int64{{-1, 1}, {b.Bytes, 1}, {b.Bytes - 1, 2}, {0, b.Bytes + 1}, {1 << 62, 1}} {
			if _, err := b.ReadAt(make([]byte, r[1]), r[0]); err == nil || !strings.Contains(err.Error(), `x.safetensors: tensor "b": read of`) {
				t.Errorf("read of %d at %d: %v", r[1], r[0], err)
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A file that is cut after it was opened gives an error, also when mapped.
func TestShrinkingFile(t *testing.T) {
	for _, opts := range [][]loader.Option{nil, {loader.Mmap()}} {
		path := write(t, t.TempDir(), "x.safetensors", tensorFile(12<<20, "a"))
		f, err := loader.OpenFile(path, opts...)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := os.Truncate(path, 1<<20); err != nil {
			t.Fatal(err)
		}
		_, err = f.Tensors[0].ReadAt(make([]byte, 12<<20), 0)
		if err == nil || !strings.Contains(err.Error(), `tensor "a"`) || !strings.Contains(err.Error(), "shorter") {
			t.Errorf("error %v", err)
		}
	}
}

func TestOpen(t *testing.T) {
	index := func(kv ...string) []byte {
		m := map[string]string{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = kv[i+1]
		}
		b, _ := json.Marshal(map[string]any{"metadata": map[string]any{"total_size": 1}, "weight_map": m})
		return b
	}
	a, b := tensorFile(3, "x", "y"), tensorFile(5, "z")
	for name, c := range map[string]struct {
		files map[string][]byte
		err   string // "" for a good one: x, y, z are there
	}{
		"shards": {map[string][]byte{
			"config.json": []byte("{}"), "model.safetensors.index.json": index("x", "1.safetensors", "y", "1.safetensors", "z", "sub/2.safetensors"),
			"1.safetensors": a, "sub/2.safetensors": b,
		}, ""},
		"a tensor the index leaves out": {map[string][]byte{
			"config.json": []byte("{}"), "model.safetensors.index.json": index("x", "1.safetensors", "z", "2.safetensors"),
			"1.safetensors": a, "2.safetensors": b,
		}, ""},
		"single": {map[string][]byte{"config.json": []byte("{}"), "model.safetensors": tensorFile(3, "x", "y", "z")}, ""},
		"a tensor in two shards": {map[string][]byte{
			"config.json": []byte("{}"), "model.safetensors.index.json": index("x", "1.safetensors", "z", "2.safetensors"),
			"1.safetensors": a, "2.safetensors": tensorFile(5, "z", "y"),
		}, `tensor "y" is in two files, `},
		"a tensor nowhere": {map[string][]byte{
			"config.json": []byte("{}"), "model.safetensors.index.json": index("x", "1.safetensors", "w", "1.safetensors"), "1.safetensors": a,
		}, `puts tensor "w" into `},
		"parent folder": {map[string][]byte{
			"config.json": []byte("{}"), "model.safetensors.index.json": index("x", "../1.safetensors"),
		}, `shard "../1.safetensors" is not a path inside`},
		"backslash": {map[string][]byte{
			"config.json": []byte("{}"), "model.safetensors.index.json": index("x", `..\1.safetensors`),
		}, `is not a path inside`},
		"a pickle as shard": {map[string][]byte{
			"config.json": []byte("{}"), "model.safetensors.index.json": index("x", "1.bin"),
		}, `shard "1.bin" is not a .safetensors file`},
		"empty map":     {map[string][]byte{"config.json": []byte("{}"), "model.safetensors.index.json": index()}, "weight_map is empty"},
		"no config":     {map[string][]byte{"model.safetensors": a}, "config.json is missing: "},
		"nothing":       {map[string][]byte{"config.json": []byte("{}")}, "no model.safetensors or"},
		"another name":  {map[string][]byte{"config.json": []byte("{}"), "weights.gguf": a}, `there is "weights.gguf", which is not read`},
		"a huge config": {map[string][]byte{"config.json": make([]byte, 17<<20), "model.safetensors": a}, "config.json: has 17825792 bytes, above the limit"},
		"shard twice, as number": {map[string][]byte{
			"config.json": []byte("{}"), "model.safetensors.index.json": []byte(`{"weight_map":{"x":1}}`),
		}, `weight_map: "x": is a number, want a string`},
		"name twice": {map[string][]byte{
			"config.json": []byte("{}"), "model.safetensors.index.json": []byte(`{"weight_map":{"x":"1.safetensors","x":"1.safetensors"}}`),
		}, `duplicate`},
	} {
		t.Run(name, func(t *testing.T) {
			mem := fstest.MapFS{}
			dir := t.TempDir()
			for n, b := range c.files {
				mem[n] = &fstest.MapFile{Data: b}
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, n)), 0o755); err != nil {
					t.Fatal(err)
				}
				write(t, dir, n, b)
			}
			ck, err := loader.Open(dir)
			ck2, err2 := loader.OpenFS(mem, dir)
			if c.err != "" {
				for _, err := range []error{err, err2} {
					if err == nil || !strings.Contains(err.Error(), c.err) || !strings.Contains(err.Error(), dir) {
						t.Errorf("want an error with %q, got %v", c.err, err)
					}
				}
				return
			}
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			for _, ck := range []*loader.Checkpoint{ck, ck2} {
				for _, n := range []string{"x", "y", "z"} {
					tensor, ok := ck.Tensor(n)
					if !ok || tensor.Name != n {
						t.Errorf("tensor %s: %v", n, tensor)
						continue
					}
					if _, err := tensor.ReadAt(make([]byte, tensor.Bytes), 0); err != nil {
						t.Error(err)
					}
				}
				if string(ck.Config) != "{}" || ck.Len() != 3 {
					t.Errorf("config %q, %d tensors", ck.Config, ck.Len())
				}
				if err := ck.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	if _, err := loader.Open(filepath.Join(t.TempDir(), "missing")); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("error %v", err)
	}
}
