package asmgen

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated files")

// The committed assembly is what this package writes.
func TestGenerated(t *testing.T) {
	files := map[string][]byte{"AMX.s": AMX(), "AMX.go": AMXTable(), "AVX512BF16.s": Dots(), "AVX512BF16.go": DotsTable()}
	for _, isa := range ISAs {
		files[isa.Name+".s"], files[isa.Name+".go"] = MatMul(isa), Table(isa)
	}
	for name, want := range files {
		name, suffix, _ := strings.Cut(name, ".")
		file := "../matmul_" + strings.ToLower(name) + "_amd64." + suffix
		if *update {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what this package writes: go test -run TestGenerated -update", file)
		}
	}
}
