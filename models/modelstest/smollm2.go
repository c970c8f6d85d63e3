package modelstest

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"infer/runtime/kernels"
	"infer/runtime/loader"
)

// SmolLM2Env names the folder of the real small model.
const SmolLM2Env = "INFER_SMOLLM2"

// SmolLM2 compares a backend that computes in float32 with what transformers
// makes of SmolLM2-135M-Instruct: the likeliest tokens of 64 steps after 12
// prompts, and perplexity. The weights are not in the repository: without
// $INFER_SMOLLM2 the test is skipped.
func SmolLM2(t *testing.T, b kernels.Backend) {
	dir := os.Getenv(SmolLM2Env)
	if dir == "" {
		t.Skipf("%s is not set: the weights of the real small model are not in the repository", SmolLM2Env)
	}
	var want struct {
		SHA256  map[string]string `json:"sha256"`
		Prompts []struct {
			IDs    []int32     `json:"ids"`
			Greedy []int32     `json:"greedy_ids"`
			Top    [][]int32   `json:"top5_ids"`
			Logp   [][]float64 `json:"top5_logprobs"`
			Margin []float64   `json:"margin"`
		} `json:"prompts"`
		Perplexity struct {
			IDs        []int32   `json:"ids"`
			Context    int       `json:"context"`
			NLL        []float64 `json:"chunk_nll"`
			Perplexity float64   `json:"perplexity"`
			Scored     int       `json:"scored"`
		} `json:"perplexity"`
	}
	sub, err := fs.Sub(testdata, "testdata/smollm2")
	if err != nil {
		t.Fatal(err)
	}
	ReadGzip(t, sub, "expected.json.gz", &want)
	file := filepath.Join(dir, loader.SingleName)
	if have := fileSHA256(t, file); have != want.SHA256[loader.SingleName] {
		t.Fatalf("%s has sha256 %s, the expected values are of %s", file, have, want.SHA256[loader.SingleName])
	}
	ck, err := loader.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ck.Close()
	o := Options{MaxTokens: want.Perplexity.Context, Positions: 2048, Blocks: 128}

	t.Run("prompts", func(t *testing.T) {
		const step, tied = 5e-4, 0.002 // of a log-probability; of a margin
		for n, p := range want.Prompts {
			r := New(t, ck, b, o)
			s := &Seq{}
			logits := r.Prefill(s, p.IDs, o.MaxTokens)
			row := logits[len(logits)-1]
			for i, id := range p.Greedy {
				logZ := logSumExp(row)
				for k, top := range p.Top[i] {
					if d := math.Abs(float64(row[top]) - logZ - p.Logp[i][k]); !(d <= step) {
						t.Errorf("prompt %d, step %d: log-probability of %d differs by %g", n, i, top, d)
					}
				}
				if have := Argmax(row); have != id && (p.Margin[i] > tied || !slices.Contains(p.Top[i][:2], have)) {
					t.Fatalf("prompt %d, step %d: id %d, want %d (margin %g)", n, i, have, id, p.Margin[i])
				}
				row = r.Step(Run{s, []int32{id}})[0]
			}
		}
	})
	t.Run("perplexity", func(t *testing.T) {
		p := want.Perplexity
		sum := 0.0
		for i, nll := range p.NLL {
			ids := p.IDs[i*p.Context : (i+1)*p.Context]
			r := New(t, ck, b, o)
			have := 0.0
			for at, row := range r.Prefill(&Seq{}, ids, o.MaxTokens)[:p.Context-1] {
				have += logSumExp(row) - float64(row[ids[at+1]])
			}
			if math.Abs(have-nll) > 0.05 {
				t.Errorf("chunk %d: %g, want %g", i, have, nll)
			}
			sum += have
		}
		ppl := math.Exp(sum / float64(p.Scored))
		t.Logf("perplexity %.5f, expected %.5f", ppl, p.Perplexity)
		if math.Abs(ppl-p.Perplexity) > 0.002 {
			t.Errorf("perplexity %g, want %g", ppl, p.Perplexity)
		}
	})
}

func logSumExp(row []float32) float64 {
	top := float64(slices.Max(row))
	sum := 0.0
	for _, x := range row {
		sum += math.Exp(float64(x) - top)
	}
	return top + math.Log(sum)
}

func fileSHA256(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}
