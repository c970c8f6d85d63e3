package tokenizer

import "unicode/utf8"

// runeIDs are the ids of the pieces that are one character.
type runeIDs struct {
	low  [0x3100]int32 // up to the kana, -1 is none
	rest map[rune]int32
}

func newRuneIDs(ids *pieces) *runeIDs {
	t := &runeIDs{rest: map[rune]int32{}}
	for r := range t.low {
		t.low[r] = -1
	}
	for i, s := range ids.texts {
		id := ids.ids[i]
		if r, n := utf8.DecodeRuneInString(s); n != len(s) || n == 0 {
			continue
		} else if int(r) < len(t.low) {
			t.low[r] = id
		} else {
			t.rest[r] = id
		}
	}
	return t
}

func (t *runeIDs) get(r rune) int32 {
	if int(r) < len(t.low) {
		return t.low[r]
	}
	if id, ok := t.rest[r]; ok {
		return id
	}
	return -1
}

// joins tells between which characters a merge can happen at all: those of which
// the first ends the left piece of some merge and the second starts its right
// one. A text can be cut anywhere else without changing its ids. SentencePiece
// tokenizers without pre-tokenizer give the model the whole text as one word;
// with this it is cut into words that are short and can be remembered.
type joins struct{ pairs *pairTable }

func newJoins(m *bpe) *joins {
	if m.prefix != "" || m.suffix != "" || m.ignoreMerges {
		return nil
	}
	j := &joins{newPairTable(1 << 14)}
	n := 0
	for _, slot := range m.merges.slots {
		if slot.rank == noRank {
			continue
		}
		left, right := slot.pair()
		first, _ := m.token(left)
		second, _ := m.token(right)
		if left == m.unk || right == m.unk || m.fallback != nil && (isByteToken(first) || isByteToken(second)) {
			return nil // these pieces stand for other characters than they show
		}
		l, _ := utf8.DecodeLastRuneInString(first)
		r, _ := utf8.DecodeRuneInString(second)
		if rank, _ := j.pairs.get(l, r); rank != noRank {
			continue
		}
		if n++; 2*n > len(j.pairs.slots) {
			j.pairs = j.pairs.grown()
		}
		j.pairs.put(l, r, 0, 0)
	}
	return j
}

func isByteToken(s string) bool {
	_, ok := byteToken(s)
	return ok
}

// next is where the first word of s ends.
func (j *joins) next(m *bpe, s string) int {
	last := rune(-1) // the character before, if it is a piece
	for i, r := range s {
		known := m.runeIDs.get(r) >= 0
		if known && last >= 0 {
			if rank, _ := j.pairs.get(last, r); rank == noRank {
				return i
			}
		}
		if last = r; !known {
			last = -1
		}
	}
	return len(s)
}
