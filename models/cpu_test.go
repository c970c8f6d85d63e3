package models_test

import (
	"encoding/json"
	"os"
	"testing"

	"infer/models/modelstest"
	"infer/models/tiny"
	"infer/runtime/kernels"
	"infer/runtime/kernels/cpu"
	"infer/runtime/loader"
)

func openCPU(t testing.TB) kernels.Backend {
	b, err := cpu.Open(cpu.Options{Precision: cpu.F32})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Device().Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func TestGoldensCPU(t *testing.T) { modelstest.Goldens(t, openCPU) }

func TestSmolLM2(t *testing.T) { modelstest.SmolLM2(t, openCPU(t)) }

// The embedded model gives the ids that PyTorch gave when it was made.
func TestTiny(t *testing.T) {
	var want struct {
		Cases []struct {
			PromptIDs []int32 `json:"prompt_ids"`
			IDs       []int32 `json:"ids"`
		} `json:"cases"`
	}
	b, err := os.ReadFile("tiny/expected.json")
	if err == nil {
		err = json.Unmarshal(b, &want)
	}
	if err != nil || len(want.Cases) == 0 {
		t.Fatalf("%d cases, %v", len(want.Cases), err)
	}
	ck, err := loader.OpenFS(tiny.FS, tiny.Name)
	if err != nil {
		t.Fatal(err)
	}
	defer ck.Close()
	r := modelstest.New(t, ck, openCPU(t), modelstest.Options{MaxTokens: 512, Positions: 1024, Blocks: 256})
	for n, c := range want.Cases {
		s := &modelstest.Seq{}
		rows := r.Step(modelstest.Run{Seq: s, IDs: c.PromptIDs})
		for i, id := range c.IDs {
			if have := modelstest.Argmax(rows[len(rows)-1]); have != id {
				t.Fatalf("case %d, id %d: %d, want %d", n, i, have, id)
			}
			rows = r.Step(modelstest.Run{Seq: s, IDs: []int32{id}})
		}
	}
}
