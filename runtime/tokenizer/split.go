package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// A span is a part of a string in bytes, [start, end).
type span struct{ start, end int }

// A pattern finds its matches in s, from left to right without overlap, and
// appends them to dst. A match may be empty.
type pattern interface {
	find(dst []span, s string) []span
}

// literalPattern matches a fixed text.
type literalPattern struct{ text string }

func (x literalPattern) find(dst []span, s string) []span {
	if x.text == "" { // as the empty regular expression: between all characters
		for i := range s {
			dst = append(dst, span{i, i})
		}
		return append(dst, span{len(s), len(s)})
	}
	for i := 0; ; {
		j := strings.Index(s[i:], x.text)
		if j < 0 {
			return dst
		}
		i += j + len(x.text)
		dst = append(dst, span{i - len(x.text), i})
	}
}

// runePattern matches single characters.
type runePattern struct{ is func(rune) bool }

func (x runePattern) find(dst []span, s string) []span {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if x.is(r) {
			dst = append(dst, span{i, i + n})
		}
		i += n
	}
	return dst
}

// scannerPattern matches what a hand-written scanner does.
type scannerPattern struct{ scan scanner }

func (x scannerPattern) find(dst []span, s string) []span {
	t := classTables()
	for i := 0; i < len(s); {
		if j := x.scan(t, s, i); j >= 0 {
			dst = append(dst, span{i, j})
			i = j
			continue
		}
		_, n := utf8.DecodeRuneInString(s[i:])
		i += n
	}
	return dst
}

// splitBehavior says what becomes of the matches a text is split at.
type splitBehavior int

const (
	splitRemoved            splitBehavior = iota // dropped
	splitIsolated                                // a part each
	splitMergedWithPrevious                      // go with the text before
	splitMergedWithNext                          // go with the text behind
	splitContiguous                              // matches in a row are one part
)

var splitBehaviors = map[string]splitBehavior{
	"Removed":            splitRemoved,
	"Isolated":           splitIsolated,
	"MergedWithPrevious": splitMergedWithPrevious,
	"MergedWithNext":     splitMergedWithNext,
	"Contiguous":         splitContiguous,
}

// cutSpans cuts p at the matches. With invert, what lies between them counts as
// the matches.
func cutSpans(p piece, matches []span, invert bool, b splitBehavior, emit func(piece)) {
	type part struct {
		span
		match bool
	}
	parts := make([]part, 0, 2*len(matches)+1)
	from := 0
	for _, m := range matches {
		if from != m.start {
			parts = append(parts, part{span{from, m.start}, invert})
		}
		parts = append(parts, part{m, !invert})
		from = m.end
	}
	if from != len(p.text) {
		parts = append(parts, part{span{from, len(p.text)}, invert})
	}
	switch b {
	case splitRemoved, splitIsolated:
		for _, q := range parts {
			if b == splitIsolated || !q.match {
				emit(p.sub(q.start, q.end))
			}
		}
		return
	case splitMergedWithNext:
		// Built from the end, then turned round.
		var spans []span
		prev := false
		for i := len(parts) - 1; i >= 0; i-- {
			if q := parts[i]; q.match && !prev && len(spans) > 0 {
				spans[len(spans)-1].start = q.start
			} else {
				spans = append(spans, q.span)
			}
			prev = parts[i].match
		}
		for i := len(spans) - 1; i >= 0; i-- {
			emit(p.sub(spans[i].start, spans[i].end))
		}
		return
	}
	var spans []span
	prev := false
	for _, q := range parts {
		join := q.match && !prev
		if b == splitContiguous {
			join = q.match == prev
		}
		if join && len(spans) > 0 {
			spans[len(spans)-1].end = q.end
		} else {
			spans = append(spans, q.span)
		}
		prev = q.match
	}
	for _, q := range spans {
		emit(p.sub(q.start, q.end))
	}
}
