package jinja

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

//go:embed testdata/snippets.json
var snippets []byte

// renderings are snippets with what Jinja2 3.1.6 makes of them (testdata/snippets.py).
type renderings struct {
	Context json.RawMessage
	Cases   []struct {
		Src     string
		OK, Err *string
	}
}

func loadSnippets(t testing.TB) (r renderings, vars *Dict) {
	t.Helper()
	if err := json.Unmarshal(snippets, &r); err != nil {
		t.Fatal(err)
	}
	v, err := ParseJSON(r.Context)
	if err != nil {
		t.Fatal(err)
	}
	return r, v.(*Dict)
}

func clock() time.Time { return time.Date(2026, 3, 7, 4, 5, 6, 789e6, time.UTC) }

func render(src string, vars *Dict) (string, error) {
	tmpl, err := Compile(src)
	if err != nil {
		return "", err
	}
	return tmpl.Render(context.Background(), vars, Options{Now: clock})
}

// deviations are the snippets where this engine differs on purpose or within reason.
var deviations = map[string]string{
	"{{ 1 is nosuch }}":  "unknown tests and filters are found when they are reached, not while parsing",
	"{{ s|nosuch }}":     "the same",
	"{{ d.get() }}":      "wording of Python's C functions",
	"{% include 'x' %}":  "refused while parsing",
	"{{ a[] }}":          "Jinja2 takes it for a[()]",
	"{{ 'ßa'.title() }}": "title case of one letter to two",
}

// TestSnippets holds the engine to Jinja2 itself: the same text, or an error of the same class. Texts of Python's own messages are
// compared where they name what the template did; those of the parser are ours.
func TestSnippets(t *testing.T) {
	r, vars := loadSnippets(t)
	for _, c := range r.Cases {
		if _, ok := deviations[c.Src]; ok {
			continue
		}
		got, err := render(c.Src, vars)
		if c.OK != nil {
			if err != nil {
				t.Errorf("%q: %v, want %q", c.Src, err, *c.OK)
			} else if got != *c.OK {
				t.Errorf("%q\n got %q\nwant %q", c.Src, got, *c.OK)
			}
			continue
		}
		if err == nil {
			t.Errorf("%q: rendered %q, want the error %s", c.Src, got, *c.Err)
			continue
		}
		class, message, _ := strings.Cut(*c.Err, ": ")
		var e *Error
		if !errors.As(err, &e) {
			t.Fatalf("%q: %T", c.Src, err)
		}
		if string(e.Kind) != class {
			t.Errorf("%q: %v, want %s", c.Src, err, *c.Err)
		} else if e.Message != message && class != string(Syntax) {
			t.Errorf("%q: message\n got %q\nwant %q", c.Src, e.Message, message)
		}
	}
}
