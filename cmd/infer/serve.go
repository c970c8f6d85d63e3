package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"infer/api"
	"infer/runtime/engine"
)

type serveOptions struct {
	host, logFormat string
	port            int
	alias           []string
	apiKeys         []string
	cors            []string
	maxQueue        int
	maxBody         string
	timeout         time.Duration
	drain           time.Duration
	maxGap          time.Duration
}

func newServe() *cobra.Command {
	var (
		compute computeFlags
		o       serveOptions
	)
	cmd := &cobra.Command{
		Use:   "serve [MODEL]",
		Short: "Serve a model over HTTP, for OpenAI clients",
		Long: `Serve a model over HTTP, for OpenAI clients.

When it is ready it prints one line: the URL, the model and the devices. Logs go
to standard error. SIGTERM and Ctrl-C let running answers finish; a second one
ends the program at once.`,
		Example: `  infer serve
  infer serve ./my-model --host 0.0.0.0 --port 8000 --api-key "$KEY"
  infer serve Qwen/Qwen3-0.6B --ctx 8192 --max-seqs 16`,
		Args: argsAtMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return serve(cmd, arg(args, 0), &compute, &o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.host, "host", "127.0.0.1", "address to listen on; 0.0.0.0 is every one of this machine")
	flags.IntVar(&o.port, "port", 8080, "port to listen on; 0 picks a free one")
	flags.StringArrayVar(&o.alias, "alias", nil, "another name that clients may ask for; * is any (can be repeated)")
	flags.StringArrayVar(&o.apiKeys, "api-key", nil, "clients must send one of these keys (can be repeated; INFER_API_KEY keeps it out of the process list)")
	flags.StringArrayVar(&o.cors, "cors", nil, "web origin whose pages may call, * for any (can be repeated; default: pages of this machine)")
	flags.IntVar(&o.maxQueue, "max-queue", 256, "requests that may wait; more are answered 429")
	flags.StringVar(&o.maxBody, "max-body", "16MiB", "size of a request's body at most")
	flags.DurationVar(&o.timeout, "timeout", time.Hour, "time for one request, waiting included")
	flags.DurationVar(&o.maxGap, "max-gap", 100*time.Millisecond, "time that a running answer waits for its next token while other prompts are read, about; 0: no bound, prompts are read sooner")
	flags.DurationVar(&o.drain, "drain", 30*time.Second, "time that running answers get when the server is stopped")
	flags.StringVar(&o.logFormat, "log-format", "auto", "human, json, or auto: human on a terminal")
	compute.register(flags, 32)
	return cmd
}

func (o *serveOptions) check() error {
	switch {
	case o.port < 0 || o.port > 65535:
		return usagef("--port %d: want 0 to 65535", o.port)
	case o.maxQueue < 1:
		return usagef("--max-queue %d: want at least 1", o.maxQueue)
	case o.timeout <= 0:
		return usagef("--timeout %v: must be positive", o.timeout)
	case o.drain < 0:
		return usagef("--drain %v: must not be negative", o.drain)
	case o.maxGap < 0:
		return usagef("--max-gap %v: must not be negative; 0 is no bound", o.maxGap)
	}
	for _, key := range o.apiKeys {
		if key == "" {
			return usagef("--api-key must not be empty")
		}
	}
	return nil
}

func serve(cmd *cobra.Command, model string, compute *computeFlags, o *serveOptions) error {
	ctx := cmd.Context()
	if err := errors.Join(o.check(), compute.check()); err != nil {
		return err
	}
	body, err := parseSize(o.maxBody)
	if err != nil {
		return usagef("--max-body: %w", err)
	}
	log, err := newLogger(cmd.ErrOrStderr(), o.logFormat)
	if err != nil {
		return err
	}
	// The port is taken before minutes of loading: requests wait, then are 503.
	listener, err := net.Listen("tcp", net.JoinHostPort(o.host, strconv.Itoa(o.port)))
	if err != nil {
		return fmt.Errorf("%w: choose another --port or --host", err)
	}
	server := api.New(api.Config{
		Version: version, APIKeys: o.apiKeys, CORSOrigins: o.cors, Log: log,
		Limits: api.Limits{Body: body, Requests: o.maxQueue + compute.maxSeqs, Request: o.timeout},
	})
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.drain)
		defer cancel()
		_ = server.Shutdown(stop)
	}()

	sess, err := openSessionWith(ctx, cmd, model, compute, sessionOptions{log: log, maxQueue: o.maxQueue, maxGap: o.maxGap, stepped: server.ObserveStep})
	if err != nil {
		return err
	}
	defer sess.close()
	sess.logPlan(log)
	logDefaults(log, sess)
	if err := sess.warmUp(ctx); err != nil {
		return fmt.Errorf("first step: %w", err)
	}
	sess.logMemory(log)
	server.SetModel(sess.apiModel(o.alias))

	url := "http://" + listener.Addr().String()
	if _, err := fmt.Fprintf(cmd.OutOrStdout(), "ready: %s serves %s on %s\n", url, sess.source.name, sess.where()); err != nil {
		return err
	}
	log.Info().Str("url", url).Str("model", sess.source.name).Int64("parameters", sess.parameters).
		Int("context", sess.plan.MaxContext).Int("kv_blocks", sess.plan.Blocks).Dur("load_ms", sess.loadTime).Msg("ready")
	if forPeople(cmd.ErrOrStderr(), o.logFormat) {
		fmt.Fprintln(cmd.ErrOrStderr(), "try: "+sess.tryLine(url, len(o.apiKeys) > 0))
	}

	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	log.Info().Dur("at_most_ms", o.drain).Msg("stopping: running answers may finish")
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.drain)
	defer cancel()
	if err := server.Shutdown(stop); err != nil {
		log.Warn().Msg("answers that still ran were cut")
	}
	return nil
}

// tryLine is a request that works, for people to paste.
func (s *session) tryLine(url string, keyed bool) string {
	path, body := "/v1/chat/completions", `{"messages":[{"role":"user","content":"Tell me a story about a fox."}]}`
	switch {
	case s.tokenizer == nil:
		path, body = "/v1/completions", `{"prompt":[1,2,3],"max_tokens":16}`
	case s.template == nil:
		path, body = "/v1/completions", `{"prompt":"Once upon a time","max_tokens":32}`
	}
	key := ""
	if keyed {
		key = ` -H "Authorization: Bearer $INFER_API_KEY"`
	}
	return fmt.Sprintf("curl %s%s -H 'Content-Type: application/json'%s -d '%s'", url, path, key, body)
}

// warmUp computes one token, so that readiness means it was done before.
func (s *session) warmUp(ctx context.Context) error {
	zero := int64(0)
	_, err := s.engine.Generate(ctx, engine.Request{
		Prompt:   []int32{0},
		Sampling: engine.Sampling{MaxTokens: 1, Logprobs: -1, PromptLogprobs: -1, Seed: &zero},
	}, func(engine.Event) error { return nil })
	return err
}

func logDefaults(log zerolog.Logger, s *session) {
	d := s.defaults
	log.Info().Float64("temperature", d.Temperature).Float64("top_p", d.TopP).Int("top_k", d.TopK).
		Float64("min_p", d.MinP).Float64("repetition_penalty", d.Repetition).Ints32("stop_ids", s.generation.StopIDs).
		Msg("sampling where a request leaves it out")
}

func (s *session) apiModel(aliases []string) api.Model {
	g := s.generation
	m := api.Model{
		Name: s.source.name, Aliases: aliases, Created: time.Now(), Context: s.plan.MaxContext, Root: s.source.path,
		Meta:        map[string]any{"n_params": s.parameters, "n_ctx_train": s.config.MaxPositions, "n_vocab": s.config.VocabSize, "n_embd": s.config.Hidden},
		Fingerprint: s.fingerprint(), Vocab: s.config.VocabSize,
		Defaults: api.Defaults{
			Temperature: g.Temperature, TopP: g.TopP, TopK: g.TopK, MinP: g.MinP, Repetition: g.Repetition, MaxTokens: g.MaxNew,
		},
		Generator: s.engine,
		Stats:     s.apiStats,
		DeviceMap: func() any { return s.deviceMap() },
	}
	if s.tokenizer != nil {
		m.Tokenizer = s.tokenizer
	}
	if s.template != nil {
		m.Template = s.template
	}
	return m
}

// fingerprint is equal for servers that give equal tokens for equal seeds: the
// same build, weights, plan and kernels.
func (s *session) fingerprint() string {
	h := sha256.New()
	fmt.Fprintln(h, version, s.source.name, s.parameters, s.format, s.plan.Stages, s.devices, s.devices.inUse()[0].KVType())
	if info, err := os.Stat(s.source.path); err == nil {
		fmt.Fprintln(h, info.ModTime().UnixNano())
	}
	return "fp_" + hex.EncodeToString(h.Sum(nil))[:12]
}
