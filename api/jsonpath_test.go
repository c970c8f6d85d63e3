package api

import (
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"regexp"
	"strings"
)

// The assertions of the case language: [path, op, value] on a JSON value.

type assertion [3]any

// missing stands for a path that leads nowhere.
type missing struct{}

// follow walks a path: dots, numbers index arrays, * maps, \. is a dot in a key.
func follow(v any, path string) any {
	if path == "" {
		return v
	}
	return walk(v, splitPath(path))
}

func splitPath(path string) []string {
	parts := strings.Split(strings.ReplaceAll(path, `\.`, "\x00"), ".")
	for i := range parts {
		parts[i] = strings.ReplaceAll(parts[i], "\x00", ".")
	}
	return parts
}

func walk(v any, parts []string) any {
	if len(parts) == 0 {
		return v
	}
	head, rest := parts[0], parts[1:]
	switch v := v.(type) {
	case map[string]any:
		if head == "*" {
			out := []any{}
			for _, x := range v {
				out = append(out, walk(x, rest))
			}
			return out
		}
		if x, ok := v[head]; ok {
			return walk(x, rest)
		}
	case []any:
		if head == "*" {
			out := []any{}
			for _, x := range v {
				out = append(out, walk(x, rest))
			}
			return out
		}
		var i int
		if _, err := fmt.Sscanf(head, "%d", &i); err == nil && i >= 0 && i < len(v) {
			return walk(v[i], rest)
		}
	}
	return missing{}
}

// check returns "" or what is wrong.
func (a assertion) check(root any) string {
	path, _ := a[0].(string)
	op, _ := a[1].(string)
	got := follow(root, path)
	if msg := compare(op, got, a[2], root); msg != "" {
		return fmt.Sprintf("%s %s %s: %s", path, op, show(a[2]), msg)
	}
	return ""
}

func compare(op string, got, want, root any) string {
	_, absent := got.(missing)
	ok := false
	switch op {
	case "eq":
		ok = same(got, want)
	case "ne":
		ok = !same(got, want)
	case "in":
		for _, w := range want.([]any) {
			ok = ok || same(got, w) || absent && w == nil
		}
	case "type":
		ok = typeOf(got) == want || want == "number" && typeOf(got) == "integer"
	case "absent":
		ok = absent == want.(bool)
	case "null":
		ok = (got == nil) == want.(bool)
	case "nullish":
		ok = (absent || got == nil) == want.(bool)
	case "re":
		s, isString := got.(string)
		ok = isString && regexp.MustCompile(want.(string)).MatchString(s)
	case "len":
		ok = same(json.Number(fmt.Sprint(length(got))), want)
	case "ge":
		ok = number(got) != nil && number(got).Cmp(number(want)) >= 0
	case "le":
		ok = number(got) != nil && number(got).Cmp(number(want)) <= 0
	case "has":
		switch v := got.(type) {
		case string:
			ok = strings.Contains(v, want.(string))
		case []any:
			for _, x := range v {
				ok = ok || same(x, want)
			}
		case map[string]any:
			_, ok = v[want.(string)]
		}
	case "json":
		s, isString := got.(string)
		ok = isString && same(decodeJSON(s), want)
	case "json_or_empty":
		s, _ := got.(string)
		ok = s == "" || same(decodeJSON(s), want)
	case "same":
		ok = !absent && same(got, follow(root, want.(string)))
	case "distinct":
		seen := map[string]bool{}
		list, isList := got.([]any)
		ok = isList
		for _, x := range list {
			key := show(follow(x, want.(string)))
			ok = ok && !seen[key]
			seen[key] = true
		}
	default:
		return "unknown op"
	}
	if ok {
		return ""
	}
	return "got " + show(got)
}

func decodeJSON(s string) any {
	dec := json.NewDecoder(strings.NewReader(s))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return missing{}
	}
	return v
}

func number(v any) *big.Float {
	n, ok := v.(json.Number)
	if !ok {
		return nil
	}
	f, ok := new(big.Float).SetString(n.String())
	if !ok {
		return nil
	}
	return f
}

func same(a, b any) bool {
	if x, y := number(a), number(b); x != nil && y != nil {
		return x.Cmp(y) == 0
	}
	switch x := a.(type) {
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !same(x[i], y[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		y, ok := b.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for k := range x {
			if _, ok := y[k]; !ok || !same(x[k], y[k]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a, b)
}

func typeOf(v any) string {
	switch v := v.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return "number"
		}
		return "integer"
	case nil:
		return "null"
	}
	return "absent"
}

func length(v any) int {
	switch v := v.(type) {
	case string:
		return len(v)
	case []any:
		return len(v)
	case map[string]any:
		return len(v)
	}
	return -1
}

func show(v any) string {
	if _, ok := v.(missing); ok {
		return "nothing"
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}
