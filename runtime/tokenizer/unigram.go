package tokenizer

import (
	"math"
	"unicode/utf8"
)

// unigram cuts a word so that the sum of its pieces' scores is highest.
// (Kudo 2018, arXiv:1804.10959; SentencePiece's EncodeOptimized.)
type unigram struct {
	*vocabulary
	specials
	pieces   []string // by id; a piece may stand twice
	scores   []float64
	trie     *byteTrie
	unk      int32
	unkScore float64
	fallback *byteFallback // nil: off
}

// unkPenalty is how much worse than the worst piece an unknown character is.
const unkPenalty = 10

// bestPath is the best way to cut a word up to some byte.
type bestPath struct {
	score float64
	start int32 // where the last piece starts, -1: no way yet
	id    int32
}

func newUnigram(list []string, scores []float64, unk int32, fallback bool) (*unigram, error) {
	m := &unigram{pieces: list, scores: scores, trie: newByteTrie(), unk: unk}
	ids := newPieces(len(list))
	lowest := math.Inf(1)
	for i, p := range list {
		ids.set(p, int32(i))
		if p != "" {
			m.trie.insert(p, int32(i))
		}
		lowest = min(lowest, scores[i])
	}
	var err error
	if m.vocabulary, err = newVocabulary(ids); err != nil {
		return nil, err
	}
	m.unkScore = lowest - unkPenalty
	if fallback {
		m.fallback = newByteFallback(m.vocabulary)
	}
	return m, nil
}

func (m *unigram) setSpecial(special map[string]bool) { m.restrict(special, m.vocabulary) }

// token, size and maxID go by the list, in which a piece may stand twice.
func (m *unigram) token(id int32) (string, bool) {
	if id < 0 || int(id) >= len(m.pieces) {
		return "", false
	}
	return m.pieces[id], true
}

func (m *unigram) size() int    { return len(m.pieces) }
func (m *unigram) maxID() int32 { return int32(len(m.pieces)) - 1 }

func (m *unigram) encode(st *scratch, dst []int32, word string, plain bool) []int32 {
	best := st.best[:0]
	for range len(word) + 1 {
		best = append(best, bestPath{start: -1})
	}
	st.best = best
	hidden := m.hidden(plain)
	for i := 0; i < len(word); {
		here := best[i].score
		_, n := utf8.DecodeRuneInString(word[i:])
		single := false
		node := int32(0)
		for j := i; j < len(word); {
			if node = m.trie.step(node, word[j]); node == 0 {
				break
			}
			j++
			id := m.trie.value[node]
			if id < 0 || hidden[id] {
				continue
			}
			m.reach(&best[j], here+m.scores[id], i, id)
			single = single || j == i+n
		}
		if !single {
			m.reach(&best[i+n], here+m.unkScore, i, m.unk)
		}
		i += n
	}
	// Follow the best way back; unknown characters in a row are one piece.
	n := len(dst)
	for end := len(word); end > 0; {
		b := best[end]
		start := int(b.start)
		if b.id == m.unk {
			for start > 0 && best[start].id == m.unk {
				start = int(best[start].start)
			}
		}
		dst = m.addReversed(dst, word[start:end], b.id, hidden)
		end = start
	}
	for i, j := n, len(dst)-1; i < j; i, j = i+1, j-1 {
		dst[i], dst[j] = dst[j], dst[i]
	}
	return dst
}

func (*unigram) reach(b *bestPath, score float64, start int, id int32) {
	if b.start < 0 || score > b.score {
		*b = bestPath{score, int32(start), id}
	}
}

// addReversed appends the ids of one piece of the best way, last first.
func (m *unigram) addReversed(dst []int32, s string, id int32, hidden specials) []int32 {
	if id != m.unk {
		return append(dst, id)
	}
	// As in the reference, an unknown stretch is looked up once more.
	if id, ok := m.ids.get(s); ok && !hidden[id] {
		return append(dst, id)
	}
	if m.fallback != nil {
		n := len(dst)
		if out, ok := m.fallback.add(dst, s); ok {
			for i, j := n, len(out)-1; i < j; i, j = i+1, j-1 {
				out[i], out[j] = out[j], out[i]
			}
			return out
		}
	}
	return append(dst, m.unk)
}
