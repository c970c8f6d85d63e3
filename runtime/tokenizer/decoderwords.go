package tokenizer

import "strings"

// stripToken is Strip for whole tokens: it takes up to so many of one character
// off the ends.
func stripToken(content string, start, stop int64) func(string) string {
	return func(s string) string {
		for n := int64(0); n < start && strings.HasPrefix(s, content); n++ {
			s = s[len(content):]
		}
		for n := int64(0); n < stop && strings.HasSuffix(s, content); n++ {
			s = s[:len(s)-len(content)]
		}
		return s
	}
}

// stripPart is Strip for one long string in parts.
type stripPart struct {
	content     string // one character
	start, stop int64  // how many may still go at the start, how many at the end
	tail        int64  // of them, kept back: they may be the end
}

func (x *stripPart) push(s string, next func(string)) {
	for x.start > 0 && strings.HasPrefix(s, x.content) {
		s = s[len(x.content):]
		x.start--
	}
	if s == "" {
		return
	}
	x.start = 0
	if x.stop == 0 {
		next(s)
		return
	}
	rest, n := s, int64(0)
	for strings.HasSuffix(rest, x.content) {
		rest = rest[:len(rest)-len(x.content)]
		n++
	}
	if rest == "" {
		n += x.tail
	} else {
		next(strings.Repeat(x.content, int(x.tail)) + rest)
	}
	x.tail = min(n, x.stop)
	next(strings.Repeat(x.content, int(n-x.tail)))
}

func (x *stripPart) flush(func(string))     { x.tail = 0 }
func (x *stripPart) middle(s string) string { return s }

// replacePart is Replace of a fixed text for one long string in parts.
type replacePart struct{ old, new, held string }

func (x *replacePart) push(s string, next func(string)) {
	s = x.held + s
	var out strings.Builder
	for {
		i := strings.Index(s, x.old)
		if i < 0 {
			break
		}
		out.WriteString(s[:i] + x.new)
		s = s[i+len(x.old):]
	}
	k := min(len(s), len(x.old)-1) // how much of the end may start a match
	for !strings.HasPrefix(x.old, s[len(s)-k:]) {
		k--
	}
	x.held = s[len(s)-k:]
	out.WriteString(s[:len(s)-k])
	next(out.String())
}

func (x *replacePart) flush(next func(string)) { next(x.held) }
func (x *replacePart) middle(s string) string  { return strings.ReplaceAll(s, x.old, x.new) }

// cleanup takes away the spaces that word pieces leave before punctuation, as
// the reference's WordPiece and CTC decoders do.
func cleanup(s string) string {
	for _, r := range [...][2]string{
		{" .", "."},
		{" ?", "?"},
		{" !", "!"},
		{" ,", ","},
		{" ' ", "'"},
		{" n't", "n't"},
		{" 'm", "'m"},
		{" do not", " don't"},
		{" 's", "'s"},
		{" 've", "'ve"},
		{" 're", "'re"},
	} {
		s = strings.ReplaceAll(s, r[0], r[1])
	}
	return s
}

// wordPieceStage is WordPiece: a space before every token but the first, and
// none before one that goes on.
func wordPieceStage(prefix string, clean bool) func() stage {
	tidy := func(s string) string { return s }
	if clean {
		tidy = cleanup
	}
	rest := func(s string) string {
		if r, ok := strings.CutPrefix(s, prefix); ok {
			return tidy(r)
		}
		return tidy(" " + s)
	}
	return func() stage { return &firstStage{first: tidy, rest: rest} }
}

// bpeStage is BPEDecoder: the end-of-word suffix becomes a space, but for the
// last token's, which goes. So one token is kept back.
type bpeStage struct {
	suffix, held string
	begun        bool
}

func (x *bpeStage) push(s string, next func(string)) {
	if x.begun {
		next(x.middle(x.held))
	}
	x.held, x.begun = s, true
}

func (x *bpeStage) flush(next func(string)) {
	if x.begun {
		next(strings.ReplaceAll(x.held, x.suffix, ""))
	}
	x.held, x.begun = "", false
}

func (x *bpeStage) middle(s string) string { return strings.ReplaceAll(s, x.suffix, " ") }

// ctcStage is CTC: repeats of a token are one, padding goes, a delimiter stands
// for the space between words.
type ctcStage struct {
	pad, delimiter string
	cleanup        bool
	last           string
	begun          bool
}

func (x *ctcStage) push(s string, next func(string)) {
	if x.begun && s == x.last {
		return
	}
	x.last, x.begun = s, true
	if s = x.middle(s); s != "" {
		next(s)
	}
}

func (x *ctcStage) flush(func(string)) {}

func (x *ctcStage) middle(s string) string {
	s = strings.ReplaceAll(s, x.pad, "")
	if x.cleanup {
		s = strings.ReplaceAll(cleanup(s), x.delimiter, " ")
	}
	return s
}
