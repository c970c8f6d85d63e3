package loader_test

import (
	"encoding/hex"
	"path/filepath"
	"slices"
	"testing"

	"infer/runtime/loader"
	"infer/runtime/loader/loadertest"
)

func TestBadFiles(t *testing.T) {
	loadertest.Run(t, "file", func(t *testing.T, c loadertest.Case) {
		for _, o := range []struct {
			name string
			opts []loader.Option
		}{{"pread", nil}, {"mmap", []loader.Option{loader.Mmap()}}} {
			t.Run(o.name, func(t *testing.T) {
				var f *loader.File
				c.Check(t, func() (err error) {
					f, err = loader.OpenFile(filepath.Join(c.Dir, "model.safetensors"), o.opts...)
					return err
				})
				if f == nil {
					return
				}
				defer f.Close()
				if len(f.Tensors) != len(c.Tensors) {
					t.Errorf("%d tensors, want %d", len(f.Tensors), len(c.Tensors))
				}
				for _, want := range c.Tensors {
					i := slices.IndexFunc(f.Tensors, func(t *loader.Tensor) bool { return t.Name == want.Name })
					if i < 0 {
						t.Errorf("tensor %q is missing", want.Name)
						continue
					}
					got := f.Tensors[i]
					if got.DType.String() != want.DType || !slices.Equal(got.Shape, want.Shape) {
						t.Errorf("%q: %v %v, want %v %v", want.Name, got.DType, got.Shape, want.DType, want.Shape)
					}
					data := make([]byte, got.Bytes)
					if _, err := got.ReadAt(data, 0); err != nil {
						t.Error(err)
					}
					if hex.EncodeToString(data) != want.Hex {
						t.Errorf("%q: wrong bytes", want.Name)
					}
				}
			})
		}
	})
}
