package chattemplate

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"testing/fstest"
	"time"
)

//go:embed testdata/chat-templates.tar.gz
var archive []byte

// caseDir unpacks the committed cases: templates/*.jinja, contexts.json and what the reference implementation made of them.
func caseDir(t testing.TB) fs.FS {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			files[h.Name] = &fstest.MapFile{Data: b}
		}
	}
	sub, err := fs.Sub(files, "chat-templates")
	if err != nil {
		t.Fatal(err)
	}
	return sub
}

func readFile(t testing.TB, fsys fs.FS, name string) []byte {
	t.Helper()
	b, err := fs.ReadFile(fsys, name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestCases renders every template with every context and compares bytes, or the class and text of the error.
func TestCases(t *testing.T) {
	if n := runCases(t, caseDir(t)); n < 351 {
		t.Errorf("only %d cases in the archive", n)
	}
	if more := os.Getenv("INFER_CASES"); more != "" {
		dir := filepath.Join(more, "chat-templates")
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			t.Logf("%s: no such folder", dir)
			return
		}
		t.Logf("%s: %d cases", dir, runCases(t, os.DirFS(dir)))
	}
}

func runCases(t *testing.T, dir fs.FS) (n int) {
	var contexts map[string]json.RawMessage
	var want map[string]map[string]struct{ OK, Err *string }
	if err := json.Unmarshal(readFile(t, dir, "contexts.json"), &contexts); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(readFile(t, dir, "expected.json"), &want); err != nil {
		t.Fatal(err)
	}
	for name, byContext := range want {
		tmpl, err := Parse(name, string(readFile(t, dir, "templates/"+name)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for id, w := range byContext {
			n++
			vars, err := ParseJSON(contexts[id])
			if err != nil {
				t.Fatalf("context %s: %v", id, err)
			}
			if w.OK != nil {
				tmpl.Now = clockOf(*w.OK)
			}
			got, err := tmpl.Render(context.Background(), vars.(*Dict))
			switch {
			case w.OK != nil && err != nil:
				t.Errorf("%s %s: %v", name, id, err)
			case w.OK != nil && got != *w.OK:
				t.Errorf("%s %s:\n got %q\nwant %q", name, id, got, *w.OK)
			case w.Err != nil && err == nil:
				t.Errorf("%s %s: rendered, want the error %s", name, id, *w.Err)
			case w.Err != nil:
				var e *Error
				if !errors.As(err, &e) || string(e.Kind)+": "+e.Message != *w.Err {
					t.Errorf("%s %s: error %v, want %s", name, id, err, *w.Err)
				}
			}
		}
	}
	return n
}

var today = regexp.MustCompile(`(?:Current|Today's) [Dd]ate: (\d{4}-\d\d-\d\d|[A-Z][a-z]+ \d\d, \d{4})`)

// clockOf gives the day on which an expected prompt was made, where it names one.
func clockOf(prompt string) func() time.Time {
	day := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
	if m := today.FindStringSubmatch(prompt); m != nil {
		for _, layout := range []string{time.DateOnly, "January 02, 2006"} {
			if d, err := time.Parse(layout, m[1]); err == nil {
				day = d
			}
		}
	}
	return func() time.Time { return day }
}
