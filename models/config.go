package models

import (
	"bytes"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
)

// ConfigFile gives the values of a config.json by key, checked. The first
// fault is kept and given by Err; what is returned after it is a default. A
// key that is null counts as absent.
type ConfigFile struct {
	file   string
	prefix string // of nested objects, "rope_scaling."
	keys   map[string]jsontext.Value
	err    *error // shared with nested objects
}

// ParseConfig reads a config file. Strict JSON: no NaN or Infinity, no key
// twice, valid UTF-8, bounded nesting. file is its name in messages.
func ParseConfig(file string, raw []byte) (*ConfigFile, error) {
	keys, err := members(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &ConfigFile{file: file, keys: keys, err: new(error)}, nil
}

func members(raw []byte) (map[string]jsontext.Value, error) {
	d := jsontext.NewDecoder(bytes.NewReader(raw))
	place := func(err error) error {
		if se, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
			in := ""
			if se.JSONPointer != "" {
				in = fmt.Sprintf(" in %.80q", se.JSONPointer)
			}
			err = fmt.Errorf("at byte %d%s: %w", se.ByteOffset, in, se.Err)
		} else if errors.Is(err, io.EOF) {
			err = fmt.Errorf("at byte %d: %w", len(raw), io.ErrUnexpectedEOF)
		}
		return fmt.Errorf("invalid JSON %w", err)
	}
	if k := d.PeekKind(); k != '{' && k != 0 {
		return nil, errors.New("is not a JSON object")
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, place(err)
	}
	keys := map[string]jsontext.Value{}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, place(err)
		}
		key := name.String()
		v, err := d.ReadValue()
		if err != nil {
			return nil, place(err)
		}
		if v.Kind() != 'n' {
			v = v.Clone()
		} else {
			v = nil
		}
		keys[key] = v
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, place(err)
	}
	if _, err := d.ReadToken(); err == nil {
		return nil, fmt.Errorf("invalid JSON at byte %d: more text after the object", d.InputOffset())
	} else if !errors.Is(err, io.EOF) {
		return nil, place(err)
	}
	return keys, nil
}

// File is the config's name in messages.
func (c *ConfigFile) File() string { return c.file }

// Err is the first fault found so far.
func (c *ConfigFile) Err() error { return *c.err }

// Fail records a fault of a key.
func (c *ConfigFile) Fail(key, format string, args ...any) {
	if *c.err == nil {
		*c.err = fmt.Errorf("%s: %s%s %s", c.file, c.prefix, key, fmt.Sprintf(format, args...))
	}
}

// Null tells whether the key is there and null.
func (c *ConfigFile) Null(key string) bool {
	v, ok := c.keys[key]
	return ok && v == nil
}

// Has tells whether the key has a value.
func (c *ConfigFile) Has(key string) bool { return c.keys[key] != nil }

// text of a value for messages, short.
func text(v jsontext.Value) string {
	if len(v) > 60 {
		return strconv.QuoteToASCII(string(v[:60])) + "…"
	}
	return string(v)
}

// Need reads an integer in lo..hi that must be there.
func (c *ConfigFile) Need(key string, lo, hi int) int {
	if !c.Has(key) {
		c.Fail(key, "is missing")
		return lo
	}
	return c.Int(key, lo, lo, hi)
}

// Int reads an integer in lo..hi.
func (c *ConfigFile) Int(key string, def, lo, hi int) int {
	v := c.keys[key]
	if v == nil {
		return def
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange):
		c.Fail(key, "is %s, want an integer", text(v))
	case err != nil || n < int64(lo) || n > int64(hi):
		c.Fail(key, "is %s, outside %d to %d", text(v), lo, hi)
	default:
		return int(n)
	}
	return def
}

// Float reads a finite number.
func (c *ConfigFile) Float(key string, def float64) float64 {
	v := c.keys[key]
	if v == nil {
		return def
	}
	f, err := strconv.ParseFloat(string(v), 64)
	switch {
	case v.Kind() != '0':
		c.Fail(key, "is %s, want a number", text(v))
	case err != nil || math.IsInf(f, 0):
		c.Fail(key, "is %s, beyond the range of numbers", text(v))
	default:
		return f
	}
	return def
}

// Positive reads a number above 0; float32 must be able to hold it.
func (c *ConfigFile) Positive(key string, def float64) float64 {
	f := c.Float(key, def)
	if f < math.SmallestNonzeroFloat32 || f > math.MaxFloat32 {
		c.Fail(key, "is %s, want a number above 0 that float32 can hold", text(c.keys[key]))
		return def
	}
	return f
}

// Bool reads true or false.
func (c *ConfigFile) Bool(key string, def bool) bool {
	switch v := c.keys[key]; {
	case v == nil:
		return def
	case v.Kind() != 't' && v.Kind() != 'f':
		c.Fail(key, "is %s, want true or false", text(v))
		return def
	default:
		return v.Kind() == 't'
	}
}

// String reads a string.
func (c *ConfigFile) String(key, def string) string {
	v := c.keys[key]
	if v == nil {
		return def
	}
	s, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		c.Fail(key, "is %s, want a string", text(v))
		return def
	}
	return string(s)
}

// Strings reads a list of strings, nil when absent.
func (c *ConfigFile) Strings(key string) []string {
	list := c.list(key)
	out := make([]string, 0, len(list))
	for _, v := range list {
		s, err := jsontext.AppendUnquote(nil, v)
		if err != nil {
			c.Fail(key, "has the entry %s, want a string", text(v))
			return nil
		}
		out = append(out, string(s))
	}
	return slices.Clip(out)
}

// list splits an array; a single value is a list of one.
func (c *ConfigFile) list(key string) []jsontext.Value {
	v := c.keys[key]
	if v == nil {
		return nil
	}
	if v.Kind() != '[' {
		return []jsontext.Value{v}
	}
	var out []jsontext.Value
	d := jsontext.NewDecoder(bytes.NewReader(v))
	_, _ = d.ReadToken() // '[': v is known to be valid
	for d.PeekKind() != ']' {
		e, err := d.ReadValue()
		if err != nil {
			c.Fail(key, "is not a list: %v", err)
			return nil
		}
		out = append(out, e.Clone())
	}
	return out
}

// IDs reads a token id or a list of them, nil when absent.
func (c *ConfigFile) IDs(key string) []int32 { return c.numbers(key, "a token id") }

// Layers reads a list of layers by their numbers, nil when absent.
func (c *ConfigFile) Layers(key string) []int32 { return c.numbers(key, "a layer's number") }

func (c *ConfigFile) numbers(key, what string) []int32 {
	var out []int32
	for _, v := range c.list(key) {
		n, err := strconv.ParseInt(string(v), 10, 32)
		if err != nil || n < 0 {
			c.Fail(key, "has the value %s, want %s", text(v), what)
			return nil
		}
		out = append(out, int32(n))
	}
	return out
}

// Object reads a nested object; nil when absent or empty.
func (c *ConfigFile) Object(key string) *ConfigFile {
	v := c.keys[key]
	if v == nil {
		return nil
	}
	keys, err := members(v)
	if err != nil {
		c.Fail(key, "is %s, want an object", text(v))
		return nil
	}
	if len(keys) == 0 {
		return nil
	}
	return &ConfigFile{c.file, c.prefix + key + ".", keys, c.err}
}

// Objects lists the keys whose values are objects, sorted.
func (c *ConfigFile) Objects() []string {
	var keys []string
	for k, v := range c.keys {
		if v.Kind() == '{' {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}
