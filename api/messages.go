package api

import (
	"encoding/json/jsontext"
	"strconv"
	"strings"

	"infer/runtime/tokenizer/chattemplate"
)

// message is one turn of a conversation, on its way to the chat template.
type message struct {
	role      string // system, developer, user, assistant, tool
	parts     []string
	isParts   bool // content came as a list of parts
	name      string
	reasoning string
	calls     []call
	callID    string // of a tool's result
}

// call is a tool call of an earlier turn.
type call struct {
	id, name  string
	arguments value
}

// text is the content as one string.
func (m *message) text() string { return strings.Join(m.parts, "\n") }

// readMessages reads the conversation of a chat request.
func readMessages(f *fields) []message {
	const field = "messages"
	list, ok := f.array(field)
	switch {
	case !ok:
		f.bad(field, "it is required: an array of messages")
		return nil
	case len(list) == 0:
		f.bad(field, "at least one message is needed")
		return nil
	}
	messages := make([]message, 0, len(list))
	for i, v := range list {
		o, ok := f.element(field, i, v)
		if !ok {
			return nil
		}
		messages = append(messages, readMessage(o))
		if f.err() != nil {
			return nil
		}
	}
	return messages
}

func readMessage(f *fields) message {
	var m message
	m.role, _ = f.str("role")
	m.name, _ = f.str("name")
	m.callID, _ = f.str("tool_call_id")
	switch m.role {
	case "system", "developer", "user":
		readContent(f, &m, true)
	case "tool":
		readContent(f, &m, false)
	case "function": // the old form of tool
		m.role = "tool"
		readContent(f, &m, false)
	case "assistant":
		readContent(f, &m, false)
		readReasoning(f, &m)
		readCalls(f, &m)
	case "":
		f.bad("role", "it is required")
	default:
		f.bad("role", "unknown role \"%s\"; known: system, developer, user, assistant, tool, function", clip(m.role))
	}
	return m
}

// readContent takes a string, null, or a list of parts that are text.
func readContent(f *fields, m *message, required bool) {
	const field = "content"
	v := f.get(field)
	switch v.kind {
	case jsontext.KindString:
		m.parts = []string{v.text}
		return
	case jsontext.KindBeginArray:
		m.isParts = true
	case 0:
		if required {
			f.bad(field, "it is required for the role \"%s\": a string or an array of parts", m.role)
		}
		return
	default:
		f.wrongType(field, v, "a string or an array of parts")
		return
	}
	for i, part := range v.list() {
		if part.kind == jsontext.KindString {
			m.parts = append(m.parts, part.text)
			continue
		}
		o, ok := f.element(field, i, part)
		if !ok {
			return
		}
		switch kind, _ := o.str("type"); kind {
		case "text", "input_text", "output_text", "refusal":
			name := "text"
			if kind == "refusal" {
				name = kind
			}
			text, ok := o.str(name)
			if !ok {
				o.bad(name, "it is required")
				return
			}
			m.parts = append(m.parts, text)
		case "":
			o.bad("type", "it is required")
		case "image_url", "input_image", "image", "input_audio", "audio_url", "video_url", "file", "input_file":
			o.bad("type", "\"%s\" is not served: this model reads text only", kind)
		default:
			o.bad("type", "unknown type of part \"%s\"", clip(kind))
		}
	}
}

func readReasoning(f *fields, m *message) {
	for _, name := range []string{"reasoning_content", "reasoning"} {
		if s, ok := f.str(name); ok && m.reasoning == "" {
			m.reasoning = s
		}
	}
}

func readCalls(f *fields, m *message) {
	list, _ := f.array("tool_calls")
	for i, v := range list {
		o, ok := f.element("tool_calls", i, v)
		if !ok {
			return
		}
		fn, ok := o.object("function")
		if !ok {
			o.bad("function", "it is required")
			return
		}
		id, _ := o.str("id")
		m.calls = append(m.calls, readCall(fn, id))
	}
	if fn, ok := f.object("function_call"); ok { // the old form
		m.calls = append(m.calls, readCall(fn, ""))
	}
}

func readCall(fn *fields, id string) call {
	c := call{id: id, arguments: fn.get("arguments")}
	if c.name, _ = fn.str("name"); c.name == "" {
		fn.bad("name", "it is required")
	}
	switch c.arguments.kind {
	case 0:
		c.arguments = value{kind: jsontext.KindString, text: "{}"}
	case jsontext.KindString, jsontext.KindBeginObject:
	default:
		fn.wrongType("arguments", c.arguments, "a string or an object")
	}
	return c
}

// vars writes a message as the template's variable, before it is adapted to
// the template.
func (m *message) vars() *chattemplate.Dict {
	d := chattemplate.NewDict()
	d.Set("role", m.role)
	switch {
	case m.isParts:
		parts := chattemplate.NewList()
		for _, text := range m.parts {
			part := chattemplate.NewDict()
			part.Set("type", "text")
			part.Set("text", text)
			parts.Items = append(parts.Items, part)
		}
		d.Set("content", parts)
	case m.parts == nil:
		d.Set("content", nil)
	default:
		d.Set("content", m.text())
	}
	if m.name != "" {
		d.Set("name", m.name)
	}
	if m.reasoning != "" {
		d.Set("reasoning_content", m.reasoning)
		d.Set("reasoning", m.reasoning)
	}
	if len(m.calls) > 0 {
		calls := chattemplate.NewList()
		for _, c := range m.calls {
			calls.Items = append(calls.Items, c.vars())
		}
		d.Set("tool_calls", calls)
	}
	if m.callID != "" {
		d.Set("tool_call_id", m.callID)
	}
	return d
}

func (c *call) vars() *chattemplate.Dict {
	fn := chattemplate.NewDict()
	fn.Set("name", c.name)
	fn.Set("arguments", c.arguments.vars())
	d := chattemplate.NewDict()
	if c.id != "" {
		d.Set("id", c.id)
	}
	d.Set("type", "function")
	d.Set("function", fn)
	return d
}

// vars is a JSON value as a template's variable.
func (v value) vars() chattemplate.Value {
	switch v.kind {
	case jsontext.KindTrue:
		return true
	case jsontext.KindFalse:
		return false
	case jsontext.KindString:
		return v.text
	case jsontext.KindNumber:
		if n, err := strconv.ParseInt(v.text, 10, 64); err == nil {
			return n
		}
		x, _ := strconv.ParseFloat(v.text, 64) // too large becomes infinite, as in Python
		return x
	case jsontext.KindBeginArray:
		list := chattemplate.NewList()
		for _, kid := range v.list() {
			list.Items = append(list.Items, kid.vars())
		}
		return list
	case jsontext.KindBeginObject:
		d := chattemplate.NewDict()
		for i, name := range v.names() {
			d.Set(name, v.list()[i].vars())
		}
		return d
	}
	return nil
}
