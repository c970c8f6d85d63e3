package jinja

import "fmt"

func undefinedf(format string, a ...any) *undefined {
	return &undefined{UndefinedUse, fmt.Sprintf(format, a...)}
}

func (it *interp) eval(e expr, sc *scope) Value {
	it.enter()
	it.spend(1)
	v := it.evalOne(e, sc)
	it.leave()
	return v
}

func (it *interp) evalOne(e expr, sc *scope) Value {
	switch e := e.(type) {
	case *constExpr:
		return e.v
	case nameExpr:
		return sc.get(string(e))
	case *listExpr:
		it.allocList(len(e.items))
		return &List{Items: it.evalAll(e.items, sc), Tuple: e.tuple}
	case *dictExpr:
		it.allocList(2 * len(e.keys))
		d := NewDict()
		for i, k := range e.keys {
			key := it.eval(k, sc)
			d.set(hashKey(key), key, it.eval(e.vals[i], sc))
		}
		return d
	case *attrExpr:
		return it.attr(it.eval(e.e, sc), e.name)
	case *itemExpr:
		return it.item(it.eval(e.e, sc), it.eval(e.key, sc))
	case *sliceExpr:
		return it.slice(it.eval(e.e, sc), it.evalOpt(e.start, sc), it.evalOpt(e.stop, sc), it.evalOpt(e.step, sc))
	case *callExpr:
		return it.call(it.eval(e.fn, sc), it.args(&e.args, sc))
	case *filterExpr:
		return it.filter(e, nil, sc)
	case *testExpr:
		return it.test(e, sc) != e.not
	case *unaryExpr:
		return it.unary(e.op, it.eval(e.e, sc))
	case *binaryExpr:
		l := it.eval(e.l, sc)
		switch e.op {
		case "and":
			if !truthy(l) {
				return l
			}
			return it.eval(e.r, sc)
		case "or":
			if truthy(l) {
				return l
			}
			return it.eval(e.r, sc)
		}
		return it.binary(e.op, l, it.eval(e.r, sc))
	case concatExpr:
		w := it.writer()
		for _, part := range e {
			w.put(it.str(it.eval(part, sc)))
		}
		return w.String()
	case *compareExpr:
		l := it.eval(e.first, sc)
		for i, op := range e.ops {
			r := it.eval(e.rest[i], sc)
			if !it.holds(op, l, r) {
				return false
			}
			l = r
		}
		return true
	case *condExpr:
		switch {
		case truthy(it.eval(e.cond, sc)):
			return it.eval(e.then, sc)
		case e.els != nil:
			return it.eval(e.els, sc)
		}
		return undefinedf("the inline if-expression on line %d evaluated to false and no else section was defined.", e.line)
	}
	fail(Internal, "no rule to evaluate a %T", e)
	return nil
}

func (it *interp) evalOpt(e expr, sc *scope) Value {
	if e == nil {
		return nil
	}
	return it.eval(e, sc)
}

func (it *interp) evalAll(es []expr, sc *scope) []Value {
	out := make([]Value, len(es))
	for i, e := range es {
		out[i] = it.eval(e, sc)
	}
	return out
}

// args are the evaluated arguments of a call.
type args struct {
	pos []Value
	kw  []keyword
}

type keyword struct {
	name string
	v    Value
}

func (it *interp) args(ca *callArgs, sc *scope) *args {
	a := &args{pos: it.evalAll(ca.pos, sc)}
	for i, name := range ca.names {
		a.kw = append(a.kw, keyword{name, it.eval(ca.vals[i], sc)})
	}
	if ca.star != nil {
		a.pos = append(a.pos, it.iter(it.eval(ca.star, sc))...)
	}
	if ca.kw != nil {
		v := it.eval(ca.kw, sc)
		d, ok := v.(*Dict)
		if !ok {
			fail(TypeErr, "argument after ** must be a mapping, not %s", typeName(v))
		}
		for i, k := range d.keys {
			name, ok := k.(string)
			if !ok {
				fail(TypeErr, "keywords must be strings")
			}
			a.kw = append(a.kw, keyword{name, d.vals[i]})
		}
	}
	return a
}

// param is one parameter of a built-in; required has no default.
type param struct {
	name string
	def  Value
}

type requiredMark struct{}

var required = requiredMark{}

// bind orders arguments by parameter, as a Python call would.
func (a *args) bind(fn string, params ...param) []Value {
	out := make([]Value, len(params))
	if len(a.pos) > len(params) {
		fail(TypeErr, "%s() takes %d positional arguments but %d were given", fn, len(params), len(a.pos))
	}
	set := make([]bool, len(params))
	for i, v := range a.pos {
		out[i], set[i] = v, true
	}
next:
	for _, k := range a.kw {
		for i, p := range params {
			if p.name != k.name {
				continue
			}
			if set[i] {
				fail(TypeErr, "%s() got multiple values for argument %s", fn, strRepr(k.name))
			}
			out[i], set[i] = k.v, true
			continue next
		}
		fail(TypeErr, "%s() got an unexpected keyword argument %s", fn, strRepr(k.name))
	}
	for i, p := range params {
		if set[i] {
			continue
		}
		if p.def == required {
			fail(TypeErr, "%s() missing 1 required positional argument: %s", fn, strRepr(p.name))
		}
		out[i] = p.def
	}
	return out
}

func (it *interp) call(fn Value, a *args) Value {
	it.enter()
	defer it.leave()
	switch f := fn.(type) {
	case *function:
		return f.fn(it, a)
	case *macro:
		return it.callMacro(f, a)
	case *loop:
		if f.again == nil {
			fail(TypeErr, "The loop must have the 'recursive' marker to be called recursively.")
		}
		return f.again(a.bind("loop", param{"iterable", required})[0], f.depth+1)
	case *undefined:
		fail(f.kind, "%s", f.msg)
	}
	fail(TypeErr, "'%s' object is not callable", typeName(fn))
	return nil
}

// filter applies e to its input; base is the text of a block where e has no input of its own.
func (it *interp) filter(e *filterExpr, base Value, sc *scope) Value {
	in := base
	switch inner := e.e.(type) {
	case nil:
	case *filterExpr:
		it.enter()
		in = it.filter(inner, base, sc)
		it.leave()
	default:
		in = it.eval(inner, sc)
	}
	f := filters[e.name]
	if f == nil {
		fail(Runtime, "No filter named %s found.", strRepr(e.name))
	}
	a := it.args(&e.args, sc)
	a.pos = append([]Value{in}, a.pos...)
	it.spend(1)
	return f(it, a)
}

func (it *interp) test(e *testExpr, sc *scope) bool {
	v := it.eval(e.e, sc)
	a := it.args(&e.args, sc)
	if len(a.kw) > 0 {
		fail(TypeErr, "test %s takes no keyword arguments", strRepr(e.name))
	}
	return it.runTest(e.name, v, a.pos)
}

func (it *interp) runTest(name string, v Value, rest []Value) bool {
	t, ok := tests[name]
	if !ok {
		fail(Runtime, "No test named %s found.", strRepr(name))
	}
	if len(rest) != t.args {
		fail(TypeErr, "test %s takes %d arguments, got %d", strRepr(name), t.args, len(rest))
	}
	it.spend(1)
	return t.fn(it, v, rest)
}
