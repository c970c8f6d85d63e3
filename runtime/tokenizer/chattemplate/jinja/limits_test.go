package jinja

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestRunaway renders templates that would hang or exhaust a naive engine: each must end in a LimitErr (or the sandbox's own error)
// within the limits, whatever Go's stack and heap allow.
func TestRunaway(t *testing.T) {
	many := func(s string, n int) string { return strings.Repeat(s, n) }
	for name, src := range map[string]string{
		"recursive macro":        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
		"mutual macros":          "{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}{{ f() }}{% endmacro %}{{ f() }}",
		"recursive caller":       "{% macro f() %}{% call f() %}{{ caller() }}{% endcall %}{{ caller() }}{% endmacro %}{% call f() %}x{% endcall %}",
		"recursive loop":         "{% for x in [[1]] recursive %}{{ loop([[1]]) }}{% endfor %}",
		"large range":            "{% for x in range(10**9) %}{% endfor %}",
		"nested loops":           "{% for x in range(99999) %}{% for y in range(99999) %}{% endfor %}{% endfor %}",
		"doubling string":        "{% set ns = namespace(s='ab') %}{% for x in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
		"doubling list":          "{% set ns = namespace(s=[1]) %}{% for x in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
		"doubling by reference":  "{% set ns = namespace(s=[1]) %}{% for x in range(99) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s }}",
		"shared tojson":          "{% set ns = namespace(s=[1]) %}{% for x in range(99) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s | tojson }}",
		"shared compare":         "{% set ns = namespace(s=[1], t=[1]) %}{% for x in range(99) %}{% set ns.s = [ns.s, ns.s] %}{% set ns.t = [ns.t, ns.t] %}{% endfor %}{{ ns.s == ns.t }}",
		"deep value":             "{% set ns = namespace(s=[1]) %}{% for x in range(99999) %}{% set ns.s = [ns.s] %}{% endfor %}{{ ns.s }}",
		"deep compare":           "{% set ns = namespace(s=[1], t=[1]) %}{% for x in range(99999) %}{% set ns.s = [ns.s] %}{% set ns.t = [ns.t] %}{% endfor %}{{ ns.s == ns.t }}",
		"itself":                 "{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}",
		"repeat":                 "{{ 'x' * 10**12 }}",
		"repeat list":            "{{ [1] * 10**12 }}",
		"replace grows":          "{% set s = 'a' * 10**7 %}{{ s | replace('a', s) }}",
		"replace method grows":   "{% set s = 'a' * 10**7 %}{{ s.replace('a', s) }}",
		"join grows":             "{% set s = 'a' * 10**7 %}{{ ([s] * 1000) | join(s) }}",
		"join method grows":      "{% set s = 'a' * 10**7 %}{{ s.join([s] * 1000) }}",
		"indent":                 "{{ 'a\nb' | indent(10**12, true) }}",
		"indent lines":           "{{ ('a\n' * 10**6) | indent(10**6) }}",
		"tojson indent":          "{{ [[1]] | tojson(indent=10**12) }}",
		"center":                 "{{ 'a'.center(10**12) }}{{ 'a' | center(10**12) }}",
		"printf width":           "{{ '%999999999d' % 1 }}",
		"printf precision":       "{{ '%.999999999f' % 1.5 }}",
		"batch fill":             "{{ [1] | batch(10**12, 'x') | list }}",
		"slices":                 "{{ [1] | slice(10**12) | list }}",
		"power":                  "{{ 10 ** 10 ** 10 }}",
		"escapes":                "{% set s = '&' * 10**7 %}{{ s | e ~ s | e ~ s | e }}",
		"output":                 "{% set s = 'a' * 10**7 %}{% for i in range(99) %}{{ s }}{% endfor %}",
		"filter chain":           "{{ 'a'" + many("|upper", 100_000) + " }}",
		"long sum":               "{{ 1" + many("+1", 100_000) + " }}",
		"parentheses":            "{{ " + many("(", 100_000) + "1" + many(")", 100_000) + " }}",
		"not":                    "{{ " + many("not ", 100_000) + "1 }}",
		"signs":                  "{{ " + many("- ", 100_000) + "1 }}",
		"conditional expression": "{{ 1" + many(" if 1 else 1", 50_000) + " }}",
		"nested if":              many("{% if 1 %}", 50_000) + many("{% endif %}", 50_000),
		"targets":                "{% set " + many("(", 100) + "a" + many(")", 100) + many(" ", 10) + "= 1 %}" + many("{% for x in [1] %}", 50_000),
		"large source":           many("x", maxSource+1),
		"strftime":               "{{ strftime_now('%c' * 10**7) }}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			tmpl, err := Compile(src)
			if err == nil {
				_, err = tmpl.Render(ctx, NewDict(), Options{Limits: Limits{Steps: 1_000_000, Bytes: 256 << 20}})
			}
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("no error (%v)", err)
			}
			if e.Kind != LimitErr && e.Kind != OverflowErr {
				t.Errorf("%v", err)
			}
			if errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("stopped by time only: %v", err)
			}
		})
	}
}

// A long chain of elif and many statements are no nesting.
func TestFlatIsFine(t *testing.T) {
	src := "{% if 0 %}" + strings.Repeat("{% elif 0 %}", 20_000) + "{% else %}x{% endif %}" + strings.Repeat("{{ 1 }}", 20_000)
	got, err := render(src, NewDict())
	if err != nil || len(got) != 20_001 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestRenderEndsWithItsContext(t *testing.T) {
	tmpl, err := Compile("{% for x in range(99999) %}{% for y in range(99999) %}{% endfor %}{% endfor %}")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err = tmpl.Render(ctx, NewDict(), Options{Limits: Limits{Steps: 1 << 50}})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("ended after %v", d)
	}
}

// Renderings share the template and the variables.
func TestConcurrentRender(t *testing.T) {
	r, vars := loadSnippets(t)
	var all strings.Builder
	for _, c := range r.Cases {
		if c.OK != nil && len(c.Src) < 200 && !strings.Contains(c.Src, "#}") {
			all.WriteString("{% if true %}" + c.Src + "{% endif %}")
		}
	}
	tmpl, err := Compile(all.String())
	if err != nil {
		t.Fatal(err)
	}
	want, wantErr := tmpl.Render(context.Background(), vars, Options{Now: clock})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			got, err := tmpl.Render(context.Background(), vars, Options{Now: clock})
			if got != want || (err == nil) != (wantErr == nil) {
				t.Errorf("differs: %v, %v", err, wantErr)
			}
		})
	}
	wg.Wait()
}

func FuzzRender(f *testing.F) {
	r, vars := loadSnippets(f)
	for _, c := range r.Cases {
		f.Add(c.Src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		tmpl, err := Compile(src)
		if err == nil {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			_, err = tmpl.Render(ctx, vars, Options{Limits: Limits{Steps: 100_000, Bytes: 16 << 20, Output: 1 << 20}})
			if errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("the limits did not stop it: %v", err)
			}
		}
		var e *Error
		if errors.As(err, &e) && e.Kind == Internal {
			t.Fatal(err)
		}
	})
}
