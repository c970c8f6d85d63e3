package models_test

import (
	"testing"

	"infer/models/modelstest"
	"infer/runtime/kernels"
	"infer/runtime/kernels/ref"
)

func openRef(testing.TB) kernels.Backend { return ref.Open() }

func TestGoldens(t *testing.T) { modelstest.Goldens(t, openRef) }
