package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// renderTimeout bounds one rendering of the chat template.
const renderTimeout = 10 * time.Second

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
func readConversation(f *fields) *conversation {
	cv := &conversation{messages: readMessages(f)}
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
func (cv *conversation) vars(caps TemplateCaps) value {
	shaped := shape(cv.messages, caps)
	list := make([]value, len(shaped))
	for i := range shaped {
		list[i] = shaped[i].render(caps)
	}
	var o objectBuilder
	o.set("messages", arrayValue(list))
	o.set("add_generation_prompt", boolValue(cv.prompt))
	switch cv.effort {
	case "":
	case "none":
		o.set("enable_thinking", boolValue(false))
		o.set("thinking", boolValue(false))
	default:
		o.set("reasoning_effort", stringValue(cv.effort))
	}
	for i, name := range cv.kwargs.names() {
		o.set(name, cv.kwargs.list()[i])
	}
	return o.value()
}

// render makes the prompt's text.
func (cv *conversation) render(ctx context.Context, m *Model) (string, error) {
	if m.Template == nil {
		return "", badField("messages", "the model \"%s\" has no chat template; use /v1/completions", m.Name)
	}
	ctx, cancel := context.WithTimeout(ctx, renderTimeout)
	defer cancel()
	text, err := m.Template.Render(ctx, cv.vars(m.Caps).append(nil))
	if err != nil {
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			return "", err
		}
		return "", badField("messages", "the chat template refused them: %v", err)
	}
	if cv.continues {
		final := strings.TrimSpace(cv.last())
		at := strings.LastIndex(text, final)
		if at < 0 {
			return "", badField("continue_final_message", "the chat template does not keep the last message as it is; it cannot be continued")
		}
		text = text[:at+len(final)]
	}
	return text, nil
}

// last is the last message's text.
func (cv *conversation) last() string { return cv.messages[len(cv.messages)-1].text() }

// tokenize renders and encodes.
func (cv *conversation) tokenize(ctx context.Context, m *Model) ([]int32, error) {
	text, err := cv.render(ctx, m)
	if err != nil {
		return nil, fmt.Errorf("rendering the chat template: %w", err)
	}
	return m.Tokenizer.Encode(text, cv.special), nil
}
