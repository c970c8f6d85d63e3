package cpu

import (
	"testing"

	"infer/runtime/kernels"
)

// What is measured is more than a product on this machine gets, and no number
// that nothing has.
func TestPeak(t *testing.T) {
	b, err := Open(Options{Threads: 2, MemoryLimit: 256 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Device().Close()
	for _, f := range []kernels.Format{kernels.AsStored, kernels.Q8, kernels.Q4} {
		p, err := b.Peak(f)
		t.Logf("%v: %.1f GB/s, %.0f billion multiply-adds a second: %s", f, p.Read/1e9, p.MACs/1e9, p.Unit)
		if err != nil || p.Read < 1e8 || p.Read > 1e14 || p.MACs < 1e7 || p.MACs > 1e15 || p.Unit == "" {
			t.Errorf("%v: %+v, %v", f, p, err)
		}
	}
	if used := b.dev.UsedBytes(); used != 0 {
		t.Errorf("%d bytes stay in use", used)
	}
	if b, err = Open(Options{Threads: 1, MemoryLimit: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	defer b.Device().Close()
	if _, err := b.Peak(kernels.AsStored); err == nil {
		t.Error("measured in a megabyte")
	}
}
