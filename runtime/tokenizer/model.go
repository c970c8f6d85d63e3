package tokenizer

import "fmt"

// A model turns one word into the ids of its pieces.
type model interface {
	// encode appends the ids of word (valid UTF-8, not empty). With plain, no
	// special token of the vocabulary may come out of it as a whole.
	encode(st *scratch, dst []int32, word string, plain bool) []int32
	tokenID(s string) (int32, bool)
	token(id int32) (string, bool)
	size() int    // number of entries
	maxID() int32 // -1 when there are none
	// setSpecial tells which contents are special tokens.
	setSpecial(special map[string]bool)
}

// scratch is what one Encode call works with; it is pooled.
type scratch struct {
	plain    bool
	out      []int32     // the text's ids so far
	cut      func(piece) // pre-tokenizes a piece and encodes what comes of it
	segments [2][]segment
	ids      []int32 // one word's symbols
	hidden   specials
	ranks    []uint32
	merged   []int32
	heap     []merge
	prev     []int32
	next     []int32
	best     []bestPath
}

// vocabulary is a model's mapping between pieces and ids.
type vocabulary struct {
	ids     *pieces
	tokens  []string         // by id; where ids are sparse, rest holds them
	rest    map[int32]string // nil unless sparse
	highest int32
}

// newVocabulary inverts ids, which are not negative. Two pieces with one id are
// an error.
func newVocabulary(ids *pieces) (*vocabulary, error) {
	v := &vocabulary{ids: ids, highest: -1}
	inOrder := true
	for i, id := range ids.ids {
		v.highest = max(v.highest, id)
		inOrder = inOrder && int(id) == i
	}
	if inOrder {
		v.tokens = ids.texts
		return v, nil
	}
	twice := func(a, b string, id int32) error {
		return fmt.Errorf("model.vocab: %s and %s have the same id %d", quote(min(a, b)), quote(max(a, b)), id)
	}
	if int(v.highest) > 8*ids.len()+1<<16 {
		v.rest = make(map[int32]string, ids.len())
		for i, s := range ids.texts {
			id := ids.ids[i]
			if other, ok := v.rest[id]; ok {
				return nil, twice(s, other, id)
			}
			v.rest[id] = s
		}
		return v, nil
	}
	v.tokens = make([]string, v.highest+1)
	seen := make([]bool, v.highest+1)
	for i, s := range ids.texts {
		id := ids.ids[i]
		if seen[id] {
			return nil, twice(s, v.tokens[id], id)
		}
		v.tokens[id], seen[id] = s, true
	}
	return v, nil
}

func (v *vocabulary) tokenID(s string) (int32, bool) {
	return v.ids.get(s)
}

func (v *vocabulary) token(id int32) (string, bool) {
	if v.rest != nil {
		s, ok := v.rest[id]
		return s, ok
	}
	if id < 0 || int(id) >= len(v.tokens) {
		return "", false
	}
	s := v.tokens[id]
	if s == "" { // a hole, unless the empty string is a piece
		at, ok := v.ids.get("")
		return "", ok && at == id
	}
	return s, true
}

func (v *vocabulary) size() int    { return v.ids.len() }
func (v *vocabulary) maxID() int32 { return v.highest }

// specials is embedded by models to know which of their pieces are special
// tokens.
type specials map[int32]bool

// restrict keeps of special what the vocabulary has as well.
func (s *specials) restrict(special map[string]bool, v *vocabulary) {
	for c := range special {
		if id, ok := v.ids.get(c); ok {
			if *s == nil {
				*s = specials{}
			}
			(*s)[id] = true
		}
	}
}

// hidden is what must not come out of an encoding with plain set.
func (s specials) hidden(plain bool) specials {
	if plain {
		return s
	}
	return nil
}

// byteFallback is the ids of <0x00> … <0xFF>; -1 where the vocabulary lacks one.
type byteFallback [256]int32

func newByteFallback(v *vocabulary) *byteFallback {
	const hex = "0123456789ABCDEF"
	f := new(byteFallback)
	for b := range f {
		f[b] = -1
		if id, ok := v.ids.get("<0x" + string(hex[b>>4]) + string(hex[b&15]) + ">"); ok {
			f[b] = id
		}
	}
	return f
}

// add appends the ids of the bytes of s, all of them or none.
func (f *byteFallback) add(dst []int32, s string) ([]int32, bool) {
	n := len(dst)
	for i := range len(s) {
		id := f[s[i]]
		if id < 0 {
			return dst[:n], false
		}
		dst = append(dst, id)
	}
	return dst, true
}
