package ptx

import (
	"fmt"
	"strings"
)

// SyntaxError is PTX text that is not understood. Line counts from 1.
type SyntaxError struct {
	Line int
	Text string // the statement or word that is wrong
	Msg  string
}

func (e *SyntaxError) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("ptx: line %d: %s", e.Line, e.Msg)
	}
	return fmt.Sprintf("ptx: line %d: %q: %s", e.Line, e.Text, e.Msg)
}

type tokenKind uint8

const (
	tokEOF    tokenKind = iota
	tokWord             // names, opcodes, numbers, directives (with their dots)
	tokString           // without the quotes
	tokPunct            // one character
)

type token struct {
	kind  tokenKind
	text  string
	line  int
	start int // byte offsets in the source
	end   int
}

func wordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '$' || c == '%' || c == '.'
}

// lex splits PTX text into tokens, comments dropped.
func lex(src string) ([]token, error) {
	toks := make([]token, 0, len(src)/6)
	line := 1
	for i := 0; i < len(src); {
		c := src[i]
		switch {
		case c == '\n':
			line++
			i++
		case c == ' ' || c == '\t' || c == '\r' || c == '\f':
			i++
		case strings.HasPrefix(src[i:], "//"):
			for i < len(src) && src[i] != '\n' {
				i++
			}
		case strings.HasPrefix(src[i:], "/*"):
			end := strings.Index(src[i+2:], "*/")
			if end < 0 {
				return nil, &SyntaxError{Line: line, Msg: "comment is not closed"}
			}
			line += strings.Count(src[i:i+2+end], "\n")
			i += end + 4
		case c == '"':
			end := i + 1
			for end < len(src) && src[end] != '"' && src[end] != '\n' {
				if src[end] == '\\' {
					end++
				}
				end++
			}
			if end >= len(src) || src[end] != '"' {
				return nil, &SyntaxError{Line: line, Msg: "string is not closed"}
			}
			toks = append(toks, token{tokString, src[i+1 : end], line, i, end + 1})
			i = end + 1
		case wordByte(c):
			end := wordEnd(src, i)
			toks = append(toks, token{tokWord, src[i:end], line, i, end})
			i = end
		case strings.IndexByte("{}()[]<>,;:@!|+-=*&^~/#", c) >= 0:
			toks = append(toks, token{tokPunct, src[i : i+1], line, i, i + 1})
			i++
		default:
			return nil, &SyntaxError{Line: line, Text: fmt.Sprintf("%c", c), Msg: "a character PTX does not have"}
		}
	}
	return append(toks, token{tokEOF, "", line, len(src), len(src)}), nil
}

// wordEnd finds the end of the word that starts at i. A double colon is part
// of a word (ld.global.L2::128B), a single one ends a label; a sign belongs to
// a decimal number's exponent.
func wordEnd(src string, i int) int {
	start := i
	for i < len(src) {
		switch {
		case wordByte(src[i]):
			i++
		case src[i] == ':' && i+2 < len(src) && src[i+1] == ':' && wordByte(src[i+2]):
			i += 2
		case (src[i] == '-' || src[i] == '+') && i+1 < len(src) && decimalExponent(src[start:i]):
			i++
		default:
			return i
		}
	}
	return i
}

func decimalExponent(s string) bool {
	if len(s) < 3 || s[0] < '0' || s[0] > '9' || s[1] == 'x' || s[1] == 'X' || s[1] == 'f' || s[1] == 'F' || s[1] == 'd' || s[1] == 'D' {
		return false
	}
	last := s[len(s)-1]
	return (last == 'e' || last == 'E') && strings.Contains(s, ".")
}
