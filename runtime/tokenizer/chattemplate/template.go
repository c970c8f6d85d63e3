package chattemplate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"

	"infer/runtime/tokenizer/chattemplate/jinja"
)

// Values of template variables: nil, bool, int64, float64, string, *List, *Dict. Dict keeps the order of its keys.
type (
	Value = jinja.Value
	List  = jinja.List
	Dict  = jinja.Dict
)

// Error is a template's failure. Kind is the Python class that the reference implementation raises; for Raised, Message is what the
// template's author wrote for the user.
type Error = jinja.Error

// Kinds of Error that callers tell apart; the others are faults of template or input in words of Python.
const (
	Raised = jinja.Raised   // the template refused the conversation
	Limit  = jinja.LimitErr // time, work or size ran out
	Syntax = jinja.Syntax   // the source does not parse
)

// NewDict makes an empty mapping.
func NewDict() *Dict { return jinja.NewDict() }

// NewList makes a list.
func NewList(items ...Value) *List { return jinja.NewList(items...) }

// ParseJSON decodes a JSON value with the order of its keys kept and integers apart from floats.
func ParseJSON(data []byte) (Value, error) { return jinja.ParseJSON(data) }

// FromGo converts a plain Go value; a map's keys are sorted.
func FromGo(v any) (Value, error) { return jinja.FromGo(v) }

// RaisedMessage gives the message of raise_exception if that is why a rendering failed.
func RaisedMessage(err error) (string, bool) {
	var e *Error
	if errors.As(err, &e) && e.Kind == Raised {
		return e.Message, true
	}
	return "", false
}

// renderTimeout ends a rendering whose context has no earlier deadline. Real ones take a few milliseconds.
const renderTimeout = 10 * time.Second

// Template is one chat template. It is safe for concurrent use.
type Template struct {
	Name   string // "default", "tool_use", or the file's name
	Source string
	// Now is the clock of strftime_now; nil is time.Now. Set it before the first use.
	Now func() time.Time

	prog *jinja.Template
	once sync.Once
	caps Caps
}

// Parse compiles a template; name is used in errors.
func Parse(name, source string) (*Template, error) {
	prog, err := jinja.Compile(source)
	if err != nil {
		return nil, fmt.Errorf("parsing chat template %q: %w", name, err)
	}
	return &Template{Name: name, Source: source, prog: prog}, nil
}

// Render runs the template with exactly these variables: messages, tools, add_generation_prompt, bos_token and whatever else the
// template reads. vars is not changed. It ends when ctx does, after 10 seconds, or at the limits of package jinja. An *Error is in
// the error's chain.
func (t *Template) Render(ctx context.Context, vars *Dict) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, renderTimeout)
	defer cancel()
	out, err := t.prog.Render(ctx, vars, jinja.Options{Now: t.Now})
	if err != nil {
		return "", fmt.Errorf("rendering chat template %q: %w", t.Name, err)
	}
	return out, nil
}

// continueMark cannot come up in a conversation by chance. It is given with a space behind it: where that is gone the template trims
// messages, and the text before the mark is trimmed too, as it would have been without the mark.
const continueMark = "\u2060continue-here\u2060"

// RenderContinue renders a conversation whose last message is to be continued by the model: the prompt ends with that message's
// text, as transformers' continue_final_message does. It sets add_generation_prompt to false.
func (t *Template) RenderContinue(ctx context.Context, vars *Dict) (string, error) {
	v, _ := vars.Get("messages")
	messages, ok := v.(*List)
	if !ok || len(messages.Items) == 0 {
		return "", errors.New("continuing the last message: there is none")
	}
	last, ok := messages.Items[len(messages.Items)-1].(*Dict)
	if !ok {
		return "", errors.New("continuing the last message: it is no object")
	}
	content, _ := last.Get("content")
	marked, err := mark(content)
	if err != nil {
		return "", err
	}
	last = last.Clone()
	last.Set("content", marked)
	items := append([]Value(nil), messages.Items...)
	items[len(items)-1] = last
	vars = vars.Clone()
	vars.Set("messages", NewList(items...))
	vars.Set("add_generation_prompt", false)
	out, err := t.Render(ctx, vars)
	if err != nil {
		return "", err
	}
	at := strings.LastIndex(out, continueMark)
	if at < 0 {
		return "", fmt.Errorf("chat template %q drops or rewrites the last message, so that it cannot be continued", t.Name)
	}
	if !strings.HasPrefix(out[at+len(continueMark):], " ") {
		return strings.TrimRightFunc(out[:at], unicode.IsSpace), nil
	}
	return out[:at], nil
}

// mark appends the mark to a message's text.
func mark(content Value) (Value, error) {
	switch c := content.(type) {
	case string:
		return c + continueMark + " ", nil
	case *List:
		for i := len(c.Items) - 1; i >= 0; i-- {
			part, ok := c.Items[i].(*Dict)
			if !ok {
				continue
			}
			if s, ok := get(part, "text").(string); ok {
				part = part.Clone()
				part.Set("text", s+continueMark+" ")
				items := append([]Value(nil), c.Items...)
				items[i] = part
				return NewList(items...), nil
			}
		}
	}
	return nil, errors.New("continuing the last message: it has no text")
}

func get(d *Dict, key string) Value {
	v, _ := d.Get(key)
	return v
}
