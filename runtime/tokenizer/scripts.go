package tokenizer

import (
	"sort"
	"sync"
	"unicode"
	"unicode/utf8"
)

// scriptsPre is UnicodeScripts: a cut wherever the writing system changes. As in
// SentencePiece, kana and kanji count as one system and a space as any.
type scriptsPre struct{}

// A script is a writing system; anyScript belongs to all.
type script int16

const anyScript script = 0

func (scriptsPre) cut(p piece, emit func(piece)) {
	last := script(-1)
	from := -1 // what stands before the first cut is dropped, as in the reference
	for i, r := range p.text {
		s := scriptOf(r)
		if s == anyScript {
			continue
		}
		if s != last {
			if from >= 0 {
				emit(p.sub(from, i))
			}
			from = i
		}
		last = s
	}
	if from >= 0 {
		emit(p.sub(from, len(p.text)))
	}
}

func scriptOf(r rune) script {
	t := scriptTable()
	if r == ' ' {
		return anyScript
	}
	if r == 0x30FC { // the prolonged sound mark of kana
		return t.han
	}
	i := sort.Search(len(t.ranges), func(i int) bool { return t.ranges[i].hi >= r })
	if i < len(t.ranges) && t.ranges[i].lo <= r {
		return t.ranges[i].script
	}
	return anyScript
}

type scriptRange struct {
	lo, hi rune
	script script
}

type scriptRanges struct {
	ranges []scriptRange // in order
	han    script
}

var scriptTable = sync.OnceValue(func() *scriptRanges {
	names := make([]string, 0, len(unicode.Scripts))
	for name := range unicode.Scripts {
		names = append(names, name)
	}
	sort.Strings(names)
	t := &scriptRanges{}
	for i, name := range names {
		if name == "Han" {
			t.han = script(i + 1)
		}
	}
	for i, name := range names {
		s := script(i + 1)
		if name == "Hiragana" || name == "Katakana" {
			s = t.han
		}
		add := func(lo, hi, stride rune) {
			if stride == 1 {
				t.ranges = append(t.ranges, scriptRange{lo, hi, s})
				return
			}
			for r := lo; r <= hi; r += stride {
				t.ranges = append(t.ranges, scriptRange{r, r, s})
			}
		}
		table := unicode.Scripts[name]
		for _, r := range table.R16 {
			add(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range table.R32 {
			add(rune(r.Lo), min(rune(r.Hi), utf8.MaxRune), rune(r.Stride))
		}
	}
	sort.Slice(t.ranges, func(i, j int) bool { return t.ranges[i].lo < t.ranges[j].lo })
	return t
})
