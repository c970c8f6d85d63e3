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
	for _, isa := range ISAs {
		for suffix, want := range map[string][]byte{".s": MatMul(isa), ".go": Table(isa)} {
			file := "../matmul_" + strings.ToLower(isa.Name) + "_amd64" + suffix
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
}
