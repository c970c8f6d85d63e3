package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// A piece is a part of a text on its way to the model. lead is as in
// normalizer.
type piece struct {
	text string
	lead int
}

// sub is the part [i, j) of p.
func (p piece) sub(i, j int) piece {
	return piece{p.text[i:j], min(max(0, p.lead-i), j-i)}
}

func (p piece) prepend(s string) piece {
	if p.lead > 0 {
		p.lead += len(s)
	}
	p.text = s + p.text
	return p
}

// A preTokenizer cuts a piece, which is not empty, into the parts that no token
// crosses and gives them to emit, one after the other. Some may be empty.
type preTokenizer interface {
	cut(p piece, emit func(piece))
}

// splitPre is Split, and with other patterns most of the named pre-tokenizers.
type splitPre struct {
	pat      pattern
	invert   bool
	behavior splitBehavior
}

func (x splitPre) cut(p piece, emit func(piece)) {
	sp, ok := x.pat.(scannerPattern)
	switch {
	case ok && x.behavior == splitIsolated:
		sp.scan.cut(p, emit, true)
	case ok && x.behavior == splitRemoved && x.invert:
		sp.scan.cut(p, emit, false)
	default:
		cutSpans(p, x.pat.find(nil, p.text), x.invert, x.behavior, emit)
	}
}

// cut is the way of most byte-level models: the matches are the parts, and with
// gaps, so is what lies between them.
func (scan scanner) cut(p piece, emit func(piece), gaps bool) {
	t := classTables()
	from := 0 // what is before has been emitted
	for i := 0; i < len(p.text); {
		j := scan(t, p.text, i)
		if j < 0 {
			_, n := utf8.DecodeRuneInString(p.text[i:])
			i += n
			continue
		}
		if gaps && from < i {
			emit(p.sub(from, i))
		}
		emit(p.sub(i, j))
		i, from = j, j
	}
	if gaps && from < len(p.text) {
		emit(p.sub(from, len(p.text)))
	}
}

// byteLevelPre is ByteLevel: an optional space in front, the GPT-2 pattern
// (unless switched off), then each byte as its character. raw leaves the bytes
// as they are, for a model that knows them so.
type byteLevelPre struct {
	prefixSpace, regex, raw bool
}

func (x byteLevelPre) cut(p piece, emit func(piece)) {
	if x.prefixSpace && !strings.HasPrefix(p.text, " ") {
		p = p.prepend(" ")
	}
	if !x.raw {
		next := emit
		emit = func(q piece) {
			next(piece{byteLevelText(q.text), len(byteLevelText(q.text[:q.lead]))})
		}
	}
	if x.regex {
		scanner(scanGPT2).cut(p, emit, true)
	} else {
		emit(p)
	}
}

// prependScheme says before which parts Metaspace puts its mark.
type prependScheme int

const (
	prependAlways prependScheme = iota
	prependFirst                // only where the text starts
	prependNever
)

// metaspacePre is Metaspace: spaces become a mark, usually ▁ (U+2581), and words
// start with it.
type metaspacePre struct {
	mark   string // one character
	scheme prependScheme
	split  bool
}

func (x metaspacePre) cut(p piece, emit func(piece)) {
	if strings.Contains(p.text, " ") {
		// Every space stems from what the character it stood for stems from.
		p.lead += strings.Count(p.text[:p.lead], " ") * (len(x.mark) - 1)
		p.text = strings.ReplaceAll(p.text, " ", x.mark)
	}
	if !strings.HasPrefix(p.text, x.mark) &&
		(x.scheme == prependAlways || x.scheme == prependFirst && p.lead > 0) {
		p = p.prepend(x.mark)
	}
	if !x.split {
		emit(p)
		return
	}
	// Merged with next: a mark goes with the text behind it. Of marks in a row
	// only the last does.
	from := 0
	for i := 0; i < len(p.text); {
		j := strings.Index(p.text[i:], x.mark)
		if j < 0 {
			break
		}
		if j += i; j > from {
			emit(p.sub(from, j))
		}
		from, i = j, j+len(x.mark)
	}
	emit(p.sub(from, len(p.text)))
}

// fixedLengthPre is FixedLength: parts of so many characters.
type fixedLengthPre struct{ length int }

func (x fixedLengthPre) cut(p piece, emit func(piece)) {
	from, n := 0, 0
	for i := range p.text {
		if n == x.length {
			emit(p.sub(from, i))
			from, n = i, 0
		}
		n++
	}
	emit(p.sub(from, len(p.text)))
}

// bertPre is BertPreTokenizer: white space is dropped, punctuation stands alone.
var bertPre = preSeq{
	splitPre{pat: runePattern{isSpaceRune}, behavior: splitRemoved},
	splitPre{pat: runePattern{isPunctRune}, behavior: splitIsolated},
}

// preSeq is the pre-tokenizer Sequence: each cuts what the one before it emits.
type preSeq []preTokenizer

// into is where pieces go that stand before the i-th pre-tokenizer; what comes
// out of the last goes to emit.
func (x preSeq) into(i int, emit func(piece)) func(piece) {
	if i == len(x) {
		return func(p piece) {
			if p.text != "" {
				emit(p)
			}
		}
	}
	pre, next := x[i], x.into(i+1, emit)
	return func(p piece) {
		if p.text != "" {
			pre.cut(p, next)
		}
	}
}
