package api

import (
	"encoding/json/jsontext"
	"strconv"
	"strings"
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
		c.arguments = stringValue("{}")
	case jsontext.KindString, jsontext.KindBeginObject:
	default:
		fn.wrongType("arguments", c.arguments, "a string or an object")
	}
	return c
}

// shape fits a conversation to what the template can take.
func shape(messages []message, caps TemplateCaps) []message {
	out := make([]message, 0, len(messages))
	system := -1 // place of the system message that others are merged into
	for _, m := range messages {
		if m.role == "developer" && !caps.Developer {
			m.role = "system"
		}
		if m.role != "system" || caps.LaterSystem {
			out = append(out, m)
			continue
		}
		if system < 0 {
			system = 0
			out = append([]message{m}, out...)
			continue
		}
		first := &out[system]
		first.parts = []string{first.text() + "\n\n" + m.text()}
		first.isParts = false
	}
	return out
}

// render writes a message as the template's variable.
func (m *message) render(caps TemplateCaps) value {
	o := objectBuilder{}
	o.set("role", stringValue(m.role))
	if m.isParts && caps.Parts {
		parts := make([]value, len(m.parts))
		for i, text := range m.parts {
			var part objectBuilder
			part.set("type", stringValue("text"))
			part.set("text", stringValue(text))
			parts[i] = part.value()
		}
		o.set("content", arrayValue(parts))
	} else {
		o.set("content", stringValue(m.text()))
	}
	if m.name != "" {
		o.set("name", stringValue(m.name))
	}
	if m.reasoning != "" {
		o.set("reasoning_content", stringValue(m.reasoning))
		o.set("reasoning", stringValue(m.reasoning))
	}
	if len(m.calls) > 0 {
		calls := make([]value, len(m.calls))
		for i, c := range m.calls {
			calls[i] = c.render(caps)
		}
		o.set("tool_calls", arrayValue(calls))
	}
	if m.callID != "" {
		o.set("tool_call_id", stringValue(m.callID))
	}
	return o.value()
}

func (c *call) render(caps TemplateCaps) value {
	arguments := c.arguments
	switch {
	case caps.StringArguments && arguments.kind == jsontext.KindBeginObject:
		arguments = stringValue(string(arguments.append(nil)))
	case !caps.StringArguments && arguments.kind == jsontext.KindString:
		// Text that is no object stays text: what the model wrote is kept.
		if v, err := parseValue([]byte(arguments.text)); err == nil && v.kind == jsontext.KindBeginObject {
			arguments = v
		}
	}
	var fn objectBuilder
	fn.set("name", stringValue(c.name))
	fn.set("arguments", arguments)
	var o objectBuilder
	if c.id != "" {
		o.set("id", stringValue(c.id))
	}
	o.set("type", stringValue("function"))
	o.set("function", fn.value())
	return o.value()
}

func stringValue(s string) value { return value{kind: jsontext.KindString, text: s} }

func boolValue(b bool) value {
	if b {
		return value{kind: jsontext.KindTrue}
	}
	return value{kind: jsontext.KindFalse}
}

func intValue(n int64) value {
	return value{kind: jsontext.KindNumber, text: strconv.FormatInt(n, 10)}
}

func arrayValue(list []value) value {
	return value{kind: jsontext.KindBeginArray, kids: &kids{values: list}}
}

// objectBuilder makes an object, members in the order they are first set.
type objectBuilder struct{ kids kids }

func (o *objectBuilder) set(name string, v value) {
	for i, old := range o.kids.names {
		if old == name {
			o.kids.values[i] = v
			return
		}
	}
	o.kids.names = append(o.kids.names, name)
	o.kids.values = append(o.kids.values, v)
}

func (o *objectBuilder) value() value {
	return value{kind: jsontext.KindBeginObject, kids: &o.kids}
}
