package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"infer/models"
	"infer/models/tiny"
)

func newInspect() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "inspect MODEL",
		Short: "Check a checkpoint without loading it, and list its tensors",
		Long: `Check a checkpoint without loading it: config, shards, every tensor's name,
type, shape and place, what the model will use and what is missing or unused.
MODEL may also be one .safetensors file. Exit code 1 when something is wrong.`,
		Example: "  infer inspect ./my-model\n  infer inspect model-00001-of-00004.safetensors --json",
		Args:    argsExactly(1, "MODEL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := inspectReport(cmd, args[0])
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if asJSON {
				err = encodeJSON(out, report)
			} else {
				err = printReport(out, report)
			}
			if err == nil && len(report.Faults) > 0 {
				for _, fault := range report.Faults[:min(len(report.Faults), 10)] {
					fmt.Fprintf(cmd.ErrOrStderr(), "infer: %s\n", fault)
				}
				err = errReported
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func inspectReport(cmd *cobra.Command, model string) (models.Report, error) {
	if info, err := os.Stat(model); err == nil && !info.IsDir() {
		return models.Inspect(model), nil
	}
	src, err := resolveModel(cmd.Context(), cmd, model, newCommandProgress(cmd))
	if err != nil {
		return models.Report{}, err
	}
	if src.name == tiny.Name {
		return models.InspectFS(src.fs, src.path), nil
	}
	return models.Inspect(src.path), nil
}

func printReport(out io.Writer, r models.Report) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if c := r.Config; c != nil {
		fmt.Fprintf(w, "architecture\t%s\n", c.Architecture)
		fmt.Fprintf(w, "parameters\t%d (%s)\n", c.Parameters, size(c.Bytes))
		fmt.Fprintf(w, "layers\t%d of hidden %d, intermediate %d\n", c.Layers, c.Hidden, c.Intermediate)
		if c.Experts > 0 {
			fmt.Fprintf(w, "experts\t%d, of which a token takes %d\n", c.Experts, c.ExpertsPerToken)
		}
		fmt.Fprintf(w, "heads\t%d, %d for keys and values, of %d\n", c.Heads, c.KVHeads, c.HeadDim)
		fmt.Fprintf(w, "vocabulary\t%d\n", c.Vocab)
		fmt.Fprintf(w, "context\t%d\n", c.MaxPositions)
		fmt.Fprintf(w, "output head\t%s\n", map[bool]string{true: "the embedding (tied)", false: "its own"}[c.Tied])
		fmt.Fprintln(w)
	}
	for _, f := range r.Files {
		fmt.Fprintf(w, "file\t%s\t%s\t%d tensors\n", f.Path, size(f.Bytes), f.Tensors)
	}
	if len(r.Tensors) > 0 {
		fmt.Fprintf(w, "\ntensor\ttype\tshape\toffset\tbytes\t\n")
	}
	for _, t := range r.Tensors {
		note := ""
		if r.Config != nil && !t.Used {
			note = "not used"
		}
		fmt.Fprintf(w, "%s\t%s\t%v\t%d\t%d\t%s\n", printable(t.Name), t.DType, t.Shape, t.Offset, t.Bytes, note)
	}
	for _, t := range r.Missing {
		fmt.Fprintf(w, "%s\t\t%v\t\t\tMISSING\n", t.Name, t.Shape)
	}
	for _, note := range r.Ignored {
		fmt.Fprintf(w, "\nnot used: %s\n", note)
	}
	return w.Flush()
}

// printable keeps names from a file from steering the terminal or the table.
func printable(name string) string {
	if q := strconv.Quote(name); len(q) != len(name)+2 {
		return q
	}
	return name
}

// size is like "1.5 GiB".
func size(n int64) string {
	v, units := float64(n), []string{"B", "KiB", "MiB", "GiB", "TiB"}
	for v >= 1024 && len(units) > 1 {
		v, units = v/1024, units[1:]
	}
	if units[0] == "B" {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", v, units[0])
}
