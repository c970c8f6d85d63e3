package tokenizer

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"fmt"

	"golang.org/x/text/unicode/norm"
)

// Limits on how a normalizer may make a text longer: so many times, and by so
// many bytes. Real ones write three bytes for a space. Without limits a chain
// of replacements doubles a text at every step.
const (
	maxNormFactor = 1 << 10
	maxNormBytes  = 1 << 16
)

// growth bounds the bytes that a chain of replacements and prefixes makes of a
// text: times its length, and then more.
func growth(n normalizer) (times, more int) {
	switch n := n.(type) {
	case normSeq:
		times = 1
		for _, m := range n {
			t, b := growth(m)
			if times, more = times*t, more*t+b; times > maxNormFactor || more > maxNormBytes {
				return times, more // enough to refuse it, and no overflow
			}
		}
		return times, more
	case prependNorm:
		return 1, len(n.text)
	case replaceNorm:
		// A match may be empty, between any two bytes; a fixed text is at least
		// as long as it is.
		if lit, ok := n.pat.(literalPattern); ok && lit.text != "" {
			return max(1, (len(n.content)+len(lit.text)-1)/len(lit.text)), 0
		}
		return 1 + len(n.content), len(n.content)
	}
	return 1, 0 // at most a fixed number of times, and not again in a second pass
}

// parseNormalizer builds the normalizer that o describes.
func parseNormalizer(o *object) (normalizer, error) {
	var n normalizer
	switch o.kind {
	case "Sequence":
		seq := normSeq{}
		for _, c := range o.children("normalizers") {
			m, err := parseNormalizer(c)
			if err != nil {
				return nil, err
			}
			seq = append(seq, m)
		}
		n = seq
	case "NFC":
		n = formNorm{norm.NFC}
	case "NFD":
		n = formNorm{norm.NFD}
	case "NFKC":
		n = formNorm{norm.NFKC}
	case "NFKD":
		n = formNorm{norm.NFKD}
	case "Lowercase":
		n = lowercase
	case "StripAccents":
		n = stripAccents
	case "Nmt":
		n = nmt
	case "Strip":
		n = stripNorm{o.bool("strip_left", true), o.bool("strip_right", true)}
	case "Prepend":
		n = prependNorm{o.need("prepend")}
	case "Replace":
		n = replaceNorm{o.pattern("pattern"), o.need("content")}
	case "Precompiled":
		p, err := newPrecompiled(o.need("precompiled_charsmap"))
		if err != nil {
			o.fail("precompiled_charsmap", "%v", err)
		}
		n = p
	case "ByteLevel":
		n = byteLevelNorm{}
	case "BertNormalizer", "Bert":
		var strip *bool
		get(o, "strip_accents", &strip, "true, false or null")
		n = bertNormalizer(o.bool("clean_text", true), o.bool("handle_chinese_chars", true), strip, o.bool("lowercase", true))
	default:
		return nil, o.unsupported("normalizer")
	}
	if times, more := growth(n); times > maxNormFactor || more > maxNormBytes {
		o.fail("type", "%s would make a text more than %d times as long, or %d bytes longer", o.kind, maxNormFactor, maxNormBytes)
	}
	return n, o.err
}

// parsePreTokenizer appends the steps of the pre-tokenizer that o describes to
// seq.
func parsePreTokenizer(seq preSeq, o *object) (preSeq, error) {
	switch o.kind {
	case "Sequence":
		for _, c := range o.children("pretokenizers") {
			var err error
			if seq, err = parsePreTokenizer(seq, c); err != nil {
				return nil, err
			}
		}
	case "ByteLevel":
		seq = append(seq, byteLevelPre{prefixSpace: o.bool("add_prefix_space", true), regex: o.bool("use_regex", true)})
	case "Split":
		seq = append(seq, splitPre{o.pattern("pattern"), o.bool("invert", false), o.behavior("behavior", "")})
	case "Metaspace":
		mark, scheme := parseMetaspace(o)
		seq = append(seq, metaspacePre{mark, scheme, o.bool("split", true)})
	case "Whitespace":
		seq = append(seq, splitPre{pat: scannerPattern{scanWords}, invert: true, behavior: splitRemoved})
	case "WhitespaceSplit":
		seq = append(seq, splitPre{pat: runePattern{isSpaceRune}, behavior: splitRemoved})
	case "Digits":
		b := splitContiguous
		if o.bool("individual_digits", false) {
			b = splitIsolated
		}
		seq = append(seq, splitPre{pat: runePattern{isNumericRune}, behavior: b})
	case "Punctuation":
		seq = append(seq, splitPre{pat: runePattern{isPunctRune}, behavior: o.behavior("behavior", "Isolated")})
	case "BertPreTokenizer":
		seq = append(seq, bertPre...)
	case "CharDelimiterSplit", "Delimiter":
		seq = append(seq, splitPre{pat: literalPattern{o.char("delimiter")}, behavior: splitRemoved})
	case "UnicodeScripts":
		seq = append(seq, scriptsPre{})
	case "FixedLength":
		n := o.int("length", 5)
		if n < 1 || n > 1<<30 {
			o.fail("length", "%d is not a length", n)
		}
		seq = append(seq, fixedLengthPre{int(n)})
	default:
		return nil, o.unsupported("pre-tokenizer")
	}
	return seq, o.err
}

// parseMetaspace reads what the pre-tokenizer and the decoder Metaspace share.
func parseMetaspace(o *object) (mark string, scheme prependScheme) {
	mark = o.char("replacement")
	space := o.bool("add_prefix_space", true)
	otherwise := "always"
	if !space {
		otherwise = "never"
	}
	switch s := o.str("prepend_scheme", otherwise); s {
	case "always":
		scheme = prependAlways
	case "first":
		scheme = prependFirst
	case "never":
		scheme = prependNever
	default:
		o.fail("prepend_scheme", "unknown scheme %s", quote(s))
	}
	if !space && scheme != prependNever {
		o.fail("prepend_scheme", "contradicts add_prefix_space false")
	}
	return mark, scheme
}

// A template says how special tokens stand round the ids of a text.
type template []templateItem

type templateItem struct {
	text bool    // the text's ids stand here
	ids  []int32 // or these
}

// apply appends the whole to dst.
func (t template) apply(dst, text []int32) []int32 {
	for _, it := range t {
		if it.text {
			dst = append(dst, text...)
		} else {
			dst = append(dst, it.ids...)
		}
	}
	return dst
}

// parsePostProcessor returns nil where the post-processor adds nothing.
func parsePostProcessor(o *object) (template, error) {
	switch o.kind {
	case "ByteLevel": // changes offsets only
		return nil, o.err
	case "Sequence":
		var t template
		for _, c := range o.children("processors") {
			next, err := parsePostProcessor(c)
			if err != nil {
				return nil, err
			}
			if t != nil && next != nil {
				return nil, fmt.Errorf("%s: a second post-processor that adds tokens is not supported", c.path)
			}
			if next != nil {
				t = next
			}
		}
		return t, o.err
	case "TemplateProcessing":
		return parseTemplate(o)
	case "BertProcessing", "RobertaProcessing":
		return template{{ids: o.tokenAndID("cls")}, {text: true}, {ids: o.tokenAndID("sep")}}, o.err
	}
	return nil, o.unsupported("post-processor")
}

// tokenAndID reads ["</s>", 2].
func (o *object) tokenAndID(key string) []int32 {
	l := o.list(key)
	var id int64
	if len(l) == 2 && l[0].Kind() == '"' {
		if err := json.Unmarshal(l[1], &id); err == nil && id >= 0 && id <= maxID {
			return []int32{int32(id)}
		}
	}
	o.fail(key, "want [token, id]")
	return nil
}

func parseTemplate(o *object) (template, error) {
	var special map[string]struct {
		IDs []int64 `json:"ids"`
	}
	get(o, "special_tokens", &special, "an object of tokens with ids")
	t := template{}
	for i, raw := range o.list("single") {
		var it map[string]jsontext.Value
		var ref struct {
			ID string `json:"id"`
		}
		path := fmt.Sprintf("single[%d]", i)
		if err := json.Unmarshal(raw, &it); err != nil || len(it) != 1 {
			o.fail(path, "want one of Sequence and SpecialToken")
			break
		}
		for kind, v := range it {
			if err := json.Unmarshal(v, &ref); err != nil {
				o.fail(path, "want an object with an id")
			}
			switch kind {
			case "Sequence":
				if ref.ID != "A" {
					o.fail(path, "a template for one text can have only the sequence A, not %s", quote(ref.ID))
				}
				t = append(t, templateItem{text: true})
			case "SpecialToken":
				tok, ok := special[ref.ID]
				if !ok {
					o.fail(path, "%s is not among special_tokens", quote(ref.ID))
				}
				item := templateItem{}
				for _, id := range tok.IDs {
					if id < 0 || id > maxID {
						o.fail("special_tokens", "%s: %d is not an id", quote(ref.ID), id)
					}
					item.ids = append(item.ids, int32(id))
				}
				t = append(t, item)
			default:
				o.fail(path, "unknown kind %s", quote(kind))
			}
		}
	}
	return t, o.err
}
