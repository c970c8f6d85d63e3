package main

import (
	"os"
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
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unknown command %q", args[0])
			}
			return nil
		},
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return flagsFromEnv(cmd.Flags()) },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddGroup(
		&cobra.Group{ID: "use", Title: "Use a model:"},
		&cobra.Group{ID: "look", Title: "Look inside:"},
		&cobra.Group{ID: "other", Title: "Other:"},
	)
	root.SetHelpCommandGroupID("other")
	root.SetCompletionCommandGroupID("other")
	add := func(group string, cmds ...*cobra.Command) {
		for _, c := range cmds {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("use", newServe(), newRun(), newChat(), newPull())
	add("look", newInspect(), newTokenize(), newTemplate(), newScore(), newBench())
	add("other", newVersion())
	return root
}

// flagsFromEnv sets each flag that was not given from INFER_<NAME>.
func flagsFromEnv(flags *pflag.FlagSet) error {
	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "help" || err != nil {
			return
		}
		name := "INFER_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if value, ok := os.LookupEnv(name); ok && value != "" {
			if e := flags.Set(f.Name, value); e != nil {
				err = usagef("environment variable %s: %v", name, e)
			}
		}
	})
	return err
}

// argsAtMost is cobra.MaximumNArgs with this program's usage error.
func argsAtMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return usagef("%s takes at most %d arguments, got %d; quote a prompt of several words", cmd.CommandPath(), n, len(args))
		}
		return nil
	}
}

// argsExactly is cobra.ExactArgs with this program's usage error.
func argsExactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usagef("%s needs %s", cmd.CommandPath(), what)
		}
		return nil
	}
}
