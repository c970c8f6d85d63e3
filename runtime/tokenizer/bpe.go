package tokenizer

import (
	"encoding/json/jsontext"
	"unicode/utf8"
)

// bpe is byte pair encoding: a word is cut into characters, then the pair of
// neighbours that stands highest in the list of merges is joined, the leftmost
// first, until no pair is in the list. (Sennrich et al. 2016, arXiv:1508.07909.)
type bpe struct {
	*vocabulary
	specials
	merges *pairTable
	cache  *wordCache

	// byteLevel: words come as plain bytes, and the pieces are known by the
	// bytes they stand for.
	byteLevel bool
	rawIDs    *pieces    // byteLevel and ignoreMerges: by bytes instead of characters
	byteIDs   [256]int32 // byteLevel: of single bytes, -1 is none

	joins   *joins   // nil: unknown, or of no use
	runeIDs *runeIDs // of pieces that are one character; nil when byteLevel

	unk          int32 // -1 is none: what is unknown is dropped
	fuseUnk      bool
	ignoreMerges bool // a word that is a piece as it stands is not cut
	prefix       string
	suffix       string
	fallback     *byteFallback // nil: off
}

// bpeConfig is the part of tokenizer.json's model that makes a bpe.
type bpeConfig struct {
	ids                             *pieces
	merges                          jsontext.Value // a list
	unk                             *string
	prefix, suffix                  string
	fuseUnk, fallback, ignoreMerges bool
}

func newBPE(c *bpeConfig) (*bpe, error) {
	v, err := newVocabulary(c.ids)
	if err != nil {
		return nil, err
	}
	m := &bpe{
		vocabulary: v, cache: newWordCache(), unk: -1,
		fuseUnk: c.fuseUnk, ignoreMerges: c.ignoreMerges, prefix: c.prefix, suffix: c.suffix,
	}
	if c.unk != nil {
		if id, ok := c.ids.get(*c.unk); ok {
			m.unk = id
		}
	}
	if c.fallback {
		m.fallback = newByteFallback(m.vocabulary)
	}
	if err := m.readMerges(c); err != nil {
		return nil, err
	}
	return m, nil
}

// useBytes makes the model take words as plain bytes, where it can: it then does
// the same as with the bytes written as characters.
func (m *bpe) useBytes() bool {
	if m.prefix != "" || m.suffix != "" || m.fallback != nil {
		return false
	}
	m.byteLevel = true
	for b := range m.byteIDs {
		m.byteIDs[b] = -1
		if id, ok := m.ids.get(string(byteToRune[b])); ok {
			m.byteIDs[b] = id
		}
	}
	if m.ignoreMerges {
		m.rawIDs = newPieces(m.ids.len())
		var buf []byte
		for i, s := range m.ids.texts {
			if b, ok := byteLevelBytes(buf[:0], s); ok {
				m.rawIDs.add(b, m.ids.ids[i])
				buf = b
			}
		}
	}
	return true
}

// useCharacters makes what a model needs that takes words as characters.
func (m *bpe) useCharacters() {
	m.runeIDs = newRuneIDs(m.ids)
	m.joins = newJoins(m)
}

// setSpecial keeps the special tokens that can come out of an encoding: by a
// merge, or as a whole word.
func (m *bpe) setSpecial(special map[string]bool) {
	var all specials
	all.restrict(special, m.vocabulary)
	if m.ignoreMerges || len(all) == 0 {
		m.specials = all
		return
	}
	for _, s := range m.merges.slots {
		if s.rank != noRank && all[s.id] {
			if m.specials == nil {
				m.specials = specials{}
			}
			m.specials[s.id] = true
		}
	}
}

func (m *bpe) encode(st *scratch, dst []int32, word string, plain bool) []int32 {
	hidden := m.hidden(plain)
	if m.joins != nil {
		for end := m.joins.next(m, word); end < len(word); end = m.joins.next(m, word) {
			dst = m.encodeWord(st, dst, word[:end], hidden)
			word = word[end:]
		}
	}
	return m.encodeWord(st, dst, word, hidden)
}

func (m *bpe) encodeWord(st *scratch, dst []int32, word string, hidden specials) []int32 {
	if len(word) > cacheMaxWord || len(hidden) > 0 {
		return m.cut(st, dst, word, hidden)
	}
	slot := m.cache.slot(word)
	dst, ok := m.cache.add(dst, slot, word)
	if ok {
		return dst
	}
	n := len(dst)
	dst = m.cut(st, dst, word, nil)
	m.cache.put(slot, word, dst[n:])
	return dst
}

// cut is encode without the cache; no id of hidden comes out of it.
func (m *bpe) cut(st *scratch, dst []int32, word string, hidden specials) []int32 {
	if m.ignoreMerges {
		if id, ok := m.whole(word); ok && !hidden[id] {
			return append(dst, id)
		}
	}
	if m.byteLevel {
		m.bytes(st, word)
	} else {
		m.characters(st, word)
	}
	st.hidden = hidden
	return m.merge(st, dst)
}

// whole is the id of a word that is a piece as it stands.
func (m *bpe) whole(word string) (int32, bool) {
	ids := m.ids
	if m.byteLevel {
		ids = m.rawIDs
	}
	return ids.get(word)
}

// bytes sets st.ids to the ids of the word's bytes.
func (m *bpe) bytes(st *scratch, word string) {
	st.ids = st.ids[:0]
	unknown := false // the last one was
	for i := range len(word) {
		id := m.byteIDs[word[i]]
		if id < 0 {
			if m.unk < 0 || m.fuseUnk && unknown {
				continue
			}
			id, unknown = m.unk, true
		} else {
			unknown = false
		}
		st.ids = append(st.ids, id)
	}
}

// characters sets st.ids to the ids of the word's characters, with the prefix
// and suffix they have at their place. What is not in the vocabulary becomes its
// bytes, or the unknown token, or nothing.
func (m *bpe) characters(st *scratch, word string) {
	st.ids = st.ids[:0]
	pending := false // an unknown token is due
	for i := 0; i < len(word); {
		r, n := utf8.DecodeRuneInString(word[i:])
		c := word[i : i+n]
		first, last := i == 0, i+n == len(word)
		i += n
		if m.prefix == "" && m.suffix == "" {
			if id := m.runeIDs.get(r); id >= 0 {
				if pending {
					st.ids = append(st.ids, m.unk)
					pending = false
				}
				st.ids = append(st.ids, id)
				continue
			}
		}
		if !first && m.prefix != "" {
			c = m.prefix + c
		}
		if last && m.suffix != "" {
			c += m.suffix
		}
		if id, ok := m.ids.get(c); ok {
			if pending {
				st.ids = append(st.ids, m.unk)
				pending = false
			}
			st.ids = append(st.ids, id)
			continue
		}
		if m.fallback != nil {
			var ok bool
			// As in the reference, an unknown token that is due stays due.
			if st.ids, ok = m.fallback.add(st.ids, c); ok {
				continue
			}
		}
		if m.unk >= 0 {
			if pending && !m.fuseUnk {
				st.ids = append(st.ids, m.unk)
			}
			pending = true
		}
	}
	if pending {
		st.ids = append(st.ids, m.unk)
	}
}
