package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"infer/runtime/loader/hub"
)

func newPull() *cobra.Command {
	var logFormat string
	cmd := &cobra.Command{
		Use:   "pull REPO",
		Short: "Download a model into the Hugging Face cache",
		Long: `Download a model into the Hugging Face cache: config, tokenizer and safetensors,
nothing else of the repo. An interrupted download goes on where it stopped, and
every file is checked against the hub's hash. Prints the model's folder.

HF_HOME, HF_HUB_CACHE, HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE work as they do
for Python's huggingface_hub, and the cache is the same.`,
		Example: "  infer pull Qwen/Qwen3-0.6B\n  infer pull org/name@v1.0",
		Args:    argsExactly(1, "a REPO, like org/name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			log, err := newLogger(cmd.ErrOrStderr(), logFormat)
			if err != nil {
				return err
			}
			p := newProgress(cmd.ErrOrStderr(), log)
			defer p.end()
			dir, err := pull(cmd.Context(), args[0], p)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), dir)
			return err
		},
	}
	cmd.Flags().StringVar(&logFormat, "log-format", "auto", "human, json, or auto: human on a terminal")
	return cmd
}

// pull gives the folder of a repo, after bringing what is missing of it into
// the cache.
func pull(ctx context.Context, repo string, p *progress) (string, error) {
	return pullSome(ctx, repo, false, p)
}

// pullSome leaves the weights where they are, or brings them too.
func pullSome(ctx context.Context, repo string, noWeights bool, p *progress) (string, error) {
	options, err := hub.FromEnv()
	if err != nil {
		return "", err
	}
	options.NoWeights = noWeights
	return hub.Resolve(ctx, repo, options, pullEvents(p, p.log))
}

func pullEvents(p *progress, log zerolog.Logger) hub.Events {
	var mu sync.Mutex
	seen := make(map[string]int64) // bytes of each file
	return hub.Events{
		Plan: func(repo, _ string, _ int, total, _ int64) {
			p.begin("downloading "+repo, total)
		},
		Progress: func(file string, done, _ int64) {
			mu.Lock()
			n := done - seen[file]
			seen[file] = done
			mu.Unlock()
			p.add(n)
		},
		Retry: func(what string, err error, wait time.Duration) {
			log.Warn().Err(err).Dur("wait_ms", wait).Msg("trying again: " + what)
		},
		Cached: func(repo, commit string, err error) {
			log.Warn().Err(err).Str("commit", commit).Msg("using the cached copy of " + repo)
		},
	}
}
