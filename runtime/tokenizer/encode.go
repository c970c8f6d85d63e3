package tokenizer

// Encode turns text into ids. Special tokens that stand in the text, as
// "<|im_end|>", become their ids: use [Tokenizer.EncodePlain] for text that is
// not trusted. With addSpecial, the tokens that the model wants round a text
// (<s>, [CLS] …) are added. Invalid UTF-8 is replaced by U+FFFD first.
func (t *Tokenizer) Encode(text string, addSpecial bool) []int32 {
	return t.encode(text, addSpecial, false)
}

// EncodePlain is Encode for a text in which special tokens are nothing special:
// they are encoded as the characters they consist of. Added tokens that are not
// special (words a vocabulary was extended by) become their ids as ever.
func (t *Tokenizer) EncodePlain(text string, addSpecial bool) []int32 {
	return t.encode(text, addSpecial, true)
}

func (t *Tokenizer) encode(text string, addSpecial, plain bool) []int32 {
	st, _ := t.pool.Get().(*scratch)
	if st == nil {
		st = new(scratch)
		st.cut = t.pre.into(0, func(p piece) { st.out = t.model.encode(st, st.out, p.text, st.plain) })
	}
	st.plain = plain
	text = validText(text)
	st.out = make([]int32, 0, len(text)/4+8)
	st.segments[0] = t.added.find(st.segments[0][:0], t.added.raw, text, plain)
	for _, seg := range st.segments[0] {
		if seg.id >= 0 {
			st.out = append(st.out, seg.id)
			continue
		}
		t.encodeText(st, piece{text[seg.start:seg.end], firstLead(text, seg)})
	}
	ids := st.out
	st.out = nil
	t.pool.Put(st)
	if addSpecial && t.post != nil {
		return t.post.apply(make([]int32, 0, len(ids)+4), ids)
	}
	return ids
}

// firstLead is the length of a segment's first character if it is the text's.
func firstLead(text string, seg segment) int {
	if seg.start > 0 {
		return 0
	}
	for i := range text {
		if i > 0 {
			return i
		}
	}
	return len(text)
}

// encodeText encodes a part of the text in which no token stands that is looked
// for before normalizing.
func (t *Tokenizer) encodeText(st *scratch, p piece) {
	if t.normalizer != nil {
		p.text, p.lead = t.normalizer.normalize(p.text, p.lead)
	}
	st.segments[1] = t.added.find(st.segments[1][:0], t.added.norm, p.text, st.plain)
	for _, seg := range st.segments[1] {
		if seg.id >= 0 {
			st.out = append(st.out, seg.id)
		} else {
			st.cut(p.sub(seg.start, seg.end))
		}
	}
}

// Decode turns ids into text, as the reference's decode does. With skipSpecial,
// special tokens are left out. Ids without a token add nothing; bytes that make
// no valid UTF-8 become U+FFFD.
func (t *Tokenizer) Decode(ids []int32, skipSpecial bool) string {
	s := t.NewStream(skipSpecial)
	out := make([]byte, 0, 4*len(ids))
	for _, id := range ids {
		out = append(out, s.Next(id)...)
	}
	return validText(string(append(out, s.Flush()...)))
}
