package tokenizer

import (
	"strings"
	"unicode/utf8"
)

const replacement = "\uFFFD"

// validText returns s with every maximal invalid part replaced by U+FFFD, one
// for each truncated sequence or stray byte. This is the Unicode standard's
// recommended practice (section 3.9) and what Rust's String::from_utf8_lossy
// does; Go's own replacements count differently.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 8)
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n <= 1 {
			b.WriteString(replacement)
			n = invalidLen(s[i:])
		} else {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// invalidLen is the length of the maximal subpart of an ill-formed sequence at
// the start of s: the longest prefix that some well-formed sequence starts with,
// or one byte. s starts with an invalid sequence.
func invalidLen[T string | []byte](s T) int {
	n, _ := sequencePrefix(s)
	return max(n, 1)
}

// sequencePrefix reports how many bytes at the start of s are a prefix of a
// well-formed UTF-8 sequence, and how long that whole sequence would be. A byte
// that can start none gives 0, 0.
func sequencePrefix[T string | []byte](s T) (n, whole int) {
	if len(s) == 0 {
		return 0, 0
	}
	lo, hi := byte(0x80), byte(0xBF)
	switch c := s[0]; {
	case c < 0x80:
		return 1, 1
	case c < 0xC2 || c > 0xF4:
		return 0, 0
	case c < 0xE0:
		whole = 2
	case c < 0xF0:
		whole = 3
		if c == 0xE0 {
			lo = 0xA0
		} else if c == 0xED {
			hi = 0x9F
		}
	default:
		whole = 4
		if c == 0xF0 {
			lo = 0x90
		} else if c == 0xF4 {
			hi = 0x8F
		}
	}
	for n = 1; n < whole && n < len(s); n++ {
		if s[n] < lo || s[n] > hi {
			break
		}
		lo, hi = 0x80, 0xBF
	}
	return n, whole
}

// UTF8Holder turns a stream of bytes into valid UTF-8 text: the bytes of a
// character that is not complete yet are held back until the rest arrives, and
// what cannot become a character is replaced by U+FFFD as in [Tokenizer.Decode].
// The chunks put together are the same whatever way the bytes were cut. The zero
// value is ready to use.
type UTF8Holder struct {
	held [utf8.UTFMax]byte
	n    int
}

// Push takes the next bytes and returns the text that is certain.
func (h *UTF8Holder) Push(b []byte) string {
	if h.n > 0 {
		b = append(h.held[:h.n:h.n], b...)
		h.n = 0
	}
	if k := incompleteTail(b); k > 0 {
		h.n = copy(h.held[:], b[len(b)-k:])
		b = b[:len(b)-k]
	}
	return validText(string(b))
}

// Flush ends the text: an incomplete character that is held becomes one U+FFFD.
func (h *UTF8Holder) Flush() string {
	if h.n == 0 {
		return ""
	}
	h.n = 0
	return replacement
}

// incompleteTail is the number of bytes at the end of b that start a character
// without completing it.
func incompleteTail(b []byte) int {
	for k := 1; k <= min(utf8.UTFMax-1, len(b)); k++ {
		if c := b[len(b)-k]; utf8.RuneStart(c) {
			if n, whole := sequencePrefix(b[len(b)-k:]); n == k && n < whole {
				return k
			}
			return 0
		}
	}
	return 0
}
