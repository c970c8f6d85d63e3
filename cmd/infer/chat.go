package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"infer/runtime/engine"
)

func newChat() *cobra.Command {
	var (
		compute  computeFlags
		sampling samplingFlags
		system   string
	)
	cmd := &cobra.Command{
		Use:   "chat [MODEL]",
		Short: "Talk with a model in the terminal",
		Long: `Talk with a model in the terminal.

Lines have history and editing. Ctrl-C stops an answer, Ctrl-D leaves.
/help lists the commands.`,
		Example: "  infer chat\n  infer chat ./my-model --system \"Answer in one sentence.\"",
		Args:    argsAtMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := sampling.resolve(sampling.s); err != nil {
				return err // before anything is loaded
			}
			// The first Ctrl-C must end an answer, not the program.
			ctx, cancel := signal.NotifyContext(context.WithoutCancel(cmd.Context()), syscall.SIGTERM)
			defer cancel()
			sess, err := openSession(ctx, cmd, arg(args, 0), &compute)
			if err != nil {
				return err
			}
			defer sess.close()
			if sess.template == nil {
				return fmt.Errorf("%s has no chat template: use infer run --raw", sess.source.path)
			}
			s, err := sampling.resolve(sess.defaults)
			if err != nil {
				return err
			}
			c := &conversation{sess: sess, sampling: s, system: system, out: cmd.OutOrStdout(), notes: cmd.ErrOrStderr()}
			c.reset()
			lines := newLineReader(cmd.InOrStdin(), cmd.OutOrStdout())
			if _, ok := lines.(*terminalLines); ok {
				fmt.Fprintf(c.notes, "%s on %s; /help lists the commands, Ctrl-D leaves\n", sess.source.name, sess.where())
			}
			return c.loop(ctx, lines)
		},
	}
	cmd.Flags().StringVar(&system, "system", "", "system message")
	compute.register(cmd.Flags(), 1)
	sampling.register(cmd.Flags())
	return cmd
}

const chatHelp = `/help            this list
/system TEXT     set the system message and start anew
/clear           forget the conversation
/retry           answer the last message again
/quit            leave (also Ctrl-D)
"""              begin and end a message of several lines
`

// conversation is the state of one chat.
type conversation struct {
	sess     *session
	sampling engine.Sampling
	system   string
	messages []message
	out      io.Writer
	notes    io.Writer
}

func (c *conversation) reset() {
	c.messages = nil
	if c.system != "" {
		c.messages = append(c.messages, message{Role: "system", Content: c.system})
	}
}

// loop reads messages until the input ends.
func (c *conversation) loop(ctx context.Context, lines lineReader) error {
	for {
		text, err := readMessage(lines)
		if errors.Is(err, errLineDropped) {
			fmt.Fprintln(c.notes, "(Ctrl-D leaves)")
			continue
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		command, rest, _ := strings.Cut(text, " ")
		switch {
		case text == "":
			continue
		case command == "/help":
			fmt.Fprint(c.out, chatHelp)
			continue
		case command == "/quit" || command == "/exit" || command == "/bye":
			return nil
		case command == "/clear":
			c.reset()
			fmt.Fprintln(c.notes, "(the conversation is forgotten)")
			continue
		case command == "/system":
			c.system = strings.TrimSpace(rest)
			c.reset()
			fmt.Fprintln(c.notes, "(the conversation starts anew, with this system message)")
			continue
		case command == "/retry":
			for len(c.messages) > 0 && c.messages[len(c.messages)-1].Role == "assistant" {
				c.messages = c.messages[:len(c.messages)-1]
			}
			if len(c.messages) == 0 || c.messages[len(c.messages)-1].Role != "user" {
				fmt.Fprintln(c.notes, "nothing to answer yet")
				continue
			}
		case strings.HasPrefix(command, "/"):
			fmt.Fprintf(c.notes, "unknown command %s: /help lists them\n", command)
			continue
		default:
			c.messages = append(c.messages, message{Role: "user", Content: text})
		}
		if err := c.answer(ctx); err != nil {
			return err
		}
	}
}

// answer streams one answer. Ctrl-C ends it early, and what was said stays in
// the conversation; an error of the model's takes the last message back.
func (c *conversation) answer(ctx context.Context) error {
	answerCtx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	prompt, err := c.sess.renderChat(answerCtx, c.messages)
	var a answer
	if err == nil {
		a, err = generate(answerCtx, c.sess.engine, engine.Request{Prompt: prompt, Sampling: c.sampling}, func(text string) error {
			_, err := io.WriteString(c.out, text)
			return err
		})
	}
	fmt.Fprintln(c.out)
	switch {
	case err == nil, answerCtx.Err() != nil && ctx.Err() == nil:
		c.messages = append(c.messages, message{Role: "assistant", Content: a.text})
		if a.result.Finish == engine.FinishLength {
			fmt.Fprintln(c.notes, "(cut: --max-tokens or the context's end was reached)")
		}
		return nil
	case ctx.Err() != nil:
		return err
	}
	fmt.Fprintf(c.notes, "%v\n", err)
	c.messages = c.messages[:len(c.messages)-1]
	return nil
}

// readMessage reads a line, or the lines between two lines of """.
func readMessage(lines lineReader) (string, error) {
	line, err := lines.ReadLine("> ")
	if err != nil || strings.TrimSpace(line) != `"""` {
		return strings.TrimSpace(line), err
	}
	var parts []string
	for {
		line, err := lines.ReadLine(". ")
		if err != nil {
			return "", err
		}
		if strings.TrimSpace(line) == `"""` {
			return strings.Join(parts, "\n"), nil
		}
		parts = append(parts, line)
	}
}

// errLineDropped is Ctrl-C while a line is typed: it takes the line back, and
// nothing else. A conversation is not lost to a Ctrl-C that comes just after the
// answer's end.
var errLineDropped = errors.New("line dropped")

// lineReader reads lines; io.EOF ends the conversation.
type lineReader interface {
	ReadLine(prompt string) (string, error)
}

func newLineReader(in io.Reader, out io.Writer) lineReader {
	if f, ok := in.(*os.File); ok && isTerminal(f) && isTerminal(out) {
		return &terminalLines{file: f, out: out, history: term.NewTerminal(nil, "").History}
	}
	return pipedLines{bufio.NewScanner(in)}
}

// terminalLines edits lines in raw mode; between them the terminal is as it
// was, so that Ctrl-C is a signal while an answer runs.
type terminalLines struct {
	file    *os.File
	out     io.Writer
	keys    keyReader
	term    *term.Terminal
	history term.History
}

// keyReader notes a Ctrl-C, which the line editor reports as an end like Ctrl-D.
type keyReader struct {
	io.Reader
	interrupted bool
}

func (k *keyReader) Read(p []byte) (int, error) {
	const ctrlC = 3
	n, err := k.Reader.Read(p)
	k.interrupted = k.interrupted || bytes.IndexByte(p[:n], ctrlC) >= 0
	return n, err
}

func (t *terminalLines) ReadLine(prompt string) (string, error) {
	state, err := term.MakeRaw(int(t.file.Fd()))
	if err != nil {
		return "", fmt.Errorf("terminal: %w", err)
	}
	defer func() { _ = term.Restore(int(t.file.Fd()), state) }()
	if t.term == nil { // at the start, and after a dropped line
		t.keys = keyReader{Reader: t.file}
		t.term = term.NewTerminal(struct {
			io.Reader
			io.Writer
		}{&t.keys, t.out}, "")
		t.term.History = t.history
	}
	if w, h, err := term.GetSize(int(t.file.Fd())); err == nil {
		_ = t.term.SetSize(w, h)
	}
	t.term.SetPrompt(prompt)
	line, err := t.term.ReadLine()
	switch {
	case errors.Is(err, term.ErrPasteIndicator):
		err = nil
	case errors.Is(err, io.EOF):
		if t.keys.interrupted {
			err = errLineDropped
		}
		t.term = nil
		_, _ = io.WriteString(t.out, "\r\n") // what follows starts on a line of its own
	}
	return line, err
}

// pipedLines reads lines from a file or pipe, without a prompt.
type pipedLines struct{ *bufio.Scanner }

func (p pipedLines) ReadLine(string) (string, error) {
	if p.Scan() {
		return p.Text(), nil
	}
	if err := p.Err(); err != nil {
		return "", err
	}
	return "", io.EOF
}
