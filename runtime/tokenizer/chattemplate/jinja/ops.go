package jinja

import (
	"cmp"
	"math"
	"math/big"
	"strings"
	"unicode/utf8"
)

// fine raises if v is undefined: the operations below do not take one.
func fine(vs ...Value) {
	for _, v := range vs {
		if u, ok := v.(*undefined); ok {
			fail(u.kind, "%s", u.msg)
		}
	}
}

func (it *interp) unary(op string, v Value) Value {
	if op == "not" {
		return !truthy(v)
	}
	fine(v)
	sign := int64(1)
	if op == "-" {
		sign = -1
	}
	switch x := v.(type) {
	case float64:
		return float64(sign) * x
	case *big.Int:
		return new(big.Int).Mul(x, big.NewInt(sign))
	}
	if i, ok := asInt(v); ok && i != math.MinInt64 {
		return sign * i
	}
	fail(TypeErr, "bad operand type for unary %s: '%s'", op, typeName(v))
	return nil
}

func (it *interp) binary(op string, l, r Value) Value {
	fine(l, r)
	li, lint := asInt(l)
	ri, rint := asInt(r)
	if lint && rint {
		return intOp(op, li, ri)
	}
	lf, lnum := asFloat(l)
	rf, rnum := asFloat(r)
	if lnum && rnum {
		return floatOp(op, lf, rf)
	}
	switch op {
	case "+":
		return it.add(l, r)
	case "*":
		switch {
		case rint && repeatable(l):
			return it.repeat(l, ri)
		case lint && repeatable(r):
			return it.repeat(r, li)
		case repeatable(l):
			fail(TypeErr, "can't multiply sequence by non-int of type '%s'", typeName(r))
		case repeatable(r):
			fail(TypeErr, "can't multiply sequence by non-int of type '%s'", typeName(l))
		}
	case "%":
		if s, ok := asString(l); ok {
			return it.printf(s, r)
		}
	}
	fail(TypeErr, "unsupported operand type(s) for %s: '%s' and '%s'", op, typeName(l), typeName(r))
	return nil
}

func (it *interp) add(l, r Value) Value {
	_, lm := l.(markup)
	_, rm := r.(markup)
	ls, lstr := asString(l)
	rs, rstr := asString(r)
	switch {
	case lm && rstr:
		return markup(ls + it.escape(r))
	case lstr && rm:
		return markup(it.escape(l) + rs)
	case lstr && rstr:
		it.alloc(len(ls) + len(rs))
		return ls + rs
	case lstr:
		fail(TypeErr, "can only concatenate str (not \"%s\") to str", typeName(r))
	}
	if a, ok := l.(*List); ok {
		b, ok := r.(*List)
		if !ok || a.Tuple != b.Tuple {
			fail(TypeErr, "can only concatenate %s (not \"%s\") to %s", typeName(l), typeName(r), typeName(l))
		}
		it.allocList(len(a.Items) + len(b.Items))
		return &List{Items: append(append(make([]Value, 0, len(a.Items)+len(b.Items)), a.Items...), b.Items...), Tuple: a.Tuple}
	}
	fail(TypeErr, "unsupported operand type(s) for +: '%s' and '%s'", typeName(l), typeName(r))
	return nil
}

func repeatable(v Value) bool {
	switch v.(type) {
	case string, markup, *List:
		return true
	}
	return false
}

func (it *interp) repeat(v Value, n int64) Value {
	n = max(n, 0)
	if s, ok := asString(v); ok {
		if len(s) > 0 && n > int64(it.lim.Output/len(s)) {
			it.alloc(it.lim.Output + 1)
		}
		it.alloc(len(s) * int(n))
		return strings.Repeat(s, int(n))
	}
	l := v.(*List)
	if len(l.Items) > 0 && n > int64(maxElements/len(l.Items)) {
		it.allocList(maxElements + 1)
	}
	it.allocList(len(l.Items) * int(n))
	out := make([]Value, 0, len(l.Items)*int(n))
	for range n {
		if len(l.Items) == 0 {
			break
		}
		out = append(out, l.Items...)
	}
	return &List{Items: out, Tuple: l.Tuple}
}

func intOp(op string, a, b int64) Value {
	x, y, z := big.NewInt(a), big.NewInt(b), new(big.Int)
	switch op {
	case "+":
		z.Add(x, y)
	case "-":
		z.Sub(x, y)
	case "*":
		z.Mul(x, y)
	case "**":
		switch {
		case b < 0:
			return floatOp(op, float64(a), float64(b))
		case b > 64 && a != 0 && a != 1 && a != -1:
			fail(OverflowErr, "integer too large")
		}
		z.Exp(x, y, nil)
	case "/":
		if b == 0 {
			fail(ZeroDivideErr, "division by zero")
		}
		return floatOp(op, float64(a), float64(b))
	default: // // and %: rounded down, as in Python
		if b == 0 && op == "%" {
			fail(ZeroDivideErr, "integer modulo by zero")
		} else if b == 0 {
			fail(ZeroDivideErr, "integer division or modulo by zero")
		}
		m := new(big.Int)
		z.DivMod(x, y, m) // Euclidean
		if m.Sign() != 0 && b < 0 {
			z.Sub(z, big.NewInt(1))
			m.Add(m, y)
		}
		if op == "%" {
			z = m
		}
	}
	if !z.IsInt64() {
		fail(OverflowErr, "integer too large")
	}
	return z.Int64()
}

func floatOp(op string, a, b float64) Value {
	switch op {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	case "**":
		return math.Pow(a, b)
	}
	switch {
	case b == 0 && op == "/":
		fail(ZeroDivideErr, "float division by zero")
	case b == 0 && op == "//":
		fail(ZeroDivideErr, "float floor division by zero")
	case b == 0:
		fail(ZeroDivideErr, "float modulo")
	}
	if op == "/" {
		return a / b
	}
	m := math.Mod(a, b)
	if m != 0 && (m < 0) != (b < 0) {
		m += b
	}
	if op == "%" {
		return m
	}
	return math.Floor((a-m)/b + 0.5)
}

// holds is one comparison.
func (it *interp) holds(op string, l, r Value) bool {
	switch op {
	case "==":
		return it.equal(l, r)
	case "!=":
		return !it.equal(l, r)
	case "in":
		return it.contains(r, l)
	case "not in":
		return !it.contains(r, l)
	}
	if a, ok := asFloat(l); ok { // for NaN, which compare cannot order
		if b, ok := asFloat(r); ok && (math.IsNaN(a) || math.IsNaN(b)) {
			return false
		}
	}
	c := it.compare(op, l, r)
	switch op {
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	}
	return c >= 0
}

// compare orders two values; op is for the message when they have no order.
func (it *interp) compare(op string, l, r Value) int {
	fine(l, r)
	it.enter()
	defer it.leave()
	if a, ok := asInt(l); ok {
		if b, ok := asInt(r); ok {
			return cmp.Compare(a, b)
		}
	}
	if a, ok := asFloat(l); ok {
		if b, ok := asFloat(r); ok {
			return cmp.Compare(a, b)
		}
	}
	if a, ok := asString(l); ok {
		if b, ok := asString(r); ok {
			it.spend(1 + min(len(a), len(b))/64)
			return strings.Compare(a, b) // UTF-8 sorts by code point
		}
	}
	if a, ok := l.(*List); ok {
		if b, ok := r.(*List); ok && a.Tuple == b.Tuple {
			for i := range min(len(a.Items), len(b.Items)) {
				if !it.equal(a.Items[i], b.Items[i]) {
					return it.compare(op, a.Items[i], b.Items[i])
				}
			}
			return cmp.Compare(len(a.Items), len(b.Items))
		}
	}
	fail(TypeErr, "'%s' not supported between instances of '%s' and '%s'", op, typeName(l), typeName(r))
	return 0
}

func (it *interp) equal(l, r Value) bool {
	it.enter()
	defer it.leave()
	it.spend(1)
	if a, ok := asInt(l); ok {
		if b, ok := asInt(r); ok {
			return a == b
		}
	}
	if a, ok := asFloat(l); ok {
		b, ok := asFloat(r)
		return ok && a == b
	}
	if a, ok := asString(l); ok {
		b, ok := asString(r)
		it.spend(min(len(a), len(b)) / 64)
		return ok && a == b
	}
	switch a := l.(type) {
	case nil:
		return r == nil
	case *undefined:
		_, ok := r.(*undefined)
		return ok
	case *rng:
		b, ok := r.(*rng)
		return ok && a.n == b.n && (a.n == 0 || a.start == b.start && (a.n == 1 || a.step == b.step))
	case *List:
		b, ok := r.(*List)
		if !ok || a.Tuple != b.Tuple || len(a.Items) != len(b.Items) {
			return false
		}
		if a == b {
			return true
		}
		for i := range a.Items {
			if !it.equal(a.Items[i], b.Items[i]) {
				return false
			}
		}
		return true
	case *Dict:
		b, ok := r.(*Dict)
		if !ok || a.Len() != b.Len() {
			return false
		}
		if a == b {
			return true
		}
		for h, i := range a.index {
			j, ok := b.index[h]
			if !ok || !it.equal(a.vals[i], b.vals[j]) {
				return false
			}
		}
		return true
	}
	return l == r // pointers: identity
}

func (it *interp) contains(in, v Value) bool {
	if s, ok := asString(in); ok {
		sub, ok := asString(v)
		if !ok {
			fail(TypeErr, "'in <string>' requires string as left operand, not %s", typeName(v))
		}
		it.spend(1 + len(s)/64)
		return strings.Contains(s, sub)
	}
	if d, ok := in.(*Dict); ok {
		_, found := d.index[hashKey(v)]
		return found
	}
	switch in.(type) {
	case *List, *rng, *view, *generator, *undefined:
		for _, e := range it.iter(in) {
			if it.equal(e, v) {
				return true
			}
		}
		return false
	}
	fail(TypeErr, "argument of type '%s' is not iterable", typeName(in))
	return false
}

// iter gives the elements of an iterable; a generator is consumed by it. The result must not be changed.
func (it *interp) iter(v Value) []Value {
	switch x := v.(type) {
	case *List:
		it.spend(1 + len(x.Items)/64)
		return x.Items
	case *Dict:
		it.allocList(x.Len())
		return x.keys
	case *view:
		return x.items
	case *generator:
		if x.done {
			return nil
		}
		x.done = true
		return x.items
	case *undefined:
		return nil
	case *rng:
		it.allocList(int(x.n))
		out := make([]Value, x.n)
		for i := range out {
			out[i] = x.start + int64(i)*x.step
		}
		return out
	}
	if s, ok := asString(v); ok {
		n := utf8.RuneCountInString(s)
		it.allocList(2 * n)
		out := make([]Value, 0, n)
		for _, r := range s {
			out = append(out, string(r))
		}
		return out
	}
	fail(TypeErr, "'%s' object is not iterable", typeName(v))
	return nil
}
