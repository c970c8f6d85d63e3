package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"infer/runtime/engine"
)

func newBench() *cobra.Command {
	var (
		compute computeFlags
		o       benchOptions
	)
	cmd := &cobra.Command{
		Use:   "bench [MODEL]",
		Short: "Measure prefill and decode speed in this process",
		Long: `Measure prefill and decode speed in this process, without HTTP.

Each prefill size is a prompt of that many random ids and one token of answer;
each batch size is that many sequences that decode together. The prefix cache is
off. Rates are tokens a second: minimum, median and maximum over the rounds.

A model that is on the CPU alone is also held against what this machine gives,
measured first: the share of memory's read bandwidth that weights and K/V take, or
of the multiply-adds that the processor's units can do, whichever is higher.`,
		Example: "  infer bench ./my-model --prefill 128,512 --decode 128 --batch 1,8 --rounds 5",
		Args:    argsAtMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return bench(cmd, arg(args, 0), &compute, &o)
		},
	}
	flags := cmd.Flags()
	flags.IntSliceVar(&o.prefill, "prefill", []int{512}, "prompt sizes")
	flags.IntVar(&o.decode, "decode", 64, "tokens that each sequence makes")
	flags.IntSliceVar(&o.batch, "batch", []int{1}, "sequences at once")
	flags.IntVar(&o.rounds, "rounds", 3, "times that each is measured, after one that is not counted")
	flags.BoolVar(&o.json, "json", false, "print one JSON object")
	compute.register(flags, 32)
	return cmd
}

type benchOptions struct {
	prefill, batch []int
	decode, rounds int
	json           bool
}

type benchOutput struct {
	Model      string       `json:"model"`
	Parameters int64        `json:"parameters"`
	Devices    string       `json:"devices"`
	Load       float64      `json:"load_ms"`
	Results    []benchEntry `json:"results"`
}

// benchEntry has tokens a second over all sequences.
type benchEntry struct {
	Test   string    `json:"test"` // prefill512, decode64x8
	Tokens int       `json:"tokens"`
	Rounds []float64 `json:"rounds"`
	Min    float64   `json:"min"`
	Median float64   `json:"median"`
	Max    float64   `json:"max"`
	Share  float64   `json:"share,omitempty"` // of the median
	Of     string    `json:"of,omitempty"`
}

// check refuses what no model can do, before one is loaded.
func (o *benchOptions) check(maxSeqs int) error {
	for _, n := range o.prefill {
		if n < 1 {
			return usagef("--prefill %d: want at least 1", n)
		}
	}
	for _, n := range o.batch {
		if n < 1 || n > maxSeqs {
			return usagef("--batch %d: want 1 to %d, which is --max-seqs", n, maxSeqs)
		}
	}
	if o.decode < 2 {
		return usagef("--decode %d: want at least 2", o.decode)
	}
	if o.rounds < 1 {
		return usagef("--rounds %d: want at least 1", o.rounds)
	}
	return nil
}

// fits holds the sizes against the model's context.
func (o *benchOptions) fits(context int) error {
	for _, n := range o.prefill {
		if n >= context {
			return usagef("--prefill %d: want 1 to %d, the context is %d tokens", n, context-1, context)
		}
	}
	if o.decode+benchPrompt > context {
		return usagef("--decode %d: want 2 to %d, the context is %d tokens", o.decode, context-benchPrompt, context)
	}
	return nil
}

// benchPrompt is the prompt of a decode measurement, in tokens.
const benchPrompt = 16

func bench(cmd *cobra.Command, model string, compute *computeFlags, o *benchOptions) error {
	ctx := cmd.Context()
	if err := o.check(compute.maxSeqs); err != nil {
		return err
	}
	compute.speculate = "off" // the figures are of one token a sequence and step
	sess, err := openSessionWith(ctx, cmd, model, compute, sessionOptions{noPrefixCache: true})
	if err != nil {
		return err
	}
	defer sess.close()
	if err := o.fits(sess.plan.MaxContext); err != nil {
		return err
	}
	out := benchOutput{Model: sess.source.name, Parameters: sess.parameters, Devices: sess.where(), Load: ms(sess.loadTime)}
	roof, err := sess.roofline()
	if err != nil {
		return err
	}
	// tokens are made by steps of rows tokens of seqs sequences, each with context
	// tokens behind it in the middle of the test.
	measure := func(test string, tokens, rows, seqs, context int, once func() (time.Duration, error)) error {
		e := benchEntry{Test: test, Tokens: tokens}
		for round := range o.rounds + 1 {
			d, err := once()
			if err != nil {
				return fmt.Errorf("%s: %w", test, err)
			}
			if round > 0 { // the first warms up
				e.Rounds = append(e.Rounds, float64(tokens)/d.Seconds())
			}
		}
		e.Min, e.Median, e.Max = spread(e.Rounds)
		if roof != nil {
			e.Share, e.Of = roof.share(e.Median/float64(rows), rows, seqs, context)
		}
		out.Results = append(out.Results, e)
		return nil
	}
	for _, n := range o.prefill {
		if err := measure("prefill"+strconv.Itoa(n), n, n, 1, 0, func() (time.Duration, error) {
			r, err := sess.benchOne(ctx, n, 1)
			return r.Times.FirstToken.Sub(r.Times.Started), err
		}); err != nil {
			return err
		}
	}
	for _, b := range o.batch {
		test := fmt.Sprintf("decode%dx%d", o.decode, b)
		if err := measure(test, b*(o.decode-1), b, b, benchPrompt+o.decode/2, func() (time.Duration, error) {
			return sess.benchBatch(ctx, b, o.decode)
		}); err != nil {
			return err
		}
	}
	if o.json {
		return encodeJSON(cmd.OutOrStdout(), out)
	}
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(cmd.OutOrStdout(), "%s, %d parameters, on %s\ntokens a second, %d rounds:\n", out.Model, out.Parameters, out.Devices, o.rounds)
	fmt.Fprintf(w, "test\tmin\tmedian\tmax\t\n")
	for _, e := range out.Results {
		fmt.Fprintf(w, "%s\t%.1f\t%.1f\t%.1f\t", e.Test, e.Min, e.Median, e.Max)
		if e.Of != "" {
			fmt.Fprintf(w, "%.0f %%\t of %s", 100*e.Share, e.Of)
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// benchBatch is the time in which n sequences, that all have their first
// token, make the rest together.
func (s *session) benchBatch(ctx context.Context, n, tokens int) (time.Duration, error) {
	results := make([]engine.Result, n)
	g, ctx := errgroup.WithContext(ctx)
	for i := range n {
		g.Go(func() (err error) {
			results[i], err = s.benchOne(ctx, benchPrompt, tokens)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return 0, err
	}
	first, done := results[0].Times.FirstToken, results[0].Times.Done
	for _, r := range results[1:] {
		if r.Times.FirstToken.After(first) {
			first = r.Times.FirstToken
		}
		if r.Times.Done.After(done) {
			done = r.Times.Done
		}
	}
	return done.Sub(first), nil
}

func (s *session) benchOne(ctx context.Context, prompt, tokens int) (engine.Result, error) {
	ids := make([]int32, prompt)
	for i := range ids {
		ids[i] = rand.Int32N(int32(s.config.VocabSize))
	}
	return s.engine.Generate(ctx, engine.Request{
		Prompt:   ids,
		Sampling: engine.Sampling{MaxTokens: tokens, IgnoreEOS: true, Logprobs: -1, PromptLogprobs: -1},
	}, func(engine.Event) error { return nil })
}

func spread(values []float64) (low, median, high float64) {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return sorted[0], (sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[n-1]
}
