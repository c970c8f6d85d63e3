package jinja

import (
	"math"
	"math/big"
	"strings"
	"unicode/utf8"
)

// changing are the methods that the immutable sandbox forbids.
var changing = map[string]string{
	"list": " append clear pop reverse insert sort extend remove ",
	"dict": " clear pop popitem setdefault update ",
}

// member gives a method or attribute of a value, as Python's getattr would.
func (it *interp) member(v Value, name string) (Value, bool) {
	if strings.HasPrefix(name, "__") || strings.Contains(changing[typeName(v)], " "+name+" ") {
		return &undefined{Security, "access to attribute " + strRepr(name) + " of '" + typeName(v) + "' object is unsafe."}, true
	}
	if s, ok := asString(v); ok {
		if m := strMethods[name]; m != nil {
			return &function{name, func(it *interp, a *args) Value { return m(it, s, a) }}, true
		}
		return nil, false
	}
	switch x := v.(type) {
	case *Dict:
		return dictMember(x, name)
	case *List:
		for i, n := range x.names {
			if n == name {
				return x.Items[i], true
			}
		}
		return listMember(x, name)
	case *namespace:
		return x.attrs.Get(name)
	case *loop:
		return x.attr(name)
	case *macro:
		switch name {
		case "name":
			return x.def.name, true
		case "arguments":
			l := &List{Tuple: true}
			for _, p := range x.def.params {
				l.Items = append(l.Items, p)
			}
			return l, true
		case "caller", "catch_kwargs", "catch_varargs":
			return map[string]bool{"caller": x.def.caller, "catch_kwargs": x.def.kwargs, "catch_varargs": x.def.varargs}[name], true
		}
	case *cycler:
		return x.member(name)
	case float64:
		if name == "is_integer" {
			return &function{name, func(*interp, *args) Value { return x == math.Trunc(x) }}, true
		}
	}
	return nil, false
}

func dictMember(d *Dict, name string) (Value, bool) {
	fn := func(f func(*interp, *args) Value) (Value, bool) { return &function{name, f}, true }
	switch name {
	case "get":
		return fn(func(it *interp, a *args) Value {
			p := a.bind("get", param{"key", required}, param{"default", nil})
			if i, ok := d.index[hashKey(p[0])]; ok {
				return d.vals[i]
			}
			return p[1]
		})
	case "items":
		return fn(func(it *interp, a *args) Value {
			a.bind("items")
			return &view{"dict_items", it.pairs(d)}
		})
	case "keys":
		return fn(func(_ *interp, a *args) Value {
			a.bind("keys")
			return &view{"dict_keys", d.keys}
		})
	case "values":
		return fn(func(_ *interp, a *args) Value {
			a.bind("values")
			return &view{"dict_values", d.vals}
		})
	case "copy":
		return fn(func(it *interp, a *args) Value {
			a.bind("copy")
			it.allocList(4 * d.Len())
			return d.Clone()
		})
	}
	return nil, false
}

func (it *interp) pairs(d *Dict) []Value {
	it.allocList(4 * d.Len())
	out := make([]Value, d.Len())
	for i, k := range d.keys {
		out[i] = &List{Items: []Value{k, d.vals[i]}, Tuple: true}
	}
	return out
}

func listMember(l *List, name string) (Value, bool) {
	fn := func(f func(*interp, *args) Value) (Value, bool) { return &function{name, f}, true }
	switch {
	case name == "index":
		return fn(func(it *interp, a *args) Value {
			v := a.bind("index", param{"value", required})[0]
			for i, e := range l.Items {
				if it.equal(e, v) {
					return int64(i)
				}
			}
			fail(ValueErr, "%s is not in list", it.reprString(v))
			return nil
		})
	case name == "count":
		return fn(func(it *interp, a *args) Value {
			v := a.bind("count", param{"value", required})[0]
			n := int64(0)
			for _, e := range l.Items {
				if it.equal(e, v) {
					n++
				}
			}
			return n
		})
	case name == "copy" && !l.Tuple:
		return fn(func(it *interp, a *args) Value {
			it.allocList(len(l.Items))
			return &List{Items: append([]Value(nil), l.Items...)}
		})
	}
	return nil, false
}

func (it *interp) reprString(v Value) string {
	w := it.writer()
	it.repr(w, v)
	return w.String()
}

// attr is v.name: the attribute, else the entry of that key.
func (it *interp) attr(v Value, name string) Value {
	fine(v)
	if m, ok := it.member(v, name); ok {
		return m
	}
	if d, ok := v.(*Dict); ok {
		if x, ok := d.Get(name); ok {
			return x
		}
	}
	return noAttr(v, name)
}

func noAttr(v Value, name string) Value {
	return undefinedf("%s has no attribute %s", strRepr(objectRepr(v)), strRepr(name))
}

// item is v[key]: the entry, else the attribute of that name.
func (it *interp) item(v, key Value) Value {
	fine(v)
	i, isInt := asInt(key)
	if s, ok := asString(v); ok {
		if isInt {
			if r, ok := runeAt(s, i); ok {
				it.spend(1 + len(s)/64)
				return r
			}
		}
	} else {
		switch x := v.(type) {
		case *Dict:
			if x, ok := it.lookup(x, key); ok {
				return x
			}
		case *List:
			if n := int64(len(x.Items)); isInt && i < n && i >= -n {
				return x.Items[(i+n)%n]
			}
		case *rng:
			if isInt && i < x.n && i >= -x.n {
				return x.start + (i+x.n)%x.n*x.step
			}
		}
	}
	name, ok := asString(key)
	if !ok {
		return undefinedf("%s has no element %s", objectRepr(v), it.reprString(key))
	}
	if m, ok := it.member(v, name); ok {
		return m
	}
	return noAttr(v, name)
}

func (it *interp) lookup(d *Dict, key Value) (Value, bool) {
	switch k := key.(type) {
	case *Dict:
		return nil, false // unhashable: no such element
	case *List:
		if !k.Tuple {
			return nil, false
		}
	}
	i, ok := d.index[hashKey(key)]
	if !ok {
		return nil, false
	}
	return d.vals[i], true
}

func runeAt(s string, i int64) (string, bool) {
	if i < 0 {
		i += int64(utf8.RuneCountInString(s))
	}
	if i < 0 || i >= int64(len(s)) {
		return "", false
	}
	for _, r := range s {
		if i == 0 {
			return string(r), true
		}
		i--
	}
	return "", false
}

// slice is v[start:stop:step].
func (it *interp) slice(v, start, stop, step Value) Value {
	fine(v)
	n := int64(-1)
	s, isStr := asString(v)
	switch x := v.(type) {
	case *List:
		n = int64(len(x.Items))
	case *rng:
		n = x.n
	case *Dict:
		fail(TypeErr, "unhashable type: 'slice'")
	}
	if isStr {
		n = int64(utf8.RuneCountInString(s))
	}
	if n < 0 {
		fail(TypeErr, "'%s' object is not subscriptable", typeName(v))
	}
	from, count, by := sliceBounds(start, stop, step, n)
	switch x := v.(type) {
	case *List:
		it.allocList(int(count))
		out := make([]Value, count)
		for i := range out {
			out[i] = x.Items[from+int64(i)*by]
		}
		return &List{Items: out, Tuple: x.Tuple}
	case *rng:
		return &rng{x.start + from*x.step, x.start + (from+count*by)*x.step, x.step * by, count}
	}
	it.spend(1 + len(s)/64)
	if by == 1 && int64(len(s)) == n { // ASCII
		return s[from : from+count]
	}
	it.alloc(5 * len(s))
	runes := []rune(s)
	out := make([]rune, count)
	for i := range out {
		out[i] = runes[from+int64(i)*by]
	}
	return string(out)
}

// sliceBounds gives the first index, the number of elements and the step of a slice over n elements.
func sliceBounds(start, stop, step Value, n int64) (from, count, by int64) {
	index := func(v Value, missing int64) (int64, bool) {
		switch x := v.(type) {
		case nil:
			return missing, false
		case *big.Int:
			fail(OverflowErr, "slice index too large")
		case *undefined:
			fine(x)
		}
		i, ok := asInt(v)
		if !ok {
			fail(TypeErr, "slice indices must be integers or None or have an __index__ method")
		}
		return i, true
	}
	by, _ = index(step, 1)
	if by == 0 {
		fail(ValueErr, "slice step cannot be zero")
	}
	low, high := int64(0), n
	first, last := low, high
	if by < 0 {
		low, high = -1, n-1
		first, last = high, low
	}
	clamp := func(v Value, missing int64) int64 {
		i, given := index(v, missing)
		if given && i < 0 {
			i += n
		}
		return min(max(i, low), high)
	}
	from, to := clamp(start, first), clamp(stop, last)
	switch {
	case by > 0 && to > from:
		count = (to-from-1)/by + 1
	case by < 0 && to < from:
		count = (from-to-1)/-max(by, -n-1) + 1
	}
	return from, count, by
}
