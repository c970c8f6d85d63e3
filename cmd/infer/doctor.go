package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"infer/runtime/arch"
	"infer/runtime/device"
	"infer/runtime/kernels/cpu"
	"infer/runtime/kernels/cuda"
	"infer/runtime/transfer"
)

// maxSoak of one pair.
const maxSoak = 24 * time.Hour

type doctorOptions struct {
	archs, json, forget bool
	soak                time.Duration
	simulate            string
	transfer            transferFlags
}

func newDoctor() *cobra.Command {
	var o doctorOptions
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Examine the GPUs and the paths between them",
		Long: `Examine the GPUs and the paths between them.

Every directed pair of GPUs that the driver offers peer copies for is probed, in
a process of its own: whether the bytes arrive, and how fast. Exit code 1 means
that something is unsafe; nothing unsafe is ever used.`,
		Example: `  infer doctor
  infer doctor --soak 60s --json > doctor.json
  infer doctor --simulate 4xA100-SXM`,
		Args: argsExactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case o.soak < 0 || o.soak > maxSoak:
				return usagef("--soak %v: want 0 to %v", o.soak, maxSoak)
			case o.archs && (o.forget || o.soak > 0 || o.simulate != ""):
				return usagef("--archs prints a table, and examines nothing: leave --forget, --soak and --simulate out")
			case o.forget && (o.json || o.soak > 0 || o.simulate != ""):
				return usagef("--forget examines nothing: leave --json, --soak and --simulate out, and call infer doctor again")
			case o.archs:
				return printArchs(cmd.OutOrStdout(), o.json)
			case o.forget:
				return forgetLinks(cmd.OutOrStdout())
			}
			return doctor(cmd.Context(), cmd.OutOrStdout(), &o)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.archs, "archs", false, "print the table of GPU architectures: what each compute capability may do, and the evidence")
	flags.BoolVar(&o.json, "json", false, "print one JSON object (docs/doctor.schema.json)")
	flags.BoolVar(&o.forget, "forget", false, "forget what is known of links: verdicts, quarantine, and those whose probe crashed")
	flags.DurationVar(&o.soak, "soak", 0, "probe each pair for so long, like 60s")
	flags.StringVar(&o.simulate, "simulate", "", "examine simulated GPUs: like 2xRTX-5090, or a topology file")
	return cmd
}

// diagnosis is what doctor found, and its JSON.
type diagnosis struct {
	Schema    string          `json:"schema"`
	Version   string          `json:"version"`
	CPU       string          `json:"cpu"`
	Driver    string          `json:"driver"` // "" without one
	Note      string          `json:"note,omitempty"`
	Simulated string          `json:"simulated,omitempty"`
	GPUs      []gpuDiagnosis  `json:"gpus"`
	Links     []linkDiagnosis `json:"links"`
	Host      transfer.Host   `json:"host"`
	Hints     []transfer.Hint `json:"hints"`
	Seconds   float64         `json:"probe_seconds"`
	Modelled  float64         `json:"probe_modelled_seconds,omitempty"` // by a simulated machine's clock
	Safe      bool            `json:"safe"`
	Problems  []string        `json:"problems"`
	facts     []transfer.LinkFacts
}

type gpuDiagnosis struct {
	Device       string        `json:"device"`
	Name         string        `json:"name"`
	UUID         string        `json:"uuid"`
	PCI          string        `json:"pci"`
	Capability   string        `json:"compute_capability"`
	Architecture string        `json:"architecture"`
	Known        bool          `json:"known"`
	Kernels      string        `json:"kernels"`
	Copies       arch.CopyMode `json:"copies"`
	Memory       int64         `json:"memory_bytes"`
	BAR1         int64         `json:"bar1_bytes"`
	NUMANode     int           `json:"numa_node"`
	PCIeGen      int           `json:"pcie_gen"`
	PCIeWidth    int           `json:"pcie_width"`
	Notice       string        `json:"notice,omitempty"`
}

type linkDiagnosis struct {
	From        string            `json:"from"`
	To          string            `json:"to"`
	Kind        string            `json:"kind"`
	PeerAccess  bool              `json:"peer_access"`
	P2PStatus   string            `json:"nvml_p2p_status"`
	Route       string            `json:"route"`
	Reasons     []transfer.Reason `json:"reasons"`
	Probe       transfer.Finding  `json:"probe"`
	Quarantined string            `json:"quarantined"`
}

// errUnsafe ends doctor with exit code 1; what is wrong has been printed.
var errUnsafe = errors.New("something is unsafe, see above; it is not used")

func doctor(ctx context.Context, out io.Writer, o *doctorOptions) error {
	d, err := examine(ctx, o)
	if err != nil {
		return err
	}
	if o.json {
		e := json.NewEncoder(out)
		e.SetIndent("", " ")
		err = e.Encode(d)
	} else {
		err = d.print(out)
	}
	if err == nil && !d.Safe {
		err = errUnsafe
	}
	return err
}

// examine looks at everything.
func examine(ctx context.Context, o *doctorOptions) (*diagnosis, error) {
	d := &diagnosis{
		Schema: "infer-doctor/1", Version: version, CPU: cpu.Features(), Simulated: o.simulate, Safe: true,
		GPUs: []gpuDiagnosis{}, Links: []linkDiagnosis{}, Hints: []transfer.Hint{}, Problems: []string{},
	}
	gpus, err := cuda.Open(cuda.Options{Simulate: o.simulate})
	if errors.Is(err, cuda.ErrNoDriver) && o.simulate == "" {
		d.Note = err.Error()
		d.Host = transfer.ReadHost(os.DirFS("/"), nil)
		return d, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = gpus.Close() }()
	infos := gpus.Infos()
	d.Note = gpus.Note()
	for _, i := range infos {
		d.Driver = i.GPU.DriverVersion
		d.GPUs = append(d.GPUs, gpuOf(i))
	}
	s := soakSurvey(ctx, gpus, o)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for _, p := range s.Problems {
		d.Problems = append(d.Problems, p.Error())
	}
	for _, f := range s.Facts {
		decision := transfer.Decide(f)
		d.Links = append(d.Links, linkDiagnosis{
			From: f.From.String(), To: f.To.String(), Kind: f.Link.Kind, PeerAccess: f.Link.PeerAccess, P2PStatus: f.Link.P2PStatus,
			Route: decision.Route.Label(), Reasons: decision.Reasons, Probe: f.Finding, Quarantined: f.Quarantined,
		})
	}
	d.facts, d.Seconds, d.Modelled, d.Safe = s.Facts, s.Took.Seconds(), s.Modelled.Seconds(), transfer.Safe(s.Facts)
	d.Host = transfer.ReadHost(os.DirFS("/"), infos)
	if h := transfer.Hints(d.Host, infos, s.Facts); h != nil {
		d.Hints = h
	}
	if why := o.transfer.forbidden(); why != "" && len(s.Facts) > 0 {
		d.Hints = append(d.Hints, transfer.Hint{Code: "forbidden", Text: "peer copies are not examined, since they are forbidden: " + why})
	}
	return d, nil
}

func soakSurvey(ctx context.Context, gpus *cuda.System, o *doctorOptions) transfer.Survey {
	return survey(ctx, gpus, surveyOptions{forbidden: o.transfer.forbidden(), simulate: o.simulate, again: true, soak: o.soak})
}

func gpuOf(i device.Info) gpuDiagnosis {
	row := arch.Lookup(i.GPU.Capability)
	return gpuDiagnosis{
		Device: i.ID.String(), Name: i.Name, UUID: i.GPU.UUID, PCI: i.GPU.PCI, Capability: i.GPU.Capability.String(),
		Architecture: row.Name, Known: row.Known, Kernels: string(row.Image), Copies: row.Copies, Memory: i.TotalBytes,
		BAR1: i.GPU.BAR1Bytes, NUMANode: i.GPU.NUMANode, PCIeGen: i.GPU.PCIeGen, PCIeWidth: i.GPU.PCIeWidth, Notice: row.Notice(),
	}
}

// forgetLinks removes what is kept of links, of all machines.
func forgetLinks(out io.Writer) error {
	dir, err := linksDir()
	if err != nil {
		return err
	}
	// What cannot be read is to be removed as well.
	store, _ := transfer.OpenStore(dir, transfer.Key{BootID: transfer.KeyOf(nil, os.DirFS("/"), "").BootID})
	n, err := store.Forget()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "forgot %d files in %s: links are probed again\n", n, dir)
	return err
}
