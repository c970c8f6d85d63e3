package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newRoot builds the command tree.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "infer",
		Short: "Run large language models from safetensors checkpoints",
		Long: `Run large language models from safetensors checkpoints.

MODEL is a folder (config.json and safetensors), a Hugging Face repo id
(org/name or org/name@revision, downloaded on first use), or "tiny", the small
story model inside this program, which is the default.

Every flag can be set by an environment variable: --max-seqs is INFER_MAX_SEQS.`,
		Example: `  infer run "Tell me a story about a fox."
  infer serve Qwen/Qwen3-0.6B --port 8080
  infer chat ./my-model`,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
					return usagef("unknown command %q; is %s meant?", args[0], strings.Join(near, " or "))
				}
				return usagef("unknown command %q", args[0])
			}
			return nil
		},
		// Two letters apart, as between serve and sevre.
		SuggestionsMinimumDistance: 2,

		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return flagsFromEnv(cmd.Flags()) },
	}
	root.SetVersionTemplate("infer {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{plainFlagError(err)} })
	root.AddGroup(
		&cobra.Group{ID: "use", Title: "Use a model:"},
		&cobra.Group{ID: "look", Title: "Look inside:"},
		&cobra.Group{ID: "other", Title: "Other:"},
	)
	root.SetHelpCommandGroupID("other")
	root.SetCompletionCommandGroupID("other")
	groupHelp(root)
	add := func(group string, cmds ...*cobra.Command) {
		for _, c := range cmds {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("use", newServe(), newRun(), newChat(), newPull())
	add("look", newPlan(), newInspect(), newTokenize(), newTemplate(), newScore(), newBench())
	root.AddCommand(newProbe())
	add("other", newDoctor(), newGPUSelftest(), newVersion())
	return root
}

// plainFlagError leaves the names of Go's parsing functions away.
func plainFlagError(err error) error {
	var number *strconv.NumError
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &number) || !errors.As(err, &invalid) {
		return err
	}
	return fmt.Errorf("--%s %s: %w", invalid.GetFlag().Name, invalid.GetValue(), number.Err)
}

// flagsFromEnv sets each flag that was not given from INFER_<NAME>.
func flagsFromEnv(flags *pflag.FlagSet) error {
	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "help" || f.Name == "version" || err != nil {
			return
		}
		name := "INFER_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if value, ok := os.LookupEnv(name); ok && value != "" {
			if e := flags.Set(f.Name, value); e != nil {
				err = usagef("environment variable %s: %w", name, plainFlagError(e))
			}
		}
	})
	return err
}

// argsAtMost is cobra.MaximumNArgs with this program's usage error.
func argsAtMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			if strings.Contains(cmd.Use, "PROMPT") || strings.Contains(cmd.Use, "TEXT") {
				return usagef("%s takes at most %d arguments, got %d; put quotes around a text of several words", cmd.Name(), n, len(args))
			}
			return usagef("%s takes only a MODEL, got %d arguments", cmd.Name(), len(args))
		}
		return nil
	}
}

// argsExactly is cobra.ExactArgs with this program's usage error.
func argsExactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usagef("%s needs %s", cmd.Name(), what)
		}
		return nil
	}
}
