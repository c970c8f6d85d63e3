package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// wordPiece takes the longest piece of the vocabulary that a word starts with,
// then the longest that goes on, and so forth; a word that cannot be cut so is
// unknown as a whole. (Schuster and Nakajima 2012, as in BERT.)
type wordPiece struct {
	*vocabulary
	specials
	unk      int32
	maxChars int // a longer word is unknown
	first    *byteTrie
	more     *byteTrie // pieces that go on, without their prefix
}

func newWordPiece(v *vocabulary, unk int32, prefix string, maxChars int) *wordPiece {
	m := &wordPiece{
		vocabulary: v, unk: unk, maxChars: maxChars,
		first: newByteTrie(), more: newByteTrie(),
	}
	for i, s := range v.ids.texts {
		id := v.ids.ids[i]
		if s != "" {
			m.first.insert(s, id)
		}
		if rest, ok := strings.CutPrefix(s, prefix); ok && rest != "" {
			m.more.insert(rest, id)
		}
	}
	return m
}

func (m *wordPiece) setSpecial(special map[string]bool) { m.restrict(special, m.vocabulary) }

func (m *wordPiece) encode(_ *scratch, dst []int32, word string, plain bool) []int32 {
	if len(word) > m.maxChars && utf8.RuneCountInString(word) > m.maxChars {
		return append(dst, m.unk)
	}
	n, trie := len(dst), m.first
	for i := 0; i < len(word); {
		id, end := trie.longest(word, i, m.hidden(plain))
		if id < 0 {
			return append(dst[:n], m.unk)
		}
		dst = append(dst, id)
		i, trie = end, m.more
	}
	return dst
}

// wordLevel knows whole words only.
type wordLevel struct {
	*vocabulary
	specials
	unk int32
}

func (m *wordLevel) setSpecial(special map[string]bool) { m.restrict(special, m.vocabulary) }

func (m *wordLevel) encode(_ *scratch, dst []int32, word string, plain bool) []int32 {
	if id, ok := m.ids.get(word); ok && !m.hidden(plain)[id] {
		return append(dst, id)
	}
	return append(dst, m.unk)
}
