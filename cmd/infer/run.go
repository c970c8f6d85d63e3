package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"infer/runtime/engine"
)

func newRun() *cobra.Command {
	var (
		compute  computeFlags
		sampling samplingFlags
		o        runOptions
	)
	cmd := &cobra.Command{
		Use:   "run [MODEL] [PROMPT]",
		Short: "Answer one prompt; the text goes to standard output as it is made",
		Long: `Answer one prompt; the text goes to standard output as it is made, and
nothing else does.

The prompt is put into the model's chat template, unless --raw. Without PROMPT,
or with -, it is read from standard input. A single argument is a MODEL when it
is a path, a repo id or "tiny", else a PROMPT for the embedded model.`,
		Example: `  infer run "Tell me a story about a fox."
  infer run ./my-model "Why is the sky blue?" --temperature 0 --max-tokens 100
  git diff | infer run Qwen/Qwen3-0.6B - --system "Write a commit message."
  infer run ./my-model --ids 1,2,3 --json`,
		Args: argsAtMost(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd, args, &compute, &sampling, &o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.system, "system", "", "system message")
	flags.BoolVar(&o.raw, "raw", false, "continue the prompt as it is, without the chat template")
	flags.BoolVar(&o.json, "json", false, "print one JSON object at the end instead of text")
	flags.StringVar(&o.ids, "ids", "", "token ids instead of a prompt: 1,2,3 or @FILE")
	compute.register(flags, 1)
	sampling.register(flags)
	return cmd
}

type runOptions struct {
	system string
	raw    bool
	json   bool
	ids    string
}

// runOutput is what infer run --json prints.
type runOutput struct {
	Model        string    `json:"model"`
	Text         string    `json:"text"`
	IDs          []int32   `json:"ids"`
	PromptIDs    []int32   `json:"prompt_ids"`
	FinishReason string    `json:"finish_reason"`
	Seed         *int64    `json:"seed"` // null when greedy
	Usage        usage     `json:"usage"`
	Timings      timings   `json:"timings"`
	DeviceMap    deviceMap `json:"device_map"`
}

type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
	CachedTokens     int `json:"cached_tokens"`
}

// timings are in milliseconds; rates in tokens a second.
type timings struct {
	Load      float64 `json:"load_ms"`
	TTFT      float64 `json:"ttft_ms"`
	Total     float64 `json:"total_ms"`
	PromptTPS float64 `json:"prompt_tokens_per_second"`
	DecodeTPS float64 `json:"decode_tokens_per_second"`
}

func run(cmd *cobra.Command, args []string, compute *computeFlags, sampling *samplingFlags, o *runOptions) error {
	ctx := cmd.Context()
	model, prompt, err := splitModelPrompt(args, o.ids != "")
	if err != nil {
		return err
	}
	if _, err := sampling.resolve(sampling.s); err != nil {
		return err // before anything is loaded
	}
	var ids []int32
	if o.ids != "" {
		if ids, err = readIDs(o.ids); err != nil {
			return err
		}
	} else if prompt == "-" {
		if prompt, err = readStdin(cmd.InOrStdin()); err != nil {
			return err
		}
	}
	// Who writes "infer run llama3.2" means a model.
	if len(args) == 1 && model == "" && !strings.ContainsAny(args[0], " \n") && isTerminal(cmd.ErrOrStderr()) {
		fmt.Fprintf(cmd.ErrOrStderr(), "infer: %q is taken as a prompt for the embedded model; a MODEL is a folder or a repo id like org/name\n", args[0])
	}
	if o.ids == "" && prompt == "" {
		return usagef("the prompt is empty")
	}

	sess, err := openSession(ctx, cmd, model, compute)
	if err != nil {
		return err
	}
	defer sess.close()
	s, err := sampling.resolve(sess.defaults)
	if err != nil {
		return err
	}
	if o.ids == "" {
		if ids, err = sess.promptIDs(ctx, prompt, o.system, o.raw); err != nil {
			return err
		}
	}
	if err := sess.checkIDs(ids); err != nil {
		return err
	}

	out := cmd.OutOrStdout()
	write := func(text string) error {
		_, err := io.WriteString(out, text)
		return err
	}
	if o.json {
		write = func(string) error { return nil }
	}
	a, err := generate(ctx, sess.engine, engine.Request{Prompt: ids, Sampling: s}, write)
	if !o.json && a.text != "" && !strings.HasSuffix(a.text, "\n") && isTerminal(out) {
		fmt.Fprintln(out)
	}
	if err != nil {
		return err
	}
	if o.json {
		return json.NewEncoder(out).Encode(sess.runOutput(ids, s, a))
	}
	return nil
}

func (s *session) runOutput(prompt []int32, sampling engine.Sampling, a answer) runOutput {
	r := a.result
	o := runOutput{
		Model: s.source.name, Text: a.text, IDs: a.ids, PromptIDs: prompt, FinishReason: string(r.Finish),
		Usage:     usage{PromptTokens: r.Prompt, CompletionTokens: r.Completion, TotalTokens: r.Prompt + r.Completion, CachedTokens: r.Cached},
		DeviceMap: s.deviceMap(),
		Timings: timings{
			Load:  ms(s.loadTime),
			TTFT:  ms(r.Times.FirstToken.Sub(r.Times.Queued)),
			Total: ms(r.Times.Done.Sub(r.Times.Queued)),
		},
	}
	if o.IDs == nil {
		o.IDs = []int32{}
	}
	if sampling.Temperature > 0 {
		o.Seed = &r.Seed
	}
	if d := r.Times.FirstToken.Sub(r.Times.Started).Seconds(); d > 0 {
		o.Timings.PromptTPS = float64(r.Prompt-r.Cached) / d
	}
	if d := r.Times.Done.Sub(r.Times.FirstToken).Seconds(); d > 0 && r.Completion > 1 {
		o.Timings.DecodeTPS = float64(r.Completion-1) / d
	}
	return o
}

// splitModelPrompt tells which arguments are which. The prompt "-" stands for
// standard input.
func splitModelPrompt(args []string, haveIDs bool) (model, prompt string, err error) {
	switch {
	case len(args) == 2 && haveIDs:
		return "", "", usagef("--ids takes the place of a PROMPT: give one of them")
	case len(args) == 2:
		return args[0], args[1], nil
	case len(args) == 1 && (haveIDs || looksLikeModel(args[0])):
		return args[0], "-", nil
	case len(args) == 1:
		return "", args[0], nil
	}
	return "", "-", nil
}

// Limits on what is read as a prompt, far above any context length.
const maxPromptBytes = 64 << 20

func readStdin(in io.Reader) (string, error) {
	if isTerminal(in) {
		return "", usagef("no PROMPT: give one, or pipe it in; infer chat is for conversations")
	}
	data, err := io.ReadAll(io.LimitReader(in, maxPromptBytes+1))
	if err != nil {
		return "", fmt.Errorf("read the prompt from standard input: %w", err)
	}
	if len(data) > maxPromptBytes {
		return "", fmt.Errorf("the prompt on standard input is longer than %d bytes", maxPromptBytes)
	}
	// The line break that echo and editors put at the end is not meant.
	return strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r"), nil
}

// readIDs reads token ids from "1,2,3", or from a file: a JSON array, or
// numbers between commas and white space.
func readIDs(text string) ([]int32, error) {
	where := "--ids"
	if path, ok := strings.CutPrefix(text, "@"); ok {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		text, where = string(data), path
	}
	ids, err := parseIDs(text)
	if err != nil {
		return nil, usagef("%s: %w", where, err)
	}
	return ids, nil
}

func parseIDs(text string) ([]int32, error) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "[") {
		text = "[" + strings.Join(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) }), ",") + "]"
	}
	var ids []int32
	if err := json.Unmarshal([]byte(text), &ids); err != nil {
		return nil, fmt.Errorf("want token ids like 1,2,3: %w", err)
	}
	if len(ids) == 0 {
		return nil, errors.New("no token ids")
	}
	return ids, nil
}

// promptIDs makes the ids of a prompt: through the chat template when the model
// has one and raw is false.
func (s *session) promptIDs(ctx context.Context, prompt, system string, raw bool) ([]int32, error) {
	if s.tokenizer == nil {
		return nil, fmt.Errorf("%s has no tokenizer.json: give the prompt as --ids", s.source.path)
	}
	if raw || s.template == nil {
		if system != "" {
			return nil, usagef("--system needs a chat template; there is none here, or --raw asks for none")
		}
		ids := s.tokenizer.Encode(prompt, true)
		if len(ids) == 0 {
			return nil, errors.New("the prompt is empty")
		}
		return ids, nil
	}
	var messages []message
	if system != "" {
		messages = append(messages, message{Role: "system", Content: system})
	}
	return s.renderChat(ctx, append(messages, message{Role: "user", Content: prompt}))
}
