package api

import (
	"encoding/json/jsontext"
	"math"
	"slices"
	"strconv"

	"infer/runtime/engine"
)

// Limits on what one request may ask for.
const (
	maxN        = 128  // choices of one prompt
	maxStops    = 16   // stop strings
	maxTop      = 20   // alternatives per token
	maxPrompts  = 2048 // sequences of one request
	maxBadWords = 1024
)

// readSampling fills the turn's sampling from the fields that all of OpenAI's
// generating routes share. MaxTokens is left as asked (0: not asked).
func readSampling(f *fields, m *Model, t *turn) {
	s := &t.sampling
	s.Temperature = orDefault(f, "temperature", 0, 2, m.Defaults.Temperature, 1)
	s.TopP = orDefault(f, "top_p", 0, 1, m.Defaults.TopP, 1)
	s.MinP = orDefault(f, "min_p", 0, 1, m.Defaults.MinP, 0)
	s.Presence = orDefault(f, "presence_penalty", -2, 2, nil, 0)
	s.Frequency = orDefault(f, "frequency_penalty", -2, 2, nil, 0)
	s.Repetition = orDefault(f, "repetition_penalty", 0, math.Inf(1), m.Defaults.Repetition, 1)
	if s.Repetition == 0 {
		f.bad("repetition_penalty", "it must be greater than 0; 1 is off")
	}
	if x, ok := f.number("top_p", 0, 1); ok && x == 0 {
		// The smallest nucleus: the likeliest token. The engine reads 0 as off.
		s.TopP = 1e-9
	}
	if k, ok := f.integer("top_k", -1, math.MaxInt32); ok {
		s.TopK = int(max(k, 0))
	} else if m.Defaults.TopK != nil {
		s.TopK = max(*m.Defaults.TopK, 0)
	}
	if seed, ok := f.integer("seed", math.MinInt64, math.MaxInt64); ok {
		s.Seed = &seed
	}
	s.LogitBias = readLogitBias(f, m.Vocab)
	readStops(f, m, t)
	if words, ok := f.stringOrList("bad_words"); ok {
		if len(words) > maxBadWords {
			f.bad("bad_words", "%d entries; at most %d are taken", len(words), maxBadWords)
			return
		}
		if slices.Contains(words, "") {
			f.bad("bad_words", "an empty text is in every answer")
			return
		}
		m.needText(f, "bad_words")
		s.BadWords = badWordIDs(m.Tokenizer, words)
	}
	if ids, ok := f.ids("allowed_token_ids", m.Vocab); ok {
		if len(ids) == 0 {
			f.bad("allowed_token_ids", "an empty list allows no token at all")
		}
		s.Allowed = ids
	}
	n, ok := f.integer("min_tokens", 0, math.MaxInt32)
	s.MinTokens = int(n)
	if ok && t.maxAsked && s.MinTokens > s.MaxTokens {
		f.bad("min_tokens", "%d is more than the largest number of tokens asked for, %d", n, s.MaxTokens)
	}
	s.IgnoreEOS = f.boolean("ignore_eos", false)

	t.n = 1
	if n, ok := f.integer("n", 1, maxN); ok {
		t.n = int(n)
	}
	t.keepSpecial = !f.boolean("skip_special_tokens", true)
	t.returnIDs = f.boolean("return_token_ids", false)
	t.salt, _ = f.str("cache_salt")
	if p, ok := f.integer("priority", math.MinInt32, math.MaxInt32); ok {
		t.priority = int(p)
	}
	if n, ok := f.integer("truncate_prompt_tokens", -1, math.MaxInt32); ok {
		if n == 0 {
			f.bad("truncate_prompt_tokens", "0 is out of range: it must be -1 (the context length) or at least 1")
		}
		t.truncate = int(n)
	}
	t.stream = f.boolean("stream", false)
	if o, ok := f.object("stream_options"); ok {
		t.includeUsage = o.boolean("include_usage", false)
		t.continuousUsage = o.boolean("continuous_usage_stats", false)
	}
	s.PromptLogprobs = -1
	if n, ok := f.integer("prompt_logprobs", 0, maxTop); ok {
		s.PromptLogprobs = int(n)
		t.promptLogprobs = true
		if t.stream {
			f.bad("prompt_logprobs", "not with stream")
		}
	}
}

func orDefault(f *fields, name string, lo, hi float64, model *float64, def float64) float64 {
	if x, ok := f.number(name, lo, hi); ok {
		return x
	}
	if model != nil {
		return *model
	}
	return def
}

// readMaxTokens reads the limit on the answer's tokens from the first of
// names that is there. It must be read before readSampling.
func readMaxTokens(f *fields, t *turn, lo int64, names ...string) {
	for _, name := range names {
		n, ok := f.integer(name, lo, math.MaxInt64)
		if ok && !t.maxAsked {
			t.maxAsked = true
			t.sampling.MaxTokens = int(min(n, math.MaxInt32))
		}
	}
}

func readStops(f *fields, m *Model, t *turn) {
	stops, _ := f.stringOrList("stop")
	if len(stops) > 0 {
		m.needText(f, "stop")
	}
	if len(stops) > maxStops {
		f.bad("stop", "%d stop strings; at most %d are taken", len(stops), maxStops)
	}
	for i, stop := range stops {
		if stop == "" {
			f.bad("stop", "entry %d is empty: an empty string would stop everything", i)
		}
	}
	t.sampling.Stop = stops
	t.sampling.StopIDs, _ = f.ids("stop_token_ids", m.Vocab)
	t.includeStop = f.boolean("include_stop_str_in_output", false)
}

func readLogitBias(f *fields, vocab int) map[int32]float32 {
	v := f.get("logit_bias")
	if v.absent() {
		return nil
	}
	if v.kind != jsontext.KindBeginObject {
		f.wrongType("logit_bias", v, "an object of token ids")
		return nil
	}
	bias := make(map[int32]float32, len(v.list()))
	for i, key := range v.names() {
		id, err := strconv.ParseInt(key, 10, 64)
		if err != nil {
			f.bad("logit_bias", "the key \"%s\" is no token id", clip(key))
			return nil
		}
		if id < 0 || id >= int64(vocab) {
			f.bad("logit_bias", "token id %d is not in the vocabulary: ids are 0 to %d", id, vocab-1)
			return nil
		}
		x, bad := numberIn(v.list()[i], f.at("logit_bias"), -100, 100)
		if bad != nil {
			bad.Message += " (token id " + key + ")"
			f.fail(bad)
			return nil
		}
		bias[int32(id)] = float32(x)
	}
	return bias
}

// badWordIDs are the id runs of words at a text's start and behind a space,
// where that makes a different first token.
func badWordIDs(tok Tokenizer, words []string) [][]int32 {
	var runs [][]int32
	for _, word := range words {
		plain := tok.EncodePlain(word, false)
		if len(plain) == 0 {
			continue
		}
		runs = append(runs, plain)
		spaced := tok.EncodePlain(" "+word, false)
		if len(spaced) == len(plain) && spaced[0] != plain[0] {
			runs = append(runs, spaced)
		}
	}
	return runs
}

// clampTokens fits the wished number of tokens to what the context leaves.
func clampTokens(s *engine.Sampling, asked bool, def *int, rest int) {
	switch {
	case asked:
		s.MaxTokens = min(s.MaxTokens, rest)
	case def != nil && *def > 0:
		s.MaxTokens = min(*def, rest)
	default:
		s.MaxTokens = rest
	}
	s.MinTokens = min(s.MinTokens, s.MaxTokens)
}
