package modelstest

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/json"
	"io/fs"
	"math"
	"os"
	"slices"
	"testing"

	_ "infer/models/all" // the families under test
	"infer/runtime/kernels"
	"infer/runtime/loader"
)

//go:embed testdata
var testdata embed.FS

// Tolerance of logits against float32 transformers.
const Tolerance = 1e-4

// expected is what expected.json.gz holds of a random model.
type expected struct {
	Prompts []struct {
		IDs        []int32     `json:"ids"`
		LastLogits []float32   `json:"last_logits"`
		Top5IDs    [][]int32   `json:"top5_ids"`
		Top5Logits [][]float32 `json:"top5_logits"`
		GreedyIDs  []int32     `json:"greedy_ids"`
		Margin     []float32   `json:"greedy_margin"`
	} `json:"prompts"`
}

// Families that the repository's goldens cover.
var families = []string{"llama", "llama_tied", "mistral", "qwen2", "qwen2_yarn", "qwen3", "mixtral", "qwen3_moe"}

// GoldensOf compares a backend with the goldens of some families, each in one
// spelling of its configuration.
func GoldensOf(t *testing.T, open func(testing.TB) kernels.Backend, names ...string) {
	for _, name := range names {
		sub, err := fs.Sub(testdata, "testdata/"+name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) { golden(t, sub, loader.ConfigName, open(t)) })
	}
}

// Goldens compares a backend that computes in float32 with all goldens: those
// of the repository, and those of the same families in $INFER_GOLDENS.
func Goldens(t *testing.T, open func(testing.TB) kernels.Backend) {
	run := func(name string, fsys fs.FS) {
		for _, config := range []string{loader.ConfigName, "config.legacy.json"} {
			t.Run(name+"/"+config, func(t *testing.T) { golden(t, fsys, config, open(t)) })
		}
	}
	for _, f := range families {
		sub, err := fs.Sub(testdata, "testdata/"+f)
		if err != nil {
			t.Fatal(err)
		}
		run(f, sub)
	}
	root := os.Getenv("INFER_GOLDENS")
	if root == "" {
		return
	}
	dirs, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		if sub := os.DirFS(root + "/" + d.Name()); d.IsDir() && isKnown(sub) {
			run("more/"+d.Name(), sub)
		}
	}
}

// isKnown tells whether a folder is a golden of a random model whose family is
// among those of the repository.
func isKnown(fsys fs.FS) bool {
	var c struct {
		ModelType string `json:"model_type"`
	}
	b, err := fs.ReadFile(fsys, loader.ConfigName)
	return err == nil && json.Unmarshal(b, &c) == nil && slices.Contains([]string{"llama", "mistral", "qwen2", "qwen3", "mixtral", "qwen3_moe"}, c.ModelType)
}

// withConfig shows another file in the place of config.json.
type withConfig struct {
	fs.FS
	config string
}

func (w withConfig) Open(name string) (fs.File, error) {
	if name == loader.ConfigName {
		name = w.config
	}
	return w.FS.Open(name)
}

// OpenGolden opens one of the repository's goldens.
func OpenGolden(t testing.TB, name string) *loader.Checkpoint {
	t.Helper()
	sub, err := fs.Sub(testdata, "testdata/"+name)
	if err != nil {
		t.Fatal(err)
	}
	return openCheckpoint(t, sub, loader.ConfigName)
}

func openCheckpoint(t testing.TB, fsys fs.FS, config string) *loader.Checkpoint {
	t.Helper()
	ck, err := loader.OpenFS(withConfig{fsys, config}, "golden")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ck.Close(); err != nil {
			t.Error(err)
		}
	})
	return ck
}

// ReadGzip decodes a gzipped JSON file.
func ReadGzip(t testing.TB, fsys fs.FS, name string, to any) {
	t.Helper()
	b, err := fs.ReadFile(fsys, name)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err == nil {
		err = json.NewDecoder(z).Decode(to)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func golden(t *testing.T, fsys fs.FS, config string, b kernels.Backend) {
	var want expected
	ReadGzip(t, fsys, "expected.json.gz", &want)
	if len(want.Prompts) == 0 {
		t.Fatal("expected.json.gz has no prompts")
	}
	ck := openCheckpoint(t, fsys, config)
	o := Options{MaxTokens: 256, Positions: 256, Blocks: 128}
	whole := New(t, ck, b, o)
	var worst float64
	var all [][][]float32 // logits of each prompt and its continuation
	var seqs [][]int32
	for n, p := range want.Prompts {
		s := &Seq{}
		got := whole.Step(Run{s, p.IDs})
		for pos, top := range p.Top5IDs {
			worst = max(worst, compareTop(t, n, pos, got[pos], top, p.Top5Logits[pos]))
		}
		last := got[len(got)-1]
		for i, x := range p.LastLogits {
			d := math.Abs(float64(last[i] - x))
			if worst = max(worst, d); !(d <= Tolerance) {
				t.Errorf("prompt %d: last logit %d is %g, want %g", n, i, last[i], x)
			}
		}
		for i, id := range p.GreedyIDs {
			if have := Argmax(got[len(got)-1]); have != id {
				t.Fatalf("prompt %d: greedy id %d is %d, want %d (margin %g)", n, i, have, id, p.Margin[i])
			}
			got = append(got, whole.Step(Run{s, []int32{id}})...)
		}
		all = append(all, got)
		seqs = append(seqs, append(slices.Clone(p.IDs), p.GreedyIDs...))
	}
	t.Logf("largest difference of a logit: %.2g", worst)

	if config != loader.ConfigName {
		return
	}
	// The same rows come out bit for bit, however they are computed: in
	// chunks, over two stages with the experts elsewhere, in a batch.
	two := o
	two.Cuts, two.Away = []int{1}, whole.Model.Config().Experts > 0
	r := New(t, ck, b, two)
	for n, ids := range seqs {
		chunk := []int{5, 16, 23}[n%3]
		same(t, "chunks", chunk, r.Prefill(&Seq{}, ids, chunk), all[n])
	}
	r = New(t, ck, b, o)
	var runs []Run
	var flat [][]float32
	for n, ids := range seqs {
		runs = append(runs, Run{&Seq{}, ids})
		flat = append(flat, all[n]...)
	}
	same(t, "batch of", len(runs), r.Step(runs...), flat)
}

// compareTop checks the five largest logits of a position: their values, and
// that no other is larger. It gives the largest difference.
func compareTop(t *testing.T, prompt, pos int, got []float32, ids []int32, logits []float32) (worst float64) {
	t.Helper()
	for i, id := range ids {
		d := math.Abs(float64(got[id] - logits[i]))
		if worst = max(worst, d); !(d <= Tolerance) {
			t.Errorf("prompt %d, position %d: logit %d is %g, want %g", prompt, pos, id, got[id], logits[i])
		}
	}
	for id, x := range got {
		if !slices.Contains(ids, int32(id)) && x > logits[len(logits)-1]+Tolerance {
			t.Errorf("prompt %d, position %d: logit %d is %g, but is not among the top", prompt, pos, id, x)
		}
	}
	return worst
}

func same(t *testing.T, how string, n int, got, want [][]float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s %d: %d rows, want %d", how, n, len(got), len(want))
	}
	for i := range got {
		if !slices.Equal(got[i], want[i]) {
			t.Errorf("%s %d: row %d differs from the one computed alone", how, n, i)
			return
		}
	}
}
