package tokenizer

import (
	"sync"
)

// Tokenizer is one loaded tokenizer.json.
type Tokenizer struct {
	added      *addedVocab
	normalizer normalizer // nil: none
	pre        preSeq
	model      model
	post       template // nil: adds nothing
	decoder    *decoder
	vocabSize  int

	pool       sync.Pool // of *scratch
	bytesOnce  sync.Once
	tokenBytes [][]byte
}

// VocabSize is the highest id plus one, added tokens included. Ids below it may
// have no token.
func (t *Tokenizer) VocabSize() int { return t.vocabSize }

// TokenID returns the id of a piece as it is written in the file.
func (t *Tokenizer) TokenID(s string) (int32, bool) {
	if id, ok := t.added.byContent[s]; ok {
		return id, true
	}
	return t.model.tokenID(s)
}

// Token returns the piece of an id as it is written in the file.
func (t *Tokenizer) Token(id int32) (string, bool) {
	if tok, ok := t.added.byID[id]; ok {
		return tok.Content, true
	}
	return t.model.token(id)
}

// IsSpecial reports whether id is a special token: one that decoding with
// skipSpecial leaves out.
func (t *Tokenizer) IsSpecial(id int32) bool {
	tok, ok := t.Token(id)
	return ok && t.added.special[tok]
}

// decodeToken is Token but for added tokens that are looked for in normalized
// form: they are decoded in that form.
func (t *Tokenizer) decodeToken(id int32) (string, bool) {
	if s, ok := t.added.normal[id]; ok {
		return s, true
	}
	return t.Token(id)
}

// TokenBytes returns the bytes that a token stands for in the middle of a text;
// for a token of a byte-level tokenizer they need not be whole characters. It is
// nil for an id without token. The caller must not change it.
func (t *Tokenizer) TokenBytes(id int32) []byte {
	t.bytesOnce.Do(t.fillBytes)
	if id < 0 || int(id) >= len(t.tokenBytes) {
		return nil
	}
	return t.tokenBytes[id]
}

// maxTokenBytes bounds the table of TokenBytes, so that one absurdly high id
// does not cost its size in memory.
const maxTokenBytes = 1 << 22

func (t *Tokenizer) fillBytes() {
	table := make([][]byte, min(t.vocabSize, maxTokenBytes))
	stages := t.decoder.stages()
	for id := range table {
		s, ok := t.decodeToken(int32(id))
		if !ok {
			continue
		}
		if _, added := t.added.byID[int32(id)]; !added || !t.added.special[s] {
			for _, st := range stages {
				s = st.middle(s)
			}
		}
		table[id] = []byte(s)
	}
	t.tokenBytes = table
}
