package tokenizer

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// class is a set of bits that say what a character is, as far as the
// pre-tokenizers' hand-written scanners ask.
type class uint16

const (
	clLetter class = 1 << iota // \p{L}
	clNumber                   // \p{N}
	clSpace                    // \s, the White_Space property
	clMark                     // \p{M}
	clUpper                    // Lu Lt Lm Lo M: what starts a word with capitals
	clLower                    // Ll Lm Lo M: what goes on in small letters
	clPunct                    // \p{P}
	clSymbol                   // \p{S}
	clWord                     // \w: Alphabetic, M, Nd, Pc, Join_Control
)

// classTable holds the classes of the planes that have more than ideographs and
// private use: 0 and 1.
const classTableSize = 0x20000

var classTables = sync.OnceValue(func() *[classTableSize]class {
	t := new([classTableSize]class)
	set := func(rt *unicode.RangeTable, c class) {
		for _, r := range rt.R16 {
			for v := uint32(r.Lo); v <= uint32(r.Hi); v += uint32(r.Stride) {
				t[v] |= c
			}
		}
		for _, r := range rt.R32 {
			for v := r.Lo; v <= r.Hi && v < classTableSize; v += r.Stride {
				t[v] |= c
			}
		}
	}
	for _, d := range classDefinitions {
		for _, rt := range d.tables {
			set(rt, d.class)
		}
	}
	return t
})

var classDefinitions = []struct {
	class  class
	tables []*unicode.RangeTable
}{
	{clLetter, []*unicode.RangeTable{unicode.L}},
	{clNumber, []*unicode.RangeTable{unicode.N}},
	{clSpace, []*unicode.RangeTable{unicode.White_Space}},
	{clMark, []*unicode.RangeTable{unicode.M}},
	{clUpper, []*unicode.RangeTable{unicode.Lu, unicode.Lt, unicode.Lm, unicode.Lo, unicode.M}},
	{clLower, []*unicode.RangeTable{unicode.Ll, unicode.Lm, unicode.Lo, unicode.M}},
	{clPunct, []*unicode.RangeTable{unicode.P}},
	{clSymbol, []*unicode.RangeTable{unicode.S}},
	{clWord, []*unicode.RangeTable{
		unicode.L, unicode.Nl, unicode.Other_Alphabetic, unicode.M, unicode.Nd, unicode.Pc, unicode.Join_Control,
	}},
}

func classOf(t *[classTableSize]class, r rune) class {
	if uint32(r) < classTableSize {
		return t[r]
	}
	var c class
	for _, d := range classDefinitions {
		if unicode.In(r, d.tables...) {
			c |= d.class
		}
	}
	return c
}

// isWordRune is \w of the reference's regular expressions.
func isWordRune(r rune) bool { return classOf(classTables(), r)&clWord != 0 }

// isSpaceRune is Rust's char::is_whitespace: the White_Space property.
func isSpaceRune(r rune) bool { return unicode.IsSpace(r) }

// isNumericRune is Rust's char::is_numeric: the categories Nd, Nl and No.
func isNumericRune(r rune) bool { return unicode.Is(unicode.N, r) }

// isPunctRune is punctuation as BERT sees it: the category P and every ASCII
// character that is neither letter, digit, space nor control.
func isPunctRune(r rune) bool {
	if r < utf8.RuneSelf {
		return r >= '!' && r <= '/' || r >= ':' && r <= '@' || r >= '[' && r <= '`' || r >= '{' && r <= '~'
	}
	return unicode.Is(unicode.P, r)
}

// isOtherRune is the general category C as the reference's table has it: control,
// format and private use. Unassigned code points are not in it.
func isOtherRune(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co) }
