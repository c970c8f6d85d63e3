//go:build cuda && cgo && linux

package cuda

import (
	"testing"

	"infer/models/modelstest"
	"infer/runtime/kernels"
)

func TestGoldens(t *testing.T) {
	modelstest.Goldens(t, func(t testing.TB) kernels.Backend { return first(t, Options{Precision: F32}) })
}
