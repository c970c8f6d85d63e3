//go:build cuda && cgo && linux

package cuda

import (
	"testing"

	"infer/models/modelstest"
	"infer/runtime/kernels"
)

// A model gives the reference implementation's logits, and the same bits in
// chunks, in batches and over two stages. (All families, over several GPUs, are
// tried at the shell.)
func TestGoldens(t *testing.T) {
	gpu := func(t testing.TB) kernels.Backend { return first(t, Options{Precision: F32}) }
	if sweep {
		modelstest.Goldens(t, gpu)
		return
	}
	if !testing.Short() { // see brief
		modelstest.GoldensOf(t, gpu, "qwen3", "mixtral")
	}
}
