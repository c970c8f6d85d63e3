package api

import (
	"context"
	"slices"
	"strings"

	"infer/runtime/tokenizer/chattemplate"
)

// conversation is what a chat template is rendered from, whatever the dialect.
type conversation struct {
	messages  []message
	prompt    bool // the template ends with the opening of an answer
	continues bool // the answer continues the last message's text
	effort    string
	kwargs    value // more variables, from the client
	special   bool  // the tokenizer adds its special tokens to the rendered text
}

// efforts are the known values of reasoning_effort.
var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// reserved variables are the server's own.
var reserved = []string{"messages", "tools", "add_generation_prompt", "continue_final_message", "chat_template"}

// readConversation reads what OpenAI's chat route and /tokenize share.
func readConversation(f *fields, m *Model) *conversation {
	cv := &conversation{messages: readMessages(f)}
	m.needText(f, "messages")
	if f.has("chat_template") {
		f.bad("chat_template", "a template in the request is refused: the model's own is used")
	}
	cv.continues = f.boolean("continue_final_message", false)
	// Whoever continues a message wants no new one opened; saying both is an error.
	cv.prompt = f.boolean("add_generation_prompt", !cv.continues)
	cv.special = f.boolean("add_special_tokens", false)
	if cv.continues {
		if cv.prompt {
			f.bad("continue_final_message", "it cannot be true together with add_generation_prompt")
		}
		if n := len(cv.messages); n > 0 && cv.messages[n-1].role != "assistant" {
			f.bad("continue_final_message", "the last message is no assistant's: there is nothing to continue")
		} else if n > 0 && strings.TrimSpace(cv.last()) == "" {
			f.bad("continue_final_message", "the last message is empty: there is nothing to continue")
		}
	}
	if effort, ok := f.str("reasoning_effort"); ok {
		if !slices.Contains(efforts, effort) {
			f.bad("reasoning_effort", "unknown value \"%s\"; known: %s", clip(effort), strings.Join(efforts, ", "))
		}
		cv.effort = effort
	}
	if o, ok := f.object("chat_template_kwargs"); ok {
		for _, name := range o.obj.names() {
			if slices.Contains(reserved, name) {
				o.bad(name, "it cannot be set here")
			}
		}
		cv.kwargs = o.obj
	}
	return cv
}

// vars are the template's variables.
func (cv *conversation) vars(caps chattemplate.Caps) *chattemplate.Dict {
	messages := chattemplate.NewList()
	for i := range cv.messages {
		messages.Items = append(messages.Items, cv.messages[i].vars())
	}
	d := chattemplate.NewDict()
	d.Set("messages", caps.Adapt(messages))
	d.Set("add_generation_prompt", cv.prompt)
	switch cv.effort {
	case "":
	case "none":
		d.Set("enable_thinking", false)
		d.Set("thinking", false)
	default:
		d.Set("reasoning_effort", cv.effort)
	}
	for i, name := range cv.kwargs.names() {
		d.Set(name, cv.kwargs.list()[i].vars())
	}
	return d
}

// render makes the prompt's text.
func (cv *conversation) render(ctx context.Context, m *Model) (string, error) {
	if m.Template == nil {
		return "", badField("messages", "the model \"%s\" has no chat template; use /v1/completions", m.Name)
	}
	render := m.Template.Render
	if cv.continues {
		render = m.Template.RenderContinue
	}
	text, err := render(ctx, cv.vars(m.Template.Caps(false)))
	if err == nil {
		return text, nil
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if message, raised := chattemplate.RaisedMessage(err); raised {
		return "", badField("messages", "the chat template refused them: %s", strings.TrimSpace(message))
	}
	return "", badField("messages", "they cannot be rendered: %v", err)
}

// last is the last message's text.
func (cv *conversation) last() string { return cv.messages[len(cv.messages)-1].text() }

// tokenize renders and encodes; opened tells whether the text ends inside a
// reasoning block.
func (cv *conversation) tokenize(ctx context.Context, m *Model) (ids []int32, opened bool, err error) {
	text, err := cv.render(ctx, m)
	if err != nil {
		return nil, false, err
	}
	return m.Tokenizer.Encode(text, cv.special), opensThinking(text), nil
}
