package tokenizer

import "unicode/utf8"

// maxAddedToken bounds the length in bytes of an added token's content: looking
// for one costs at most this many steps at each byte of a text.
const maxAddedToken = 4096

// An addedToken is found in the text before anything else and becomes one id.
type addedToken struct {
	ID         int32
	Content    string
	SingleWord bool // only where no word character touches it
	LStrip     bool // takes the white space on its left with it
	RStrip     bool // and on its right
	Normalized bool // is looked for in the normalized text, in its normalized form
	Special    bool
}

// addedVocab is the vocabulary beside the model's.
type addedVocab struct {
	byID      map[int32]*addedToken
	byContent map[string]int32
	special   map[string]bool  // contents of special tokens
	normal    map[int32]string // normalized form where it differs from the content
	raw, norm *byteTrie        // to find tokens in the text, in the normalized text; nil: none
}

// newAddedVocab adds the tokens in order. As in the reference, the id of a token
// that the model has is the model's, and that of any other is the next behind the
// number of pieces, whatever the file declares. Only where the model's ids have
// holes and that id is some piece's already is the declared one taken.
func newAddedVocab(list []addedToken, m model, norm normalizer) *addedVocab {
	v := &addedVocab{
		byID:      map[int32]*addedToken{},
		byContent: map[string]int32{},
		special:   map[string]bool{},
		normal:    map[int32]string{},
	}
	next := int32(m.size())
	for _, tok := range list {
		if tok.Content == "" {
			continue // would match everywhere
		}
		id, ok := v.byContent[tok.Content]
		if !ok {
			id, ok = m.tokenID(tok.Content)
		}
		if !ok {
			id = next
			next++
			if _, taken := m.token(id); taken {
				if _, taken = m.token(tok.ID); !taken {
					id = tok.ID
				}
			}
		}
		tok.ID = id
		if tok.Normalized && norm != nil {
			delete(v.normal, id)
			if s := normalizeString(norm, tok.Content); s != tok.Content {
				v.normal[id] = s
			}
		}
		if tok.Special {
			v.special[tok.Content] = true
		}
		v.byContent[tok.Content] = id
		v.byID[id] = &tok
	}
	for _, tok := range list {
		id, ok := v.byContent[tok.Content]
		if !ok || v.byID[id].Content != tok.Content {
			continue
		}
		if v.byID[id].Normalized {
			form, ok := v.normal[id]
			if !ok {
				form = tok.Content
			}
			addTo(&v.norm, form, id)
		} else {
			addTo(&v.raw, tok.Content, id)
		}
	}
	return v
}

func addTo(t **byteTrie, s string, id int32) {
	if s == "" {
		return
	}
	if *t == nil {
		*t = newByteTrie()
	}
	(*t).insert(s, id)
}

// A segment is a part of a text: an added token, or plain text (id -1).
type segment struct {
	id         int32
	start, end int
}

// find cuts s at the added tokens that trie knows, leftmost first and of those
// that start at one place the longest. With plain, special tokens are text.
func (v *addedVocab) find(dst []segment, trie *byteTrie, s string, plain bool) []segment {
	if trie == nil {
		return append(dst, segment{-1, 0, len(s)})
	}
	from := 0
	for i := 0; i < len(s); {
		if trie.root[s[i]] == 0 {
			i++
			continue
		}
		id, end := trie.longest(s, i, nil)
		if id < 0 {
			i++
			continue
		}
		start, stop := i, end
		i = end
		tok := v.byID[id]
		if plain && v.special[tok.Content] || tok.SingleWord && touchesWord(s, start, stop) {
			continue
		}
		if tok.LStrip {
			start = max(from, spacesBefore(s, start))
		}
		if tok.RStrip {
			stop = spacesAfter(s, stop)
		}
		if from < start {
			dst = append(dst, segment{-1, from, start})
		}
		dst = append(dst, segment{id, start, stop})
		from = stop
	}
	if from < len(s) {
		dst = append(dst, segment{-1, from, len(s)})
	}
	return dst
}

func touchesWord(s string, start, stop int) bool {
	if start > 0 {
		if r, _ := utf8.DecodeLastRuneInString(s[:start]); isWordRune(r) {
			return true
		}
	}
	if stop < len(s) {
		r, _ := utf8.DecodeRuneInString(s[stop:])
		return isWordRune(r)
	}
	return false
}

func spacesBefore(s string, i int) int {
	for i > 0 {
		r, n := utf8.DecodeLastRuneInString(s[:i])
		if !isSpaceRune(r) {
			break
		}
		i -= n
	}
	return i
}

func spacesAfter(s string, i int) int {
	for i < len(s) {
		r, n := utf8.DecodeRuneInString(s[i:])
		if !isSpaceRune(r) {
			break
		}
		i += n
	}
	return i
}
