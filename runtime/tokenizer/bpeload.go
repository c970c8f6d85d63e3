package tokenizer

import (
	"bytes"
	"fmt"
)

// readMerges reads the list of merges, written as "a b" or as ["a", "b"].
func (m *bpe) readMerges(c *bpeConfig) error {
	m.merges = newPairTable(min(c.ids.len(), len(c.merges)/4))
	w := walk{b: c.merges}
	w.enter()
	rank, made := 0, 0
	var both []byte // the two pieces in a row
	for n := 0; w.next() != ']'; n++ {
		at := w.i
		var cut int // where the second begins
		if w.b[at] == '"' {
			s := w.str()
			if bytes.HasPrefix(s, []byte("#version")) {
				continue
			}
			a, b, ok := bytes.Cut(s, []byte(" "))
			if !ok || bytes.IndexByte(b, ' ') >= 0 {
				return fmt.Errorf("model.merges[%d]: %s is not two pieces with a space between", n, quote(string(s)))
			}
			both, cut = append(append(both[:0], a...), b...), len(a)
		} else {
			var ok bool
			if both, cut, ok = w.two(both[:0]); !ok {
				w.i = at
				return fmt.Errorf("model.merges[%d]: want two pieces, got %s", n, quote(string(w.value())))
			}
		}
		var err error
		if made, err = m.addMerge(c, rank, both, cut, made); err != nil {
			return err
		}
		rank++
	}
	return nil
}

// addMerge adds the merge of two pieces, which stand in both, the second from
// cut on. made is the place of what the merge before makes: most vocabularies
// have their pieces in the order in which merges make them.
func (m *bpe) addMerge(c *bpeConfig, rank int, both []byte, cut, made int) (int, error) {
	first, second := both[:cut], both[cut:]
	a, ok := c.ids.getBytes(first)
	b, ok2 := c.ids.getBytes(second)
	if !ok || !ok2 {
		missing := first
		if ok {
			missing = second
		}
		return 0, fmt.Errorf("model.merges[%d]: %s is not in the vocabulary", rank, quote(string(missing)))
	}
	if len(second) < len(c.prefix) {
		return 0, fmt.Errorf("model.merges[%d]: %s is shorter than continuing_subword_prefix %s", rank, quote(string(second)), quote(c.prefix))
	}
	joined := append(first, second[len(c.prefix):]...) // in both: nothing else needs it now
	if made++; made >= c.ids.len() || c.ids.texts[made] != string(joined) {
		made = c.ids.place(bytesText(joined))
	}
	if made < 0 {
		return 0, fmt.Errorf("model.merges[%d]: the result %s is not in the vocabulary", rank, quote(string(joined)))
	}
	if 2*rank > len(m.merges.slots) {
		m.merges = m.merges.grown()
	}
	m.merges.put(a, b, uint32(rank), c.ids.ids[made])
	return made, nil
}
