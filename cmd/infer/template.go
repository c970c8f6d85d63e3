package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"infer/runtime/tokenizer/chattemplate"
)

func newTemplate() *cobra.Command {
	var o templateOptions
	cmd := &cobra.Command{
		Use:   "template MODEL",
		Short: "Render the chat template, to see what the model sees",
		Long: `Render the chat template, to see what the model sees. MODEL is a folder, a repo
id, "tiny", or a .jinja file.

--messages and --tools are JSON arrays as in the HTTP API, rendered with
add_generation_prompt. --context is the whole Jinja context as one JSON object,
used as it is. With --jsonl each line of standard input is such a context.`,
		Example: `  infer template ./my-model --messages messages.json --tools tools.json
  infer template chat.jinja --context context.json --json`,
		Args: argsExactly(1, "MODEL or a .jinja file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			render, err := openTemplate(cmd, args[0])
			if _, broken := errors.AsType[*chattemplate.Error](err); broken && (o.json || o.jsonl) {
				// A template that does not parse is an outcome, as one that raises is.
				render = func(context.Context, *chattemplate.Dict) (string, error) { return "", err }
			} else if err != nil {
				return err
			}
			return o.run(cmd.Context(), render, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.messages, "messages", "", "file with the messages, a JSON array; - is standard input")
	flags.StringVar(&o.tools, "tools", "", "file with the tools, a JSON array")
	flags.StringVar(&o.context, "context", "", "file with the whole context, a JSON object; - is standard input")
	flags.BoolVar(&o.json, "json", false, `print {"text":"…"} or {"error":"…"}`)
	flags.BoolVar(&o.jsonl, "jsonl", false, "one context a line of standard input, one JSON object a line out")
	return cmd
}

type templateOptions struct {
	messages, tools, context string
	json, jsonl              bool
}

// renderFunc renders one Jinja context.
type renderFunc func(ctx context.Context, vars *chattemplate.Dict) (string, error)

func openTemplate(cmd *cobra.Command, model string) (renderFunc, error) {
	if strings.HasSuffix(model, ".jinja") {
		source, err := os.ReadFile(model)
		if err != nil {
			return nil, err
		}
		t, err := chattemplate.Parse(filepath.Base(model), string(source))
		if err != nil {
			return nil, err
		}
		return t.Render, nil
	}
	src, err := resolveModel(cmd.Context(), cmd, model, newCommandProgress(cmd))
	if err != nil {
		return nil, err
	}
	set, err := src.templates()
	if err != nil {
		return nil, err
	}
	if set == nil {
		return nil, fmt.Errorf("%s has no chat template", src.path)
	}
	return set.Render, nil
}

func (o *templateOptions) run(ctx context.Context, render renderFunc, in io.Reader, out io.Writer) error {
	if o.jsonl {
		return o.lines(ctx, render, in, out)
	}
	vars, err := o.vars(in)
	if err != nil {
		return err
	}
	text, err := render(ctx, vars)
	switch {
	case o.json:
		if writeErr := writeRendered(out, text, err); writeErr != nil {
			return writeErr
		}
		if err != nil {
			return errReported
		}
		return nil
	case err != nil:
		return err
	}
	_, err = io.WriteString(out, text)
	return err
}

// vars reads the context from the files that were named.
func (o *templateOptions) vars(in io.Reader) (*chattemplate.Dict, error) {
	if o.context != "" {
		if o.messages != "" || o.tools != "" {
			return nil, usagef("--context is the whole context: leave --messages and --tools away")
		}
		v, err := readJSONFile(o.context, in)
		if err != nil {
			return nil, err
		}
		vars, ok := v.(*chattemplate.Dict)
		if !ok {
			return nil, fmt.Errorf("%s: want a JSON object", o.context)
		}
		return vars, nil
	}
	if o.messages == "" {
		return nil, usagef("give --messages FILE, or --context FILE")
	}
	vars := chattemplate.NewDict()
	for _, f := range []struct{ name, path string }{{"messages", o.messages}, {"tools", o.tools}} {
		if f.path == "" {
			continue
		}
		v, err := readJSONFile(f.path, in)
		if err != nil {
			return nil, err
		}
		if _, ok := v.(*chattemplate.List); !ok {
			return nil, fmt.Errorf("%s: want a JSON array of %s", f.path, f.name)
		}
		vars.Set(f.name, v)
	}
	vars.Set("add_generation_prompt", true)
	return vars, nil
}

func readJSONFile(path string, in io.Reader) (chattemplate.Value, error) {
	var data []byte
	var err error
	if path == "-" {
		path = "standard input"
		data, err = io.ReadAll(in)
	} else {
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, err
	}
	v, err := chattemplate.ParseJSON(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return v, nil
}

func (o *templateOptions) lines(ctx context.Context, render renderFunc, in io.Reader, out io.Writer) error {
	if o.context != "" || o.messages != "" || o.tools != "" {
		return usagef("--jsonl reads contexts from standard input: leave the files away")
	}
	w := bufio.NewWriter(out)
	scan := bufio.NewScanner(in)
	scan.Buffer(make([]byte, 64<<10), 256<<20)
	for n := 1; scan.Scan(); n++ {
		line := bytes.TrimSpace(scan.Bytes())
		if len(line) == 0 {
			continue
		}
		v, err := chattemplate.ParseJSON(line)
		vars, ok := v.(*chattemplate.Dict)
		if err == nil && !ok {
			err = errors.New("want a JSON object")
		}
		if err != nil {
			return errors.Join(w.Flush(), fmt.Errorf("standard input, line %d: %w", n, err))
		}
		text, err := render(ctx, vars)
		if err := writeRendered(w, text, err); err != nil {
			return err
		}
	}
	if err := scan.Err(); err != nil {
		return errors.Join(w.Flush(), fmt.Errorf("read standard input: %w", err))
	}
	return w.Flush()
}

func writeRendered(out io.Writer, text string, err error) error {
	if err != nil {
		return encodeJSON(out, struct {
			Error string `json:"error"`
		}{err.Error()})
	}
	return encodeJSON(out, textJSON{text})
}

// message is one turn of a conversation at the shell.
type message struct{ Role, Content string }

// renderChat makes the prompt's ids of a conversation.
func (s *session) renderChat(ctx context.Context, messages []message) ([]int32, error) {
	list := chattemplate.NewList()
	for _, m := range messages {
		d := chattemplate.NewDict()
		d.Set("role", m.Role)
		d.Set("content", m.Content)
		list.Items = append(list.Items, d)
	}
	vars := chattemplate.NewDict()
	vars.Set("messages", s.template.Pick(false).Caps().Adapt(list))
	vars.Set("add_generation_prompt", true)
	text, err := s.template.Render(ctx, vars)
	if err != nil {
		return nil, err
	}
	// The template has written every special token itself.
	return s.tokenizer.Encode(text, false), nil
}
