package jinja

import (
	"math/big"
	"strings"
	"unicode"
)

// testFunc is a test of "is": how many arguments it takes beside the value, and what it does.
type testFunc struct {
	args int
	fn   func(it *interp, v Value, a []Value) bool
}

var tests map[string]testFunc

func init() {
	is := func(f func(v Value) bool) testFunc {
		return testFunc{0, func(_ *interp, v Value, _ []Value) bool { return f(v) }}
	}
	op := func(op string) testFunc {
		return testFunc{1, func(it *interp, v Value, a []Value) bool { return it.holds(op, v, a[0]) }}
	}
	remainder := func(it *interp, v Value, by int64) int64 {
		r, _ := asInt(it.binary("%", v, by))
		return r
	}
	tests = map[string]testFunc{
		"defined":   is(func(v Value) bool { return !isUndefined(v) }),
		"undefined": is(isUndefined),
		"none":      is(func(v Value) bool { return v == nil }),
		"boolean":   is(func(v Value) bool { _, ok := v.(bool); return ok }),
		"true":      is(func(v Value) bool { return v == true }),
		"false":     is(func(v Value) bool { return v == false }),
		"integer":   is(isInteger),
		"float":     is(func(v Value) bool { _, ok := v.(float64); return ok }),
		"number":    is(func(v Value) bool { _, ok := asFloat(v); return ok }),
		"string":    is(func(v Value) bool { _, ok := asString(v); return ok }),
		"mapping":   is(func(v Value) bool { _, ok := v.(*Dict); return ok }),
		"iterable":  is(iterable),
		"sequence":  is(sequence),
		"callable":  is(callable),
		"escaped":   is(func(v Value) bool { _, ok := v.(markup); return ok }),
		"sameas":    {1, func(it *interp, v Value, a []Value) bool { return same(v, a[0]) }},
		"in":        op("in"),
		"eq":        op("=="), "equalto": op("=="), "==": op("=="),
		"ne": op("!="), "!=": op("!="),
		"gt": op(">"), "greaterthan": op(">"), ">": op(">"),
		"ge": op(">="), ">=": op(">="),
		"lt": op("<"), "lessthan": op("<"), "<": op("<"),
		"le": op("<="), "<=": op("<="),
		"odd":  {0, func(it *interp, v Value, _ []Value) bool { return remainder(it, v, 2) == 1 }},
		"even": {0, func(it *interp, v Value, _ []Value) bool { return remainder(it, v, 2) == 0 }},
		"divisibleby": {1, func(it *interp, v Value, a []Value) bool {
			return it.equal(it.binary("%", v, a[0]), int64(0))
		}},
		"upper": {0, func(it *interp, v Value, _ []Value) bool { return cased(it.str(v), unicode.IsUpper, unicode.IsLower) }},
		"lower": {0, func(it *interp, v Value, _ []Value) bool { return cased(it.str(v), unicode.IsLower, unicode.IsUpper) }},
		"filter": {0, func(it *interp, v Value, _ []Value) bool {
			s, ok := asString(v)
			return ok && filters[s] != nil
		}},
		"test": {0, func(it *interp, v Value, _ []Value) bool {
			s, ok := asString(v)
			_, found := tests[s]
			return ok && found
		}},
	}
}

func isUndefined(v Value) bool { _, ok := v.(*undefined); return ok }

func isInteger(v Value) bool {
	switch v.(type) {
	case int64, *big.Int:
		return true
	}
	return false
}

func iterable(v Value) bool {
	switch v.(type) {
	case string, markup, *List, *Dict, *rng, *view, *generator, *undefined, *loop:
		return true
	}
	return false
}

func sequence(v Value) bool {
	switch v.(type) {
	case string, markup, *List, *Dict, *rng, *undefined:
		return true
	}
	return false
}

func callable(v Value) bool {
	switch v.(type) {
	case *function, *macro, *undefined, *loop:
		return true
	}
	return false
}

// same is Python's "is": small values have one identity there.
func same(a, b Value) bool {
	if typeName(a) != typeName(b) {
		return false
	}
	switch x := a.(type) {
	case string, markup, bool, int64, float64, nil:
		return x == b
	}
	return a == b
}

func (it *interp) escape(v Value) string {
	if m, ok := v.(markup); ok {
		return string(m)
	}
	s := it.str(v)
	it.alloc(len(s) * 5)
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;").Replace(s)
}
