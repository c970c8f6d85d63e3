package jinja

import (
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// str is Python's str(v): what {{ v }} prints.
func (it *interp) str(v Value) string {
	switch x := v.(type) {
	case string:
		return x
	case markup:
		return string(x)
	case *undefined:
		return ""
	}
	w := it.writer()
	it.repr(w, v)
	return w.String()
}

// writer is a strings.Builder that pays for what it takes.
type writer struct {
	it *interp
	strings.Builder
}

func (it *interp) writer() *writer { return &writer{it: it} }

func (w *writer) put(s string) {
	if w.Len()+len(s) > w.it.lim.Output {
		fail(LimitErr, "a string of more than %d bytes", w.it.lim.Output)
	}
	w.it.charge(len(s))
	w.WriteString(s)
}

// repr writes Python's repr(v).
func (it *interp) repr(w *writer, v Value) {
	it.enter()
	defer it.leave()
	switch x := v.(type) {
	case nil:
		w.put("None")
	case bool:
		if x {
			w.put("True")
		} else {
			w.put("False")
		}
	case int64:
		w.put(strconv.FormatInt(x, 10))
	case *big.Int:
		w.put(x.String())
	case float64:
		w.put(floatRepr(x))
	case string:
		w.put(strRepr(x))
	case markup:
		w.put("Markup(" + strRepr(string(x)) + ")")
	case *undefined:
		w.put("Undefined")
	case *List:
		open, end := "[", "]"
		if x.Tuple {
			open, end = "(", ")"
			if len(x.Items) == 1 {
				end = ",)"
			}
		}
		it.reprItems(w, open, x.Items, end)
	case *view:
		it.reprItems(w, x.name+"([", x.items, "])")
	case *Dict:
		it.reprDict(w, x)
	case *namespace:
		w.put("<Namespace ")
		it.reprDict(w, x.attrs)
		w.put(">")
	case *rng:
		s := "range(" + strconv.FormatInt(x.start, 10) + ", " + strconv.FormatInt(x.stop, 10)
		if x.step != 1 {
			s += ", " + strconv.FormatInt(x.step, 10)
		}
		w.put(s + ")")
	case *macro:
		w.put("<Macro " + strRepr(x.def.name) + ">")
	default:
		w.put("<" + objectRepr(v) + ">")
	}
}

func (it *interp) reprItems(w *writer, open string, items []Value, end string) {
	w.put(open)
	for i, e := range items {
		if i > 0 {
			w.put(", ")
		}
		it.repr(w, e)
	}
	w.put(end)
}

func (it *interp) reprDict(w *writer, d *Dict) {
	w.put("{")
	for i, k := range d.keys {
		if i > 0 {
			w.put(", ")
		}
		it.repr(w, k)
		w.put(": ")
		it.repr(w, d.vals[i])
	}
	w.put("}")
}

// floatRepr is Python's repr of a float: shortest digits, exponent form from 1e16 on and below 1e-4.
func floatRepr(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// strRepr is Python's repr of a str.
func strRepr(s string) string {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	b := make([]byte, 0, len(s)+2)
	b = append(b, quote)
	for _, r := range s {
		switch {
		case r == rune(quote) || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case unicode.IsPrint(r):
			b = utf8.AppendRune(b, r)
		case r < 0x100:
			b = appendHex(append(b, `\x`...), r, 2)
		case r < 0x10000:
			b = appendHex(append(b, `\u`...), r, 4)
		default:
			b = appendHex(append(b, `\U`...), r, 8)
		}
	}
	return string(append(b, quote))
}

func appendHex(b []byte, r rune, width int) []byte {
	for i := width - 1; i >= 0; i-- {
		b = append(b, "0123456789abcdef"[r>>(4*i)&15])
	}
	return b
}

// jsonStyle has the options of Python's json.dumps.
type jsonStyle struct {
	ascii      bool
	sortKeys   bool
	pretty     bool
	indent     string
	item, pair string // separators
}

// json writes v as json.dumps does.
func (it *interp) json(w *writer, v Value, st *jsonStyle, level int) {
	it.enter()
	defer it.leave()
	switch x := v.(type) {
	case nil:
		w.put("null")
	case bool:
		w.put(strconv.FormatBool(x))
	case int64:
		w.put(strconv.FormatInt(x, 10))
	case *big.Int:
		w.put(x.String())
	case float64:
		w.put(jsonFloat(x))
	case string:
		w.put(jsonString(x, st.ascii))
	case markup:
		w.put(jsonString(string(x), st.ascii))
	case *List:
		it.jsonBlock(w, "[", "]", len(x.Items), st, level, func(i int) { it.json(w, x.Items[i], st, level+1) })
	case *Dict:
		order := make([]int, len(x.keys))
		for i := range order {
			order[i] = i
		}
		if st.sortKeys {
			slices.SortStableFunc(order, func(a, b int) int { return it.compare("<", x.keys[a], x.keys[b]) })
		}
		it.jsonBlock(w, "{", "}", len(x.keys), st, level, func(i int) {
			w.put(jsonString(jsonKey(x.keys[order[i]]), st.ascii))
			w.put(st.pair)
			it.json(w, x.vals[order[i]], st, level+1)
		})
	default:
		fail(TypeErr, "Object of type %s is not JSON serializable", typeName(v))
	}
}

func (it *interp) jsonBlock(w *writer, open, end string, n int, st *jsonStyle, level int, each func(int)) {
	w.put(open)
	for i := range n {
		if i > 0 {
			w.put(st.item)
		}
		it.jsonBreak(w, st, level+1)
		each(i)
	}
	if n > 0 {
		it.jsonBreak(w, st, level)
	}
	w.put(end)
}

func (it *interp) jsonBreak(w *writer, st *jsonStyle, level int) {
	if st.pretty {
		it.alloc(len(st.indent) * level)
		w.put("\n" + strings.Repeat(st.indent, level))
	}
}

func jsonFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return floatRepr(f)
}

func jsonKey(k Value) string {
	switch x := k.(type) {
	case string:
		return x
	case markup:
		return string(x)
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(x)
	case int64:
		return strconv.FormatInt(x, 10)
	case float64:
		return jsonFloat(x)
	case *big.Int:
		return x.String()
	}
	fail(TypeErr, "keys must be str, int, float, bool or None, not %s", typeName(k))
	return ""
}

func jsonString(s string, ascii bool) string {
	b := make([]byte, 0, len(s)+2)
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r == '\b':
			b = append(b, `\b`...)
		case r == '\f':
			b = append(b, `\f`...)
		case r < 0x20 || ascii && r > 0x7e && r < 0x10000:
			b = appendHex(append(b, `\u`...), r, 4)
		case ascii && r >= 0x10000:
			b = appendHex(append(b, `\u`...), 0xd800+(r-0x10000)>>10, 4)
			b = appendHex(append(b, `\u`...), 0xdc00+(r-0x10000)&0x3ff, 4)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return string(append(b, '"'))
}
