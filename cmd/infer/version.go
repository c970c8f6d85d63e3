package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"infer/runtime/kernels/cpu"
	"infer/runtime/kernels/cuda"
)

func newVersion() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, the CPU's features and the kernels chosen, the GPU driver and its GPUs",
		Args:  argsExactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := struct {
				Version  string `json:"version"`
				Go       string `json:"go"`
				Platform string `json:"platform"`
				CPU      string `json:"cpu"`
				CUDA     gpus   `json:"cuda"`
			}{version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, cpu.Features(), findGPUs()}
			out := cmd.OutOrStdout()
			if asJSON {
				return json.NewEncoder(out).Encode(v)
			}
			if _, err := fmt.Fprintf(out, "infer %s\n%s %s\ncpu kernels: %s\n", v.Version, v.Go, v.Platform, v.CPU); err != nil {
				return err
			}
			return v.CUDA.print(out)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// gpus is what the driver says of itself and its GPUs.
type gpus struct {
	Driver  string   `json:"driver"`  // "" when there is none
	API     string   `json:"cuda"`    // that the driver speaks, like 12.8
	Devices []string `json:"devices"` // in visible order
	Why     string   `json:"why"`     // there is no driver, or not every GPU
}

func findGPUs() gpus {
	g := gpus{Devices: []string{}}
	s, err := cuda.Open(cuda.Options{})
	if err != nil {
		g.Why = err.Error()
		return g
	}
	g.Driver, g.API = s.Driver()
	g.Why = s.Note()
	for _, info := range s.Infos() {
		g.Devices = append(g.Devices, fmt.Sprintf("%v %s, %s, %s", info.ID, info.Name, info.Features, size(info.TotalBytes)))
	}
	if err := s.Close(); err != nil {
		g.Why = err.Error()
	}
	return g
}

func (g gpus) print(out io.Writer) error {
	line := "none"
	if g.API != "" {
		line = "CUDA " + g.API
		if g.Driver != "" {
			line = "driver " + g.Driver + ", " + line
		}
	}
	if g.Why != "" {
		line += " (" + g.Why + ")"
	}
	if _, err := fmt.Fprintln(out, "gpu driver:", line); err != nil {
		return err
	}
	for _, d := range g.Devices {
		if _, err := fmt.Fprintln(out, " ", d); err != nil {
			return err
		}
	}
	return nil
}
