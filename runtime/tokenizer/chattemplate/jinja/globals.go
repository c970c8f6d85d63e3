package jinja

// globals are the functions that every template sees.
var globals *scope

func init() {
	globals = newScope(nil)
	for name, fn := range map[string]func(*interp, *args) Value{
		"range":     newRange,
		"dict":      newDict,
		"namespace": func(it *interp, a *args) Value { return &namespace{newDict(it, a).(*Dict)} },
		"cycler": func(_ *interp, a *args) Value {
			if len(a.pos) == 0 {
				fail(TypeErr, "at least one item has to be provided")
			}
			return &cycler{items: a.pos}
		},
		"joiner": func(it *interp, a *args) Value {
			sep := a.bind("joiner", param{"sep", ", "})[0]
			used := false
			return &function{"joiner", func(*interp, *args) Value {
				if !used {
					used = true
					return ""
				}
				return sep
			}}
		},
		"raise_exception": func(it *interp, a *args) Value {
			fail(Raised, "%s", it.str(a.bind("raise_exception", param{"message", required})[0]))
			return nil
		},
		"strftime_now": func(it *interp, a *args) Value {
			format := text("strftime", a.bind("strftime_now", param{"format", required})[0])
			it.alloc(64 * len(format))
			return strftime(it.now(), format)
		},
	} {
		globals.vars[name] = &function{name, fn}
	}
}

func newRange(it *interp, a *args) Value {
	r := &rng{step: 1}
	switch len(a.pos) {
	case 1:
		r.stop = integer(a.pos[0])
	case 2, 3:
		r.start, r.stop = integer(a.pos[0]), integer(a.pos[1])
		if len(a.pos) == 3 {
			r.step = integer(a.pos[2])
		}
	case 0:
		fail(TypeErr, "range expected at least 1 argument, got 0")
	default:
		fail(TypeErr, "range expected at most 3 arguments, got %d", len(a.pos))
	}
	if len(a.kw) > 0 {
		fail(TypeErr, "range() takes no keyword arguments")
	}
	const far = 1 << 60
	switch {
	case r.step == 0:
		fail(ValueErr, "range() arg 3 must not be zero")
	case max(r.start, r.stop, r.step) > far || min(r.start, r.stop, r.step) < -far:
		fail(OverflowErr, "Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", maxRange)
	case r.step > 0 && r.stop > r.start:
		r.n = (r.stop-r.start-1)/r.step + 1
	case r.step < 0 && r.stop < r.start:
		r.n = (r.start-r.stop-1)/-r.step + 1
	}
	if r.n > maxRange {
		fail(OverflowErr, "Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", maxRange)
	}
	return r
}

func newDict(it *interp, a *args) Value {
	d := NewDict()
	if len(a.pos) > 1 {
		fail(TypeErr, "dict expected at most 1 argument, got %d", len(a.pos))
	}
	if len(a.pos) == 1 {
		if src, ok := a.pos[0].(*Dict); ok {
			it.allocList(4 * src.Len())
			d = src.Clone()
		} else {
			fine(a.pos[0])
			items := it.iter(a.pos[0])
			it.allocList(4 * len(items))
			for i, e := range items {
				if !iterable(e) {
					fail(TypeErr, "cannot convert dictionary update sequence element #%d to a sequence", i)
				}
				pair := it.iter(e)
				if len(pair) != 2 {
					fail(ValueErr, "dictionary update sequence element #%d has length %d; 2 is required", i, len(pair))
				}
				d.set(hashKey(pair[0]), pair[0], pair[1])
			}
		}
	}
	for _, k := range a.kw {
		d.Set(k.name, k.v)
	}
	return d
}

func (c *cycler) member(name string) (Value, bool) {
	switch name {
	case "current":
		return c.items[c.pos], true
	case "next":
		return &function{name, func(*interp, *args) Value {
			v := c.items[c.pos]
			c.pos = (c.pos + 1) % len(c.items)
			return v
		}}, true
	case "reset":
		return &function{name, func(*interp, *args) Value {
			c.pos = 0
			return nil
		}}, true
	}
	return nil, false
}
