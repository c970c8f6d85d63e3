package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"infer/runtime/devicemap"
	"infer/runtime/engine"
)

func newPlan() *cobra.Command {
	var (
		compute computeFlags
		o       planOptions
	)
	cmd := &cobra.Command{
		Use:   "plan [MODEL]",
		Short: "Show where a model's layers would run, without loading it",
		Long: `Show where a model's layers would run, how much memory each device needs and how
fast it would be, without loading weights. MODEL may also be a config.json, or a
folder with nothing else: no weights are needed. Nor is a GPU: --gpus names those
to plan for, --simulate a topology file.

Exit code 3 when it does not fit; then the three cheapest ways to make it fit
are named.`,
		Example: `  infer plan ./my-model
  infer plan ./config.json --gpus 2xRTX-4090,1xRTX-3060 --ctx 32768 --batch 16
  infer plan ./my-model --gpus 1xRTX-4090 --max-memory cpu=64GiB --quantize q8 --json`,
		Args: argsAtMost(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return plan(cmd, arg(args, 0), &compute, &o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.gpus, "gpus", "", "GPUs to plan for, like 2xRTX-4090,1xRTX-3060; none for the CPU alone (default: this machine's)")
	flags.IntVar(&o.batch, "batch", 0, "sequences that must have memory for the whole context at once (default: 1)")
	flags.BoolVar(&o.json, "json", false, "print one JSON object")
	compute.register(flags, 32)
	return cmd
}

type planOptions struct {
	gpus  string
	batch int
	json  bool
}

func plan(cmd *cobra.Command, model string, f *computeFlags, o *planOptions) error {
	if err := f.check(); err != nil {
		return err
	}
	if o.batch < 0 || o.batch > devicemap.MaxSeqs {
		return usagef("--batch %d: want 1 to %d", o.batch, devicemap.MaxSeqs)
	}
	src, err := plannedSource(model, func() (source, error) {
		progress := newCommandProgress(cmd)
		defer progress.end()
		if _, err := os.Stat(model); err != nil && repoID.MatchString(model) {
			dir, err := pullSome(cmd.Context(), model, true, progress)
			if err != nil {
				return source{}, err
			}
			src := folder(dir)
			src.name, _, _ = strings.Cut(model, "@")
			return src, nil
		}
		return resolveModel(cmd.Context(), cmd, model, progress)
	})
	if err != nil {
		return err
	}
	m, ck, stored, err := openPlanned(src)
	if err != nil {
		return err
	}
	if ck != nil {
		defer ck.Close()
	}
	r := &request{model: m, sizes: engine.NewSizer(m, ck), stored: stored, flags: *f, batch: o.batch, planning: true}
	if err := r.find(cmd, o.gpus); err != nil {
		return err
	}
	p, in, err := r.plan()
	if err != nil {
		return r.refuse(cmd, o, err)
	}
	if o.json {
		return encodeJSON(cmd.OutOrStdout(), planned(r, src.name, p, in))
	}
	return printPlan(cmd.OutOrStdout(), r, src.name, p, in)
}

// find settles the machine that is planned for.
func (r *request) find(cmd *cobra.Command, gpus string) error {
	machine := gpus
	if machine == "" {
		machine = r.flags.simulate
	}
	switch machine {
	case "":
		d, err := openDevices(&r.flags, commandLogger(cmd))
		if err != nil {
			return err
		}
		r.whatIf = d.whatIf(&r.flags)
		return d.close()
	case "none":
		return r.useCPU()
	}
	return r.use(machine)
}

// refuse says that the model does not fit, and what would.
func (r *request) refuse(cmd *cobra.Command, o *planOptions, err error) error {
	if !errors.Is(err, devicemap.ErrDoesNotFit) || !o.json {
		return r.explain(err)
	}
	ways := suggest(r)
	if ways == nil {
		ways = []suggestion{}
	}
	if e := encodeJSON(cmd.OutOrStdout(), map[string]any{"fits": false, "error": err.Error(), "suggestions": ways}); e != nil {
		return e
	}
	return err
}

// plannedJSON is a plan for programs.
type plannedJSON struct {
	Fits         bool                 `json:"fits"`
	Model        string               `json:"model"`
	Architecture string               `json:"architecture"`
	Format       string               `json:"format"`
	Devices      []plannedDevice      `json:"devices"`
	Stages       []plannedStage       `json:"stages"`
	Blocks       int                  `json:"kv_blocks"`
	BlockSize    int                  `json:"kv_block_size"`
	Context      int                  `json:"max_context"`
	MaxSeqs      int                  `json:"max_seqs"`
	MicroBatches int                  `json:"micro_batches"`
	Predicted    devicemap.Prediction `json:"predicted"`
	Throughput   float64              `json:"tokens_per_second"`
	Reasons      []string             `json:"reasons"`
}

type plannedDevice struct {
	Device string          `json:"device"`
	Name   string          `json:"name"`
	Room   int64           `json:"room"` // bytes that may be used, reserve included
	Bytes  devicemap.Bytes `json:"bytes"`
}

type plannedStage struct {
	Device    string          `json:"device"`
	Layers    string          `json:"layers"` // "0-15"; "" in a stage without
	Lo        int             `json:"lo"`
	Hi        int             `json:"hi"`
	Embed     bool            `json:"embed"`
	Head      bool            `json:"head"`
	Bytes     devicemap.Bytes `json:"bytes"`
	ExpertsOn string          `json:"experts_on,omitempty"`
	Away      devicemap.Bytes `json:"experts_bytes,omitzero"`
	Seconds   float64         `json:"seconds"`
}

func planned(r *request, name string, p devicemap.Plan, in devicemap.Input) plannedJSON {
	out := plannedJSON{
		Fits: true, Model: name, Architecture: r.model.Config().Architecture, Format: r.flags.format().String(),
		Blocks: p.Blocks, BlockSize: in.BlockSize, Context: p.MaxContext, MaxSeqs: p.MaxSeqs, MicroBatches: p.MicroBatches,
		Predicted: p.Predicted, Throughput: p.Predicted.Throughput(), Reasons: p.Reasons, Stages: plannedStages(p),
	}
	for _, d := range in.Devices {
		out.Devices = append(out.Devices, plannedDevice{d.Info.ID.String(), d.Info.Name, roomOf(d), p.On(d.Info.ID)})
	}
	return out
}

func plannedStages(p devicemap.Plan) []plannedStage {
	var out []plannedStage
	for _, s := range p.Stages {
		st := plannedStage{Layers: layerRange(s.Lo, s.Hi), Device: s.Device.String(), Lo: s.Lo, Hi: s.Hi, Embed: s.Embed, Head: s.Head, Bytes: s.Bytes, Away: s.Away, Seconds: s.Seconds}
		if s.Split() {
			st.ExpertsOn = s.ExpertsOn.String()
		}
		out = append(out, st)
	}
	return out
}

// layerRange is like "0-15", or "3".
func layerRange(lo, hi int) string {
	switch {
	case hi <= lo:
		return ""
	case hi == lo+1:
		return strconv.Itoa(lo)
	}
	return fmt.Sprintf("%d-%d", lo, hi-1)
}

// useCPU makes the request one for this machine's CPU alone.
func (r *request) useCPU() error {
	place, err := cpuHere(&r.flags)
	if err != nil {
		return err
	}
	r.whatIf = whatIf{places: []engine.Place{place}, imagined: true}
	return nil
}
