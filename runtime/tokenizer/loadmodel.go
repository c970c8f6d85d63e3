package tokenizer

import (
	"bytes"
	"encoding/json/jsontext"
	"fmt"
)

// modelConfig is the file's model. Its vocabulary is read piece by piece, the
// rest as one object.
type modelConfig struct {
	fields map[string]jsontext.Value
	ids    *pieces  // of a vocabulary that is an object
	pieces []string // of one that is a list of pieces with scores
	scores []float64
	merges jsontext.Value // a list, whose elements are not yet checked
	has    map[string]bool
}

func readModel(dec *jsontext.Decoder) (*modelConfig, error) {
	c := &modelConfig{fields: map[string]jsontext.Value{}, has: map[string]bool{}}
	if k := dec.PeekKind(); k != '{' {
		v, err := dec.ReadValue()
		if err != nil {
			return nil, jsonError(err)
		}
		return nil, fmt.Errorf("model: want an object, got %s", kindName(v))
	}
	dec.ReadToken()
	for dec.PeekKind() != '}' {
		tok, err := dec.ReadToken()
		if err != nil {
			return nil, jsonError(err)
		}
		key := tok.String()
		if c.has[key] {
			return nil, fmt.Errorf("model.%s: given twice", key)
		}
		c.has[key] = true
		kind := dec.PeekKind()
		v, err := dec.ReadValue()
		switch {
		case err != nil:
			return nil, jsonError(err)
		case key == "vocab" && kind == '{':
			err = c.readVocab(v)
		case key == "vocab" && kind == '[':
			err = c.readScores(v)
		case key == "merges" && kind == '[':
			c.merges = v.Clone()
		case key == "vocab" || key == "merges":
			err = fmt.Errorf("model.%s: got %s", key, kindName(v))
		default:
			c.fields[key] = v.Clone()
		}
		if err != nil {
			return nil, err
		}
	}
	_, err := dec.ReadToken()
	return c, err
}

func (c *modelConfig) readVocab(v jsontext.Value) error {
	c.ids = newPieces(bytes.Count(v, []byte{'"'}) / 2)
	w := walk{b: v}
	w.enter()
	for w.next() != '}' {
		piece := w.str()
		w.next()
		at := w.i
		id, ok := w.id()
		switch {
		case !ok:
			return fmt.Errorf("model.vocab[%s]: want an id, got %s", quote(string(piece)), quote(string(v[at:w.i])))
		case id < 0 || id > maxID:
			return fmt.Errorf("model.vocab[%s]: id %d is not between 0 and %d", quote(string(piece)), id, maxID)
		}
		if old, known := c.ids.add(piece, int32(id)); known && old != int32(id) {
			return fmt.Errorf("model.vocab[%s]: given twice, with the ids %d and %d", quote(string(piece)), old, id)
		}
	}
	return nil
}

func (c *modelConfig) readScores(v jsontext.Value) error {
	var arena textArena
	w := walk{b: v}
	w.enter()
	for w.next() != ']' {
		at := w.i
		piece, score, ok := w.scored()
		if !ok {
			w.i = at
			return fmt.Errorf("model.vocab[%d]: want [piece, score], got %s", len(c.pieces), quote(string(w.value())))
		}
		c.pieces, c.scores = append(c.pieces, arena.keep(piece)), append(c.scores, score)
	}
	return nil
}

// kind is the model's type; old files do not say it.
func (c *modelConfig) kind(o *object) string {
	switch {
	case o.kind != "":
		return o.kind
	case c.pieces != nil:
		return "Unigram"
	case c.has["merges"]:
		return "BPE"
	case c.has["max_input_chars_per_word"]:
		return "WordPiece"
	}
	return "WordLevel"
}

func (c *modelConfig) build() (model, error) {
	o := &object{path: "model", fields: c.fields}
	o.kind = o.str("type", "")
	if o.err != nil {
		return nil, o.err
	}
	kind := c.kind(o)
	switch kind {
	case "BPE", "WordPiece", "WordLevel":
		if c.ids == nil {
			return nil, fmt.Errorf("model.vocab: %s wants an object of pieces with ids", kind)
		}
	case "Unigram":
		return c.unigram(o)
	default:
		return nil, o.unsupported("model")
	}
	if kind == "BPE" {
		return c.bpe(o)
	}
	unk := o.str("unk_token", "[UNK]")
	id, ok := c.ids.get(unk)
	if !ok {
		o.fail("unk_token", "%s is not in the vocabulary", quote(unk))
	}
	prefix, chars := o.str("continuing_subword_prefix", "##"), o.int("max_input_chars_per_word", 100)
	if o.err != nil {
		return nil, o.err
	}
	v, err := newVocabulary(c.ids)
	if err != nil {
		return nil, err
	}
	if kind == "WordLevel" {
		return &wordLevel{vocabulary: v, unk: id}, nil
	}
	return newWordPiece(v, id, prefix, int(chars)), nil
}

func (c *modelConfig) bpe(o *object) (model, error) {
	if !c.has["merges"] {
		return nil, fmt.Errorf("model.merges: missing")
	}
	var unk *string
	get(o, "unk_token", &unk, "a string")
	var dropout float64
	get(o, "dropout", &dropout, "a number")
	if dropout != 0 {
		o.fail("dropout", "%v: leaving out merges at random is for training; want null", dropout)
	}
	cfg := &bpeConfig{
		ids: c.ids, merges: c.merges, unk: unk,
		prefix: o.str("continuing_subword_prefix", ""), suffix: o.str("end_of_word_suffix", ""),
		fuseUnk: o.bool("fuse_unk", false), fallback: o.bool("byte_fallback", false),
		ignoreMerges: o.bool("ignore_merges", false),
	}
	if o.err != nil {
		return nil, o.err
	}
	return newBPE(cfg)
}

func (c *modelConfig) unigram(o *object) (model, error) {
	if c.pieces == nil {
		return nil, fmt.Errorf("model.vocab: Unigram wants an array of pieces with scores")
	}
	unk := o.int("unk_id", -1)
	if unk < 0 {
		o.fail("unk_id", "missing: what is not in the vocabulary could not be encoded")
	} else if unk >= int64(len(c.pieces)) {
		o.fail("unk_id", "%d is past the vocabulary of %d", unk, len(c.pieces))
	}
	fallback := o.bool("byte_fallback", false)
	if o.err != nil {
		return nil, o.err
	}
	return newUnigram(c.pieces, c.scores, int32(unk), fallback)
}
