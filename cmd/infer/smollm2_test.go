package main

import (
	"cmp"
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

// The real small model at the shell, from text to text: tokenizer, chat
// template, weights, greedy ids, detokenizer, and perplexity by the recipe.
func TestSmolLM2AtTheShell(t *testing.T) {
	dir := os.Getenv(modelstest.SmolLM2Env)
	if dir == "" {
		t.Skipf("%s is not set: the weights of the real small model are not in the repository", modelstest.SmolLM2Env)
	}
	var want struct {
		Prompts []struct {
			Kind     string
			Messages json.RawMessage
			Prompt   string
			IDs      []int32
			Greedy   []int32 `json:"greedy_ids"`
			Text     string
			TextAll  string `json:"text_all"`
			Margin   []float64
		}
		Perplexity struct {
			IDs        []int32
			Context    int
			Perplexity float64
		}
	}
	modelstest.ReadGzip(t, os.DirFS("../../models/modelstest/testdata/smollm2"), "expected.json.gz", &want)
	// Where the best two logits are this close, a precision does not decide, and
	// what comes after may be another text: float32, and K/V in bfloat16.
	undecided := map[string]float64{"f32": 0.002, "auto": 0.02}
	compared := map[string]int{}
	for n, p := range want.Prompts {
		if p.Kind == "chat" {
			file := filepath.Join(t.TempDir(), "messages.json")
			if err := os.WriteFile(file, p.Messages, 0o600); err != nil {
				t.Fatal(err)
			}
			if got := infer(t, "template", dir, "--messages", file); got != p.Prompt {
				t.Errorf("prompt %d: template gives %q, want %q", n, got, p.Prompt)
			}
		}
		var ids idsJSON
		decode(t, infer(t, "tokenize", dir, p.Prompt, "--json", "--no-special"), &ids)
		if !slices.Equal(ids.IDs, p.IDs) {
			t.Errorf("prompt %d: ids %v, want %v", n, ids.IDs, p.IDs)
		}
		list := strings.ReplaceAll(strings.Trim(fmt.Sprint(p.IDs), "[]"), " ", ",")
		for precision, tie := range undecided {
			args := []string{"run", dir, "--ids", list, "--json", "--precision", precision, "--temperature", "0", "--max-tokens", fmt.Sprint(len(p.Greedy))}
			var r runOutput
			decode(t, infer(t, append(args, "--ignore-eos")...), &r)
			end := slices.IndexFunc(p.Margin, func(m float64) bool { return m < tie })
			if end < 0 {
				end = len(p.Greedy)
			}
			compared[precision] += end
			if !slices.Equal(r.IDs[:end], p.Greedy[:end]) {
				t.Errorf("prompt %d, %s: greedy ids %v, want %v", n, precision, r.IDs, p.Greedy)
			}
			if end < len(p.Greedy) {
				continue
			}
			decode(t, infer(t, args...), &r)
			if r.Text != p.Text {
				t.Errorf("prompt %d, %s: text %q, want %q", n, precision, r.Text, p.Text)
			}
		}
	}
	t.Logf("compared greedy ids: %v", compared)

	p := want.Perplexity
	ids, err := json.Marshal(p.IDs)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ids.json")
	if err := os.WriteFile(file, ids, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		precision, quantize string
		most                float64 // difference
	}{
		{"f32", "none", 0.002},
		{"f32", "q8", 0.001 * p.Perplexity},
		{"f32", "q4", 0.03 * p.Perplexity},
		{"auto", "none", 0.001 * p.Perplexity},
		{"auto", "q8", 0.002 * p.Perplexity},
		{"auto", "q4", 0.03 * p.Perplexity},
	} {
		var s scoreOutput
		decode(t, infer(t, "score", dir, "--ids", file, "--json", "--top-k", "0", "--precision", c.precision,
			"--window", fmt.Sprint(p.Context), "--quantize", c.quantize), &s)
		t.Logf("--precision %s --quantize %s: perplexity %.3f, want %.3f", c.precision, c.quantize, *cmp.Or(s.Perplexity, new(float64)), p.Perplexity)
		if s.Perplexity == nil || !(math.Abs(*s.Perplexity-p.Perplexity) <= c.most) {
			t.Errorf("--precision %s --quantize %s: perplexity %v, want %v", c.precision, c.quantize, s.Perplexity, p.Perplexity)
		}
	}
}
