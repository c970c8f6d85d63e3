package cpu

import (
	"errors"
	"fmt"
	"testing"

	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/kernels/kerneltest"
	"infer/runtime/tensor"
)

// each runs a test on every path there is; one that this processor lacks is
// skipped with its typed reason.
func each(t *testing.T, names []string, do func(t *testing.T, open func(testing.TB, Options) *Backend)) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Setenv("INFER_CPU", name)
			b, err := Open(Options{Threads: 1})
			if errors.Is(err, device.ErrNotSupported) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			_ = b.Device().Close()
			do(t, func(t testing.TB, o Options) *Backend {
				t.Helper()
				b, err := Open(o)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if used := b.dev.used.Load(); used != 0 {
						t.Errorf("%d bytes are still allocated", used)
					}
					if err := b.Device().Close(); err != nil {
						t.Error(err)
					}
				})
				return b
			})
		})
	}
}

func TestSuite(t *testing.T) {
	for _, c := range []struct {
		o     Options
		paths []string
	}{
		{Options{Threads: 1, Precision: F32}, []string{"avx2", "avx512", "amx"}},
		{Options{Threads: 3}, []string{"purego", "avx2", "avxvnni", "avx512", "avx512vnni", "avx512bf16", "amx"}},
	} {
		// Short runs are for the race detector: a single thread has no races,
		// slow paths have those of the fast ones, and most shapes the same.
		if testing.Short() {
			if c.o.Threads == 1 {
				continue
			}
			c.paths = []string{"avx2"}
		}
		t.Run(fmt.Sprintf("%d threads", c.o.Threads), func(t *testing.T) {
			each(t, c.paths, func(t *testing.T, open func(testing.TB, Options) *Backend) {
				kerneltest.Run(t, func(t testing.TB) kernels.Backend {
					if testing.Short() {
						return kerneltest.Sample(open(t, c.o), 7)
					}
					return open(t, c.o)
				})
			})
		})
	}
}

// K/V pages of 8 bits: half of the cases, the rest of attention is the same.
func TestSuiteKV8(t *testing.T) {
	paths, every := []string{"purego", "avx2", "avx512"}, 2
	if testing.Short() {
		paths, every = []string{"avx2"}, 14
	}
	each(t, paths, func(t *testing.T, open func(testing.TB, Options) *Backend) {
		kerneltest.RunKV(t, func(t testing.TB) kernels.Backend {
			return kerneltest.Sample(open(t, Options{Threads: 3, KV: tensor.I8}), every)
		})
	})
}

func BenchmarkSuite(b *testing.B) {
	for _, threads := range []int{1, defaultThreads()} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			kerneltest.Bench(b, func(t testing.TB) kernels.Backend {
				c, err := Open(Options{Threads: threads})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Device().Close() })
				return c
			})
		})
	}
}
