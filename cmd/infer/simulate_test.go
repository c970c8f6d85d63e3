//go:build cuda && cgo && linux

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"infer/models/modelstest"
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

// Every family over several simulated GPUs gives the reference
// implementation's logits and tokens.
func TestGoldensOnGPUs(t *testing.T) {
	if testing.Short() {
		t.Skip("short: one family on one GPU is enough for the race detector, see package cuda")
	}
	for i, dir := range goldenFolders(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			var config struct {
				Layers int `json:"num_hidden_layers"`
			}
			type prompt struct {
				IDs        []int32   `json:"ids"`
				LastLogits []float32 `json:"last_logits"`
				GreedyIDs  []int32   `json:"greedy_ids"`
			}
			var want struct {
				Prompts []prompt `json:"prompts"`
			}
			data, err := os.ReadFile(filepath.Join(dir, "config.json"))
			if err == nil {
				err = json.Unmarshal(data, &config)
			}
			if err != nil || config.Layers < 2 {
				t.Fatalf("%d layers, %v", config.Layers, err)
			}
			modelstest.ReadGzip(t, os.DirFS(dir), "expected.json.gz", &want)
			slices.SortFunc(want.Prompts, func(a, b prompt) int { return len(a.IDs) - len(b.IDs) })
			if len(want.Prompts) < 2 {
				t.Fatal("fewer than two prompts")
			}
			// A GPU for each layer, or all but one for the first ones.
			stages := []string{}
			gpus := 2 + i%2*(config.Layers-2)
			for d := range gpus {
				stages = append(stages, fmt.Sprintf("cuda:%d=%d", d, d))
			}
			stages[gpus-1] += "-"
			where := []string{
				"--json", "--simulate", fmt.Sprintf("%dxRTX-4090", gpus), "--device-map", strings.Join(stages, ","), "--precision", "f32",
			}
			p := want.Prompts[0]
			var r runOutput
			decode(t, infer(t, append([]string{
				"run", dir, "--ids", strings.ReplaceAll(strings.Trim(fmt.Sprint(p.IDs), "[]"), " ", ","),
				"--temperature", "0", "--ignore-eos", "--max-tokens", fmt.Sprint(len(p.GreedyIDs)),
			}, where...)...), &r)
			if !slices.Equal(r.IDs, p.GreedyIDs) {
				t.Errorf("ids %v, want %v", r.IDs, p.GreedyIDs)
			}
			if n := len(r.DeviceMap.Stages); n != gpus {
				t.Errorf("%d stages, want %d", n, gpus)
			}
			p = want.Prompts[1]
			file := filepath.Join(t.TempDir(), "ids.json")
			if ids, err := json.Marshal(p.IDs); err != nil || os.WriteFile(file, ids, 0o600) != nil {
				t.Fatalf("cannot write %s: %v", file, err)
			}
			var s struct {
				LastLogits []float32 `json:"last_logits"`
			}
			decode(t, infer(t, append([]string{"score", dir, "--ids", file, "--last-logits"}, where...)...), &s)
			if len(s.LastLogits) != len(p.LastLogits) {
				t.Fatalf("%d logits, want %d", len(s.LastLogits), len(p.LastLogits))
			}
			for i, have := range s.LastLogits {
				if d := math.Abs(float64(have - p.LastLogits[i])); !(d <= modelstest.Tolerance) {
					t.Errorf("logit %d differs by %g", i, d)
				}
			}
		})
	}
}
