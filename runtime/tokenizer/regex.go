package tokenizer

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

// A pattern may backtrack nearly without end on some text. A search gets
// regexTime and regexTimePerByte for what it searches, many times what a sound
// pattern takes; what is left of the text then counts as no match.
const (
	regexTime        = time.Second
	regexTimePerByte = time.Microsecond
)

// maxPattern bounds the length of a pattern in bytes.
const maxPattern = 1 << 16

// regexPattern matches a regular expression that has no scanner of its own.
type regexPattern struct{ re *regexp2.Regexp }

func (x regexPattern) find(dst []span, s string) []span {
	if s == "" {
		return dst
	}
	runes := []rune(s)
	deadline := time.Now().Add(regexTime + time.Duration(len(s))*regexTimePerByte)
	n, last := 0, -1   // matches so far, where the last ended
	at, byteAt := 0, 0 // a place in runes, and in bytes
	// The error is that of one search's own time limit.
	_ = x.re.FindRunesMatches(runes, 0, func(m regexp2.MatchView) bool {
		i, length, _ := m.GroupRange(0)
		if length == 0 && i == last {
			return true // no empty match right behind another
		}
		last = i + length
		for ; at < i; at++ {
			byteAt += utf8.RuneLen(runes[at])
		}
		start := byteAt
		for ; at < last; at++ {
			byteAt += utf8.RuneLen(runes[at])
		}
		dst = append(dst, span{start, byteAt})
		n++
		return n%64 != 0 || time.Now().Before(deadline)
	})
	return dst
}

// newPattern makes the pattern that finds a regular expression in the syntax of
// Oniguruma, which the reference uses.
func newPattern(expr string) (pattern, error) {
	if s, ok := knownScanners[expr]; ok {
		return scannerPattern{s}, nil
	}
	if len(expr) > maxPattern {
		return nil, fmt.Errorf("regular expression of %d bytes; at most %d are supported", len(expr), maxPattern)
	}
	t := translator{in: expr}
	out, err := t.regex()
	if err != nil {
		return nil, fmt.Errorf("regular expression %s: %w", quote(expr), err)
	}
	re, err := regexp2.Compile(out, regexp2.Multiline)
	if err != nil {
		return nil, fmt.Errorf("regular expression %s does not compile: %w", quote(expr), err)
	}
	re.MatchTimeout = regexTime
	return regexPattern{re}, nil
}

// quote shows s in an error, not all of it where it is long.
func quote(s string) string {
	if len(s) > 80 {
		return fmt.Sprintf("%q… (%d bytes)", s[:80], len(s))
	}
	return fmt.Sprintf("%q", s)
}

// translator rewrites an expression from Oniguruma's syntax to that of regexp2
// (.NET): possessive repeats, sets within sets, set intersections, POSIX
// brackets, and the few escapes that mean something else.
type translator struct {
	in    string
	pos   int
	depth int
}

const maxRegexDepth = 100

func (t *translator) more() bool { return t.pos < len(t.in) }

func (t *translator) has(prefix string) bool { return strings.HasPrefix(t.in[t.pos:], prefix) }

func (t *translator) take(prefix string) bool {
	if t.has(prefix) {
		t.pos += len(prefix)
		return true
	}
	return false
}

// char takes one character.
func (t *translator) char() string {
	for i := range t.in[t.pos:] {
		if i > 0 {
			c := t.in[t.pos : t.pos+i]
			t.pos += i
			return c
		}
	}
	c := t.in[t.pos:]
	t.pos = len(t.in)
	return c
}

// regex translates up to a closing parenthesis or the end.
func (t *translator) regex() (string, error) {
	if t.depth++; t.depth > maxRegexDepth {
		return "", fmt.Errorf("nested more than %d deep", maxRegexDepth)
	}
	defer func() { t.depth-- }()
	var out strings.Builder
	for t.more() && !t.has(")") {
		if t.take("|") {
			out.WriteByte('|')
			continue
		}
		atom, err := t.atom()
		if err != nil {
			return "", err
		}
		out.WriteString(t.repeats(atom))
	}
	if t.depth == 1 && t.more() {
		return "", fmt.Errorf("unmatched ) at byte %d", t.pos)
	}
	return out.String(), nil
}

// repeats takes the quantifiers behind an atom.
func (t *translator) repeats(atom string) string {
	for first := true; ; first = false {
		op, interval := t.repeat()
		if op == "" {
			return atom
		}
		if !first {
			atom = "(?:" + atom + ")"
		}
		switch {
		case !interval && t.take("+"):
			atom = "(?>" + atom + op + ")"
		case t.has("?") && (!interval || strings.Contains(op, ",")):
			t.pos++
			atom += op + "?"
		default:
			atom += op
		}
	}
}

func (t *translator) repeat() (op string, interval bool) {
	if !t.more() {
		return "", false
	}
	switch c := t.in[t.pos]; c {
	case '*', '+', '?':
		t.pos++
		return string(c), false
	case '{':
		end := strings.IndexByte(t.in[t.pos:], '}')
		if end < 0 {
			return "", false
		}
		body := t.in[t.pos+1 : t.pos+end]
		if strings.Trim(body, "0123456789") != "" && strings.Trim(body, "0123456789") != "," || body == "" || body == "," {
			return "", false
		}
		t.pos += end + 1
		if body[0] == ',' {
			body = "0" + body
		}
		return "{" + body + "}", true
	}
	return "", false
}

func (t *translator) atom() (string, error) {
	switch {
	case t.has("("):
		return t.group()
	case t.take("["):
		set, err := t.set()
		if err != nil {
			return "", err
		}
		return set.atom(), nil
	case t.take(`\`):
		return t.escape(false)
	}
	c := t.char()
	if c == "{" || c == "}" || c == "]" || c == "#" {
		c = `\` + c
	}
	return c, nil
}

func (t *translator) group() (string, error) {
	start := t.pos
	open := "("
	switch {
	case t.has("(?#"):
		end := strings.IndexByte(t.in[t.pos:], ')')
		if end < 0 {
			return "", fmt.Errorf("comment at byte %d has no end", start)
		}
		t.pos += end + 1
		return "", nil
	case t.has("(?:"), t.has("(?="), t.has("(?!"), t.has("(?>"):
		open = t.in[t.pos : t.pos+3]
	case t.has("(?<="), t.has("(?<!"):
		open = t.in[t.pos : t.pos+4]
	case t.has("(?<"), t.has("(?'"):
		end := strings.IndexAny(t.in[t.pos+3:], ">'")
		if end < 0 {
			return "", fmt.Errorf("group at byte %d: its name has no end", start)
		}
		open = t.in[t.pos : t.pos+3+end+1]
	case t.has("(?"):
		end := strings.IndexAny(t.in[t.pos:], ":)")
		if end < 0 || strings.Trim(t.in[t.pos+2:t.pos+end], "imx-") != "" {
			return "", fmt.Errorf("group at byte %d is of an unsupported kind", start)
		}
		open = t.in[t.pos : t.pos+end+1]
		t.pos += len(open)
		open = strings.ReplaceAll(open, "m", "s") // Ruby's m lets . match a newline
		if strings.HasSuffix(open, ")") {
			// Holds to the end of the group around it.
			rest, err := t.regex()
			if err != nil {
				return "", err
			}
			return strings.TrimSuffix(open, ")") + ":" + rest + ")", nil
		}
		return t.closeGroup(start, open)
	}
	t.pos += len(open)
	return t.closeGroup(start, open)
}

func (t *translator) closeGroup(start int, open string) (string, error) {
	body, err := t.regex()
	if err != nil {
		return "", err
	}
	if !t.take(")") {
		return "", fmt.Errorf("parenthesis at byte %d is not closed", start)
	}
	return open + body + ")", nil
}

// Sets of characters that the two syntaxes see differently, as the inside of a
// bracket.
const (
	setWord = `\p{L}\p{M}\p{Nl}\p{Nd}\p{Pc}\p{Other_Alphabetic}²³¹¼½¾`
	setHex  = `0-9a-fA-F`
)

// escape translates what follows a backslash; inSet within brackets.
func (t *translator) escape(inSet bool) (string, error) {
	if !t.more() {
		return "", fmt.Errorf("ends in a backslash")
	}
	bracket := func(negate, set string) (string, error) {
		switch {
		case !inSet:
			return "[" + negate + set + "]", nil
		case negate == "":
			return set, nil
		}
		return "", fmt.Errorf("negated class at byte %d within brackets is not supported", t.pos)
	}
	at := t.pos
	switch c := t.char(); c {
	case "p", "P":
		end := strings.IndexByte(t.in[t.pos:], '}')
		if !t.has("{") || end < 0 {
			return "", fmt.Errorf(`\%s at byte %d has no {name}`, c, at)
		}
		name := t.in[t.pos+1 : t.pos+end]
		t.pos += end + 1
		if rest, ok := strings.CutPrefix(name, "^"); ok {
			name = rest
			c = map[string]string{"p": "P", "P": "p"}[c]
		}
		if set, ok := propertySets[plainName(name)]; ok {
			return bracket(map[string]string{"p": "", "P": "^"}[c], set)
		}
		return `\` + c + "{" + propertyName(name) + "}", nil
	case "w":
		return bracket("", setWord)
	case "W":
		if inSet {
			return `\W`, nil
		}
		return bracket("^", setWord)
	case "h":
		return bracket("", setHex)
	case "H":
		return bracket("^", setHex)
	case "N", "O", "R":
		if inSet {
			return "", fmt.Errorf(`\%s at byte %d within brackets is not supported`, c, at)
		}
		return map[string]string{"N": `[^\n]`, "O": `[\s\S]`, "R": `(?>\r\n|[\n-\r\x85\u2028\u2029])`}[c], nil
	case "x":
		if t.take("{") {
			end := strings.IndexByte(t.in[t.pos:], '}')
			if end < 0 {
				return "", fmt.Errorf(`\x{ at byte %d has no end`, at)
			}
			hex := t.in[t.pos : t.pos+end]
			t.pos += end + 1
			return `\x{` + hex + "}", nil
		}
		return `\x`, nil
	case "s", "S", "d", "D", "b", "B", "A", "z", "Z", "n", "r", "t", "f", "v", "a", "e", "u",
		"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "k", "G":
		return `\` + c, nil
	default:
		if len(c) == 1 && isASCIILetter(rune(c[0])) {
			return "", fmt.Errorf(`escape \%s at byte %d is not supported`, c, at)
		}
		return literalRune(c), nil
	}
}

func literalRune(c string) string {
	if len(c) == 1 && strings.Contains(`\.+*?()|[]{}^$#-&~ /`, c) {
		return `\` + c
	}
	return c
}

// plainName is a property's name as names are compared.
func plainName(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", " ", "", "-", "").Replace(name))
}

// propertySets are properties that Go's tables have in parts only.
var propertySets = map[string]string{
	"alpha": posixSets["alpha"], "alphabetic": posixSets["alpha"],
	"upper": posixSets["upper"], "uppercase": posixSets["upper"],
	"lower": posixSets["lower"], "lowercase": posixSets["lower"],
	"alnum": posixSets["alnum"], "word": setWord,
}

// propertyName gives Oniguruma's spelling of a property the one that Go's tables
// have.
func propertyName(name string) string {
	switch plainName(name) {
	case "letter":
		return "L"
	case "number":
		return "N"
	case "punct", "punctuation":
		return "P"
	case "symbol":
		return "S"
	case "mark":
		return "M"
	case "space", "whitespace":
		return "White_Space"
	case "digit":
		return "Nd"
	}
	return name
}
