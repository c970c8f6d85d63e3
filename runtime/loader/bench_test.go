package loader_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"infer/runtime/loader"
)

// A header as large models have them: 100,000 tensors, 11 MB.
func BenchmarkHeader(b *testing.B) {
	var h strings.Builder
	const n = 100_000
	for i := range n {
		fmt.Fprintf(&h, `,"model.layers.%d.mlp.experts.%d.gate_proj.weight":{"dtype":"U8","shape":[1,2],"data_offsets":[%d,%d]}`, i/1000, i%1000, 2*i, 2*i+2)
	}
	f := file("{"+h.String()[1:]+"}", make([]byte, 2*n))
	b.SetBytes(int64(len(f)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := loader.NewFile("x", bytes.NewReader(f), int64(len(f))); err != nil {
			b.Fatal(err)
		}
	}
}
