package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"infer/models"
	_ "infer/models/all" // every family
	"infer/models/tiny"
	"infer/runtime/device"
	"infer/runtime/devicemap"
	"infer/runtime/engine"
	"infer/runtime/kernels"
	"infer/runtime/loader"
	"infer/runtime/tokenizer"
	"infer/runtime/tokenizer/chattemplate"
	"infer/runtime/transfer"
)

// session is an opened model: what serve, run, chat, bench and score compute with.
type session struct {
	source     source
	config     models.Config
	parameters int64
	generation models.Generation
	defaults   engine.Sampling      // generation as sampling values
	tokenizer  *tokenizer.Tokenizer // nil when the folder has none
	template   *chattemplate.Set    // nil when the folder has none
	format     kernels.Format       // of the weights
	plan       devicemap.Plan
	input      devicemap.Input // that the plan comes of
	devices    *devices
	checkpoint *loader.Checkpoint
	router     *transfer.Router // nil: no GPUs
	verify     string           // --verify
	engine     *engine.Engine
	loadTime   time.Duration
}

// sessionOptions are what differs between commands.
type sessionOptions struct {
	log           zerolog.Logger
	maxQueue      int
	noPrefixCache bool
	maxGap        time.Duration
	stepped       func(tokens int) // optional: after each step
}

// openSession resolves MODEL, reads its headers, plans, loads the weights and
// starts the engine. Nothing large is read before the plan is known to fit.
func openSession(ctx context.Context, cmd *cobra.Command, model string, f *computeFlags) (*session, error) {
	return openSessionWith(ctx, cmd, model, f, sessionOptions{log: commandLogger(cmd)})
}

func openSessionWith(ctx context.Context, cmd *cobra.Command, model string, f *computeFlags, o sessionOptions) (_ *session, err error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	progress := newProgress(cmd.ErrOrStderr(), o.log)
	defer progress.end()
	src, err := resolveModel(ctx, cmd, model, progress)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	s := &session{source: src, format: f.format(), verify: f.transfer.verify}
	ck, err := src.checkpoint(f.mmap)
	if err != nil {
		return nil, err
	}
	s.checkpoint = ck // read again when a device is lost
	defer func() {
		if err != nil {
			err = errors.Join(err, ck.Close())
		}
	}()
	m, err := models.Open(ck)
	if err != nil {
		return nil, err
	}
	s.config = m.Config()
	if s.generation, err = models.ReadGeneration(ck, s.config); err != nil {
		return nil, err
	}
	s.defaults = samplingDefaults(s.generation)
	// Beside the weights: a large vocabulary takes a second to read.
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	text := make(chan error, 1)
	go func() {
		err := s.openText()
		if err != nil {
			stop(err)
		}
		text <- err
	}()

	if s.devices, err = openDevices(f, o.log); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.devices.close())
		}
	}()
	r := &request{model: m, sizes: engine.NewSizer(m, ck), flags: *f, whatIf: s.devices.whatIf(f)}
	if s.plan, s.input, err = r.plan(); err != nil {
		return nil, r.explain(err)
	}
	if r.leavesGPUs(s.plan) {
		o.log.Warn().Strs("why", s.plan.Reasons).Msg("there are GPUs, and all layers run on the CPU")
	}
	var bytes int64
	s.parameters, bytes = measure(m, ck)

	if f.ctx == 0 && s.plan.MaxContext < s.config.MaxPositions {
		o.log.Warn().Strs("why", s.plan.Reasons).Msgf("the context is cut to %d tokens", s.plan.MaxContext)
	}
	if s.router == nil {
		s.router = routes(ctx, s.devices, f, s.plan, o.log)
	}
	progress.begin("loading "+src.name, bytes)
	place := s.placement(r, progress.add, o.log)
	runner, err := place.Load(ctx)
	if terr := <-text; terr != nil {
		if runner != nil {
			terr = errors.Join(terr, runner.Close())
		}
		return nil, terr
	}
	if err != nil {
		return nil, err
	}
	config := engine.Config{
		Runner: runner, MaxQueue: o.maxQueue, StopIDs: s.generation.StopIDs, NoPrefixCache: o.noPrefixCache, MaxGap: o.maxGap,
		NoSpeculation: f.speculate == "off", Recover: place.Recover, Scrub: scrubPause,
		Events: engine.Events{
			Stepped:    o.stepped,
			StepFailed: func(err error, n int) { o.log.Error().Err(err).Int("sequences", n).Msg("step failed") },
			Failed:     func(err error) { o.log.Error().Err(err).Msg("nothing can be computed any more") },
			WeightsChanged: func(err error) {
				o.log.Error().Err(err).Msg("weights changed in a GPU's memory: they are loaded again, and answers under way have been failed")
			},
			Replayed: func(cause error) {
				o.log.Warn().Err(cause).Msg("the step is computed again")
			},
			Rewound: func(cause error) {
				o.log.Warn().Err(cause).Msg("what was in the K/V cache is computed again")
			},
			DeviceLost: func(lost []device.ID, cause error) {
				o.log.Error().Err(cause).Strs("devices", names(lost)).Msg("going on without these devices")
			},
			Recovered: func(p devicemap.Plan, pause time.Duration, left error) {
				o.log.Warn().Dur("pause_ms", pause).Str("on", s.devices.String()).AnErr("not_freed", left).Msg("the model is loaded again, and answers go on")
			},
		},
	}
	if s.tokenizer != nil {
		config.NewDetokenizer = func(skipSpecial bool) engine.Detokenizer { return s.tokenizer.NewStream(skipSpecial) }
	}
	if s.engine, err = engine.New(config); err != nil {
		return nil, errors.Join(err, runner.Close())
	}
	if f.transfer.verify == transfer.VerifyOff.String() {
		o.log.Warn().Msg("--verify off: what devices get from each other is not verified; a faulty link gives wrong answers")
	}
	s.loadTime = time.Since(start)
	return s, nil
}

// closeTime is for the step under way and for devices to give back what they
// hold; the process ends then, and a device that hangs does not keep it. Longer
// in tests.
var closeTime = 5 * time.Second

func (s *session) close() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.engine.Close()
		_ = s.devices.close()
		_ = s.checkpoint.Close()
	}()
	select {
	case <-done:
	case <-time.After(closeTime):
	}
}

// openText reads tokenizer and chat template, which a folder may lack, and
// holds the vocabulary against the model's.
func (s *session) openText() error {
	var err error
	if s.tokenizer, err = s.source.tokenizer(); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if s.tokenizer != nil {
		if n := s.tokenizer.VocabSize(); n > s.config.VocabSize {
			// Padding ids above the model's rows are never chosen, but text may hold them.
			return fmt.Errorf("%s: the tokenizer has ids up to %d, the model's vocabulary is %d: they do not belong together",
				filepath.Join(s.source.path, "tokenizer.json"), n-1, s.config.VocabSize)
		}
	}
	s.template, err = s.source.templates()
	return err
}

// checkIDs refuses ids that the model has no row for.
func (s *session) checkIDs(ids []int32) error {
	for i, id := range ids {
		if id < 0 || int(id) >= s.config.VocabSize {
			return fmt.Errorf("token id %d at place %d: the model's ids are 0 to %d", id, i, s.config.VocabSize-1)
		}
	}
	return nil
}

// measure counts the parameters that a model uses, and their bytes in the checkpoint.
func measure(m models.Model, ck *loader.Checkpoint) (parameters, bytes int64) {
	for _, t := range m.Tensors() {
		n := int64(1)
		for _, d := range t.Shape {
			n *= int64(d)
		}
		parameters += n
		if stored, ok := ck.Tensor(t.Name); ok {
			bytes += stored.Bytes
		}
	}
	return parameters, bytes
}

// samplingDefaults are the model's values, and OpenAI's where it gives none.
func samplingDefaults(g models.Generation) engine.Sampling {
	s := engine.Sampling{Temperature: 1, TopP: 1, Repetition: 1, Logprobs: -1, PromptLogprobs: -1}
	set(&s.Temperature, g.Temperature)
	set(&s.TopP, g.TopP)
	set(&s.MinP, g.MinP)
	set(&s.Repetition, g.Repetition)
	set(&s.TopK, g.TopK)
	set(&s.MaxTokens, g.MaxNew)
	return s
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// checkpoint opens the folder's headers.
func (s source) checkpoint(mmap bool) (*loader.Checkpoint, error) {
	if s.name == tiny.Name {
		return loader.OpenFS(s.fs, s.path)
	}
	if mmap {
		return loader.Open(s.path, loader.Mmap())
	}
	return loader.Open(s.path)
}

// tokenizer reads tokenizer.json; an error that is os.ErrNotExist when there is none.
func (s source) tokenizer() (*tokenizer.Tokenizer, error) {
	const name = "tokenizer.json"
	return tokenizer.LoadFS(s.fs, name, filepath.Join(s.path, name))
}

// templates reads the chat templates; nil when there are none.
func (s source) templates() (*chattemplate.Set, error) {
	set, err := chattemplate.LoadFS(s.fs)
	switch {
	case errors.Is(err, chattemplate.ErrNone):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", s.path, err)
	}
	return set, nil
}

// arg is the i-th argument, or "".
func arg(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
