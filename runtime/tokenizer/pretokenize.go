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

// A preTokenizer cuts a piece into the parts that no token crosses and appends
// them to dst. Empty parts are left out by the caller.
type preTokenizer interface {
	cut(dst []piece, p piece) []piece
}

// splitPre is Split, and with other patterns most of the named pre-tokenizers.
type splitPre struct {
	pat      pattern
	invert   bool
	behavior splitBehavior
}

func (x splitPre) cut(dst []piece, p piece) []piece {
	if p.text == "" {
		return dst
	}
	if sp, ok := x.pat.(scannerPattern); ok && (x.behavior == splitIsolated || x.behavior == splitRemoved && x.invert) {
		return x.scan(dst, p, sp)
	}
	return cutSpans(dst, p, x.pat.find(nil, p.text), x.invert, x.behavior)
}

// scan is the way of most byte-level models: the matches are the parts, and so,
// but for the inverted Removed, is what lies between them.
func (x splitPre) scan(dst []piece, p piece, sp scannerPattern) []piece {
	t := classTables()
	from := 0
	gap := func(i int) {
		if from < i && x.behavior == splitIsolated {
			dst = append(dst, p.sub(from, i))
		}
	}
	for i := 0; i < len(p.text); {
		j := sp.scan(t, p.text, i)
		if j < 0 {
			_, n := utf8.DecodeRuneInString(p.text[i:])
			i += n
			continue
		}
		gap(i)
		dst = append(dst, p.sub(i, j))
		i, from = j, j
	}
	gap(len(p.text))
	return dst
}

// byteLevelPre is ByteLevel: an optional space in front, the GPT-2 pattern
// (unless switched off), then each byte as its character. raw leaves the bytes
// as they are, for a model that knows them so.
type byteLevelPre struct {
	prefixSpace, regex, raw bool
}

func (x byteLevelPre) cut(dst []piece, p piece) []piece {
	if x.prefixSpace && !strings.HasPrefix(p.text, " ") {
		p = p.prepend(" ")
	}
	n := len(dst)
	if x.regex {
		dst = splitPre{pat: scannerPattern{scanGPT2}, behavior: splitIsolated}.cut(dst, p)
	} else {
		dst = append(dst, p)
	}
	if !x.raw {
		for i := n; i < len(dst); i++ {
			q := &dst[i]
			q.text, q.lead = byteLevelText(q.text), len(byteLevelText(q.text[:q.lead]))
		}
	}
	return dst
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

func (x metaspacePre) cut(dst []piece, p piece) []piece {
	if strings.Contains(p.text, " ") {
		// Every space stems from what the character it stood for stems from.
		p.lead += strings.Count(p.text[:p.lead], " ") * (len(x.mark) - 1)
		p.text = strings.ReplaceAll(p.text, " ", x.mark)
	}
	if !strings.HasPrefix(p.text, x.mark) &&
		(x.scheme == prependAlways || x.scheme == prependFirst && p.lead > 0) && p.text != "" {
		p = p.prepend(x.mark)
	}
	if !x.split {
		return append(dst, p)
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
			dst = append(dst, p.sub(from, j))
		}
		from, i = j, j+len(x.mark)
	}
	return append(dst, p.sub(from, len(p.text)))
}

// fixedLengthPre is FixedLength: parts of so many characters.
type fixedLengthPre struct{ length int }

func (x fixedLengthPre) cut(dst []piece, p piece) []piece {
	from, n := 0, 0
	for i := range p.text {
		if n == x.length {
			dst = append(dst, p.sub(from, i))
			from, n = i, 0
		}
		n++
	}
	return append(dst, p.sub(from, len(p.text)))
}

// bertPre is BertPreTokenizer: white space is dropped, punctuation stands alone.
var bertPre = preSeq{
	splitPre{pat: runePattern{isSpaceRune}, behavior: splitRemoved},
	splitPre{pat: runePattern{isPunctRune}, behavior: splitIsolated},
}

// preSeq is the pre-tokenizer Sequence.
type preSeq []preTokenizer

func (x preSeq) cut(dst []piece, p piece) []piece {
	cur, next := []piece{p}, []piece(nil)
	for _, pre := range x {
		next = next[:0]
		for _, q := range cur {
			if q.text != "" {
				next = pre.cut(next, q)
			}
		}
		cur, next = next, cur
	}
	return append(dst, cur...)
}
