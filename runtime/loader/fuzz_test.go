package loader

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/nlpodyssey/safetensors"
)

// Whatever the bytes: no panic; what is accepted covers the data exactly, and
// is what another implementation reads there.
func FuzzHeader(f *testing.F) {
	add := func(h string, data int) {
		f.Add(append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(h))), h...), make([]byte, data)...))
	}
	add(`{}`, 0)
	add(`{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}`, 24)
	add(`{"b":{"dtype":"BF16","shape":[4],"data_offsets":[3,11]},"a":{"dtype":"I8","shape":[3],"data_offsets":[0,3]}}  `, 11)
	add(`{"z":{"dtype":"F4","shape":[0,9],"data_offsets":[0,0]},"s":{"dtype":"F64","shape":[],"data_offsets":[0,8]}}`, 8)
	add(`{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, 0)
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := NewFile("f", bytes.NewReader(b), int64(len(b)))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f: ") || len(err.Error()) > 1500 || !utf8.ValidString(err.Error()) {
				t.Fatalf("error %q", err)
			}
			return
		}
		at := int64(8) + int64(binary.LittleEndian.Uint64(b))
		for _, x := range file.Tensors {
			if x.Offset != at || x.Bytes < 0 {
				t.Fatalf("tensor %q at %d, want %d", x.Name, x.Offset, at)
			}
			at += x.Bytes
			if _, err := x.ReadAt(make([]byte, x.Bytes), 0); err != nil {
				t.Fatal(err)
			}
		}
		if at != int64(len(b)) {
			t.Fatalf("tensors end at %d of %d", at, len(b))
		}
		if other, err := safetensors.Deserialize(b); err == nil { // it knows fewer types
			compare(t, file, other)
		}
	})
}

// compare holds a file against what nlpodyssey/safetensors reads.
func compare(t *testing.T, file *File, other safetensors.SafeTensors) {
	t.Helper()
	if len(file.Tensors) != other.Len() {
		t.Fatalf("%d tensors, another reader finds %d", len(file.Tensors), other.Len())
	}
	for _, x := range file.Tensors {
		want, ok := other.Tensor(x.Name)
		if !ok || want.DType().String() != x.DType.String() || len(want.Shape()) != len(x.Shape) {
			t.Fatalf("%q: %v %v, another reader finds %v %v", x.Name, x.DType, x.Shape, want.DType(), want.Shape())
		}
		for i, d := range want.Shape() {
			if d != uint64(x.Shape[i]) {
				t.Fatalf("%q: shape %v, another reader finds %v", x.Name, x.Shape, want.Shape())
			}
		}
		data := make([]byte, x.Bytes)
		if _, err := x.ReadAt(data, 0); err != nil || !bytes.Equal(data, want.Data()) {
			t.Fatalf("%q: %v, or other bytes than another reader finds", x.Name, err)
		}
	}
}

// Files that another implementation writes are read as it wrote them.
func TestAgainstAnotherWriter(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	types := []safetensors.DType{safetensors.BOOL, safetensors.U8, safetensors.I16, safetensors.BF16, safetensors.F16, safetensors.F32, safetensors.F64, safetensors.I64}
	for range 50 {
		data := map[string]safetensors.TensorView{}
		for i := range rnd.IntN(9) {
			dt, shape := types[rnd.IntN(len(types))], []uint64{}
			n := dt.Size()
			for range 1 + rnd.IntN(3) { // it has no scalars
				d := uint64(rnd.IntN(5))
				shape, n = append(shape, d), n*d
			}
			b := make([]byte, n)
			for j := range b {
				b[j] = byte(rnd.Uint32())
			}
			v, err := safetensors.NewTensorView(dt, shape, b)
			if err != nil {
				t.Fatal(err)
			}
			data[fmt.Sprintf("layer.%d\"é%d", i, rnd.IntN(100))] = v
		}
		b, err := safetensors.Serialize(data, map[string]string{"format": "pt"})
		if err != nil {
			t.Fatal(err)
		}
		f, err := NewFile("f", bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		other, err := safetensors.Deserialize(b)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, f, other)
	}
}

func FuzzIndex(f *testing.F) {
	f.Add(`{"metadata":{"total_size":1},"weight_map":{"a":"model-00001-of-00002.safetensors"}}`)
	f.Add(`{"weight_map":{"a":"../x.safetensors"}}`)
	f.Add(`{"weight_map":{"a":"/x.safetensors","a":1}}`)
	f.Fuzz(func(t *testing.T, s string) {
		index, err := parseIndex(strings.NewReader(s))
		if err != nil {
			return
		}
		for name, shard := range index {
			if strings.Contains("/"+shard+"/", "/../") || strings.HasPrefix(shard, "/") || !strings.HasSuffix(shard, ".safetensors") {
				t.Fatalf("%q is in shard %q", name, shard)
			}
		}
	})
}
