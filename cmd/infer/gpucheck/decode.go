package gpucheck

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"

	"infer/models"
	_ "infer/models/llama" // the family of the shapes
	"infer/runtime/devicemap"
	"infer/runtime/engine"
	"infer/runtime/kernels"
	"infer/runtime/loader"
	"infer/runtime/tensor"
)

// decodeOptions say what is measured with a model.
type decodeOptions struct {
	prompt, tokens int
	batches        []int
}

// decode loads a model of random weights onto one device and measures it by
// way of the engine, as a server would compute.
func decode(ctx context.Context, b kernels.Backend, s shape, o decodeOptions) (d Decode, err error) {
	d = Decode{Shape: s.name, Prompt: o.prompt}
	f, err := newFolder(s.json())
	if err != nil {
		return d, err
	}
	ck, err := loader.OpenFS(f, "random "+s.name)
	if err != nil {
		return d, err
	}
	m, err := models.Open(ck)
	if err != nil {
		return d, err
	}
	in, err := engine.PlanInput(m, ck, []kernels.Backend{b}, engine.PlanOptions{
		Format: kernels.AsStored, MaxContext: o.prompt + o.tokens + kernels.BlockSize, MaxSeqs: 16,
	})
	if err != nil {
		return d, err
	}
	plan, err := devicemap.Auto(in)
	if err != nil {
		return d, err
	}
	start := time.Now()
	runner, err := engine.Load(ctx, engine.RunnerConfig{
		Model: m, Checkpoint: ck, Plan: plan, Backends: []kernels.Backend{b}, Format: kernels.AsStored,
	})
	if err != nil {
		return d, err
	}
	d.LoadSeconds = time.Since(start).Seconds()
	e, err := engine.New(engine.Config{Runner: runner, NoPrefixCache: true, NoSpeculation: true})
	if err != nil {
		return d, errors.Join(err, runner.Close())
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	d.WeightBytes = readEachStep(m)

	vocab := m.Config().VocabSize
	if _, err := generate(ctx, e, vocab, 1, o.prompt, 2); err != nil { // loads modules
		return d, err
	}
	r, err := generate(ctx, e, vocab, 1, o.prompt, 1)
	if err != nil {
		return d, err
	}
	d.Prefill = float64(o.prompt) / r[0].Times.FirstToken.Sub(r[0].Times.Started).Seconds()
	for _, n := range o.batches {
		// Twice: graphs are made in the first.
		var took time.Duration
		for range 2 {
			if r, err = generate(ctx, e, vocab, n, 16, o.tokens); err != nil {
				return d, fmt.Errorf("%d sequences: %w", n, err)
			}
			first, done := r[0].Times.FirstToken, r[0].Times.Done
			for _, one := range r[1:] {
				if one.Times.FirstToken.After(first) {
					first = one.Times.FirstToken
				}
				if one.Times.Done.After(done) {
					done = one.Times.Done
				}
			}
			took = done.Sub(first)
		}
		step := took.Seconds() / float64(o.tokens-1)
		d.Batches = append(d.Batches, Batch{
			Sequences: n, Tokens: float64(n) / step, StepMS: step * 1e3, GBps: float64(d.WeightBytes) / step / 1e9,
		})
	}
	return d, nil
}

// readEachStep is the bytes of the weights that every step reads: all but the
// embedding, of which a step reads a row for each token, unless the head is
// the same.
func readEachStep(m models.Model) int64 {
	var n int64
	for _, t := range m.Tensors() {
		if t.Layer == models.InEmbedding && !m.Config().Tied {
			continue
		}
		bytes := int64(tensor.BF16.Bits() / 8)
		for _, d := range t.Shape {
			bytes *= int64(d)
		}
		n += bytes
	}
	return n
}

// generate has n sequences with random prompts make so many tokens each.
func generate(ctx context.Context, e *engine.Engine, vocab, n, prompt, tokens int) ([]engine.Result, error) {
	results := make([]engine.Result, n)
	g, ctx := errgroup.WithContext(ctx)
	for i := range n {
		g.Go(func() (err error) {
			ids := make([]int32, prompt)
			for j := range ids {
				ids[j] = rand.Int32N(int32(vocab))
			}
			results[i], err = e.Generate(ctx, engine.Request{
				Prompt:   ids,
				Sampling: engine.Sampling{MaxTokens: tokens, IgnoreEOS: true, Logprobs: -1, PromptLogprobs: -1},
			}, func(engine.Event) error { return nil })
			return err
		})
	}
	return results, g.Wait()
}
