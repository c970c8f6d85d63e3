// Package api serves a model over HTTP, in OpenAI's dialect.
//
//	body ─► value, fields ─► turn ─► Template, Tokenizer ─► Generator × choices
//	        (strict JSON)    (what is asked,                     │ Event
//	                          whatever the dialect)              ▼
//	     SSE chunks or one answer ◄── delta ◄── choice (UTF-8 holder, stop strings)
//
// A route decodes its dialect into a turn, and writes deltas back in its
// dialect; what lies between (limits, prompts, concurrency, text, usage,
// metrics) is the same for all. Streamed and whole answers are made from the
// same deltas, so they agree.
//
// What it must never do: know a device or a weight; ignore a field that limits
// the output (it is honoured or refused with 400); take memory before the
// limit on it was checked; answer an error in a shape that the dialect's
// clients cannot read; leave a sequence running for a client that is gone.
package api
