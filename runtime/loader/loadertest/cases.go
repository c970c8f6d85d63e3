package loadertest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	_ "embed" // for the archive of cases
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

//go:embed bad-checkpoints.tar.gz
var archive []byte

// Case is one broken or odd checkpoint.
type Case struct {
	Path       string // the case's folder, its name
	Kind       string // "file", "checkpoint" or "tokenizer"
	Verdict    string // "accept" or "reject"
	What       string
	TruncateTo map[string]int64 `json:"truncate_to"`
	ModelDir   string           `json:"model_dir"`
	Tensors    []struct {       // of a good file
		Name  string
		DType string
		Shape []int
		Hex   string
	}
	PromptIDs  []int32   `json:"prompt_ids"`  // of a good checkpoint
	LastLogits []float32 `json:"last_logits"` // after PromptIDs

	Dir string `json:"-"` // the model folder, prepared in a scratch directory
}

// Run calls f in a subtest for every case of the kind.
func Run(t *testing.T, kind string, f func(t *testing.T, c Case)) {
	root := t.TempDir()
	if err := unpack(root, archive); err != nil {
		t.Fatalf("unpack bad-checkpoints.tar.gz: %v", err)
	}
	if n := runAll(t, root, kind, f); n == 0 {
		t.Fatalf("no case of kind %q in the archive", kind)
	}
	if more := os.Getenv("INFER_CASES"); more != "" {
		runAll(t, filepath.Join(more, "bad-checkpoints"), kind, f)
	}
}

func runAll(t *testing.T, root, kind string, f func(t *testing.T, c Case)) int {
	b, err := os.ReadFile(filepath.Join(root, "cases.json"))
	if errors.Is(err, os.ErrNotExist) {
		t.Logf("%s has no cases of bad checkpoints", root)
		return 0
	}
	var list struct{ Cases []Case }
	if err == nil {
		err = json.Unmarshal(b, &list)
	}
	if err != nil {
		t.Fatalf("read cases: %v", err)
	}
	n := 0
	for _, c := range list.Cases {
		if c.Kind != kind {
			continue
		}
		n++
		t.Run(c.Path, func(t *testing.T) {
			t.Logf("%s: %s", c.Verdict, c.What)
			scratch := filepath.Join(t.TempDir(), c.Path)
			if err := os.CopyFS(scratch, os.DirFS(filepath.Join(root, c.Path))); err != nil {
				t.Fatal(err)
			}
			for name, size := range c.TruncateTo {
				if err := os.Truncate(filepath.Join(scratch, name), size); err != nil {
					t.Fatal(err)
				}
			}
			c.Dir = filepath.Join(scratch, c.ModelDir)
			f(t, c)
		})
	}
	return n
}

// Check runs open and judges it by the verdict: a rejection within a second,
// with less than 64 MB taken, and an error that names the case's folder or a
// file of it.
func (c Case) Check(t *testing.T, open func() error) {
	t.Helper()
	var before, after runtime.MemStats
	var took time.Duration
	var err error
	for range 3 { // a busy machine may stall one attempt
		runtime.ReadMemStats(&before)
		start := time.Now()
		err = open()
		took = time.Since(start)
		runtime.ReadMemStats(&after)
		if took < time.Second {
			break
		}
	}
	if took >= time.Second {
		t.Errorf("took %v", took)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
		t.Errorf("allocated %d MB", n>>20)
	}
	if c.Verdict == "accept" {
		if err != nil {
			t.Errorf("want it accepted: %v", err)
		}
		return
	}
	if err == nil {
		t.Fatal("want an error, got none")
	}
	t.Logf("error: %v", err)
	if !strings.Contains(err.Error(), c.Dir) {
		t.Errorf("the error names no file of the case: %v", err)
	}
	if len(err.Error()) > 1000 {
		t.Errorf("the error has %d characters", len(err.Error()))
	}
}

func unpack(dir string, archive []byte) error {
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return err
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		path := filepath.Join(dir, h.Name)
		if h.FileInfo().IsDir() {
			err = os.MkdirAll(path, 0o755)
		} else {
			var b []byte
			if b, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(path, b, 0o644)
			}
		}
		if err != nil {
			return err
		}
	}
}
