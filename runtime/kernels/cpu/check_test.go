package cpu

import (
	"strings"
	"testing"
	"unsafe"

	"infer/runtime/kernels"
)

func TestPathsMultiplyAsTheyShould(t *testing.T) {
	for _, p := range paths() {
		if err := p.check(); err != nil {
			t.Error(err)
		}
	}
}

// Whichever kernel is wrong, in whatever place, its path is not used.
func TestWrongKernelIsNotUsed(t *testing.T) {
	have := paths()
	if have[0].name == purego.name {
		t.Skip("not testable here: there are no kernels but those in Go, which others are compared with")
	}
	for format, of := range formats {
		if of == 0 {
			of = kernels.BF16 // in whole groups
		}
		for rows, widths := range have[0].mm.kernels[format] {
			for log2p, kernel := range widths {
				if kernel == nil || format == fmtI8 {
					continue
				}
				wrong, mm := have[0], *have[0].mm
				wrong.mm = &mm
				mm.kernels[format][rows][log2p] = func(a *mmArgs) {
					kernel(a)
					last := unsafe.Add(a.dst, (rows-1)*int(a.ldd)+(lanes<<log2p-1)*4)
					*(*float32)(last) += 0.01
				}
				if err := wrong.compare(); err == nil || !strings.Contains(err.Error(), of.String()) {
					t.Errorf("%d (%v), %d rows, %d panels: %v", format, of, rows, 1<<log2p, err)
				}
			}
		}
	}
}

func TestBestPath(t *testing.T) {
	mm := *purego.mm
	for rows := range mm.kernels[fmtBF16] {
		for log2p := range mm.kernels[fmtBF16][rows] {
			mm.kernels[fmtBF16][rows][log2p] = func(*mmArgs) {}
		}
	}
	idle := purego
	idle.name, idle.mm = "idle", &mm
	inexact := purego
	inexact.name, inexact.exact = "inexact", &idle
	got := best([]path{idle, inexact, purego})
	if got.name != "purego" || !strings.Contains(got.features, "idle multiplies wrongly on this processor: bf16 weights, 1 rows") {
		t.Errorf("chose %s: %s", got.name, got.features)
	}
}

func BenchmarkCheck(b *testing.B) {
	p := paths()[0]
	for b.Loop() {
		if err := p.compare(); err != nil {
			b.Fatal(err)
		}
	}
}
