package api

import (
	"bytes"
	"encoding/json/jsontext"
	"errors"
	"io"
)

// Limits on the shape of a body. Its size in bytes is limited before.
const (
	maxDepth  = 100
	maxValues = 1 << 21 // 32 bytes each in memory
)

// value is a JSON value as it was sent: keys in order, numbers as written.
// The zero value stands for "absent".
type value struct {
	kind jsontext.Kind // KindInvalid: absent
	text string        // of a string, or a number's literal
	kids *kids         // of an array or object
}

type kids struct {
	names  []string // of an object's members; of equal names the last one counts
	values []value
}

func (v value) absent() bool { return v.kind == 0 || v.kind == jsontext.KindNull }

func (v value) list() []value {
	if v.kids == nil {
		return nil
	}
	return v.kids.values
}

func (v value) names() []string {
	if v.kids == nil {
		return nil
	}
	return v.kids.names
}

// kindName is how errors call a value's type.
func (v value) kindName() string {
	switch v.kind {
	case jsontext.KindNull:
		return "null"
	case jsontext.KindTrue, jsontext.KindFalse:
		return "a boolean"
	case jsontext.KindString:
		return "a string"
	case jsontext.KindNumber:
		return "a number"
	case jsontext.KindBeginArray:
		return "an array"
	case jsontext.KindBeginObject:
		return "an object"
	}
	return "absent"
}

// parseValue reads exactly one JSON value. Invalid UTF-8 and lone surrogates
// become U+FFFD, as in most JSON readers.
func parseValue(body []byte) (value, error) {
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	p := parser{dec: jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))}
	v, err := p.next()
	if err != nil {
		return value{}, err
	}
	if _, err := p.dec.ReadToken(); !errors.Is(err, io.EOF) {
		return value{}, badBody("the body has more than one JSON value: something follows at byte %d", p.dec.InputOffset())
	}
	return v, nil
}

type parser struct {
	dec   *jsontext.Decoder
	count int
}

func (p *parser) token() (jsontext.Token, error) {
	tok, err := p.dec.ReadToken()
	if err == nil {
		return tok, nil
	}
	if errors.Is(err, io.EOF) && p.dec.InputOffset() == 0 {
		return tok, badBody("the body is empty; a JSON object is wanted")
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return tok, badBody("the body is not valid JSON: it ends in the middle of a value, after byte %d", p.dec.InputOffset())
	}
	if e, ok := errors.AsType[*jsontext.SyntacticError](err); ok && e.Err != nil {
		return tok, badBody("the body is not valid JSON: %v, at byte %d", e.Err, e.ByteOffset)
	}
	return tok, badBody("the body is not valid JSON: %v", err)
}

func (p *parser) next() (value, error) {
	tok, err := p.token()
	if err != nil {
		return value{}, err
	}
	return p.value(tok)
}

func (p *parser) value(tok jsontext.Token) (value, error) {
	p.count++
	if p.count > maxValues {
		return value{}, badBody("the body has more than %d JSON values", maxValues)
	}
	v := value{kind: tok.Kind()}
	switch v.kind {
	case jsontext.KindString, jsontext.KindNumber:
		v.text = tok.String()
	case jsontext.KindBeginArray, jsontext.KindBeginObject:
		if p.dec.StackDepth() > maxDepth {
			return value{}, badBody("the body is nested deeper than %d levels", maxDepth)
		}
		v.kids = new(kids)
		for {
			tok, err := p.token()
			if err != nil {
				return value{}, err
			}
			if k := tok.Kind(); k == jsontext.KindEndArray || k == jsontext.KindEndObject {
				return v, nil
			}
			if v.kind == jsontext.KindBeginObject {
				v.kids.names = append(v.kids.names, tok.String())
				if tok, err = p.token(); err != nil {
					return value{}, err
				}
			}
			kid, err := p.value(tok)
			if err != nil {
				return value{}, err
			}
			v.kids.values = append(v.kids.values, kid)
		}
	}
	return v, nil
}

// lastIndex maps each member's name to the place of its last occurrence.
func (v value) lastIndex() map[string]int {
	index := make(map[string]int, len(v.names()))
	for i, name := range v.names() {
		index[name] = i
	}
	return index
}
