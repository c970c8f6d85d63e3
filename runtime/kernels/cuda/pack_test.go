package cuda

import (
	"fmt"
	"testing"

	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// How fast one core lays out weights; the disk gives 1 to 10 GB/s.
func BenchmarkPack(b *testing.B) {
	const cols = 4096
	for _, c := range []struct {
		d tensor.DType
		f kernels.Format
	}{{tensor.BF16, kernels.BF16}, {tensor.F32, kernels.F32}, {tensor.F32, kernels.BF16}, {tensor.BF16, kernels.Q8}, {tensor.BF16, kernels.Q4}} {
		b.Run(fmt.Sprintf("%v to %v", c.d, c.f), func(b *testing.B) {
			raw := make([]byte, tileRows*cols*c.d.Bits()/8)
			for i := range raw {
				raw[i] = byte(i*7) & 0x3f
			}
			strip := layout{c.f, tileRows, cols}
			p := packer{m: &memMatrix{c.d, tileRows, cols, raw}, l: strip, raw: make([]byte, len(raw))}
			values, scales := make([]byte, strip.bytes()), make([]byte, strip.scaleBytes())
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				clear(values)
				if err := p.strip(values, scales, 0, tileRows); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
