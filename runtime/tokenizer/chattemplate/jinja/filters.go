package jinja

import (
	"math"
	"math/big"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

var filters map[string]func(*interp, *args) Value

// onString makes a filter without arguments on the text of its input; the result is at most three times as long.
func onString(name string, f func(string) Value) func(*interp, *args) Value {
	return func(it *interp, a *args) Value {
		s := it.str(a.bind(name, param{"value", required})[0])
		it.alloc(3 * len(s))
		return f(s)
	}
}

func init() {
	filters = map[string]func(*interp, *args) Value{
		"upper":      onString("upper", func(s string) Value { return upper(s) }),
		"lower":      onString("lower", func(s string) Value { return lower(s) }),
		"capitalize": onString("capitalize", func(s string) Value { return capitalize(s) }),
		"title":      onString("title", func(s string) Value { return titleFilter(s) }),
		"string":     filterString,
		"wordcount":  onString("wordcount", func(s string) Value { return int64(len(words.FindAllString(s, -1))) }),
		"urlencode": onString("urlencode", func(s string) Value {
			return strings.NewReplacer("+", "%20", "%2F", "/", "%7E", "~").Replace(url.QueryEscape(s))
		}),
		"trim": func(it *interp, a *args) Value {
			p := a.bind("trim", param{"value", required}, param{"chars", nil})
			return strip(it.str(p[0]), p[1], true, true)
		},
		"center": func(it *interp, a *args) Value {
			p := a.bind("center", param{"value", required}, param{"width", int64(80)})
			return strMethods["center"](it, it.str(p[0]), &args{pos: p[1:]})
		},
		"replace": func(it *interp, a *args) Value {
			p := a.bind("replace", param{"s", required}, param{"old", required}, param{"new", required}, param{"count", nil})
			n := -1
			if p[3] != nil {
				n = count(p[3])
			}
			return it.replace(it.str(p[0]), it.str(p[1]), it.str(p[2]), n)
		},
		"indent":   filterIndent,
		"truncate": filterTruncate,
		"format": func(it *interp, a *args) Value {
			s := it.str(append(a.pos, "")[0])
			if len(a.kw) == 0 {
				return it.printf(s, &List{Items: a.pos[1:], Tuple: true})
			}
			d := NewDict()
			for _, k := range a.kw {
				d.Set(k.name, k.v)
			}
			return it.printf(s, d)
		},
		"escape": filterEscape, "e": filterEscape, "forceescape": filterEscape,
		"safe":    func(it *interp, a *args) Value { return markup(it.str(a.bind("safe", param{"value", required})[0])) },
		"default": filterDefault, "d": filterDefault,
		"int":    filterInt,
		"float":  filterFloat,
		"round":  filterRound,
		"abs":    filterAbs,
		"tojson": filterTojson,
		"attr": func(it *interp, a *args) Value {
			p := a.bind("attr", param{"obj", required}, param{"name", required})
			fine(p[0])
			name := it.str(p[1])
			if v, ok := it.member(p[0], name); ok {
				return v
			}
			return noAttr(p[0], name)
		},
	}
	addListFilters()
}

var words = regexp.MustCompile(`[\p{L}\p{N}_]+`)

// titleFilter is the filter's own rule, which differs from str.title(): words begin behind space, hyphen or an opening bracket.
func titleFilter(s string) string {
	start := true
	return strings.Map(func(r rune) rune {
		was := start
		start = isSpace(r) || strings.ContainsRune("-({[<", r)
		if was {
			return unicode.ToUpper(r)
		}
		return unicode.ToLower(r)
	}, s)
}

func filterString(it *interp, a *args) Value {
	v := a.bind("string", param{"value", required})[0]
	if m, ok := v.(markup); ok {
		return m
	}
	return it.str(v)
}

func filterEscape(it *interp, a *args) Value {
	return markup(it.escape(a.bind("escape", param{"value", required})[0]))
}

func filterDefault(it *interp, a *args) Value {
	p := a.bind("default", param{"value", required}, param{"default_value", ""}, param{"boolean", false})
	if isUndefined(p[0]) || truthy(p[2]) && !truthy(p[0]) {
		return p[1]
	}
	return p[0]
}

func filterInt(it *interp, a *args) Value {
	p := a.bind("int", param{"value", required}, param{"default", int64(0)}, param{"base", int64(10)})
	fine(p[0])
	base := int(min(max(integer(p[2]), 1), 37))
	if base < 2 || base > 36 {
		fail(ValueErr, "int() base must be >= 2 and <= 36, or 0")
	}
	if v, ok := toInt(p[0], base); ok {
		return v
	}
	return p[1]
}

func filterFloat(it *interp, a *args) Value {
	p := a.bind("float", param{"value", required}, param{"default", 0.0})
	fine(p[0])
	if f, ok := toFloat(p[0]); ok {
		return f
	}
	return p[1]
}

func filterRound(it *interp, a *args) Value {
	p := a.bind("round", param{"value", required}, param{"precision", int64(0)}, param{"method", "common"})
	fine(p[0])
	f, ok := asFloat(p[0])
	if !ok {
		fail(TypeErr, "type %s doesn't define __round__ method", typeName(p[0]))
	}
	digits := int(max(min(integer(p[1]), 400), -400))
	switch p[2] {
	case "common":
		if i, ok := asInt(p[0]); ok && digits >= 0 {
			return i
		}
		if digits >= 0 { // rounds the exact binary value, ties to even, as Python does
			r, err := strconv.ParseFloat(strconv.FormatFloat(f, 'f', digits, 64), 64)
			if err != nil {
				fail(OverflowErr, "rounded value too large to represent")
			}
			return r
		}
		scale := math.Pow(10, float64(-digits))
		r := math.RoundToEven(f/scale) * scale
		if _, ok := asInt(p[0]); ok {
			return int64(r)
		}
		return r
	case "ceil":
		return math.Ceil(f*math.Pow(10, float64(digits))) / math.Pow(10, float64(digits))
	case "floor":
		return math.Floor(f*math.Pow(10, float64(digits))) / math.Pow(10, float64(digits))
	}
	fail(ValueErr, "method must be common, ceil or floor")
	return nil
}

func filterAbs(it *interp, a *args) Value {
	v := a.bind("abs", param{"value", required})[0]
	fine(v)
	switch x := v.(type) {
	case float64:
		return math.Abs(x)
	case *big.Int:
		return new(big.Int).Abs(x)
	}
	i, ok := asInt(v)
	if !ok {
		fail(TypeErr, "bad operand type for abs(): '%s'", typeName(v))
	}
	if i < 0 {
		return it.unary("-", i)
	}
	return i
}

// filterTojson has the signature that transformers gives the filter.
func filterTojson(it *interp, a *args) Value {
	p := a.bind("tojson", param{"x", required}, param{"ensure_ascii", false}, param{"indent", nil}, param{"separators", nil}, param{"sort_keys", false})
	st := &jsonStyle{ascii: truthy(p[1]), sortKeys: truthy(p[4]), item: ", ", pair: ": "}
	if p[2] != nil {
		st.pretty, st.item = true, ","
		if s, ok := asString(p[2]); ok {
			st.indent = s
		} else {
			n := max(integer(p[2]), 0)
			it.alloc(int(min(n, 1<<40)))
			st.indent = strings.Repeat(" ", int(n))
		}
	}
	if p[3] != nil {
		s := it.iter(p[3])
		if len(s) != 2 {
			fail(ValueErr, "separators must be two strings")
		}
		st.item, st.pair = text("separators", s[0]), text("separators", s[1])
	}
	w := it.writer()
	it.json(w, p[0], st, 0)
	return w.String()
}

func filterIndent(it *interp, a *args) Value {
	p := a.bind("indent", param{"s", required}, param{"width", int64(4)}, param{"first", false}, param{"blank", false})
	s := it.str(p[0])
	pad, ok := asString(p[1])
	if !ok {
		n := max(integer(p[1]), 0)
		it.alloc(int(min(n, 1<<40)))
		pad = strings.Repeat(" ", int(n))
	}
	it.alloc(len(s))
	w := it.writer()
	lines := splitLines(s+"\n", false) // a line break at the end makes one more, empty line
	for i, line := range lines {
		if i > 0 {
			w.put("\n")
		}
		if (i > 0 || truthy(p[2])) && (line != "" || truthy(p[3]) || i == 0) {
			w.put(pad)
		}
		w.put(line)
	}
	return w.String()
}

func filterTruncate(it *interp, a *args) Value {
	p := a.bind("truncate", param{"s", required}, param{"length", int64(255)}, param{"killwords", false}, param{"end", "..."}, param{"leeway", int64(5)})
	s, length, end := it.str(p[0]), integer(p[1]), it.str(p[3])
	n := int64(utf8.RuneCountInString(s))
	if p[4] == nil {
		p[4] = int64(5)
	}
	if n <= length+integer(p[4]) {
		return s
	}
	keep := length - int64(utf8.RuneCountInString(end))
	if keep < 0 {
		fail(ValueErr, "expected length >= %d, got %d", utf8.RuneCountInString(end), length)
	}
	s = it.slice(s, nil, keep, nil).(string)
	if at := strings.LastIndexByte(s, ' '); at >= 0 && !truthy(p[2]) {
		s = s[:at]
	}
	return s + end
}
