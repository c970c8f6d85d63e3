package models_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"infer/models"
	"infer/models/modelstest"
	"infer/runtime/tensor"
)

func TestInspect(t *testing.T) {
	b := modelstest.FromGolden(t, "llama")
	b.Tensors["score.weight"] = modelstest.Zeros(tensor.I8, 2, 64)
	r := models.InspectFS(b.FS(t), "m")
	c := r.Config
	if len(r.Faults) > 0 || c == nil || c.Architecture != "LlamaForCausalLM" || c.Layers != 3 || c.KVHeads != 2 || c.Parameters == 0 || c.Bytes != 2*c.Parameters {
		t.Errorf("%+v %+v", c, r.Faults)
	}
	if len(r.Tensors) != 31 || len(r.Files) != 1 || r.Files[0].Tensors != 31 {
		t.Errorf("%d tensors, files %+v", len(r.Tensors), r.Files)
	}
	at := r.Tensors[0].Offset
	for _, x := range r.Tensors {
		if x.Used == (x.Name == "score.weight") || x.Offset != at {
			t.Errorf("%+v, want it at %d", x, at)
		}
		at += x.Bytes
	}
	if at != r.Files[0].Bytes {
		t.Errorf("tensors end at %d of %d", at, r.Files[0].Bytes)
	}

	delete(b.Tensors, "model.norm.weight")
	b.Tensors["lm_head.weight"] = modelstest.Zeros(tensor.BF16, 319, 64)
	r = models.InspectFS(b.FS(t), "m")
	if len(r.Missing) != 1 || r.Missing[0].Name != "model.norm.weight" || !slices.Equal(r.Missing[0].Shape, []int{64}) || len(r.Faults) != 2 {
		t.Errorf("missing %+v, faults %q", r.Missing, r.Faults)
	}
	b.Config["hidden_act"] = "swishy"
	r = models.InspectFS(b.FS(t), "m")
	if r.Config != nil || len(r.Tensors) != 30 || len(r.Faults) != 1 || !strings.Contains(r.Faults[0], "swishy") {
		t.Errorf("config %+v, %d tensors, faults %q", r.Config, len(r.Tensors), r.Faults)
	}

	dir := t.TempDir()
	if err := os.CopyFS(dir, b.FS(t)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "model.safetensors")
	if r := models.Inspect(file); r.Config != nil || len(r.Tensors) != 30 || len(r.Faults) != 0 || r.Tensors[3].File != file {
		t.Errorf("one file: %+v", r)
	}
	if err := os.Truncate(file, 1000); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{dir, file, filepath.Join(dir, "nothing")} {
		if r := models.Inspect(p); len(r.Faults) != 1 || !strings.Contains(r.Faults[0], p) {
			t.Errorf("%s: faults %q", p, r.Faults)
		}
	}
	out, err := json.Marshal(models.Inspect(dir))
	if err != nil || !strings.Contains(string(out), `"missing":[]`) {
		t.Errorf("%s, %v", out, err)
	}
}
