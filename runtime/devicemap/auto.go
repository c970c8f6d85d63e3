package devicemap

import (
	"cmp"
	"fmt"
	"slices"

	"infer/runtime/device"
)

const (
	// PlanContext is the context that must have K/V when the user asks for as
	// much as fits: less is a last resort.
	PlanContext = 8192
	// roomierCost is how much longer a step may take for more K/V.
	roomierCost = 1.05
	// balancedCost is how much longer a step may take for more K/V on the same
	// devices.
	balancedCost = 1.01
	// maxStates bounds the sets of devices that are all tried; 8 GPUs of 8
	// kinds and a CPU are 512.
	maxStates = 600
	// expertWork bounds the search over how many layers have their experts on
	// the CPU, in steps of its inner loop; maxCoarse is how many numbers are
	// tried at least.
	expertWork = 3e6
	maxCoarse  = 16
)

// Auto chooses the stages: those whose decode step is predicted to be fastest
// among all that fit. Layers that GPUs have no memory for run on the CPU, and
// of a mixture of experts the experts go there first.
func Auto(in Input) (Plan, error) {
	if err := in.check(); err != nil {
		return Plan{}, err
	}
	if len(in.Devices) == 0 {
		return Plan{}, fmt.Errorf("plan: no device")
	}
	tokens := in.context()
	if in.MaxContext == 0 {
		tokens = min(tokens, PlanContext)
	}
	wanted := tokens
	for {
		if stages, cost := in.choose(tokens, in.fullSeqs(), inf); stages != nil {
			seqs := in.fullSeqs()
			if more, t, n, c := in.roomier(stages, tokens, cost); more != nil {
				stages, tokens, seqs, cost = more, t, n, c
			}
			stages = in.balance(stages, in.blocks(tokens)*seqs, cost)
			return in.finish(Plan{Stages: stages, Reasons: in.why(stages, tokens, seqs)})
		}
		if in.MaxContext > 0 || tokens <= in.BlockSize {
			return Plan{}, in.tooLarge(wanted)
		}
		tokens = max(tokens/2, in.BlockSize)
	}
}

// roomier looks for a plan on more GPUs with K/V for more sequences, or longer
// ones, where the user has not said how much must fit: for a plan that is on
// several GPUs anyway, and leaves some out. It may be a little slower.
func (in *Input) roomier(stages []Stage, tokens int, cost float64) (more []Stage, context, seqs int, time float64) {
	used := Plan{Stages: stages}.Devices()
	idle := slices.ContainsFunc(in.Devices, func(d Device) bool {
		room, known := d.room()
		return !isCPU(d.Info.ID) && !slices.Contains(used, d.Info.ID) && (room > 0 || !known)
	})
	if in.FullSeqs > 0 || len(used) < 2 || !idle || slices.ContainsFunc(used, isCPU) {
		return nil, 0, 0, 0
	}
	// What is left when all weights are on GPUs, less what does not come out
	// even there.
	var room int64
	for i := range in.Devices {
		d := &in.Devices[i]
		if n, _ := d.room(); !isCPU(d.Info.ID) {
			room += max(0, n-d.Reserve-d.Workspace-d.Scratch.Last-in.model(d).Layers[0].Weights-in.model(d).Layers[0].Experts)
		}
	}
	d := &in.Devices[in.index(stages[0].Device)]
	for _, l := range in.model(d).Layers {
		room -= l.Weights + l.Experts
	}
	block := in.kvBlock(d, 0, len(in.Model.Layers))
	blocks := int((room - in.model(d).ends(true, false) - in.model(d).ends(false, true)) / max(block, 1))
	context = min(in.context(), blocks*in.BlockSize)
	seqs = min(blocks/max(in.blocks(context), 1), in.MaxSeqs)
	if context < tokens || context == tokens && seqs <= 1 {
		return nil, 0, 0, 0
	}
	more, time = in.choose(context, seqs, cost*roomierCost)
	return more, context, seqs, time
}

// choose gives the stages of the fastest plan with K/V for so many sequences of
// so many tokens, and the time of its decode step; nil when none fits that
// takes no longer than limit.
func (in *Input) choose(tokens, seqs int, limit float64) ([]Stage, float64) {
	b := in.builder(in.blocks(tokens) * seqs)
	if len(b.devices) == 0 {
		return nil, inf
	}
	b.limit = limit
	best, cost := b.choose()
	if b.grouped && b.uneven() {
		b.alone()
		b.limit = min(limit, cost*same)
		if other, t := b.choose(); t < cost {
			best, cost = other, t
		}
	}
	return best, cost
}

// choose tries how many leading layers have their experts on the CPU.
func (b *builder) choose() ([]Stage, float64) {
	choices, step := b.lightChoices()
	slices.SortStableFunc(choices, func(x, y choice) int { return cmp.Compare(x.bound, y.bound) })
	var best []Stage
	cost, at := inf, -1
	try := func(c choice) bool {
		if c.bound >= cost {
			return false
		}
		stages, t := b.solve(c.light)
		if t >= cost {
			return false
		}
		best, cost, at = stages, t, c.light
		b.limit = min(b.limit, cost*same)
		return true
	}
	for _, c := range choices {
		try(c)
	}
	for step /= 2; step > 0 && at >= 0; step /= 2 { // nearer to the best
		_ = try(b.choice(at-step)) || try(b.choice(at+step))
	}
	return best, cost
}

func isCPU(id device.ID) bool { return id.Kind == device.CPU }
