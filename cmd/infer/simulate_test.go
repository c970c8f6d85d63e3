//go:build cuda && cgo && linux

package main

import (
	"strings"
	"testing"
)

// The same text comes of the CPU and of simulated GPUs, whatever their number
// and architecture, by the driver's own functions and the kernels that ship.
func TestSimulate(t *testing.T) {
	args := []string{"run", "--temperature", "0", "--max-tokens", "24", "Once upon a time"}
	want := infer(t, args...)
	if !strings.HasPrefix(want, "Once upon a time") || len(want) < 60 {
		t.Fatalf("the CPU says %q", want)
	}
	for _, c := range [][]string{
		{"--simulate", "2xRTX-5090", "--device-map", "cuda:0=0-2,cuda:1=3-"},
		{"--simulate", "8xH100-SXM", "--device-map", "cuda:0=0,cuda:2=1,cuda:4=2,cuda:5=3,cuda:6=4,cuda:7=5-"},
		{"--simulate", "unknown-arch"},
		{"--simulate", "RTX-4090", "--device-map", "cpu=0-1,cuda:0=2-4,cpu=5-"},
	} {
		if testing.Short() && c[1] != "2xRTX-5090" {
			continue
		}
		if got := infer(t, append(append([]string{"run"}, c...), args[1:]...)...); got != want {
			t.Errorf("%v: %q, want %q", c, got, want)
		}
	}
}
