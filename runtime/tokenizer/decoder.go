package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A stage is one step of a decoder. It gets a text's tokens, or what the stage
// before it made of them, one string after the other, and hands on the strings
// that are certain; flush ends the text. It has the state of one text.
//
// Behind a decoder that joins all strings into one (Fuse, ByteLevel), strings
// are parts of a single long one, cut anywhere between two characters. There a
// stage has another form, or waits for the whole.
type stage interface {
	push(s string, next func(string))
	flush(next func(string))
	// middle is what the stage makes of a token in the middle of a text.
	middle(s string) string
}

// A decoder makes the stages that decode one text.
type decoder struct {
	make []func() stage
	// rawBytes: what comes out are bytes to be made valid UTF-8 as a whole.
	rawBytes bool
}

func (d *decoder) stages() []stage {
	out := make([]stage, len(d.make))
	for i, f := range d.make {
		out[i] = f()
	}
	return out
}

// joinDecoder is what the reference does where a file has no decoder: tokens
// with spaces between.
func joinDecoder() *decoder {
	return &decoder{make: []func() stage{func() stage {
		return &firstStage{rest: func(s string) string { return " " + s }}
	}}}
}

// parseDecoder builds the decoder that o describes.
func parseDecoder(o *object) (*decoder, error) {
	d := &decoder{}
	fused := false
	if err := d.add(o, &fused); err != nil {
		return nil, err
	}
	return d, nil
}

func (d *decoder) add(o *object, fused *bool) error {
	if o.kind == "Sequence" {
		for _, c := range o.children("decoders") {
			if err := d.add(c, fused); err != nil {
				return err
			}
		}
		return o.err
	}
	var whole func() stage // the form for strings that are tokens
	var part func() stage  // for parts of one string; nil: wait for all of it
	fuses := false
	same := func() stage { return mapStage(func(s string) string { return s }) }
	switch o.kind {
	case "Fuse":
		whole, part, fuses = same, same, true
	case "ByteLevel":
		whole, fuses = func() stage { return &byteLevelStage{} }, true
	case "ByteFallback":
		whole = func() stage { return &fallbackStage{} }
	case "Replace":
		pat, content := o.pattern("pattern"), o.need("content")
		f := func(s string) string { return normalizeString(replaceNorm{pat, content}, s) }
		whole = func() stage { return mapStage(f) }
		if p, ok := pat.(literalPattern); ok && p.text != "" {
			part = func() stage { return &replacePart{old: p.text, new: content} }
		}
	case "Strip":
		c, start, stop := o.char("content"), o.int("start", 0), o.int("stop", 0)
		whole = func() stage { return mapStage(stripToken(c, start, stop)) }
		part = func() stage { return &stripPart{content: c, start: start, stop: stop} }
	case "Metaspace":
		mark, scheme := parseMetaspace(o)
		space := func(s string) string { return strings.ReplaceAll(s, mark, " ") }
		first := space
		if scheme != prependNever {
			first = func(s string) string { return strings.ReplaceAll(s, mark, "") }
		}
		whole = func() stage { return &firstStage{first: first, rest: space} }
		part = func() stage { return mapStage(first) }
	case "WordPiece":
		whole = wordPieceStage(o.str("prefix", "##"), o.bool("cleanup", true))
	case "BPEDecoder":
		suffix := o.str("suffix", "</w>")
		whole = func() stage { return &bpeStage{suffix: suffix} }
	case "CTC":
		c := ctcStage{pad: o.str("pad_token", "<pad>"), delimiter: o.str("word_delimiter_token", "|"), cleanup: o.bool("cleanup", true)}
		whole = func() stage { c := c; return &c }
	default:
		return o.unsupported("decoder")
	}
	if o.err != nil {
		return o.err
	}
	if len(d.make) >= 64 {
		return fmt.Errorf("%s: more than 64 decoders in a row", o.path)
	}
	if d.rawBytes { // a stage follows: it works on characters
		d.make = append(d.make, func() stage { return &holderStage{} })
		d.rawBytes = false
	}
	switch {
	case !*fused:
		d.make = append(d.make, whole)
	case part != nil:
		d.make = append(d.make, part)
	default:
		d.make = append(d.make, func() stage { return &collectStage{inner: whole()} })
	}
	d.rawBytes = o.kind == "ByteLevel"
	*fused = *fused || fuses
	return nil
}

// mapStage treats every string on its own.
type mapStage func(s string) string

func (f mapStage) push(s string, next func(string)) { next(f(s)) }
func (f mapStage) flush(func(string))               {}
func (f mapStage) middle(s string) string           { return f(s) }

// firstStage treats the first string in another way; first nil leaves it.
type firstStage struct {
	first, rest func(s string) string
	begun       bool
}

func (x *firstStage) push(s string, next func(string)) {
	switch {
	case x.begun:
		s = x.rest(s)
	case x.first != nil:
		s = x.first(s)
	}
	x.begun = true
	next(s)
}

func (x *firstStage) flush(func(string))     {}
func (x *firstStage) middle(s string) string { return x.rest(s) }

// collectStage gives another stage all of a text as one string.
type collectStage struct {
	inner stage
	all   strings.Builder
}

func (x *collectStage) push(s string, _ func(string)) { x.all.WriteString(s) }

func (x *collectStage) flush(next func(string)) {
	if x.all.Len() > 0 {
		x.inner.push(x.all.String(), next)
	}
	x.inner.flush(next)
}

func (x *collectStage) middle(s string) string { return x.inner.middle(s) }

// holderStage makes valid text of bytes.
type holderStage struct{ h UTF8Holder }

func (x *holderStage) push(s string, next func(string)) { next(x.h.Push([]byte(s))) }
func (x *holderStage) flush(next func(string))          { next(x.h.Flush()) }
func (x *holderStage) middle(s string) string           { return s }

// fallbackStage is ByteFallback: <0xE2> <0x82> <0xAC> become the character that
// these bytes make. Bytes in a row that are not valid UTF-8 as a whole become one
// U+FFFD each, so a row is not decided before its end.
type fallbackStage struct{ row []byte }

func (x *fallbackStage) push(s string, next func(string)) {
	if b, ok := byteToken(s); ok {
		x.row = append(x.row, b)
		return
	}
	x.flush(next)
	next(s)
}

func (x *fallbackStage) flush(next func(string)) {
	switch {
	case len(x.row) == 0:
		return
	case utf8.Valid(x.row):
		next(string(x.row))
	default:
		for range x.row {
			next(replacement)
		}
	}
	x.row = x.row[:0]
}

func (x *fallbackStage) middle(s string) string {
	if b, ok := byteToken(s); ok {
		return string([]byte{b})
	}
	return s
}

// byteToken reads <0x41>.
func byteToken(s string) (byte, bool) {
	if len(s) != 6 || s[:3] != "<0x" || s[5] != '>' {
		return 0, false
	}
	hi, lo := hexDigit(s[3]), hexDigit(s[4])
	if hi < 0 || lo < 0 {
		return 0, false
	}
	return byte(hi<<4 | lo), true
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// byteLevelStage is ByteLevel: characters become the bytes they stand for; a
// token with one that stands for none is taken as it is.
type byteLevelStage struct{ buf []byte }

func (x *byteLevelStage) push(s string, next func(string)) { next(x.middle(s)) }
func (x *byteLevelStage) flush(func(string))               {}

func (x *byteLevelStage) middle(s string) string {
	b, ok := byteLevelBytes(x.buf[:0], s)
	if !ok {
		return s
	}
	x.buf = b
	return string(b)
}
