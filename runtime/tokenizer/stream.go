package tokenizer

// Stream decodes one text id by id. What it returns, put together, is the whole
// decode; for byte-level tokenizers before invalid UTF-8 is replaced, which
// [UTF8Holder] does. A step costs time by its own token only.
type Stream struct {
	t           *Tokenizer
	skipSpecial bool
	stages      []stage
	push        func(string) // into the first stage
	out         []byte
}

// NewStream starts the decoding of a text. With skipSpecial, special tokens are
// left out.
func (t *Tokenizer) NewStream(skipSpecial bool) *Stream {
	s := &Stream{t: t, skipSpecial: skipSpecial, stages: t.decoder.stages()}
	s.push = s.into(0)
	return s
}

// into is where strings go that stand before stage i.
func (s *Stream) into(i int) func(string) {
	if i == len(s.stages) {
		return func(x string) { s.out = append(s.out, x...) }
	}
	st, next := s.stages[i], s.into(i+1)
	return func(x string) { st.push(x, next) }
}

// Next takes the next id and returns the bytes that became certain; there may be
// none, and they may end within a character. They are valid until the next call.
// An id that no token has adds nothing.
func (s *Stream) Next(id int32) []byte {
	s.out = s.out[:0]
	if tok, ok := s.t.decodeToken(id); ok && !(s.skipSpecial && s.t.added.special[tok]) {
		s.push(tok)
	}
	return s.out
}

// Flush ends the text and returns what was kept back.
func (s *Stream) Flush() []byte {
	s.out = s.out[:0]
	for i, st := range s.stages {
		st.flush(s.into(i + 1))
	}
	return s.out
}
