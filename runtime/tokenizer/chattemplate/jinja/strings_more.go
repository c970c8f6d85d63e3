package jinja

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

func reverse(s []string) { slices.Reverse(s) }

// splitLines cuts at every line boundary that Python knows.
func splitLines(s string, keep bool) (out []string) {
	for s != "" {
		at := strings.IndexFunc(s, func(r rune) bool {
			return r >= '\n' && r <= '\r' || r >= 0x1c && r <= 0x1e || r == 0x85 || r == 0x2028 || r == 0x2029
		})
		if at < 0 {
			return append(out, s)
		}
		_, n := utf8.DecodeRuneInString(s[at:])
		if strings.HasPrefix(s[at:], "\r\n") {
			n = 2
		}
		if keep {
			out = append(out, s[:at+n])
		} else {
			out = append(out, s[:at])
		}
		s = s[at+n:]
	}
	return out
}

func affix(name string, has func(s, affix string) bool) strMethod {
	return func(it *interp, s string, a *args) Value {
		p := a.bind(name, param{"affix", required}, param{"start", nil}, param{"end", nil})
		s, ok := it.between(s, p[1], p[2])
		list, isTuple := p[0].(*List)
		if !isTuple || !list.Tuple {
			one, isString := asString(p[0])
			if !isString {
				fine(p[0])
				fail(TypeErr, "%s first arg must be str or a tuple of str, not %s", name, typeName(p[0]))
			}
			return has(s, one) && ok
		}
		for _, e := range list.Items {
			if has(s, text(name, e)) && ok {
				return true
			}
		}
		return false
	}
}

// between cuts s as s[start:end]; ok is false where start lies behind the end.
func (it *interp) between(s string, start, end Value) (string, bool) {
	if start == nil && end == nil {
		return s, true
	}
	n := int64(utf8.RuneCountInString(s))
	if i, ok := asInt(start); ok && i > n {
		return "", false
	}
	from, count, _ := sliceBounds(start, end, nil, n)
	return it.slice(s, from, from+count, nil).(string), true
}

func findMethod(name string, find func(s, sub string) int) strMethod {
	return func(it *interp, s string, a *args) Value {
		p := a.bind(name, param{"sub", required}, param{"start", nil}, param{"end", nil})
		sub := text(name, p[0])
		part, ok := it.between(s, p[1], p[2])
		it.spend(1 + len(s)/64)
		at := find(part, sub)
		if at < 0 || !ok {
			if strings.HasSuffix(name, "index") {
				fail(ValueErr, "substring not found")
			}
			return int64(-1)
		}
		from, _, _ := sliceBounds(p[1], nil, nil, int64(utf8.RuneCountInString(s)))
		return from + int64(utf8.RuneCountInString(part[:at]))
	}
}

// replace knows the length of the result before it makes it.
func (it *interp) replace(s, old, with string, n int) string {
	it.spend(1 + len(s)/64)
	found := strings.Count(s, old)
	if n >= 0 {
		found = min(found, n)
	}
	if found == 0 {
		return s
	}
	if grow := len(with) - len(old); grow > 0 && found > it.lim.Output/grow {
		it.alloc(it.lim.Output + 1)
	}
	it.alloc(len(s) + found*(len(with)-len(old)))
	return strings.Replace(s, old, with, n)
}

// padding gives how many characters s lacks to a width.
func (it *interp) padding(s string, width Value) int {
	n := max(integer(width)-int64(utf8.RuneCountInString(s)), 0)
	it.alloc(int(min(n, int64(it.lim.Output)))*4 + len(s))
	return int(n)
}

func justify(name string, sides func(n int) (left, right int)) strMethod {
	return func(it *interp, s string, a *args) Value {
		p := a.bind(name, param{"width", required}, param{"fillchar", " "})
		fill := text(name, p[1])
		if utf8.RuneCountInString(fill) != 1 {
			fail(TypeErr, "The fill character must be exactly one character long")
		}
		l, r := sides(it.padding(s, p[0]))
		return strings.Repeat(fill, l) + s + strings.Repeat(fill, r)
	}
}

// format is str.format with {}, {0}, {name} and !r or !s; format specifications are not part of the dialect.
func (it *interp) format(s string, a *args) Value {
	w := it.writer()
	auto := 0
	for s != "" {
		at := strings.IndexAny(s, "{}")
		if at < 0 {
			w.put(s)
			break
		}
		w.put(s[:at])
		if at+1 < len(s) && s[at+1] == s[at] {
			w.put(s[at : at+1])
			s = s[at+2:]
			continue
		}
		end := strings.IndexByte(s[at:], '}')
		if s[at] == '}' || end < 0 {
			fail(ValueErr, "Single '%c' encountered in format string", s[at])
		}
		field := s[at+1 : at+end]
		s = s[at+end+1:]
		field, conv, _ := strings.Cut(field, "!")
		if strings.ContainsAny(field, ":.[{") {
			fail(ValueErr, "format field %s is not supported", strRepr(field))
		}
		if field == "" {
			field = strconv.Itoa(auto)
			auto++
		}
		v := a.field(field)
		if conv == "r" {
			w.put(it.reprString(v))
		} else {
			w.put(it.str(v))
		}
	}
	return w.String()
}

func (a *args) field(name string) Value {
	if i, err := strconv.Atoi(name); err == nil {
		if i < 0 || i >= len(a.pos) {
			fail(ValueErr, "Replacement index %d out of range for positional args tuple", i)
		}
		return a.pos[i]
	}
	for _, k := range a.kw {
		if k.name == name {
			return k.v
		}
	}
	fail(ValueErr, "no argument %s for format", strRepr(name))
	return nil
}

// printf is str % value.
func (it *interp) printf(s string, v Value) Value {
	rest := []Value{v}
	if l, ok := v.(*List); ok && l.Tuple {
		rest = l.Items
	}
	dict, _ := v.(*Dict)
	w := it.writer()
	used := dict != nil
	for {
		at := strings.IndexByte(s, '%')
		if at < 0 {
			w.put(s)
			break
		}
		w.put(s[:at])
		s = s[at+1:]
		var arg Value
		named := false
		if strings.HasPrefix(s, "(") && dict != nil {
			name, after, ok := strings.Cut(s[1:], ")")
			if !ok {
				fail(ValueErr, "incomplete format key")
			}
			if arg, ok = dict.Get(name); !ok {
				fail(ValueErr, "no key %s for a format", strRepr(name))
			}
			s, named = after, true
		}
		n := 0
		for n < len(s) && strings.IndexByte("#0- +.123456789", s[n]) >= 0 {
			n++
		}
		if n == len(s) {
			fail(ValueErr, "incomplete format")
		}
		flags, verb := s[:n], s[n]
		s = s[n+1:]
		if verb == '%' {
			w.put("%")
			continue
		}
		if !named {
			if len(rest) == 0 {
				fail(TypeErr, "not enough arguments for format string")
			}
			arg, rest = rest[0], rest[1:]
		}
		w.put(it.convert(flags, verb, arg))
	}
	if len(rest) > 0 && !used {
		fail(TypeErr, "not all arguments converted during string formatting")
	}
	return w.String()
}
