package main

import (
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"infer/cmd/infer/gpucheck"
)

func newGPUSelftest() *cobra.Command {
	var (
		o    gpucheck.Options
		file string
	)
	cmd := &cobra.Command{
		Use:   "gpu-selftest",
		Short: "Check and measure a GPU with this program's kernels",
		Long: `Check and measure a GPU with this program's kernels, in less than five minutes.

Runs the kernels' tests on the device, measures the bandwidth of each kernel
against that of a copy, and decodes with models of random weights in the shapes
of Llama 3.2 1B and Llama 3.1 8B. What it finds is one JSON object; the exit
status is 1 when something did not work.

With --simulate everything is small and times mean nothing.`,
		Example: "  infer gpu-selftest --output report.json",
		Args:    argsExactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			o.Version = version
			o.Progress = func(what string) { fmt.Fprintf(cmd.ErrOrStderr(), "measuring: %s\n", what) }
			out := cmd.OutOrStdout()
			if file != "" {
				// Before minutes of work: a folder that is not there.
				f, err := os.Create(file)
				if err != nil {
					return err
				}
				defer func() {
					if cerr := f.Close(); err == nil {
						err = cerr
					}
				}()
				out = f
			}
			r, err := gpucheck.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			if err := encodeJSON(out, r); err != nil {
				return err
			}
			if file != "" {
				if err := summary(cmd.OutOrStdout(), r); err != nil {
					return err
				}
			}
			if n := len(r.Faults); n > 0 {
				return fmt.Errorf("%d faults; the first: %s", n, r.Faults[0])
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&o.Device, "device", 0, "number of the GPU")
	flags.StringVar(&o.Simulate, "simulate", "", "test this command on simulated GPUs, like 1xRTX-4090")
	flags.StringVar(&file, "output", "", "write the JSON to this file, and a summary to standard output")
	return cmd
}

// summary is for people.
func summary(out io.Writer, r *gpucheck.Report) error {
	for _, d := range r.Devices {
		if d.ID == r.Device {
			fmt.Fprintf(out, "%s: %s, copies at %.0f GB/s, in %.0f s\n", d.ID, d.Name, r.Copy, r.Seconds)
		}
	}
	if r.Suite != nil {
		fmt.Fprintf(out, "kernels' tests: %d passed, %d failed\n", r.Suite.Passed, len(r.Suite.Failed))
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "kernel\tprecision\tµs\tGB/s\tof copy\tTFLOP/s\n")
	for _, k := range r.Kernels {
		fmt.Fprintf(w, "%s\t%s\t%.1f\t%.0f\t%.0f %%\t%.1f\n", k.Name, k.Precision, k.US, k.GBps, 100*k.OfCopy, k.TFLOPs)
	}
	fmt.Fprint(w, "model\tprecision\tgraphs\tsequences\ttokens/s\tof copy\n")
	for _, d := range r.Decode {
		for _, b := range d.Batches {
			fmt.Fprintf(w, "%s\t%s\t%v\t%d\t%.1f\t%.0f %%\n", d.Shape, d.Precision, d.Graphs, b.Sequences, b.Tokens, 100*b.OfCopy)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, f := range r.Faults {
		fmt.Fprintln(out, "fault:", f)
	}
	return nil
}
