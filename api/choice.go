package api

import (
	"errors"
	"unicode/utf8"

	"infer/runtime/engine"
	"infer/runtime/tokenizer"
)

// Errors that end a sequence from within emit. They never reach a client.
var (
	errStopString = errors.New("a stop string was met")
	errScored     = errors.New("the prompt is scored; no token was asked for")
)

// delta is what one step adds to one choice.
type delta struct {
	choice int // place in the answer's choices
	text   string
	// reasoning comes before text: a delta with both ends the reasoning.
	reasoning string
	tokens    []token          // whose text is out now; kept only when the turn reports tokens
	prompt    []engine.Logprob // the prompt's, when asked for
	done      bool             // the last delta of this choice, with what follows
	finish    engine.Finish
	stop      string // the stop string that was met, if one was
	usage     usage  // so far
	prefix    string // first delta with echo: the prompt's text
}

func (d *delta) empty() bool {
	return d.text == "" && d.reasoning == "" && len(d.tokens) == 0 && d.prompt == nil && !d.done
}

// token is one generated token.
type token struct {
	id      int32
	logprob *engine.Logprob
	start   int  // where its text begins in the choice's text, in bytes
	chars   int  // the same in characters
	stop    bool // the stop token that ended the answer; it has no text
}

// choice turns the Events of one sequence into deltas: whole characters, no
// part of a stop string, and each token reported when its text goes out.
type choice struct {
	index  int
	prompt int  // tokens
	keep   bool // tokens are reported

	hold  tokenizer.UTF8Holder
	stop  *tokenizer.StopFilter
	split *splitter // nil: all is content
	made  int       // bytes of text that came out of hold
	chars int       // the same in characters
	out   int       // bytes of text that went out
	count int       // tokens consumed
	think int       // of them, reasoning

	pending []token
}

func newChoice(t *turn, p prompt, index int) *choice {
	c := &choice{
		index: index, prompt: len(p.ids),
		keep: t.logprobs() || t.returnIDs || t.ranked(),
		stop: tokenizer.NewStopFilter(t.sampling.Stop, t.includeStop),
	}
	if t.reasons {
		c.split = newSplitter(t.opened)
	}
	return c
}

// feed takes one Event. stopped is true when a stop string was met: nothing
// may be fed after it.
func (c *choice) feed(ev engine.Event) (d delta, stopped bool) {
	d = delta{choice: c.index, prompt: ev.Prompt}
	if ev.HasToken {
		c.count++
		d.usage = usage{prompt: c.prompt, completion: c.count}
		if c.keep {
			c.pending = append(c.pending, token{id: ev.Token, logprob: ev.Logprob, start: c.made, chars: c.chars})
		}
	}
	if len(ev.Bytes) == 0 {
		return d, false
	}
	text := c.hold.Push(ev.Bytes)
	c.made += len(text)
	if c.keep {
		c.chars += utf8.RuneCountInString(text)
	}
	text, stopped = c.stop.Push(text)
	c.out += len(text)
	c.part(&d, text)
	d.tokens = c.release(func(t token) bool { return t.start < c.out })
	return d, stopped
}

// part adds text to a delta, as reasoning or as content.
func (c *choice) part(d *delta, text string) {
	if c.split == nil {
		d.text += text
		return
	}
	thought := c.split.inside()
	reasoning, content := c.split.push(text)
	d.reasoning += reasoning
	d.text += content
	if thought || c.split.inside() {
		c.think = c.count
	}
}

// release takes the leading pending tokens for which ok holds.
func (c *choice) release(ok func(token) bool) []token {
	n := 0
	for n < len(c.pending) && ok(c.pending[n]) {
		n++
	}
	if n == 0 {
		return nil
	}
	out := c.pending[:n:n]
	c.pending = c.pending[n:]
	return out
}

// end is the last delta: what was held goes out, with the reason and the
// counts. stopped: feed said so.
func (c *choice) end(r engine.Result, stopped bool) delta {
	d := delta{choice: c.index, done: true, finish: r.Finish}
	d.usage = usage{prompt: c.prompt, completion: r.Completion, cached: r.Cached}
	if r.Prompt > 0 {
		d.usage.prompt = r.Prompt
	}
	if !stopped {
		var tail string
		tail, stopped = c.stop.Push(c.hold.Flush())
		if !stopped {
			tail += c.stop.Flush()
		}
		c.out += len(tail)
		c.part(&d, tail)
	} else {
		// What the engine made beyond the stop string was not asked for.
		d.usage.completion = c.count
	}
	if c.split != nil {
		reasoning, content := c.split.flush()
		d.reasoning += reasoning
		d.text += content
		d.usage.reasoning = min(c.think, d.usage.completion)
		if c.split.inside() {
			d.usage.reasoning = d.usage.completion
		}
	}
	if stopped {
		// Tokens of the stop string and behind it are no part of the answer.
		d.finish = engine.FinishStop
		d.stop, _ = c.stop.Matched()
		d.tokens = c.release(func(t token) bool { return t.start < c.out })
		return d
	}
	if n := len(c.pending); n > 0 && r.Finish == engine.FinishStop && c.pending[n-1].id == r.StopID {
		c.pending[n-1].stop = true
	}
	d.tokens = c.release(func(token) bool { return true })
	return d
}
