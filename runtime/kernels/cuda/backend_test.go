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

// The whole suite is a matter of an hour for the interpreter with all its
// checks on. Every run takes a sample of it at the default precision; the sweep
// takes all of it, at all precisions.
func TestSuite(t *testing.T) {
	precisions, every := []Precision{Auto}, 47
	switch {
	case sweep:
		precisions, every = []Precision{Auto, BF16, F32}, 1
	case testing.Short():
		precisions = nil // see brief
	}
	for _, p := range precisions {
		t.Run(string(p), func(t *testing.T) {
			kerneltest.Run(t, func(t testing.TB) kernels.Backend {
				return kerneltest.Sample(first(t, Options{Checks: true, Precision: p}), every)
			})
		})
	}
}
