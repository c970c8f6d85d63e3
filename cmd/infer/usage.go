package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// groupAnnotation is the heading of --help that a flag stands under.
const groupAnnotation = "group"

// Headings of the flags that commands share.
const (
	groupSampling = "Sampling flags"
	groupCompute  = "Memory and device flags"
)

// inGroup puts the flags that register adds under a heading.
func inGroup(flags *pflag.FlagSet, heading string, register func(*pflag.FlagSet)) {
	group := pflag.NewFlagSet(heading, pflag.ContinueOnError)
	register(group)
	group.VisitAll(func(f *pflag.Flag) { f.Annotations = map[string][]string{groupAnnotation: {heading}} })
	flags.AddFlagSet(group)
}

// groupHelp makes --help show flags by their headings.
func groupHelp(root *cobra.Command) {
	cobra.AddTemplateFunc("flagGroups", flagGroups)
	const plain = "Flags:\n{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}"
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), plain, "{{flagGroups .LocalFlags}}", 1))
}

func flagGroups(flags *pflag.FlagSet) string {
	groups := map[string]*pflag.FlagSet{}
	for _, heading := range []string{"", groupSampling, groupCompute} {
		groups[heading] = pflag.NewFlagSet(heading, pflag.ContinueOnError)
	}
	flags.VisitAll(func(f *pflag.Flag) {
		groups[strings.Join(f.Annotations[groupAnnotation], "")].AddFlag(f)
	})
	var b strings.Builder
	for _, heading := range []string{"", groupSampling, groupCompute} {
		if usages := groups[heading].FlagUsages(); usages != "" {
			if heading == "" {
				heading = "Flags"
			}
			b.WriteString(heading + ":\n" + usages + "\n")
		}
	}
	return strings.TrimSpace(b.String())
}
