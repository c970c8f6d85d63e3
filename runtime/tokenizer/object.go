package tokenizer

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxNesting bounds how deep Sequences may stand within Sequences.
const maxNesting = 8

// object is one JSON object of the file, with its place for errors. The getters
// note the first error in err and go on with a zero value.
type object struct {
	path   string
	depth  int
	kind   string // the field "type"
	fields map[string]jsontext.Value
	err    error
}

// newObject reads raw, which must be a JSON object.
func newObject(raw jsontext.Value, path string, depth int) (*object, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("%s: nested more than %d deep", shortPath(path), maxNesting)
	}
	o := &object{path: path, depth: depth}
	if raw.Kind() != '{' {
		return nil, fmt.Errorf("%s: want an object, got %s", path, kindName(raw))
	}
	if err := json.Unmarshal(raw, &o.fields); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	o.kind = o.str("type", "")
	return o, o.err
}

// shortPath shows the start of a path that is as long as a hostile file made it.
func shortPath(p string) string {
	if len(p) > 100 {
		return p[:100] + "…"
	}
	return p
}

func kindName(v jsontext.Value) string {
	switch v.Kind() {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '{':
		return "an object"
	case '[':
		return "an array"
	}
	return "nothing"
}

func (o *object) fail(key, format string, args ...any) {
	if o.err == nil {
		o.err = fmt.Errorf("%s.%s: %s", o.path, key, fmt.Sprintf(format, args...))
	}
}

func (o *object) raw(key string) (jsontext.Value, bool) {
	v, ok := o.fields[key]
	return v, ok && v.Kind() != 'n'
}

// get decodes the field key into *v; where it is missing or null, *v stays.
func get[T any](o *object, key string, v *T, want string) {
	raw, ok := o.raw(key)
	if !ok {
		return
	}
	if err := json.Unmarshal(raw, v); err != nil {
		o.fail(key, "want %s, got %s", want, kindName(raw))
	}
}

func (o *object) str(key, otherwise string) string {
	get(o, key, &otherwise, "a string")
	return otherwise
}

// need is str for a field that must be there.
func (o *object) need(key string) string {
	if _, ok := o.raw(key); !ok {
		o.fail(key, "missing")
	}
	return o.str(key, "")
}

func (o *object) bool(key string, otherwise bool) bool {
	get(o, key, &otherwise, "true or false")
	return otherwise
}

func (o *object) int(key string, otherwise int64) int64 {
	v := otherwise
	get(o, key, &v, "a whole number")
	if v < 0 && v != otherwise {
		o.fail(key, "%d is negative", v)
		return otherwise
	}
	return v
}

// char is a field that holds exactly one character.
func (o *object) char(key string) string {
	s := o.need(key)
	if o.err == nil && utf8.RuneCountInString(s) != 1 {
		o.fail(key, "want one character, got %s", quote(s))
	}
	return s
}

// list reads the field key as an array of values.
func (o *object) list(key string) []jsontext.Value {
	if _, ok := o.raw(key); !ok {
		o.fail(key, "missing")
	}
	var l []jsontext.Value
	get(o, key, &l, "an array")
	return l
}

// children reads the field key as an array of objects.
func (o *object) children(key string) []*object {
	var out []*object
	for i, raw := range o.list(key) {
		c, err := newObject(raw, fmt.Sprintf("%s.%s[%d]", o.path, key, i), o.depth+1)
		if err != nil {
			if o.err == nil {
				o.err = err
			}
			return nil
		}
		out = append(out, c)
	}
	return out
}

// pattern reads {"String": …} or {"Regex": …}.
func (o *object) pattern(key string) pattern {
	raw, ok := o.raw(key)
	if !ok {
		o.fail(key, "missing")
		return nil
	}
	var p struct{ String, Regex *string }
	if err := json.Unmarshal(raw, &p); err != nil || (p.String == nil) == (p.Regex == nil) {
		o.fail(key, `want {"String": …} or {"Regex": …}`)
		return nil
	}
	if p.String != nil {
		return literalPattern{*p.String}
	}
	pat, err := newPattern(*p.Regex)
	if err != nil {
		o.fail(key, "%v", err)
	}
	return pat
}

// behavior reads what a Split does with its matches.
func (o *object) behavior(key, otherwise string) splitBehavior {
	s := o.str(key, otherwise)
	b, ok := splitBehaviors[s]
	if !ok {
		// The reference's Python side writes some of them in small letters.
		b, ok = splitBehaviors[strings.ToUpper(s[:min(1, len(s))])+s[min(1, len(s)):]]
	}
	if !ok {
		o.fail(key, "unknown split behavior %s", quote(s))
	}
	return b
}

func (o *object) unsupported(what string) error {
	if o.err != nil {
		return o.err
	}
	if o.kind == "" {
		return fmt.Errorf("%s.type: missing", o.path)
	}
	return fmt.Errorf("%s: %s %s is not supported", o.path, what, quote(o.kind))
}
