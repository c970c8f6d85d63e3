package chattemplate

import (
	"crypto/sha256"
	"strings"
)

// Adapt gives the messages in the form that a template of these Caps takes; what it changes it copies.
//
//   - content parts become one string (or a string becomes parts), texts joined by a line break
//   - developer becomes system, unless the template has words for it
//   - system messages are merged into one in front, unless the template takes them anywhere; a template without system role gets
//     that text in front of the first user message
//   - tool call arguments given as JSON text become mappings if they parse to one (or the reverse)
//   - an assistant's missing or null content becomes "", unless the template takes null
//   - tool call ids get the nine characters that some templates insist on
//
// Parts that are no text are left as they are: the caller refuses them before.
func (c Caps) Adapt(messages *List) *List {
	out := NewList()
	for _, v := range messages.Items {
		m, ok := v.(*Dict)
		if !ok {
			out.Items = append(out.Items, v)
			continue
		}
		m = m.Clone()
		if get(m, "role") == "developer" && !c.Developer {
			m.Set("role", "system")
		}
		c.adaptContent(m)
		c.adaptCalls(m)
		out.Items = append(out.Items, m)
	}
	if !c.SystemLater {
		out = mergeSystem(out)
	}
	if !c.System {
		out = foldSystem(out)
	}
	if c.Parts {
		for _, v := range out.Items {
			if m, ok := v.(*Dict); ok {
				if s, ok := get(m, "content").(string); ok {
					m.Set("content", parts(s))
				}
			}
		}
	}
	return out
}

func (c Caps) adaptContent(m *Dict) {
	content := get(m, "content")
	if l, ok := content.(*List); ok {
		if s, ok := joinParts(l); ok {
			m.Set("content", s)
		}
	}
	if content == nil {
		if get(m, "role") == "assistant" && c.NullContent {
			m.Set("content", nil)
		} else {
			m.Set("content", "")
		}
	}
}

// joinParts gives the text of content parts, if they are all text.
func joinParts(l *List) (string, bool) {
	var texts []string
	for _, v := range l.Items {
		switch p := v.(type) {
		case string:
			texts = append(texts, p)
		case *Dict:
			s, ok := get(p, "text").(string)
			if !ok {
				s, ok = get(p, "refusal").(string)
			}
			if !ok {
				return "", false
			}
			texts = append(texts, s)
		default:
			return "", false
		}
	}
	return strings.Join(texts, "\n"), true
}

func (c Caps) adaptCalls(m *Dict) {
	if id, ok := get(m, "tool_call_id").(string); ok && c.ShortIDs {
		m.Set("tool_call_id", ShortID(id))
	}
	calls, ok := get(m, "tool_calls").(*List)
	if !ok {
		return
	}
	out := NewList()
	for _, v := range calls.Items {
		call, ok := v.(*Dict)
		if !ok {
			out.Items = append(out.Items, v)
			continue
		}
		call = call.Clone()
		if id, ok := get(call, "id").(string); ok && c.ShortIDs {
			call.Set("id", ShortID(id))
		}
		if f, ok := get(call, "function").(*Dict); ok {
			f = f.Clone()
			if args, has := f.Get("arguments"); has {
				f.Set("arguments", c.arguments(args))
			}
			call.Set("function", f)
		}
		out.Items = append(out.Items, call)
	}
	m.Set("tool_calls", out)
}

func (c Caps) arguments(v Value) Value {
	switch a := v.(type) {
	case string:
		if c.StringArgs {
			return a
		}
		if strings.TrimSpace(a) == "" {
			return NewDict()
		}
		if d, err := ParseJSON([]byte(a)); err == nil {
			if d, ok := d.(*Dict); ok {
				return d
			}
		}
	case *Dict:
		if s, err := toJSON(a); c.StringArgs && err == nil {
			return s
		}
	}
	return v
}

// ShortID maps an id to nine letters or digits, always the same; an id of that form is kept.
func ShortID(id string) string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	if len(id) == 9 && strings.Trim(id, digits) == "" {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	b := make([]byte, 9)
	for i := range b {
		b[i] = digits[int(sum[i])%len(digits)]
	}
	return string(b)
}

// mergeSystem moves the text of all system messages into one at the start.
func mergeSystem(l *List) *List {
	var texts []string
	rest := NewList()
	var first *Dict
	for _, v := range l.Items {
		m, ok := v.(*Dict)
		text, isText := "", false
		if ok && get(m, "role") == "system" {
			text, isText = get(m, "content").(string)
		}
		if !isText {
			rest.Items = append(rest.Items, v)
			continue
		}
		if first == nil {
			first = m
		}
		texts = append(texts, text)
	}
	if first == nil {
		return l
	}
	first.Set("content", strings.Join(texts, "\n\n"))
	return NewList(append([]Value{first}, rest.Items...)...)
}

// foldSystem puts the text of a leading system message in front of the first user message.
func foldSystem(l *List) *List {
	if len(l.Items) == 0 {
		return l
	}
	sys, ok := l.Items[0].(*Dict)
	if !ok || get(sys, "role") != "system" {
		return l
	}
	text, ok := get(sys, "content").(string)
	if !ok {
		return l
	}
	for _, v := range l.Items[1:] {
		m, ok := v.(*Dict)
		if !ok || get(m, "role") != "user" {
			continue
		}
		if s, ok := get(m, "content").(string); ok {
			m.Set("content", strings.TrimSpace(text+"\n\n"+s))
			return NewList(l.Items[1:]...)
		}
		return l
	}
	return l
}
