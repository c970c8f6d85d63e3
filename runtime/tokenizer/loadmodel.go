package tokenizer

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"
	"strconv"
	"strings"
)

// modelConfig is the file's model. Its vocabulary and merges are read piece by
// piece, the rest as one object.
type modelConfig struct {
	fields map[string]jsontext.Value
	ids    map[string]int32 // of a vocabulary that is an object
	pieces []string         // of one that is a list of pieces with scores
	scores []float64
	merges [][2]string
	has    map[string]bool // vocab, merges
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
		switch kind := dec.PeekKind(); {
		case key == "vocab" && kind == '{':
			err = c.readVocab(dec)
		case key == "vocab" && kind == '[':
			err = c.readScores(dec)
		case key == "merges" && kind == '[':
			err = c.readMerges(dec)
		default:
			var v jsontext.Value
			if v, err = dec.ReadValue(); err != nil {
				return nil, jsonError(err)
			}
			if key == "vocab" || key == "merges" {
				return nil, fmt.Errorf("model.%s: got %s", key, kindName(v))
			}
			c.fields[key] = v.Clone()
		}
		if err != nil {
			return nil, err
		}
	}
	_, err := dec.ReadToken()
	return c, err
}

func (c *modelConfig) readVocab(dec *jsontext.Decoder) error {
	dec.ReadToken()
	c.ids = map[string]int32{}
	for dec.PeekKind() != '}' {
		tok, err := dec.ReadToken()
		if err != nil {
			return jsonError(err)
		}
		piece := tok.String()
		v, err := dec.ReadValue()
		if err != nil {
			return jsonError(err)
		}
		id, err := strconv.ParseInt(string(v), 10, 64)
		switch {
		case err != nil:
			return fmt.Errorf("model.vocab[%s]: want an id, got %s", quote(piece), quote(string(v)))
		case id < 0 || id > maxID:
			return fmt.Errorf("model.vocab[%s]: id %d is not between 0 and %d", quote(piece), id, maxID)
		}
		if old, ok := c.ids[piece]; ok && old != int32(id) {
			return fmt.Errorf("model.vocab[%s]: given twice, with the ids %d and %d", quote(piece), old, id)
		}
		c.ids[piece] = int32(id)
	}
	_, err := dec.ReadToken()
	return err
}

func (c *modelConfig) readScores(dec *jsontext.Decoder) error {
	dec.ReadToken()
	for dec.PeekKind() != ']' {
		v, err := dec.ReadValue()
		if err != nil {
			return jsonError(err)
		}
		var pair [2]jsontext.Value
		var piece string
		var score float64
		if json.Unmarshal(v, &pair) != nil || json.Unmarshal(pair[0], &piece) != nil || json.Unmarshal(pair[1], &score) != nil {
			return fmt.Errorf("model.vocab[%d]: want [piece, score], got %s", len(c.pieces), quote(string(v)))
		}
		c.pieces, c.scores = append(c.pieces, piece), append(c.scores, score)
	}
	_, err := dec.ReadToken()
	return err
}

// readMerges reads merges written as "a b" or as ["a", "b"].
func (c *modelConfig) readMerges(dec *jsontext.Decoder) error {
	dec.ReadToken()
	for n := 0; dec.PeekKind() != ']'; n++ {
		var pair [2]string
		switch dec.PeekKind() {
		case '"':
			tok, err := dec.ReadToken()
			if err != nil {
				return jsonError(err)
			}
			s := tok.String()
			if strings.HasPrefix(s, "#version") {
				continue
			}
			a, b, ok := strings.Cut(s, " ")
			if !ok || strings.Contains(b, " ") {
				return fmt.Errorf("model.merges[%d]: %s is not two pieces with a space between", n, quote(s))
			}
			pair = [2]string{a, b}
		default:
			v, err := dec.ReadValue()
			if err != nil {
				return jsonError(err)
			}
			if v.Kind() != '[' || json.Unmarshal(v, &pair) != nil {
				return fmt.Errorf("model.merges[%d]: want two pieces, got %s", n, quote(string(v)))
			}
		}
		c.merges = append(c.merges, pair)
	}
	_, err := dec.ReadToken()
	return err
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
	id, ok := c.ids[unk]
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
