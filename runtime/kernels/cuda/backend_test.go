//go:build cuda && cgo && linux

package cuda

import (
	"testing"

	"infer/runtime/kernels"
	"infer/runtime/kernels/kerneltest"
)

// open simulates a machine and opens its first GPU.
func open(t testing.TB, o Options) *System {
	t.Helper()
	if o.Simulate == "" && o.Machine == nil {
		o.Simulate = "1xRTX-4090"
	}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for i, b := range s.backends {
			if used := b.dev.used.Load(); used != 0 {
				t.Errorf("cuda:%d: %d bytes are still allocated", i, used)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func first(t testing.TB, o Options) kernels.Backend {
	t.Helper()
	return must(open(t, o).Backend(0))
}

// The whole suite is a matter of an hour for the interpreter, with all its
// checks on: a sample of it in every run, all of it in the sweep.
func TestSuite(t *testing.T) {
	for p, every := range map[Precision]int{Auto: 47, BF16: 211, F32: 211} {
		if sweep {
			every = 1
		}
		t.Run(string(p), func(t *testing.T) {
			kerneltest.Run(t, func(t testing.TB) kernels.Backend {
				return kerneltest.Sample(first(t, Options{Checks: true, Precision: p}), every)
			})
		})
	}
}
