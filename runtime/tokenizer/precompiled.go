package tokenizer

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
)

// precompiled is Precompiled: the table of replacements that a SentencePiece
// model carries (precompiled_charsmap): a double-array trie of 32-bit units whose
// values point into a list of texts, each ended by a zero byte.
type precompiled struct {
	units []uint32
	texts []byte
}

func newPrecompiled(encoded string) (*precompiled, error) {
	b, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("not base64: %w", err)
	}
	if len(b) < 4 {
		return nil, fmt.Errorf("%d bytes; want at least the 4 of the trie's size", len(b))
	}
	n := binary.LittleEndian.Uint32(b)
	b = b[4:]
	if uint64(n) > uint64(len(b)) || n%4 != 0 || n == 0 {
		return nil, fmt.Errorf("a trie of %d bytes in %d bytes of table", n, len(b))
	}
	p := &precompiled{units: make([]uint32, n/4), texts: b[n:]}
	for i := range p.units {
		p.units[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	if !utf8.Valid(p.texts) {
		return nil, fmt.Errorf("the replacement texts are not valid UTF-8")
	}
	return p, nil
}

// lookup finds what replaces s: as in the reference, that of the shortest start
// of s the trie has. ok is false where it has none.
func (p *precompiled) lookup(s string) (text []byte, ok bool) {
	pos := unitOffset(p.units[0])
	for i := 0; i < len(s) && s[i] != 0; i++ {
		pos ^= uint32(s[i])
		if int(pos) >= len(p.units) {
			return nil, false
		}
		unit := p.units[pos]
		if unit&(1<<31|0xFF) != uint32(s[i]) {
			return nil, false
		}
		if pos ^= unitOffset(unit); unit>>8&1 == 0 {
			continue
		}
		if int(pos) >= len(p.units) {
			return nil, false
		}
		from := int(p.units[pos] & (1<<31 - 1))
		if from > len(p.texts) {
			return nil, false
		}
		text = p.texts[from:]
		if end := bytes.IndexByte(text, 0); end >= 0 {
			text = text[:end]
		}
		return text, true
	}
	return nil, false
}

// unitOffset is what leads from a trie unit to its children.
func unitOffset(unit uint32) uint32 { return unit >> 10 << (unit & (1 << 9) >> 6) }

func (p *precompiled) normalize(s string, lead int) (string, int) {
	out := make([]byte, 0, len(s)+8)
	newLead := 0
	// put writes what the bytes [i, end) of s become.
	put := func(i, end int, text []byte) {
		at := len(out)
		out = append(out, text...)
		switch {
		case end <= lead:
			newLead = len(out)
		case i < lead && len(text) > 0: // begins in the first character
			_, n := utf8.DecodeRune(text)
			newLead = at + n
		}
	}
	for i := 0; i < len(s); {
		g := grapheme(s[i:])
		end := i + len(g)
		if len(g) < 6 {
			if text, ok := p.lookup(g); ok {
				put(i, end, text)
				i = end
				continue
			}
		}
		for i < end {
			_, n := utf8.DecodeRuneInString(s[i:])
			text, ok := p.lookup(s[i : i+n])
			if !ok {
				text = []byte(s[i : i+n])
			}
			put(i, i+n, text)
			i += n
		}
	}
	if lead > 0 && newLead == 0 && len(out) > 0 {
		// The first character went: as in the reference, what comes first now
		// stands in for it.
		_, newLead = utf8.DecodeRune(out)
	}
	return string(out), newLead
}

// grapheme is the extended grapheme cluster at the start of s.
func grapheme(s string) string {
	if len(s) == 1 || s[0] < utf8.RuneSelf && s[1] < utf8.RuneSelf && s[0] != '\r' {
		return s[:1] // ASCII characters join with nothing ASCII but CR LF
	}
	g := graphemes.FromString(s)
	if g.Next() {
		return g.Value()
	}
	return s
}
