package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"infer/models/tiny"
	"infer/runtime/tokenizer"
)

func newTokenize() *cobra.Command {
	var o tokenizeOptions
	cmd := &cobra.Command{
		Use:   "tokenize MODEL [TEXT]",
		Short: "Turn text into token ids, or ids into text",
		Long: `Turn text into token ids, or with --decode ids into text.

MODEL needs only a tokenizer.json: a folder that holds one, or the file itself.
Without TEXT, or with -, it is read from standard input as it is. With --jsonl,
each line of standard input is a JSON string (with --decode an array of ids) and
becomes one line of JSON: {"ids":[…]} or {"text":"…"}.`,
		Example: `  infer tokenize tiny "Hello there"
  infer tokenize ./my-model --decode 1,312,202
  printf '"one"\n"two"\n' | infer tokenize ./my-model --jsonl`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return usagef("tokenize needs MODEL, and TEXT or standard input")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := openTokenizer(cmd, args[0])
			if err != nil {
				return err
			}
			out := bufio.NewWriter(cmd.OutOrStdout())
			if o.jsonl {
				if len(args) == 2 {
					return usagef("--jsonl reads standard input: leave TEXT away")
				}
				err = o.lines(t, cmd.InOrStdin(), out)
			} else {
				err = o.one(t, arg(args, 1), cmd.InOrStdin(), out)
			}
			if flushErr := out.Flush(); err == nil {
				err = flushErr
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.decode, "decode", false, "the other way: TEXT is ids like 1,2,3")
	flags.BoolVar(&o.noSpecial, "no-special", false, "do not add the ids that the tokenizer puts around a text; with --decode, leave special tokens out")
	flags.BoolVar(&o.json, "json", false, "print one JSON object")
	flags.BoolVar(&o.jsonl, "jsonl", false, "one JSON value a line in, one JSON object a line out")
	return cmd
}

type tokenizeOptions struct {
	decode, noSpecial, json, jsonl bool
}

type idsJSON struct {
	IDs []int32 `json:"ids"`
}

type textJSON struct {
	Text string `json:"text"`
}

func (o *tokenizeOptions) encode(t *tokenizer.Tokenizer, text string) []int32 {
	ids := t.Encode(text, !o.noSpecial)
	if ids == nil {
		ids = []int32{}
	}
	return ids
}

func (o *tokenizeOptions) text(t *tokenizer.Tokenizer, ids []int32) (string, error) {
	for i, id := range ids {
		if id < 0 || int(id) >= t.VocabSize() {
			return "", fmt.Errorf("id %d at place %d: the vocabulary has ids 0 to %d", id, i, t.VocabSize()-1)
		}
	}
	return t.Decode(ids, o.noSpecial), nil
}

// one handles a single text or list of ids.
func (o *tokenizeOptions) one(t *tokenizer.Tokenizer, text string, in io.Reader, out io.Writer) error {
	if text == "" || text == "-" {
		if isTerminal(in) {
			return usagef("no TEXT: give it, or pipe it in")
		}
		data, err := io.ReadAll(in)
		if err != nil {
			return fmt.Errorf("read standard input: %w", err)
		}
		text = string(data)
	}
	if o.decode {
		ids, err := parseIDs(text)
		if err != nil {
			return usageError{err}
		}
		decoded, err := o.text(t, ids)
		if err != nil {
			return err
		}
		if o.json {
			return encodeJSON(out, textJSON{decoded})
		}
		_, err = fmt.Fprintln(out, decoded)
		return err
	}
	ids := o.encode(t, text)
	if o.json {
		return encodeJSON(out, idsJSON{ids})
	}
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = fmt.Sprint(id)
	}
	_, err := fmt.Fprintln(out, strings.Join(words, ","))
	return err
}

// lines handles one JSON value a line; a bad line ends it with its number.
func (o *tokenizeOptions) lines(t *tokenizer.Tokenizer, in io.Reader, out io.Writer) error {
	scan := bufio.NewScanner(in)
	scan.Buffer(make([]byte, 64<<10), 256<<20)
	for n := 1; scan.Scan(); n++ {
		if len(strings.TrimSpace(scan.Text())) == 0 {
			continue
		}
		var value any
		var err error
		if o.decode {
			var ids []int32
			if err = json.Unmarshal(scan.Bytes(), &ids); err == nil {
				var text string
				text, err = o.text(t, ids)
				value = textJSON{text}
			}
		} else {
			var text string
			if err = json.Unmarshal(scan.Bytes(), &text); err == nil {
				value = idsJSON{o.encode(t, text)}
			}
		}
		if err != nil {
			return fmt.Errorf("standard input, line %d: %w", n, err)
		}
		if err := encodeJSON(out, value); err != nil {
			return err
		}
	}
	if err := scan.Err(); err != nil {
		return fmt.Errorf("read standard input: %w", err)
	}
	return nil
}

// encodeJSON writes one line of JSON with <, > and & as they are.
func encodeJSON(out io.Writer, value any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	return e.Encode(value)
}

// openTokenizer opens the tokenizer of MODEL, which here may also be a folder
// without weights, or a tokenizer.json file.
func openTokenizer(cmd *cobra.Command, model string) (*tokenizer.Tokenizer, error) {
	if info, err := os.Stat(model); err == nil && !info.IsDir() && model != tiny.Name {
		return tokenizer.Load(model)
	}
	src, err := resolveModel(cmd.Context(), cmd, model, newCommandProgress(cmd))
	if err != nil {
		return nil, err
	}
	return src.tokenizer()
}
