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

// The goldens through the shell: infer score --json and infer run --json give
// what the reference implementation computed. The same data is held against
// the models themselves in package models.
func TestGoldensAtTheShell(t *testing.T) {
	for _, dir := range goldenFolders(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) { goldenAtTheShell(t, dir) })
	}
}

func goldenFolders(t *testing.T) []string {
	t.Helper()
	const folder = "../../models/modelstest/testdata"
	dirs, err := filepath.Glob(folder + "/*/model*.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	for i := range dirs {
		dirs[i] = filepath.Dir(dirs[i])
	}
	dirs = slices.Compact(dirs)
	if len(dirs) < 6 {
		t.Fatalf("only %v in %s", dirs, folder)
	}
	return dirs
}

func goldenAtTheShell(t *testing.T, dir string) {
	var want struct {
		Prompts []struct {
			IDs        []int32     `json:"ids"`
			LastLogits []float32   `json:"last_logits"`
			Top5IDs    [][]int32   `json:"top5_ids"`
			Top5Logits [][]float32 `json:"top5_logits"`
			GreedyIDs  []int32     `json:"greedy_ids"`
		} `json:"prompts"`
	}
	modelstest.ReadGzip(t, os.DirFS(dir), "expected.json.gz", &want)
	if len(want.Prompts) == 0 {
		t.Fatal("no prompts")
	}
	for n, p := range want.Prompts {
		ids, err := json.Marshal(p.IDs)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "ids.json")
		if err := os.WriteFile(file, ids, 0o600); err != nil {
			t.Fatal(err)
		}
		var s struct {
			Positions []struct {
				ID  int32
				Top [][2]float64
			}
			LastLogits []float32 `json:"last_logits"`
		}
		decode(t, infer(t, "score", dir, "--ids", file, "--json", "--last-logits", "--precision", "f32"), &s)
		if len(s.Positions) != len(p.IDs) || len(s.LastLogits) != len(p.LastLogits) {
			t.Fatalf("prompt %d: %d positions, %d last logits; want %d, %d", n, len(s.Positions), len(s.LastLogits), len(p.IDs), len(p.LastLogits))
		}
		for i, have := range s.LastLogits {
			if d := math.Abs(float64(have - p.LastLogits[i])); !(d <= modelstest.Tolerance) {
				t.Errorf("prompt %d: last logit %d differs by %g", n, i, d)
			}
		}
		for i, position := range s.Positions {
			if position.ID != p.IDs[i] || len(position.Top) != 5 {
				t.Fatalf("prompt %d, position %d: %+v", n, i, position)
			}
			for k, top := range position.Top {
				if d := math.Abs(top[1] - float64(p.Top5Logits[i][k])); !(d <= modelstest.Tolerance) {
					t.Errorf("prompt %d, position %d: logit %d differs by %g", n, i, k, d)
				}
			}
		}
		list := strings.Trim(fmt.Sprint(p.IDs), "[]")
		var r runOutput
		decode(t, infer(t, "run", dir, "--ids", strings.ReplaceAll(list, " ", ","), "--json", "--precision", "f32",
			"--temperature", "0", "--ignore-eos", "--max-tokens", fmt.Sprint(len(p.GreedyIDs))), &r)
		if !slices.Equal(r.IDs, p.GreedyIDs) {
			t.Errorf("prompt %d: greedy ids %v, want %v", n, r.IDs, p.GreedyIDs)
		}
	}
}
