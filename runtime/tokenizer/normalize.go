package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A normalizer rewrites a text before it is cut into words. lead is how many
// bytes at the start of the text stem from the very first character of the
// caller's text; the new text's lead comes back. It is what the Metaspace
// scheme "first" asks for.
type normalizer interface {
	normalize(s string, lead int) (string, int)
}

func normalizeString(n normalizer, s string) string {
	s, _ = n.normalize(s, 0)
	return s
}

// normSeq is the normalizer Sequence.
type normSeq []normalizer

func (n normSeq) normalize(s string, lead int) (string, int) {
	for _, m := range n {
		s, lead = m.normalize(s, lead)
	}
	return s, lead
}

// formNorm is NFC, NFD, NFKC or NFKD.
type formNorm struct{ form norm.Form }

func (n formNorm) normalize(s string, lead int) (string, int) {
	if n.form.IsNormalString(s) {
		return s, lead
	}
	out := n.form.String(s)
	if lead > 0 {
		head := n.form.String(s[:lead])
		if lead = len(head); !strings.HasPrefix(out, head) {
			_, lead = utf8.DecodeRuneInString(out) // composed with what follows
		}
	}
	return out, lead
}

// mapNorm changes every character on its own: Lowercase, StripAccents, Nmt and
// the steps of BertNormalizer.
type mapNorm struct {
	// write appends what r becomes.
	write func(b []byte, r rune) []byte
	// same tells characters below 0x80 that stay as they are.
	same func(c byte) bool
}

func (n mapNorm) normalize(s string, lead int) (string, int) {
	i := 0
	for i < len(s) && s[i] < utf8.RuneSelf && n.same(s[i]) {
		i++
	}
	if i == len(s) {
		return s, lead
	}
	b := make([]byte, i, len(s)+16)
	copy(b, s[:i])
	out := min(lead, i)
	for i < len(s) {
		if c := s[i]; c < utf8.RuneSelf && n.same(c) {
			b = append(b, c)
			i++
		} else {
			r, size := utf8.DecodeRuneInString(s[i:])
			b = n.write(b, r)
			i += size
		}
		if i <= lead {
			out = len(b)
		}
	}
	return string(b), out
}

func dropIf(drop func(r rune) bool, same func(c byte) bool) mapNorm {
	return mapNorm{func(b []byte, r rune) []byte {
		if drop(r) {
			return b
		}
		return utf8.AppendRune(b, r)
	}, same}
}

var lowercase = mapNorm{
	write: func(b []byte, r rune) []byte {
		if r == 'İ' { // the one character whose lower case is two
			return append(b, "i\u0307"...)
		}
		return utf8.AppendRune(b, unicode.ToLower(r))
	},
	same: func(c byte) bool { return c < 'A' || c > 'Z' },
}

var isASCII = func(byte) bool { return true }

var stripAccents = dropIf(func(r rune) bool { return unicode.Is(unicode.M, r) }, isASCII)

var stripNonspacing = dropIf(func(r rune) bool { return unicode.Is(unicode.Mn, r) }, isASCII)

var nmt = mapNorm{
	write: func(b []byte, r rune) []byte {
		switch {
		case r >= 0x01 && r <= 0x08, r == 0x0B, r >= 0x0E && r <= 0x1F, r == 0x7F, r == 0x8F, r == 0x9F:
			return b
		case r == '\t', r == '\n', r == 0x0C, r == '\r', r == 0x1680, r >= 0x200B && r <= 0x200F,
			r == 0x2028, r == 0x2029, r == 0x2581, r == 0xFEFF, r == 0xFFFD:
			return append(b, ' ')
		}
		return utf8.AppendRune(b, r)
	},
	same: func(c byte) bool { return c >= ' ' && c < 0x7F },
}

// stripNorm is Strip: white space off the ends.
type stripNorm struct{ left, right bool }

func (n stripNorm) normalize(s string, lead int) (string, int) {
	if n.left {
		t := strings.TrimLeftFunc(s, isSpaceRune)
		lead = max(0, lead-(len(s)-len(t)))
		s = t
	}
	if n.right {
		s = strings.TrimRightFunc(s, isSpaceRune)
	}
	return s, min(lead, len(s))
}

// prependNorm is Prepend: a fixed text in front of any that is not empty.
type prependNorm struct{ text string }

func (n prependNorm) normalize(s string, lead int) (string, int) {
	if s == "" {
		return s, lead
	}
	if lead > 0 {
		lead += len(n.text)
	}
	return n.text + s, lead
}

// replaceNorm is Replace: every match of a pattern becomes a fixed text.
type replaceNorm struct {
	pat     pattern
	content string
}

func (n replaceNorm) normalize(s string, lead int) (string, int) {
	spans := n.pat.find(nil, s)
	if len(spans) == 0 {
		return s, lead
	}
	var b strings.Builder
	b.Grow(len(s) + len(spans)*len(n.content))
	from, out := 0, 0
	for _, m := range spans {
		b.WriteString(s[from:m.start])
		b.WriteString(n.content)
		out += max(0, min(m.start, lead)-from)
		if m.end <= lead && lead > 0 {
			out += len(n.content)
		}
		from = m.end
	}
	b.WriteString(s[from:])
	return b.String(), out + max(0, lead-from)
}

// byteLevelNorm is the normalizer ByteLevel: each byte becomes the character
// that stands for it.
type byteLevelNorm struct{}

func (byteLevelNorm) normalize(s string, lead int) (string, int) {
	return byteLevelText(s), len(byteLevelText(s[:lead]))
}

// bertNormalizer builds BertNormalizer out of its steps. stripAccents nil means
// as lowercase says.
func bertNormalizer(clean, chinese bool, strip *bool, lower bool) normalizer {
	var n normSeq
	if clean {
		n = append(n, mapNorm{func(b []byte, r rune) []byte {
			switch {
			case r == '\t', r == '\n', r == '\r', isSpaceRune(r) && !isOtherRune(r):
				return append(b, ' ')
			case r == 0, r == utf8.RuneError, isOtherRune(r):
				return b
			}
			return utf8.AppendRune(b, r)
		}, func(c byte) bool { return c >= ' ' && c < 0x7F }})
	}
	if chinese {
		n = append(n, mapNorm{func(b []byte, r rune) []byte {
			if !isChineseRune(r) {
				return utf8.AppendRune(b, r)
			}
			b = append(b, ' ')
			b = utf8.AppendRune(b, r)
			return append(b, ' ')
		}, isASCII})
	}
	if strip == nil && lower || strip != nil && *strip {
		n = append(n, formNorm{norm.NFD}, stripNonspacing)
	}
	if lower {
		n = append(n, lowercase)
	}
	return n
}

// isChineseRune says what BERT sets apart by spaces: the CJK ideographs.
func isChineseRune(r rune) bool {
	switch {
	case r < 0x3400:
		return false
	case r <= 0x4DBF, r >= 0x4E00 && r <= 0x9FFF, r >= 0xF900 && r <= 0xFAFF,
		r >= 0x20000 && r <= 0x2A6DF, r >= 0x2A700 && r <= 0x2B73F, r >= 0x2B740 && r <= 0x2B81F,
		r >= 0x2B920 && r <= 0x2CEAF, r >= 0x2F800 && r <= 0x2FA1F:
		return true
	}
	return false
}
