package jinja

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind int

const (
	tData tokenKind = iota
	tVarBegin
	tVarEnd
	tBlockBegin
	tBlockEnd
	tName
	tString
	tNumber
	tOp
	tEOF
)

type token struct {
	kind tokenKind
	text string
	num  Value // of tNumber
	line int
}

const ws = `[\s\p{Z}\x{85}\x{1c}-\x{1f}\v]`

var (
	rawBegin = regexp.MustCompile(`^\{%[-+]?` + ws + `*raw` + ws + `*(?:-%\}` + ws + `*|%\})`)
	rawEnd   = regexp.MustCompile(`\{%([-+]?)` + ws + `*endraw` + ws + `*(?:\+%\}|-%\}` + ws + `*|%\}\n?)`)
	floatLit = regexp.MustCompile(`^(?:\d+_)*\d+(?:(?:\.(?:\d+_)*\d+)?[eE][+-]?(?:\d+_)*\d+|\.(?:\d+_)*\d+)`)
	intLit   = regexp.MustCompile(`^(?:0[bB](?:_?[01])+|0[oO](?:_?[0-7])+|0[xX](?:_?[0-9a-fA-F])+|[1-9](?:_?\d)*|0(?:_?0)*)`)
)

func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// lexer cuts a template into tokens with the white-space rules of trim_blocks and lstrip_blocks.
type lexer struct {
	src       string
	pos       int
	line      int
	lineStart bool // what was read last ended with a line break
	toks      []token
}

// lex gives the tokens of a source; line breaks are normalized and one at the end is dropped, as Jinja2 does.
func lex(source string, line *int) []token {
	source = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(source)
	l := &lexer{src: strings.TrimSuffix(source, "\n"), line: 1, lineStart: true}
	for l.pos < len(l.src) {
		*line = l.line
		l.text()
	}
	l.emit(tEOF, "")
	return l.toks
}

func (l *lexer) emit(k tokenKind, s string) {
	l.toks = append(l.toks, token{kind: k, text: s, line: l.line})
}

// advance moves on to position end, counting lines.
func (l *lexer) advance(end int) {
	s := l.src[l.pos:end]
	l.line += strings.Count(s, "\n")
	if s != "" {
		l.lineStart = s[len(s)-1] == '\n'
	}
	l.pos = end
}

// text reads up to the next tag and the tag itself.
func (l *lexer) text() {
	at := l.nextTag()
	if at < 0 {
		l.emit(tData, l.src[l.pos:])
		l.advance(len(l.src))
		return
	}
	kind := l.src[at+1]
	sign := byte(0)
	if at+2 < len(l.src) && (l.src[at+2] == '-' || l.src[at+2] == '+') {
		sign = l.src[at+2]
	}
	l.data(l.src[l.pos:at], sign, kind == '{')
	if kind == '%' {
		word := strings.TrimLeftFunc(strings.TrimLeft(l.src[at+2:], "+-"), isSpace)
		if strings.HasPrefix(word, "raw") {
			if m := rawBegin.FindString(l.src[at:]); m != "" {
				l.advance(at + len(m))
				l.raw()
				return
			}
		}
	}
	begin := at + 2
	if sign != 0 {
		begin++
	}
	l.advance(begin)
	switch kind {
	case '#':
		l.comment()
	case '{':
		l.emit(tVarBegin, "")
		l.tag("}}", tVarEnd)
	default:
		l.emit(tBlockBegin, "")
		l.tag("%}", tBlockEnd)
	}
}

func (l *lexer) nextTag() int {
	for i := l.pos; ; i++ {
		j := strings.IndexByte(l.src[i:], '{')
		if j < 0 || i+j+1 >= len(l.src) {
			return -1
		}
		i += j
		if c := l.src[i+1]; c == '{' || c == '%' || c == '#' {
			return i
		}
	}
}

// data emits text in front of a tag, with the white space cut that the tag takes away.
func (l *lexer) data(s string, sign byte, variable bool) {
	start := l.lineStart
	switch {
	case sign == '-':
		s = strings.TrimRightFunc(s, isSpace)
	case sign != '+' && !variable:
		at := strings.LastIndexByte(s, '\n') + 1
		if (at > 0 || start) && strings.TrimLeftFunc(s[at:], isSpace) == "" {
			s = s[:at]
		}
	}
	if s != "" {
		l.emit(tData, s)
	}
}

func (l *lexer) raw() {
	m := rawEnd.FindStringSubmatchIndex(l.src[l.pos:])
	if m == nil {
		fail(Syntax, "Missing end of raw directive")
	}
	sign := byte(0)
	if m[3] > m[2] {
		sign = l.src[l.pos+m[2]]
	}
	l.data(l.src[l.pos:l.pos+m[0]], sign, false)
	l.advance(l.pos + m[1])
}

func (l *lexer) comment() {
	i := strings.Index(l.src[l.pos:], "#}")
	if i < 0 {
		fail(Syntax, "Missing end of comment tag")
	}
	before := byte(0)
	if i > 0 {
		before = l.src[l.pos+i-1]
	}
	l.close(l.pos+i+2, before)
}

// close moves behind a tag's end; before is the sign in front of it.
func (l *lexer) close(end int, before byte) {
	switch {
	case before == '-':
		end += len(l.src[end:]) - len(strings.TrimLeftFunc(l.src[end:], isSpace))
	case before != '+' && end < len(l.src) && l.src[end] == '\n':
		end++
	}
	l.advance(end)
}

// tag reads the inside of {{ }} or {% %}.
func (l *lexer) tag(end string, endKind tokenKind) {
	first := l.line
	var open []byte
	for l.pos < len(l.src) {
		rest := l.src[l.pos:]
		if len(open) == 0 {
			sign := byte(0)
			if rest[0] == '-' || rest[0] == '+' && endKind == tBlockEnd {
				sign = rest[0]
			}
			skip := 0
			if sign != 0 {
				skip = 1
			}
			if strings.HasPrefix(rest[skip:], end) {
				l.emit(endKind, end)
				if endKind == tVarEnd && sign == 0 {
					sign = '+' // trim_blocks leaves the line break behind a variable
				}
				l.close(l.pos+skip+len(end), sign)
				return
			}
		}
		r, size := utf8.DecodeRuneInString(rest)
		switch {
		case isSpace(r):
			l.advance(l.pos + size)
		case r >= '0' && r <= '9':
			l.number(rest)
		case r == '_' || unicode.IsLetter(r):
			n := strings.IndexFunc(rest, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
			if n < 0 {
				n = len(rest)
			}
			l.emit(tName, rest[:n])
			l.advance(l.pos + n)
		case r == '\'' || r == '"':
			l.string(rest, byte(r))
		default:
			op := operatorAt(rest)
			if op == "" {
				fail(Syntax, "unexpected char %s", strRepr(string(r)))
			}
			open = balance(open, op[0])
			l.emit(tOp, op)
			l.advance(l.pos + len(op))
		}
	}
	l.line = first
	fail(Syntax, "unexpected end of template, expected '%s'", end)
}

func operatorAt(s string) string {
	if len(s) > 1 {
		switch s[:2] {
		case "**", "//", "==", "!=", ">=", "<=":
			return s[:2]
		}
	}
	if strings.IndexByte("-+/*%~[](){}><=.:|,;", s[0]) >= 0 {
		return s[:1]
	}
	return ""
}

// numeral cuts s behind what may belong to a number, so that the expressions below look at little text.
func numeral(s string) string {
	for i := range len(s) {
		c := s[i]
		sign := (c == '+' || c == '-') && i > 0 && s[i-1]|0x20 == 'e'
		if c != '.' && c != '_' && !sign && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return s[:i]
		}
	}
	return s
}

func balance(open []byte, c byte) []byte {
	switch c {
	case '(', '[', '{':
		if len(open) >= maxNesting {
			fail(LimitErr, "brackets nested deeper than %d", maxNesting)
		}
		return append(open, c+1+(c>>6&1)) // ( ) are neighbours, [ ] and { } two apart
	case ')', ']', '}':
		if len(open) == 0 {
			fail(Syntax, "unexpected '%c'", c)
		}
		if want := open[len(open)-1]; want != c {
			fail(Syntax, "unexpected '%c', expected '%c'", c, want)
		}
		return open[:len(open)-1]
	}
	return open
}

func (l *lexer) number(rest string) {
	rest = numeral(rest)
	afterDot := l.pos > 0 && l.src[l.pos-1] == '.' // x.0.1 is two subscripts
	if s := floatLit.FindString(rest); s != "" && !afterDot {
		f, _ := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
		l.toks = append(l.toks, token{kind: tNumber, text: s, num: f, line: l.line})
		l.advance(l.pos + len(s))
		return
	}
	s := intLit.FindString(rest)
	var num Value
	if i, err := strconv.ParseInt(s, 0, 64); err == nil {
		num = i
	} else if b, ok := new(big.Int).SetString(s, 0); ok && len(s) <= maxJSONDigits {
		num = b
	} else {
		fail(Syntax, "invalid number %q", s)
	}
	l.toks = append(l.toks, token{kind: tNumber, text: s, num: num, line: l.line})
	l.advance(l.pos + len(s))
}

func (l *lexer) string(rest string, quote byte) {
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case quote:
			l.emit(tString, unescape(rest[1:i]))
			l.advance(l.pos + i + 1)
			return
		}
	}
	fail(Syntax, "a string is not closed")
}

// unescape resolves Python's escapes; unknown ones stay as they are.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		c := s[i]
		if at := strings.IndexByte(`abfnrtv\'"`, c); at >= 0 {
			b.WriteByte("\a\b\f\n\r\t\v\\'\""[at])
			continue
		}
		width, base := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c], 16
		from := i + 1
		if c >= '0' && c <= '7' {
			from, base, width = i, 8, 1
			for width < 3 && from+width < len(s) && s[from+width] >= '0' && s[from+width] <= '7' {
				width++
			}
		}
		switch {
		case c == '\n': // an escaped line break is none
		case width == 0:
			b.WriteByte('\\')
			b.WriteByte(c)
		default:
			if from+width > len(s) {
				fail(Syntax, "truncated \\%c escape in a string", c)
			}
			n, err := strconv.ParseUint(s[from:from+width], base, 32)
			if err != nil {
				fail(Syntax, "invalid \\%c escape in a string", c)
			}
			b.WriteRune(rune(n))
			i = from + width - 1
		}
	}
	return b.String()
}
