//go:build cuda && cgo && linux

package cuda

import (
	"testing"

	"infer/models/modelstest"
	"infer/runtime/kernels"
)

// Every family gives the reference implementation's logits, and the same bits
// in chunks, in batches and over two stages.
func TestGoldens(t *testing.T) {
	modelstest.GoldensOnce(t, func(t testing.TB) kernels.Backend { return first(t, Options{Precision: F32}) })
}
