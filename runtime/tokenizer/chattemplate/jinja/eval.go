package jinja

import (
	"context"
	"time"
)

// interp is one rendering.
type interp struct {
	ctx       context.Context
	lim       Limits
	now       func() time.Time
	steps     int64
	bytes     int64
	nextCheck int64
	depth     int
	line      int
}

type scope struct {
	vars   map[string]Value
	parent *scope
}

func newScope(parent *scope) *scope { return &scope{map[string]Value{}, parent} }

func (s *scope) get(name string) Value {
	for c := s; c != nil; c = c.parent {
		if v, ok := c.vars[name]; ok {
			return v
		}
	}
	return undefinedf("%s is undefined", strRepr(name))
}

// signal says how a list of statements ended.
type signal int

const (
	done signal = iota
	breaking
	continuing
)

func (it *interp) exec(w *writer, body []stmt, sc *scope) signal {
	it.enter()
	defer it.leave()
	for _, s := range body {
		it.spend(1)
		if sig := it.execOne(w, s, sc); sig != done {
			return sig
		}
	}
	return done
}

func (it *interp) execOne(w *writer, s stmt, sc *scope) signal {
	switch s := s.(type) {
	case *textStmt:
		w.put(s.text)
	case *printStmt:
		it.line = s.line
		w.put(it.str(it.eval(s.e, sc)))
	case *ifStmt:
		return it.execIf(w, s, sc)
	case *forStmt:
		it.execFor(w, s, sc)
	case *setStmt:
		it.line = s.line
		it.assign(s.to, it.eval(s.e, sc), sc)
	case *setBlockStmt:
		var v Value = it.capture(s.body, newScope(sc))
		it.line = s.line
		if s.filter != nil {
			v = it.filter(s.filter, v, sc)
		}
		it.assign(s.to, v, sc)
	case *macroStmt:
		sc.vars[s.def.name] = &macro{s.def, sc}
	case *callStmt:
		it.line = s.line
		fn := it.eval(s.call.fn, sc)
		a := it.args(&s.call.args, sc)
		a.kw = append(a.kw, keyword{"caller", &macro{s.def, sc}})
		w.put(it.str(it.call(fn, a)))
	case *filterStmt:
		body := it.capture(s.body, newScope(sc))
		it.line = s.line
		w.put(it.str(it.filter(s.filter, body, sc)))
	case *withStmt:
		it.line = s.line
		inner := newScope(sc)
		for i, e := range s.vals { // each value is evaluated outside the block
			it.assign(s.to[i], it.eval(e, sc), inner)
		}
		return it.exec(w, s.body, inner)
	case *scopeStmt:
		return it.exec(w, s.body, newScope(sc))
	case breakStmt:
		return breaking
	case continueStmt:
		return continuing
	}
	return done
}

// execIf walks an if/elif chain without nesting deeper with each branch.
func (it *interp) execIf(w *writer, s *ifStmt, sc *scope) signal {
	for {
		it.line = s.line
		if truthy(it.eval(s.cond, sc)) {
			return it.exec(w, s.then, sc)
		}
		if len(s.els) == 1 {
			if next, ok := s.els[0].(*ifStmt); ok {
				it.spend(1)
				s = next
				continue
			}
		}
		return it.exec(w, s.els, sc)
	}
}

func (it *interp) capture(body []stmt, sc *scope) string {
	w := it.writer()
	it.exec(w, body, sc)
	return w.String()
}

func (it *interp) assign(to target, v Value, sc *scope) {
	switch to := to.(type) {
	case nameTarget:
		sc.vars[string(to)] = v
	case attrTarget:
		ns, ok := sc.get(to.ns).(*namespace)
		if !ok {
			fail(Runtime, "cannot assign attribute on non-namespace object")
		}
		ns.attrs.Set(to.attr, v)
	case tupleTarget:
		if !iterable(v) {
			fail(TypeErr, "cannot unpack non-iterable %s object", typeName(v))
		}
		items := it.iter(v)
		if len(items) < len(to) {
			fail(ValueErr, "not enough values to unpack (expected %d, got %d)", len(to), len(items))
		}
		if len(items) > len(to) {
			fail(ValueErr, "too many values to unpack (expected %d)", len(to))
		}
		for i, t := range to {
			it.assign(t, items[i], sc)
		}
	}
}

// loop is the variable of that name inside a for block.
type loop struct {
	it      *interp
	items   []Value
	i       int
	depth   int64
	changed []Value
	again   func(Value, int64) string // of a recursive loop
}

func (it *interp) execFor(w *writer, s *forStmt, sc *scope) {
	it.line = s.line
	it.forItems(w, s, it.eval(s.iter, sc), sc, 0)
}

func (it *interp) forItems(w *writer, s *forStmt, over Value, sc *scope, depth int64) {
	items := it.iter(over)
	if s.test != nil {
		var kept []Value
		for _, v := range items {
			inner := newScope(sc)
			it.assign(s.to, v, inner)
			if truthy(it.eval(s.test, inner)) {
				kept = append(kept, v)
			}
		}
		items = kept
	}
	l := &loop{it: it, items: items, depth: depth}
	if s.recursive {
		l.again = func(v Value, d int64) string {
			w := it.writer()
			it.forItems(w, s, v, sc, d)
			return w.String()
		}
	}
	for i, v := range items {
		it.spend(4)
		l.i = i
		inner := newScope(sc)
		inner.vars["loop"] = l
		it.assign(s.to, v, inner)
		if it.exec(w, s.body, inner) == breaking {
			break
		}
	}
	if len(items) == 0 && s.els != nil {
		it.exec(w, s.els, newScope(sc))
	}
}

func (l *loop) attr(name string) (Value, bool) {
	n := int64(len(l.items))
	i := int64(l.i)
	switch name {
	case "index":
		return i + 1, true
	case "index0":
		return i, true
	case "revindex":
		return n - i, true
	case "revindex0":
		return n - i - 1, true
	case "first":
		return i == 0, true
	case "last":
		return i == n-1, true
	case "length":
		return n, true
	case "depth":
		return l.depth + 1, true
	case "depth0":
		return l.depth, true
	case "previtem":
		if i == 0 {
			return undefinedf("there is no previous item"), true
		}
		return l.items[i-1], true
	case "nextitem":
		if i == n-1 {
			return undefinedf("there is no next item"), true
		}
		return l.items[i+1], true
	case "cycle":
		return &function{"cycle", func(_ *interp, a *args) Value {
			if len(a.pos) == 0 {
				fail(TypeErr, "no items for cycling given")
			}
			return a.pos[i%int64(len(a.pos))]
		}}, true
	case "changed":
		return &function{"changed", func(it *interp, a *args) Value {
			now := &List{Items: a.pos, Tuple: true}
			if l.changed != nil && it.equal(&List{Items: l.changed, Tuple: true}, now) {
				return false
			}
			l.changed = append([]Value{}, a.pos...)
			return true
		}}, true
	}
	return nil, false
}

// macro is a callable made by a template.
type macro struct {
	def *macroDef
	sc  *scope // where it was defined
}

func (it *interp) callMacro(m *macro, a *args) Value {
	def := m.def
	inner := newScope(m.sc)
	if len(a.pos) > len(def.params) && !def.varargs {
		fail(TypeErr, "macro %s takes not more than %d argument(s)", strRepr(def.name), len(def.params))
	}
	for i, name := range def.params {
		if i < len(a.pos) {
			inner.vars[name] = a.pos[i]
		}
	}
	extra := NewDict()
	for _, k := range a.kw {
		at := -1
		for i, name := range def.params {
			if name == k.name {
				at = i
			}
		}
		switch {
		case at >= len(a.pos), k.name == "caller" && def.caller:
			inner.vars[k.name] = k.v
		case def.kwargs:
			extra.Set(k.name, k.v)
		case k.name == "caller":
			fail(TypeErr, "macro %s was invoked with two values for the special caller argument. This is most likely a bug.", strRepr(def.name))
		default:
			fail(TypeErr, "macro %s takes no keyword argument %s", strRepr(def.name), strRepr(k.name))
		}
	}
	for i, name := range def.params {
		if _, ok := inner.vars[name]; ok {
			continue
		}
		if d := i - (len(def.params) - len(def.defaults)); d >= 0 {
			inner.vars[name] = it.eval(def.defaults[d], inner)
		} else {
			inner.vars[name] = undefinedf("parameter %s was not provided", strRepr(name))
		}
	}
	if def.varargs {
		inner.vars["varargs"] = &List{Items: a.pos[min(len(a.pos), len(def.params)):], Tuple: true}
	}
	if def.kwargs {
		inner.vars["kwargs"] = extra
	}
	if _, ok := inner.vars["caller"]; def.caller && !ok {
		inner.vars["caller"] = undefinedf("No caller defined")
	}
	line := it.line
	out := it.capture(def.body, inner)
	it.line = line
	return out
}
