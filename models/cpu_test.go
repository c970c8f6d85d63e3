package models_test

import (
	"testing"

	"infer/models/modelstest"
	"infer/runtime/kernels"
	"infer/runtime/kernels/cpu"
)

func openCPU(t testing.TB) kernels.Backend {
	b, err := cpu.Open(cpu.Options{Precision: cpu.F32})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Device().Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func TestGoldensCPU(t *testing.T) { modelstest.Goldens(t, openCPU) }

func TestSmolLM2(t *testing.T) { modelstest.SmolLM2(t, openCPU(t)) }
