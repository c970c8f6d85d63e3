// Package tokenizer turns text into token ids and back, as a model's
// tokenizer.json says.
//
// It reads the file format of the Hugging Face tokenizers library in full and
// gives the ids that library gives (version 0.23 is the reference):
//
//	text ─► added tokens cut out ─► normalizer ─► pre-tokenizer ─► model ─► post-processor ─► ids
//	         (they pass by the rest)               (words)          (pieces)  (<s>, [CLS] …)
//
//	ids ─► pieces (added tokens included) ─► decoder ─► bytes ─► text
//
// [Load] and [New] read a tokenizer; [Tokenizer.Encode] and
// [Tokenizer.EncodePlain] go from text to ids, [Tokenizer.Decode] goes back.
// A [Stream] decodes one id at a time for an answer that is being generated:
// the bytes it returns, put together, are those of the whole decode.
// [UTF8Holder] keeps back the bytes of a character that is not complete, and
// [StopFilter] keeps back what may become a stop string.
//
// A Tokenizer is immutable after loading and safe for concurrent use; a Stream,
// UTF8Holder or StopFilter belongs to one goroutine.
//
// What the package must never do: panic, hang or take memory out of proportion
// on any tokenizer.json or any text; guess at a setting it does not know (that
// is an error at load that names file and field); or import a package of this
// project.
package tokenizer
