//go:build cuda && cgo && linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"infer/models/modelstest"
)

// Wherever the layers run, the tokens are those of the CPU: on one GPU and several, on
// GPUs and the CPU cut at every layer, by automatic, manual and module maps.
func TestMaps(t *testing.T) {
	answer := func(args ...string) string {
		return infer(t, append(append([]string{"run"}, args...), "--temperature", "0", "--max-tokens", "5", "--max-seqs", "2", "--ctx", "64", "Once upon a time")...)
	}
	want := answer("--simulate", "1xRTX-4090", "--device-map", "cpu")
	file := filepath.Join(t.TempDir(), "map.json")
	if err := os.WriteFile(file, []byte(`{"model": 1, "model.layers.0": 0, "model.layers.1": 0, "lm_head": "cpu"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := [][]string{
		{"1xRTX-3060"},
		// Uneven, and too small for the whole model: the planner splits it.
		{"1xRTX-3060+1xRTX-5090", "--max-memory", "cuda:0=10MiB,cuda:1=13MiB,cpu=1GiB", "--gpu-layers", "6"},
		// Not a byte more than planned.
		exactly(t, "3xRTX-4090", "cuda:0=0-1,cuda:1=2,cuda:2=3-4,cpu=5-"),
		{"3xRTX-4090", "--device-map", "cuda:2=0,cuda:0=1-2,cuda:1=3,cpu=4-"},
		{"2xRTX-4090", "--device-map", file},
		{"1xRTX-4090", "--gpu-layers", "2"},
	}
	for cut := 1; cut < 6; cut++ {
		cases = append(cases, []string{"1xRTX-4090", "--device-map", fmt.Sprintf("cuda:0=0-%d,cpu=%d-", cut-1, cut)},
			[]string{"1xRTX-4090", "--device-map", fmt.Sprintf("cpu=0-%d,cuda:0=%d-", cut-1, cut)})
	}
	for i, c := range cases {
		if raceDetector && i != 2 || !raceDetector && testing.Short() && i%4 != 1 { // the interpreter is slow there
			continue
		}
		if got := answer(append([]string{"--simulate"}, c...)...); got != want {
			t.Errorf("%v: %q, want %q", c, got, want)
		}
	}
}

// exactly limits every device to what the plan for a map says it uses.
func exactly(t *testing.T, machine, deviceMap string) []string {
	args := []string{machine, "--device-map", deviceMap, "--max-memory"}
	var plan plannedJSON
	out := infer(t, "plan", "--gpus", machine, "--device-map", deviceMap, "--max-seqs", "2", "--ctx", "64", "--json")
	if err := json.Unmarshal([]byte(out), &plan); err != nil {
		t.Fatal(err)
	}
	var limits []string
	for _, d := range plan.Devices {
		limits = append(limits, fmt.Sprintf("%s=%d", d.Device, d.Bytes.Used()))
	}
	return append(args, strings.Join(limits, ","))
}

// Experts on the CPU, their layers on simulated GPUs: the tokens of the machine's
// CPU again.
func TestMapsOfExperts(t *testing.T) {
	for i, name := range []string{"mixtral", "qwen3_moe"} {
		if raceDetector && i > 0 {
			continue
		}
		dir := filepath.Join(t.TempDir(), name)
		if err := os.CopyFS(dir, modelstest.FromGolden(t, name).FS(t)); err != nil {
			t.Fatal(err)
		}
		answer := func(args ...string) string {
			out := infer(t, append(append([]string{"run", dir}, args...), "--temperature", "0", "--max-tokens", "6", "--ctx", "64",
				"--max-seqs", "2", "--ignore-eos", "--ids", "5,17,200,31,8", "--json")...)
			_, ids, _ := strings.Cut(out, `"ids":[`)
			ids, _, _ = strings.Cut(ids, "]")
			return ids
		}
		want := answer("--simulate", "1xRTX-4090", "--device-map", "cpu")
		if strings.Count(want, ",") != 5 {
			t.Fatalf("%s: the CPU says %q", name, want)
		}
		for _, c := range [][]string{
			{"1xRTX-4090"},
			{"1xRTX-4090", "--device-map", "cuda:0=0-,experts=cpu"},
			{"2xRTX-4090", "--device-map", `{"": 0, "model.layers.1": 1, "lm_head": 1, "model.layers.0.mlp.experts": "cpu", "model.layers.1.mlp": "cpu"}`},
			{"1xRTX-4090", "--device-map", `{"": 0, "model.layers.0.mlp": "cpu"}`},
		} {
			if got := answer(append([]string{"--simulate"}, c...)...); got != want {
				t.Errorf("%s %v: %q, want %q", name, c, got, want)
			}
		}
	}
}
