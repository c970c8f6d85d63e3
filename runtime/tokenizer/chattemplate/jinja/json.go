package jinja

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

const (
	maxJSONDepth  = 500
	maxJSONDigits = 4300 // Python refuses longer integers too
)

// ParseJSON decodes one JSON value, keeping the order of keys and the difference between 1 and 1.0. Of a repeated key the last value
// counts. Nesting deeper than 500 is an error.
func ParseJSON(data []byte) (Value, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := decode(d, 0)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("decoding JSON at byte %d: %w", d.InputOffset(), err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("decoding JSON: more data after the value, at byte %d", d.InputOffset())
	}
	return v, nil
}

func decode(d *json.Decoder, depth int) (Value, error) {
	if depth > maxJSONDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxJSONDepth)
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch x := t.(type) {
	case json.Number:
		return number(string(x))
	case json.Delim:
		if x == '{' {
			out := NewDict()
			for d.More() {
				k, err := d.Token()
				if err != nil {
					return nil, err
				}
				v, err := decode(d, depth+1)
				if err != nil {
					return nil, err
				}
				out.Set(k.(string), v)
			}
			_, err := d.Token()
			return out, err
		}
		out := NewList()
		for d.More() {
			v, err := decode(d, depth+1)
			if err != nil {
				return nil, err
			}
			out.Items = append(out.Items, v)
		}
		_, err := d.Token()
		return out, err
	}
	return t, nil // nil, bool, string
}

func number(s string) (Value, error) {
	if strings.ContainsAny(s, ".eE") {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) { // out of range gives infinity, as in Python
			return nil, err
		}
		return f, nil
	}
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return i, nil
	}
	if len(s) > maxJSONDigits {
		return nil, fmt.Errorf("an integer of %d digits (at most %d)", len(s), maxJSONDigits)
	}
	b, ok := new(big.Int).SetString(s, 10)
	if !ok {
		return nil, fmt.Errorf("invalid number %q", s)
	}
	return b, nil
}

// FromGo converts a plain Go value: nil, bool, integers, floats, strings, json.Number, json.RawMessage, slices of any and string-keyed
// maps of any (whose keys are sorted, for want of an order). Values of this package pass through; others are an error.
func FromGo(v any) (Value, error) {
	switch x := v.(type) {
	case nil, bool, int64, float64, string, *List, *Dict, *big.Int:
		return x, nil
	case int:
		return int64(x), nil
	case int32:
		return int64(x), nil
	case float32:
		return float64(x), nil
	case json.Number:
		return number(string(x))
	case json.RawMessage:
		return ParseJSON(x)
	case []string:
		out := NewList()
		for _, e := range x {
			out.Items = append(out.Items, e)
		}
		return out, nil
	case []any:
		out := NewList()
		for _, e := range x {
			c, err := FromGo(e)
			if err != nil {
				return nil, err
			}
			out.Items = append(out.Items, c)
		}
		return out, nil
	case map[string]any:
		keys := make([]string, 0, len(x))
		for k := range x {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		out := NewDict()
		for _, k := range keys {
			c, err := FromGo(x[k])
			if err != nil {
				return nil, err
			}
			out.Set(k, c)
		}
		return out, nil
	}
	return nil, fmt.Errorf("no template value for a %T", v)
}
