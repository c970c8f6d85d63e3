package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// upper and lower follow the full case mappings of Unicode, as Python does ("ß" is "SS").
func upper(s string) string { return cases.Upper(language.Und).String(s) }
func lower(s string) string { return cases.Lower(language.Und).String(s) }

func capitalize(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return strings.Map(unicode.ToTitle, s[:n]) + lower(s[n:])
}

// titleWords is str.title(): letters after a letter are small, others large.
func titleWords(s string) string {
	in := false
	return strings.Map(func(r rune) rune {
		cased := unicode.IsUpper(r) || unicode.IsLower(r) || unicode.IsTitle(r)
		was := in
		in = cased
		if was {
			return unicode.ToLower(r)
		}
		return unicode.ToTitle(r)
	}, s)
}

func every(s string, is func(rune) bool) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return !is(r) }) < 0
}

// cased is isupper or islower: no letter of the other case, and one of this.
func cased(s string, want, not func(rune) bool) bool {
	return strings.IndexFunc(s, want) >= 0 && strings.IndexFunc(s, func(r rune) bool { return not(r) || unicode.IsTitle(r) }) < 0
}

// text takes a string argument of a method.
func text(fn string, v Value) string {
	s, ok := asString(v)
	if !ok {
		fine(v)
		fail(TypeErr, "%s() argument must be str, not %s", fn, typeName(v))
	}
	return s
}

func integer(v Value) int64 {
	i, ok := asInt(v)
	if !ok {
		fine(v)
		fail(TypeErr, "'%s' object cannot be interpreted as an integer", typeName(v))
	}
	return i
}

// number of replacements or cuts: negative is no limit.
func count(v Value) int { return int(max(min(integer(v), 1<<31), -1)) }

type strMethod func(it *interp, s string, a *args) Value

// plain makes a method without arguments whose result is no longer than three times s.
func plain(name string, f func(string) Value) strMethod {
	return func(it *interp, s string, a *args) Value {
		a.bind(name)
		it.alloc(3 * len(s))
		return f(s)
	}
}

func stringList(parts []string) *List {
	l := &List{Items: make([]Value, len(parts))}
	for i, p := range parts {
		l.Items[i] = p
	}
	return l
}

var strMethods map[string]strMethod

func init() {
	strMethods = map[string]strMethod{
		"upper":      plain("upper", func(s string) Value { return upper(s) }),
		"lower":      plain("lower", func(s string) Value { return lower(s) }),
		"casefold":   plain("casefold", func(s string) Value { return cases.Fold().String(s) }),
		"capitalize": plain("capitalize", func(s string) Value { return capitalize(s) }),
		"title":      plain("title", func(s string) Value { return titleWords(s) }),
		"swapcase": plain("swapcase", func(s string) Value {
			return strings.Map(func(r rune) rune {
				if unicode.IsUpper(r) {
					return unicode.ToLower(r)
				}
				return unicode.ToUpper(r)
			}, s)
		}),
		"isdigit":   plain("isdigit", func(s string) Value { return every(s, unicode.IsDigit) }),
		"isdecimal": plain("isdecimal", func(s string) Value { return every(s, unicode.IsDigit) }),
		"isnumeric": plain("isnumeric", func(s string) Value { return every(s, unicode.IsNumber) }),
		"isalpha":   plain("isalpha", func(s string) Value { return every(s, unicode.IsLetter) }),
		"isalnum": plain("isalnum", func(s string) Value {
			return every(s, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) })
		}),
		"isspace": plain("isspace", func(s string) Value { return every(s, isSpace) }),
		"isascii": plain("isascii", func(s string) Value { return s == "" || every(s, func(r rune) bool { return r < 0x80 }) }),
		"isupper": plain("isupper", func(s string) Value { return cased(s, unicode.IsUpper, unicode.IsLower) }),
		"islower": plain("islower", func(s string) Value { return cased(s, unicode.IsLower, unicode.IsUpper) }),
		"strip":   stripMethod("strip", true, true),
		"lstrip":  stripMethod("lstrip", true, false),
		"rstrip":  stripMethod("rstrip", false, true),
		"split":   splitMethod("split", false), "rsplit": splitMethod("rsplit", true),
		"splitlines": func(it *interp, s string, a *args) Value {
			keep := truthy(a.bind("splitlines", param{"keepends", false})[0])
			it.alloc(len(s))
			l := stringList(splitLines(s, keep))
			it.allocList(len(l.Items))
			return l
		},
		"startswith": affix("startswith", strings.HasPrefix), "endswith": affix("endswith", strings.HasSuffix),
		"removeprefix": func(_ *interp, s string, a *args) Value {
			return strings.TrimPrefix(s, text("removeprefix", a.bind("removeprefix", param{"prefix", required})[0]))
		},
		"removesuffix": func(_ *interp, s string, a *args) Value {
			return strings.TrimSuffix(s, text("removesuffix", a.bind("removesuffix", param{"suffix", required})[0]))
		},
		"find": findMethod("find", strings.Index), "rfind": findMethod("rfind", strings.LastIndex),
		"index": findMethod("index", strings.Index), "rindex": findMethod("rindex", strings.LastIndex),
		"count": func(it *interp, s string, a *args) Value {
			p := a.bind("count", param{"sub", required}, param{"start", nil}, param{"end", nil})
			s, _ = it.between(s, p[1], p[2])
			it.spend(1 + len(s)/64)
			return int64(strings.Count(s, text("count", p[0])))
		},
		"replace": func(it *interp, s string, a *args) Value {
			p := a.bind("replace", param{"old", required}, param{"new", required}, param{"count", int64(-1)})
			return it.replace(s, text("replace", p[0]), text("replace", p[1]), count(p[2]))
		},
		"join": func(it *interp, s string, a *args) Value {
			w := it.writer()
			list := a.bind("join", param{"iterable", required})[0]
			if !iterable(list) {
				fail(TypeErr, "can only join an iterable")
			}
			for i, e := range it.iter(list) {
				if i > 0 {
					w.put(s)
				}
				part, ok := asString(e)
				if !ok {
					fail(TypeErr, "sequence item %d: expected str instance, %s found", i, typeName(e))
				}
				w.put(part)
			}
			return w.String()
		},
		"partition": func(_ *interp, s string, a *args) Value {
			return cut(s, strings.Index(s, sep(a.bind("partition", param{"sep", required})[0])), a, false)
		},
		"rpartition": func(_ *interp, s string, a *args) Value {
			return cut(s, strings.LastIndex(s, sep(a.bind("rpartition", param{"sep", required})[0])), a, true)
		},
		"zfill": func(it *interp, s string, a *args) Value {
			n := it.padding(s, a.bind("zfill", param{"width", required})[0])
			sign := ""
			if s != "" && (s[0] == '-' || s[0] == '+') {
				sign, s = s[:1], s[1:]
			}
			return sign + strings.Repeat("0", n) + s
		},
		"ljust": justify("ljust", func(n int) (int, int) { return 0, n }),
		"rjust": justify("rjust", func(n int) (int, int) { return n, 0 }),
		"center": func(it *interp, s string, a *args) Value {
			width := integer(a.bind("center", param{"width", required}, param{"fillchar", " "})[0])
			return justify("center", func(n int) (int, int) {
				left := n/2 + n&int(width)&1 // where Python puts the odd one
				return left, n - left
			})(it, s, a)
		},
		"format": func(it *interp, s string, a *args) Value { return it.format(s, a) },
	}
}

func sep(v Value) string {
	s, ok := asString(v)
	if !ok {
		fine(v)
		fail(TypeErr, "must be str or None, not %s", typeName(v))
	}
	if s == "" {
		fail(ValueErr, "empty separator")
	}
	return s
}

func cut(s string, at int, a *args, last bool) Value {
	if at < 0 {
		if last {
			return &List{Items: []Value{"", "", s}, Tuple: true}
		}
		return &List{Items: []Value{s, "", ""}, Tuple: true}
	}
	d, _ := asString(append(a.pos, nil)[0])
	return &List{Items: []Value{s[:at], d, s[at+len(d):]}, Tuple: true}
}

// strip is Python's strip family; chars nil is white space.
func strip(s string, chars Value, left, right bool) string {
	in := isSpace
	if chars != nil {
		set := text("strip", chars)
		in = func(r rune) bool { return strings.ContainsRune(set, r) }
	}
	if left {
		s = strings.TrimLeftFunc(s, in)
	}
	if right {
		s = strings.TrimRightFunc(s, in)
	}
	return s
}

func stripMethod(name string, left, right bool) strMethod {
	return func(it *interp, s string, a *args) Value {
		chars := a.bind(name, param{"chars", nil})[0]
		it.spend(1 + len(s)/64)
		return strip(s, chars, left, right)
	}
}

func splitMethod(name string, fromRight bool) strMethod {
	return func(it *interp, s string, a *args) Value {
		p := a.bind(name, param{"sep", nil}, param{"maxsplit", int64(-1)})
		limit := count(p[1])
		var parts []string
		it.alloc(len(s))
		switch {
		case p[0] == nil:
			parts = splitSpace(s, limit, fromRight)
		case fromRight:
			d := sep(p[0])
			for limit != 0 {
				at := strings.LastIndex(s, d)
				if at < 0 {
					break
				}
				parts = append(parts, s[at+len(d):])
				s = s[:at]
				limit--
			}
			parts = append(parts, s)
			reverse(parts)
		default:
			if limit >= 0 {
				limit++
			}
			parts = strings.SplitN(s, sep(p[0]), limit)
		}
		it.allocList(len(parts))
		return stringList(parts)
	}
}

func splitSpace(s string, limit int, fromRight bool) (parts []string) {
	if fromRight {
		for s = strings.TrimRightFunc(s, isSpace); s != "" && limit != 0; limit-- {
			at := strings.LastIndexFunc(s, isSpace)
			if at < 0 {
				break
			}
			_, n := utf8.DecodeRuneInString(s[at:])
			parts = append(parts, s[at+n:])
			s = strings.TrimRightFunc(s[:at], isSpace)
		}
		if s != "" {
			parts = append(parts, s)
		}
		reverse(parts)
		return parts
	}
	for s = strings.TrimLeftFunc(s, isSpace); s != "" && limit != 0; limit-- {
		at := strings.IndexFunc(s, isSpace)
		if at < 0 {
			break
		}
		parts = append(parts, s[:at])
		s = strings.TrimLeftFunc(s[at:], isSpace)
	}
	if s != "" {
		parts = append(parts, s)
	}
	return parts
}
