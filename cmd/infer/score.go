package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"infer/runtime/engine"
)

func newScore() *cobra.Command {
	var (
		compute computeFlags
		o       scoreOptions
	)
	cmd := &cobra.Command{
		Use:   "score MODEL",
		Short: "Evaluate a text as it is: log-probabilities, logits, perplexity",
		Long: `Evaluate a text as it is, token by token, without sampling.

With --json: for each position its id, the natural-log probability of that id
after the ones before it (null for the first), and the largest logits there,
which are for the token that follows.

--window N cuts the ids into windows of N, each evaluated on its own from
position 0; a new one starts every --stride ids (default N), and ids that an
earlier window has scored are not scored again. The first id of the text, and
without overlap the first of each window, are not scored.`,
		Example: `  infer score ./my-model --text book.txt --window 512
  infer score ./my-model --ids ids.json --json --top-k 5 --last-logits`,
		Args: argsExactly(1, "MODEL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return score(cmd, args[0], &compute, &o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.text, "text", "", "file with the text; no special tokens are added")
	flags.StringVar(&o.ids, "ids", "", "file with token ids, a JSON array")
	flags.IntVar(&o.topK, "top-k", 5, "largest logits to give at each position")
	flags.BoolVar(&o.lastLogits, "last-logits", false, "give all logits of the last position")
	flags.IntVar(&o.window, "window", 0, "ids in a window (default: all)")
	flags.IntVar(&o.stride, "stride", 0, "ids from one window's start to the next (default: --window)")
	flags.IntVar(&o.limit, "limit", 0, "use this many ids from the start (default: all)")
	flags.BoolVar(&o.json, "json", false, "print one JSON object")
	compute.register(flags, 1)
	return cmd
}

type scoreOptions struct {
	text, ids                   string
	topK, window, stride, limit int
	lastLogits, json            bool
}

// scoreOutput is what infer score --json prints.
type scoreOutput struct {
	Model      string          `json:"model"`
	Positions  []scorePosition `json:"positions"`
	LastLogits []float32       `json:"last_logits,omitempty"`
	Scored     int             `json:"scored"`     // ids with a log-probability
	NLL        float64         `json:"nll"`        // sum of −ln p over them
	Perplexity *float64        `json:"perplexity"` // null when none was scored
	WindowNLL  []float64       `json:"window_nll,omitempty"`
}

type scorePosition struct {
	ID      int32    `json:"id"`
	Logprob *float32 `json:"logprob"`
	Top     [][2]any `json:"top"` // [id, logit]
}

func (o *scoreOptions) check() error {
	switch {
	case (o.text == "") == (o.ids == ""):
		return usagef("give --text FILE or --ids FILE")
	case o.window < 0 || o.stride < 0 || o.limit < 0 || o.topK < 0:
		return usagef("--window, --stride, --limit and --top-k must not be negative")
	case o.stride > 0 && o.window == 0:
		return usagef("--stride needs --window")
	case o.stride > o.window:
		return usagef("--stride %d is larger than --window %d: ids between windows would not be scored", o.stride, o.window)
	case o.window == 1:
		return usagef("--window 1: a window needs 2 ids to score one")
	}
	return nil
}

func score(cmd *cobra.Command, model string, compute *computeFlags, o *scoreOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	ctx := cmd.Context()
	var ids []int32
	var err error
	if o.ids != "" {
		if ids, err = readIDs("@" + o.ids); err != nil {
			return err
		}
	}
	var text []byte
	if o.text != "" {
		if text, err = os.ReadFile(o.text); err != nil {
			return err
		}
	}
	sess, err := openSession(ctx, cmd, model, compute)
	if err != nil {
		return err
	}
	defer sess.close()
	if o.text != "" {
		if sess.tokenizer == nil {
			return fmt.Errorf("%s has no tokenizer.json: give --ids", sess.source.path)
		}
		ids = sess.tokenizer.Encode(string(text), false)
	}
	if o.limit > 0 && len(ids) > o.limit {
		ids = ids[:o.limit]
	}
	if err := sess.checkIDs(ids); err != nil {
		return err
	}
	result, err := o.evaluate(ctx, sess, ids)
	if err != nil {
		return err
	}
	if o.json {
		return encodeJSON(cmd.OutOrStdout(), result)
	}
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "ids\t%d\nscored\t%d\nnll\t%.4f\n", len(ids), result.Scored, result.NLL)
	if result.Perplexity != nil {
		fmt.Fprintf(w, "perplexity\t%.4f\n", *result.Perplexity)
	}
	return w.Flush()
}

// evaluate runs the windows one after the other.
func (o *scoreOptions) evaluate(ctx context.Context, sess *session, ids []int32) (scoreOutput, error) {
	out := scoreOutput{Model: sess.source.name, Positions: []scorePosition{}}
	if len(ids) == 0 {
		return out, fmt.Errorf("there are no ids to score")
	}
	window, stride := o.window, o.stride
	if window == 0 || window > len(ids) {
		window = len(ids)
	}
	if stride == 0 {
		stride = window
	}
	for start := 0; len(out.Positions) < len(ids); start += stride {
		end := min(start+window, len(ids))
		s, err := sess.engine.Score(ctx, ids[start:end], engine.ScoreOptions{TopK: o.topK, LastLogits: o.lastLogits && end == len(ids)})
		if err != nil {
			return out, fmt.Errorf("ids %d to %d: %w", start, end-1, err)
		}
		var nll float64
		for i, p := range s.Positions[len(out.Positions)-start:] {
			position := scorePosition{ID: p.ID, Top: make([][2]any, len(p.Top))}
			for j, t := range p.Top {
				position.Top[j] = [2]any{t.ID, t.Logit}
			}
			if i > 0 || len(out.Positions) > start {
				position.Logprob = &p.Logprob
				nll -= float64(p.Logprob)
				out.Scored++
			}
			out.Positions = append(out.Positions, position)
		}
		out.NLL += nll
		out.LastLogits = s.LastLogits
		if o.window > 0 {
			out.WindowNLL = append(out.WindowNLL, nll)
		}
	}
	if out.Scored > 0 {
		p := math.Exp(out.NLL / float64(out.Scored))
		out.Perplexity = &p
	}
	return out, nil
}
