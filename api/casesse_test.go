package api

import (
	"fmt"
	"iter"
	"maps"
	"regexp"
	"strings"
	"testing"
)

// wantSSE is what a case wants of a stream.
type wantSSE struct {
	Kind  string `json:"kind"`
	Done  *bool  `json:"done"`
	Steps []struct {
		Rep string      `json:"rep"`
		All []assertion `json:"all"`
	} `json:"steps"`
	Each      []assertion `json:"each"`
	Join      []assertion `json:"join"`
	Constant  []string    `json:"constant"`
	Last      []assertion `json:"last"`
	PerChoice map[string]struct {
		Role   int    `json:"role"`
		Text   string `json:"text"`
		Finish string `json:"finish"`
	} `json:"per_choice"`
	TextRE     string   `json:"text_re"`
	Finish     string   `json:"finish"`
	FinishIn   []string `json:"finish_in"`
	NoFinish   bool     `json:"no_finish"`
	ForbidText string   `json:"forbid_text"`
}

func mapKeys[K comparable, V any](m map[K]V) iter.Seq[K] { return maps.Keys(m) }

// events splits a stream into its events' values.
func events(t *testing.T, body string) (list []any, done bool) {
	t.Helper()
	if !strings.HasSuffix(body, "\n\n") {
		t.Fatalf("the stream does not end with an empty line: %q", body)
	}
	for block := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		if strings.HasPrefix(block, ":") {
			continue
		}
		data, ok := strings.CutPrefix(block, "data: ")
		if !ok || strings.ContainsAny(data, "\n\r\u0085\u2028\u2029") {
			t.Fatalf("an event is not one data line: %q", block)
		}
		if done {
			t.Fatalf("an event follows [DONE]: %q", block)
		}
		if data == "[DONE]" {
			done = true
			continue
		}
		v := decodeJSON(data)
		if _, bad := v.(missing); bad {
			t.Fatalf("an event is not JSON: %q", data)
		}
		list = append(list, v)
	}
	return list, done
}

func (w *wantSSE) check(t *testing.T, body string) {
	t.Helper()
	list, done := events(t, body)
	if w.Done != nil && done != *w.Done {
		t.Errorf("[DONE] was sent: %v, want %v", done, *w.Done)
	}
	if w.Kind != "data" {
		t.Errorf("streams of kind %q are not served", w.Kind)
	}
	if len(w.Steps) > 0 && !w.matchSteps(list, 0) {
		t.Errorf("the events do not follow the steps")
	}
	for i, v := range list {
		for _, a := range w.Each {
			if msg := a.check(v); msg != "" {
				t.Errorf("event %d: %s", i, msg)
			}
		}
		for _, path := range w.Constant {
			if !same(follow(v, path), follow(list[0], path)) {
				t.Errorf("event %d: %s is %s, was %s", i, path, show(follow(v, path)), show(follow(list[0], path)))
			}
		}
	}
	for _, a := range w.Join {
		if msg := (assertion{"", a[1], a[2]}).check(joined(list, a[0].(string))); msg != "" {
			t.Errorf("joined %s: %s", a[0], msg)
		}
	}
	if len(w.Last) > 0 {
		checkAll(t, "last event", w.Last, list[len(list)-1])
	}
	w.checkChoices(t, list)
}

func joined(list []any, path string) string {
	var b strings.Builder
	for _, v := range list {
		s, _ := follow(v, path).(string)
		b.WriteString(s)
	}
	return b.String()
}

// matchSteps matches events against steps[at:], as a regular expression would.
func (w *wantSSE) matchSteps(list []any, at int) bool {
	if at == len(w.Steps) {
		return len(list) == 0
	}
	s := w.Steps[at]
	fits := func() bool {
		if len(list) == 0 {
			return false
		}
		for _, a := range s.All {
			if a.check(list[0]) != "" {
				return false
			}
		}
		return true
	}()
	switch s.Rep {
	case "1":
		return fits && w.matchSteps(list[1:], at+1)
	case "?":
		return fits && w.matchSteps(list[1:], at+1) || w.matchSteps(list, at+1)
	case "+":
		for n := 1; fits; n++ {
			if w.matchSteps(list[n:], at+1) {
				return true
			}
			fits = n < len(list) && !failsAny(s.All, list[n])
		}
		return false
	case "*":
		return fits && w.matchSteps(list[1:], at) || w.matchSteps(list, at+1)
	}
	return false
}

func failsAny(all []assertion, v any) bool {
	for _, a := range all {
		if a.check(v) != "" {
			return true
		}
	}
	return false
}

// choiceView is what a client puts together from one choice's chunks.
type choiceView struct {
	roles          int
	text, finish   string
	reasoning      string
	afterFinish    bool
	textByFragment []string
}

func choiceViews(list []any) map[string]*choiceView {
	views := map[string]*choiceView{}
	for _, v := range list {
		choices, _ := follow(v, "choices").([]any)
		for _, c := range choices {
			index := show(follow(c, "index"))
			view := views[index]
			if view == nil {
				view = &choiceView{}
				views[index] = view
			}
			view.afterFinish = view.afterFinish || view.finish != ""
			if _, ok := follow(c, "delta.role").(string); ok {
				view.roles++
			}
			for _, path := range []string{"delta.content", "text"} {
				if s, ok := follow(c, path).(string); ok {
					view.text += s
					view.textByFragment = append(view.textByFragment, s)
				}
			}
			if s, ok := follow(c, "delta.reasoning_content").(string); ok {
				view.reasoning += s
				view.textByFragment = append(view.textByFragment, s)
			}
			if s, ok := follow(c, "finish_reason").(string); ok {
				view.finish = s
			}
		}
	}
	return views
}

func (w *wantSSE) checkChoices(t *testing.T, list []any) {
	t.Helper()
	views := choiceViews(list)
	for index, want := range w.PerChoice {
		got := views[index]
		if got == nil {
			t.Errorf("choice %s never came", index)
			continue
		}
		if got.roles != want.Role || got.text != want.Text || got.finish != want.Finish {
			t.Errorf("choice %s: %d roles, text %q, finish %q; want %d, %q, %q", index, got.roles, got.text, got.finish, want.Role, want.Text, want.Finish)
		}
	}
	for index, got := range views {
		if got.afterFinish {
			t.Errorf("choice %s: a chunk follows its finish", index)
		}
		if w.NoFinish && got.finish != "" {
			t.Errorf("choice %s: finish %q, want none", index, got.finish)
		}
		if w.Finish != "" && got.finish != w.Finish {
			t.Errorf("choice %s: finish %q, want %q", index, got.finish, w.Finish)
		}
		if len(w.FinishIn) > 0 && !strings.Contains(fmt.Sprint(w.FinishIn), got.finish) {
			t.Errorf("choice %s: finish %q, want one of %q", index, got.finish, w.FinishIn)
		}
		if w.TextRE != "" && !regexp.MustCompile(w.TextRE).MatchString(got.text) {
			t.Errorf("choice %s: text %q does not match %q", index, got.text, w.TextRE)
		}
		for _, s := range got.textByFragment {
			if w.ForbidText != "" && strings.Contains(s, w.ForbidText) {
				t.Errorf("choice %s: fragment %q has %q", index, s, w.ForbidText)
			}
		}
	}
}
