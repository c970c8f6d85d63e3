package chattemplate

import (
	"context"
	"strings"
	"time"
)

// Caps is what a template can take. The zero value is a template that prints user and assistant messages whose content is a string.
type Caps struct {
	System      bool // a system message at the start appears in the prompt
	SystemLater bool // system messages may stand anywhere, and more than one
	Developer   bool // has its own words for the developer role
	Tools       bool // tool definitions appear in the prompt
	ToolCalls   bool // an assistant's tool_calls and the tool's answer appear
	Parallel    bool // more than one call in a message
	ShortIDs    bool // tool call ids must be nine letters or digits (Mistral)
	Parts       bool // content must be a list of {"type": "text", "text": …}; a string does not appear
	StringArgs  bool // tool call arguments must be the JSON text, not a mapping
	NullContent bool // an assistant message with calls may have null content
	Thinking    bool // enable_thinking changes the prompt
	ThinkTags   bool // it knows reasoning between <think> and </think>
	Effort      bool // reasoning_effort changes the prompt
}

// Caps says what the template can do, found by rendering small conversations once.
func (t *Template) Caps() Caps {
	t.once.Do(func() { t.caps = probe(t) })
	return t.caps
}

// Words that the probes look for in the prompt.
const (
	sysWord   = "qzsystem"
	userWord  = "qzuser"
	laterWord = "qzlater"
	toolWord  = "qztool"
	keyWord   = "qzkey"
	valWord   = "qzvalue"
	replyWord = "qzreply"
	shortID   = "qz1234567"
	longID    = "call_qz-123456789"
)

const probeTimeout = time.Second

// prober renders conversations of one template. None of its methods fails: a rendering that raises gives no text.
type prober struct{ t *Template }

func (p prober) render(extra *Dict, messages ...Value) (string, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	vars := extra.Clone()
	vars.Set("messages", NewList(messages...))
	vars.Set("add_generation_prompt", true)
	for _, name := range []string{"bos_token", "eos_token", "unk_token", "pad_token"} {
		vars.Set(name, "")
	}
	out, err := p.t.Render(ctx, vars)
	return out, err == nil
}

// shows tells whether the rendering succeeds and has all the words.
func (p prober) shows(words []string, extra *Dict, messages ...Value) bool {
	out, ok := p.render(extra, messages...)
	for _, w := range words {
		ok = ok && strings.Contains(out, w)
	}
	return ok
}

func dict(pairs ...Value) *Dict {
	d := NewDict()
	for i := 0; i+1 < len(pairs); i += 2 {
		d.Set(pairs[i].(string), pairs[i+1])
	}
	return d
}

func message(role string, content Value) *Dict { return dict("role", role, "content", content) }

func probe(t *Template) Caps {
	p := prober{t}
	c := Caps{}
	none := NewDict()
	text := func(s string) Value { return s }
	c.Parts = !p.shows([]string{userWord}, none, message("user", userWord)) &&
		p.shows([]string{userWord}, none, message("user", parts(userWord)))
	if c.Parts {
		text = func(s string) Value { return parts(s) }
	}
	user, answer := message("user", text(userWord)), message("assistant", text(replyWord))

	c.System = p.shows([]string{sysWord, userWord}, none, message("system", text(sysWord)), user)
	c.SystemLater = c.System &&
		p.shows([]string{sysWord, laterWord}, none, message("system", text(sysWord)), user, answer, message("system", text(laterWord)), user) &&
		p.shows([]string{sysWord, laterWord}, none, message("system", text(sysWord)), message("system", text(laterWord)), user)
	// A template that prints any role as it stands does not know this one.
	c.Developer = strings.Contains(t.Source, "developer") &&
		p.shows([]string{sysWord, userWord}, none, message("developer", text(sysWord)), user)

	tools := dict("tools", NewList(dict("type", "function", "function", dict(
		"name", toolWord, "description", "A probe.",
		"parameters", dict("type", "object", "properties", dict(keyWord, dict("type", "string", "description", "A key.")), "required", NewList(keyWord)),
	))))
	c.Tools = p.shows([]string{toolWord}, tools, user)
	probeCalls(p, &c, tools, user, text)

	c.ThinkTags = strings.Contains(t.Source, "</think>")
	c.Thinking = p.differ("enable_thinking", true, false, user)
	c.Effort = p.differ("reasoning_effort", "low", "high", user)
	return c
}

func parts(s string) Value { return NewList(dict("type", "text", "text", s)) }

// probeCalls finds the form of a tool call that the template takes: arguments as mapping before text, null content before "", any id
// before a short one.
func probeCalls(p prober, c *Caps, tools, user *Dict, text func(string) Value) {
	turn := func(content, arguments Value, id string, calls int) []Value {
		list := NewList()
		for range calls {
			list.Items = append(list.Items, dict("id", id, "type", "function", "function", dict("name", toolWord, "arguments", arguments)))
		}
		out := []Value{user, dict("role", "assistant", "content", content, "tool_calls", list)}
		for range calls {
			out = append(out, dict("role", "tool", "name", toolWord, "tool_call_id", id, "content", text(replyWord)))
		}
		return out
	}
	mapping, jsonText := dict(keyWord, valWord), `{"`+keyWord+`": "`+valWord+`"}`
	words := []string{toolWord, keyWord, valWord, replyWord}
	good := func(messages []Value) bool {
		out, ok := p.render(tools, messages...)
		for _, w := range words {
			ok = ok && strings.Contains(out, w)
		}
		return ok && !strings.Contains(out, "'"+keyWord+"'") // Python's notation: the template expected text
	}
	for _, id := range []string{longID, shortID} {
		for _, args := range []Value{mapping, jsonText} {
			if c.ToolCalls || !good(turn("", args, id, 1)) {
				continue
			}
			c.ToolCalls, c.ShortIDs = true, id == shortID
			_, isText := args.(string)
			c.StringArgs = isText
			c.Parallel = good(turn("", args, id, 2))
			if out, ok := p.render(tools, turn(nil, args, id, 1)...); ok {
				c.NullContent = !strings.Contains(out, "None")
			}
		}
	}
}

// differ tells whether a variable's value changes the prompt.
func (p prober) differ(name string, a, b Value, messages ...Value) bool {
	x, okX := p.render(dict(name, a), messages...)
	y, okY := p.render(dict(name, b), messages...)
	return okX && okY && x != y
}
