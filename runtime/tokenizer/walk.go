package tokenizer

import (
	"encoding/json/jsontext"
	"strconv"
)

// walk goes through a JSON value that has been checked to be valid, string by
// string: a vocabulary is most of a file, and has little else in it.
type walk struct {
	b   []byte
	i   int
	buf []byte // of the last string with escapes
}

// next moves to the next value, name, or end of an object or array, and returns
// its first byte; what a valid value has between them says nothing.
func (w *walk) next() byte {
	for {
		switch c := w.b[w.i]; c {
		case ' ', '\n', '\r', '\t', ',', ':':
			w.i++
		default:
			return c
		}
	}
}

// enter moves behind the { or [ that next has found.
func (w *walk) enter() { w.i++ }

// str reads the string that next has found. It is valid until the next one.
func (w *walk) str() []byte {
	from := w.i + 1
	for i := from; ; i++ {
		switch w.b[i] {
		case '"':
			w.i = i + 1
			return w.b[from:i]
		case '\\':
			raw := w.value()
			w.buf, _ = jsontext.AppendUnquote(w.buf[:0], raw)
			return w.buf
		}
	}
}

// value reads whatever value next has found.
func (w *walk) value() jsontext.Value {
	from, depth := w.i, 0
	for {
		switch w.b[w.i] {
		case '"':
			for w.i++; w.b[w.i] != '"'; w.i++ {
				if w.b[w.i] == '\\' {
					w.i++
				}
			}
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		w.i++
		if depth == 0 && (w.i == len(w.b) || ends(w.b[w.i-1]) || delimits(w.b[w.i])) {
			return w.b[from:w.i]
		}
	}
}

// ends tells whether c is the last byte of a string, object or array.
func ends(c byte) bool { return c == '"' || c == '}' || c == ']' }

// delimits tells whether c stands behind a number or a word.
func delimits(c byte) bool {
	return c == ',' || c == '}' || c == ']' || c == ':' || c == ' ' || c == '\n' || c == '\r' || c == '\t'
}

// id reads a whole number, if that is what next has found, and nothing else.
func (w *walk) id() (n int64, ok bool) {
	from := w.i
	for i := from; ; i++ {
		switch c := w.b[i]; {
		case c >= '0' && c <= '9' && i-from < 18:
			n = 10*n + int64(c-'0')
		case i > from && delimits(c):
			w.i = i
			return n, true
		default:
			n, err := strconv.ParseInt(string(w.value()), 10, 64)
			return n, err == nil
		}
	}
}

// two appends the two strings of a list of two to dst; cut is where the second
// begins.
func (w *walk) two(dst []byte) (both []byte, cut int, ok bool) {
	if w.b[w.i] != '[' {
		return dst, 0, false
	}
	w.enter()
	if w.next() != '"' {
		return dst, 0, false
	}
	dst = append(dst, w.str()...)
	cut = len(dst)
	if w.next() != '"' {
		return dst, 0, false
	}
	dst = append(dst, w.str()...)
	ok = w.next() == ']'
	w.i++
	return dst, cut, ok
}

// scored reads a list of a string and a number.
func (w *walk) scored() (s []byte, score float64, ok bool) {
	if w.b[w.i] != '[' {
		return nil, 0, false
	}
	w.enter()
	if w.next() != '"' {
		return nil, 0, false
	}
	s = w.str()
	if c := w.next(); c != '-' && (c < '0' || c > '9') {
		return nil, 0, false
	}
	score, err := strconv.ParseFloat(bytesText(w.value()), 64)
	ok = err == nil && w.next() == ']'
	w.i++
	return s, score, ok
}
