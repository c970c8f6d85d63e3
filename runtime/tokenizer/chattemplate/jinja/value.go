package jinja

import (
	"fmt"
	"math"
	"math/big"
)

// Value is a Python-like value: nil (None), bool, int64, *big.Int, float64, string, *List, *Dict, and the package's own kinds
// (undefined, ranges, generators, namespaces, functions, macros) that only a rendering makes. Values handed to Render are never
// changed by it.
type Value = any

// List is a Python list, or a tuple.
type List struct {
	Items []Value
	Tuple bool
	names []string // of a groupby tuple
}

// NewList makes a list of the given items.
func NewList(items ...Value) *List { return &List{Items: items} }

// Dict is a mapping that keeps insertion order. The zero value is not ready: use NewDict.
type Dict struct {
	keys  []Value
	vals  []Value
	index map[any]int
}

// NewDict makes an empty mapping.
func NewDict() *Dict { return &Dict{index: map[any]int{}} }

// Len gives the number of entries.
func (d *Dict) Len() int { return len(d.keys) }

// Get gives the value at a string key.
func (d *Dict) Get(key string) (Value, bool) {
	i, ok := d.index[key]
	if !ok {
		return nil, false
	}
	return d.vals[i], true
}

// Set adds an entry at the end, or replaces the value where the key is.
func (d *Dict) Set(key string, v Value) { d.set(key, key, v) }

func (d *Dict) set(hash any, key, v Value) {
	if i, ok := d.index[hash]; ok {
		d.vals[i] = v
		return
	}
	d.index[hash] = len(d.keys)
	d.keys = append(d.keys, key)
	d.vals = append(d.vals, v)
}

// Delete removes an entry; the others keep their order.
func (d *Dict) Delete(key string) {
	i, ok := d.index[key]
	if !ok {
		return
	}
	delete(d.index, key)
	d.keys = append(d.keys[:i:i], d.keys[i+1:]...)
	d.vals = append(d.vals[:i:i], d.vals[i+1:]...)
	for h, j := range d.index {
		if j > i {
			d.index[h] = j - 1
		}
	}
}

// Keys gives the string keys in order; keys of other types, which only templates make, are left out.
func (d *Dict) Keys() []string {
	out := make([]string, 0, len(d.keys))
	for _, k := range d.keys {
		if s, ok := k.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// Clone copies the mapping, not its values.
func (d *Dict) Clone() *Dict {
	c := &Dict{keys: append([]Value(nil), d.keys...), vals: append([]Value(nil), d.vals...), index: make(map[any]int, len(d.index))}
	for k, v := range d.index {
		c.index[k] = v
	}
	return c
}

type (
	markup    string // a string marked safe: + escapes its other operand
	bigKey    string
	tupleKey  string
	undefKey  struct{}
	namespace struct{ attrs *Dict }
	rng       struct{ start, stop, step, n int64 }
)

// undefined is the value of what is not there. Printing, testing and iterating it is allowed; anything else raises kind with msg.
type undefined struct {
	kind Kind
	msg  string
}

// generator is a lazy sequence of Python; ours is computed at once, but like Python's it is consumed by iterating and has no length.
type generator struct {
	name  string
	items []Value
	done  bool
}

// view is what dict.items() and the like give: iterable, with a length, without indexing.
type view struct {
	name  string
	items []Value
}

// function is a built-in callable.
type function struct {
	name string
	fn   func(*interp, *args) Value
}

type cycler struct {
	items []Value
	pos   int
}

// hashKey gives the map key under which Python would find v; equal numbers of different types are one key.
func hashKey(v Value) any {
	switch x := v.(type) {
	case nil, string, int64:
		return x
	case markup:
		return string(x)
	case bool:
		return boolInt(x)
	case float64:
		if x == math.Trunc(x) && math.Abs(x) < 1<<62 {
			return int64(x)
		}
		return x
	case *big.Int:
		return bigKey(x.String())
	case *undefined:
		return undefKey{}
	case *List:
		if x.Tuple {
			k := "("
			for _, e := range x.Items {
				k += fmt.Sprintf("%T:%v,", hashKey(e), hashKey(e))
			}
			return tupleKey(k)
		}
	case *Dict:
	default:
		return x // a pointer: identity
	}
	fail(TypeErr, "unhashable type: '%s'", typeName(v))
	return nil
}

func boolInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// typeName is Python's type(v).__name__.
func typeName(v Value) string {
	switch x := v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int64, *big.Int:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case markup:
		return "Markup"
	case *List:
		if x.Tuple {
			return "tuple"
		}
		return "list"
	case *Dict:
		return "dict"
	case *rng:
		return "range"
	case *generator:
		return x.name
	case *view:
		return x.name
	case *undefined:
		return "Undefined"
	case *namespace:
		return "Namespace"
	case *macro:
		return "Macro"
	case *loop:
		return "LoopContext"
	case *cycler:
		return "Cycler"
	}
	return "function"
}

// objectRepr is Jinja2's object_type_repr, used in its messages.
func objectRepr(v Value) string {
	switch v.(type) {
	case nil:
		return "None"
	case markup:
		return "markupsafe.Markup object"
	case *namespace:
		return "jinja2.utils.Namespace object"
	case *macro:
		return "jinja2.runtime.Macro object"
	case *loop:
		return "jinja2.runtime.LoopContext object"
	case *cycler:
		return "jinja2.utils.Cycler object"
	}
	return typeName(v) + " object"
}

// asString gives the text of a str or Markup.
func asString(v Value) (string, bool) {
	switch x := v.(type) {
	case string:
		return x, true
	case markup:
		return string(x), true
	}
	return "", false
}

// asInt gives the value of an int or bool.
func asInt(v Value) (int64, bool) {
	switch x := v.(type) {
	case int64:
		return x, true
	case bool:
		return boolInt(x), true
	}
	return 0, false
}

// asFloat gives the value of any number.
func asFloat(v Value) (float64, bool) {
	switch x := v.(type) {
	case float64:
		return x, true
	case *big.Int:
		f, _ := new(big.Float).SetInt(x).Float64()
		return f, true
	}
	if i, ok := asInt(v); ok {
		return float64(i), true
	}
	return 0, false
}

func truthy(v Value) bool {
	switch x := v.(type) {
	case nil, *undefined:
		return false
	case bool:
		return x
	case int64:
		return x != 0
	case float64:
		return x != 0
	case *big.Int:
		return x.Sign() != 0
	case string:
		return x != ""
	case markup:
		return x != ""
	case *List:
		return len(x.Items) > 0
	case *Dict:
		return x.Len() > 0
	case *rng:
		return x.n > 0
	case *view:
		return len(x.items) > 0
	}
	return true
}
