package jinja

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

func addListFilters() {
	for name, f := range map[string]func(*interp, *args) Value{
		"length": filterLength, "count": filterLength,
		"first": func(it *interp, a *args) Value {
			if l := it.iter(a.bind("first", param{"seq", required})[0]); len(l) > 0 {
				return l[0]
			}
			return undefinedf("No first item, sequence was empty.")
		},
		"last": func(it *interp, a *args) Value {
			v := a.bind("last", param{"seq", required})[0]
			if _, ok := v.(*generator); ok {
				fail(TypeErr, "'generator' object is not reversible")
			}
			if l := it.iter(v); len(l) > 0 {
				return l[len(l)-1]
			}
			return undefinedf("No last item, sequence was empty.")
		},
		"list": func(it *interp, a *args) Value {
			l := it.iter(a.bind("list", param{"value", required})[0])
			it.allocList(len(l))
			return &List{Items: slices.Clone(l)}
		},
		"join":     filterJoin,
		"reverse":  filterReverse,
		"sort":     filterSort,
		"dictsort": filterDictsort,
		"unique":   filterUnique,
		"groupby":  filterGroupby,
		"batch":    filterBatch,
		"slice":    filterSlice,
		"items": func(it *interp, a *args) Value {
			switch d := a.bind("items", param{"value", required})[0].(type) {
			case *undefined:
				return &generator{name: "generator"}
			case *Dict:
				return &generator{name: "generator", items: it.pairs(d)}
			}
			fail(TypeErr, "Can only get item pairs from a mapping.")
			return nil
		},
		"min": func(it *interp, a *args) Value { return it.extremum("min", a, -1) },
		"max": func(it *interp, a *args) Value { return it.extremum("max", a, 1) },
		"sum": func(it *interp, a *args) Value {
			p := a.bind("sum", param{"iterable", required}, param{"attribute", nil}, param{"start", int64(0)})
			key := it.attrKey(p[1], nil)
			sum := p[2]
			for _, v := range it.iter(p[0]) {
				sum = it.binary("+", sum, key(v))
			}
			return sum
		},
		"map":        filterMap,
		"select":     func(it *interp, a *args) Value { return it.choose("select", a, false, true) },
		"reject":     func(it *interp, a *args) Value { return it.choose("reject", a, false, false) },
		"selectattr": func(it *interp, a *args) Value { return it.choose("selectattr", a, true, true) },
		"rejectattr": func(it *interp, a *args) Value { return it.choose("rejectattr", a, true, false) },
	} {
		filters[name] = f
	}
}

func filterLength(it *interp, a *args) Value {
	v := a.bind("length", param{"obj", required})[0]
	switch x := v.(type) {
	case *List:
		return int64(len(x.Items))
	case *Dict:
		return int64(x.Len())
	case *rng:
		return x.n
	case *view:
		return int64(len(x.items))
	case *undefined:
		return int64(0)
	case *loop:
		return int64(len(x.items))
	}
	if s, ok := asString(v); ok {
		it.spend(1 + len(s)/64)
		return int64(utf8.RuneCountInString(s))
	}
	fail(TypeErr, "object of type '%s' has no len()", typeName(v))
	return nil
}

// attrKey gives what an attribute argument selects: a path such as "function.name" or an index; nil is the value itself.
func (it *interp) attrKey(attribute, missing Value) func(Value) Value {
	if attribute == nil {
		return func(v Value) Value { return v }
	}
	var path []Value
	if s, ok := asString(attribute); ok {
		for _, part := range strings.Split(s, ".") {
			if i, err := strconv.ParseInt(part, 10, 64); err == nil && i >= 0 {
				path = append(path, i)
			} else {
				path = append(path, part)
			}
		}
	} else {
		path = []Value{attribute}
	}
	return func(v Value) Value {
		for _, part := range path {
			it.spend(1)
			if v = it.item(v, part); isUndefined(v) && missing != nil {
				v = missing
			}
		}
		return v
	}
}

func folded(v Value) Value {
	if s, ok := asString(v); ok {
		return lower(s)
	}
	return v
}

// sortKey is the key of sort, min, max and unique.
func (it *interp) sortKey(attribute, caseSensitive Value) func(Value) Value {
	key := it.attrKey(attribute, nil)
	if truthy(caseSensitive) {
		return key
	}
	return func(v Value) Value { return folded(key(v)) }
}

func filterJoin(it *interp, a *args) Value {
	p := a.bind("join", param{"value", required}, param{"d", ""}, param{"attribute", nil})
	key := it.attrKey(p[2], nil)
	sep := it.str(p[1])
	w := it.writer()
	for i, v := range it.iter(p[0]) {
		if i > 0 {
			w.put(sep)
		}
		w.put(it.str(key(v)))
	}
	return w.String()
}

func filterReverse(it *interp, a *args) Value {
	v := a.bind("reverse", param{"value", required})[0]
	items := it.iter(v)
	it.allocList(len(items))
	out := slices.Clone(items)
	slices.Reverse(out)
	if _, ok := asString(v); ok {
		return it.concat(out)
	}
	return &generator{name: "list_reverseiterator", items: out}
}

func (it *interp) concat(parts []Value) string {
	w := it.writer()
	for _, p := range parts {
		w.put(it.str(p))
	}
	return w.String()
}

func (it *interp) sorted(items []Value, key func(Value) Value, descending bool) []Value {
	it.allocList(4 * len(items))
	type entry struct{ v, key Value }
	es := make([]entry, len(items))
	for i, v := range items {
		es[i] = entry{v, key(v)}
	}
	slices.SortStableFunc(es, func(x, y entry) int {
		c := it.compare("<", x.key, y.key)
		if descending {
			return -c
		}
		return c
	})
	out := make([]Value, len(items))
	for i, e := range es {
		out[i] = e.v
	}
	return out
}

func filterSort(it *interp, a *args) Value {
	p := a.bind("sort", param{"value", required}, param{"reverse", false}, param{"case_sensitive", false}, param{"attribute", nil})
	key := it.sortKey(p[3], p[2])
	if s, ok := asString(p[3]); ok && strings.Contains(s, ",") {
		var keys []func(Value) Value
		for _, part := range strings.Split(s, ",") {
			keys = append(keys, it.sortKey(part, p[2]))
		}
		key = func(v Value) Value {
			l := &List{}
			for _, k := range keys {
				l.Items = append(l.Items, k(v))
			}
			return l
		}
	}
	return &List{Items: it.sorted(it.iter(p[0]), key, truthy(p[1]))}
}

func filterDictsort(it *interp, a *args) Value {
	p := a.bind("dictsort", param{"value", required}, param{"case_sensitive", false}, param{"by", "key"}, param{"reverse", false})
	fine(p[0])
	d, ok := p[0].(*Dict)
	if !ok {
		fail(AttributeErr, "'%s' object has no attribute 'items'", typeName(p[0]))
	}
	at := int64(0)
	switch p[2] {
	case "key":
	case "value":
		at = 1
	default:
		fail(ValueErr, `You can only sort by either "key" or "value"`)
	}
	return &List{Items: it.sorted(it.pairs(d), it.sortKey(at, p[1]), truthy(p[3]))}
}

func filterUnique(it *interp, a *args) Value {
	p := a.bind("unique", param{"value", required}, param{"case_sensitive", false}, param{"attribute", nil})
	key := it.sortKey(p[2], p[1])
	seen := map[any]bool{}
	var out []Value
	for _, v := range it.iter(p[0]) {
		it.charge(32)
		if k := hashKey(key(v)); !seen[k] {
			seen[k] = true
			out = append(out, v)
		}
	}
	return &generator{name: "generator", items: out}
}

func filterGroupby(it *interp, a *args) Value {
	p := a.bind("groupby", param{"value", required}, param{"attribute", required}, param{"default", nil}, param{"case_sensitive", false})
	exact := it.attrKey(p[1], p[2])
	key := exact
	if !truthy(p[3]) {
		key = func(v Value) Value { return folded(exact(v)) }
	}
	out := &List{}
	var last Value
	for i, v := range it.sorted(it.iter(p[0]), key, false) {
		k := key(v)
		if i == 0 || !it.equal(k, last) {
			last = k
			out.Items = append(out.Items, &List{Items: []Value{exact(v), &List{}}, Tuple: true, names: []string{"grouper", "list"}})
		}
		group := out.Items[len(out.Items)-1].(*List).Items[1].(*List)
		group.Items = append(group.Items, v)
	}
	return out
}

func filterBatch(it *interp, a *args) Value {
	p := a.bind("batch", param{"value", required}, param{"linecount", required}, param{"fill_with", nil})
	n := int(min(integer(p[1]), maxElements+1))
	items := it.iter(p[0])
	it.allocList(2 * len(items))
	var out []Value
	for i := 0; i < len(items); i += n {
		if n <= 0 {
			n = len(items)
		}
		row := slices.Clone(items[i:min(i+n, len(items))])
		if p[2] != nil {
			it.allocList(n)
			for len(row) < n {
				row = append(row, p[2])
			}
		}
		out = append(out, &List{Items: row})
	}
	return &generator{name: "generator", items: out}
}

func filterSlice(it *interp, a *args) Value {
	p := a.bind("slice", param{"value", required}, param{"slices", required}, param{"fill_with", nil})
	items, n := it.iter(p[0]), int(min(integer(p[1]), maxElements+1))
	it.allocList(len(items) + 4*max(n, 0))
	if n == 0 {
		fail(ZeroDivideErr, "integer division or modulo by zero")
	}
	var out []Value
	at := 0
	for i := range max(n, 0) {
		size := len(items) / n
		if i < len(items)%n {
			size++
		}
		row := slices.Clone(items[at : at+size])
		at += size
		if p[2] != nil && i >= len(items)%n {
			row = append(row, p[2])
		}
		out = append(out, &List{Items: row})
	}
	return &generator{name: "generator", items: out}
}

func (it *interp) extremum(name string, a *args, sign int) Value {
	p := a.bind(name, param{"value", required}, param{"case_sensitive", false}, param{"attribute", nil})
	key := it.sortKey(p[2], p[1])
	op := map[bool]string{true: ">", false: "<"}[sign > 0]
	var best, bestKey Value = undefinedf("No aggregated item, sequence was empty."), nil
	for i, v := range it.iter(p[0]) {
		if k := key(v); i == 0 || it.compare(op, k, bestKey)*sign > 0 {
			best, bestKey = v, k
		}
	}
	return best
}

func filterMap(it *interp, a *args) Value {
	if !truthy(a.pos[0]) { // none is as good as empty here
		return &generator{name: "generator"}
	}
	if len(a.pos) == 1 && len(a.kw) > 0 && (a.kw[0].name == "attribute" || a.kw[0].name == "default") {
		p := a.bind("map", param{"value", required}, param{"attribute", required}, param{"default", nil})
		return it.generate(it.iter(p[0]), it.attrKey(p[1], p[2]))
	}
	if len(a.pos) < 2 {
		fail(FilterArgErr, "map requires a filter argument")
	}
	name := text("map", a.pos[1])
	f := filters[name]
	if f == nil {
		fail(Runtime, "No filter named %s.", strRepr(name))
	}
	rest := a.pos[2:]
	return it.generate(it.iter(a.pos[0]), func(v Value) Value {
		it.spend(1)
		return f(it, &args{pos: append([]Value{v}, rest...), kw: a.kw})
	})
}

func (it *interp) generate(items []Value, f func(Value) Value) Value {
	it.allocList(len(items))
	out := make([]Value, len(items))
	for i, v := range items {
		out[i] = f(v)
	}
	return &generator{name: "generator", items: out}
}

// choose is select, reject, selectattr and rejectattr: the elements for which a test (truth, without one) gives want.
func (it *interp) choose(name string, a *args, byAttr, want bool) Value {
	if !truthy(a.pos[0]) { // none is as good as empty here
		return &generator{name: "generator"}
	}
	rest := a.pos[1:]
	key := it.attrKey(nil, nil)
	if byAttr {
		if len(rest) == 0 {
			fail(FilterArgErr, "Missing parameter for attribute name")
		}
		key = it.attrKey(rest[0], nil)
		rest = rest[1:]
	}
	holds := func(v Value) bool { return truthy(v) }
	if len(rest) > 0 {
		name := text(name, rest[0])
		if _, ok := tests[name]; !ok {
			fail(Runtime, "No test named %s.", strRepr(name))
		}
		holds = func(v Value) bool { return it.runTest(name, v, rest[1:]) }
	}
	items := it.iter(a.pos[0])
	it.allocList(len(items))
	var out []Value
	for _, v := range items {
		if holds(key(v)) == want {
			out = append(out, v)
		}
	}
	return &generator{name: "generator", items: out}
}
