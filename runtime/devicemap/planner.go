package devicemap

import (
	"fmt"
	"slices"

	"infer/runtime/device"
)

// Auto plans without a map: the whole model on the first device. Planning over
// several devices is Fixed's with a map from the user.
func Auto(in Input) (Plan, error) {
	if len(in.Devices) == 0 {
		return Plan{}, fmt.Errorf("plan: no device")
	}
	return Fixed(in, []Part{{Device: in.Devices[0].Info.ID, Lo: 0, Hi: len(in.Model.Layers)}})
}

// Fixed plans memory for given parts, which must cover the layers in order.
func Fixed(in Input, parts []Part) (Plan, error) {
	if err := in.check(); err != nil {
		return Plan{}, err
	}
	if err := covers(parts, len(in.Model.Layers)); err != nil {
		return Plan{}, err
	}
	p := Plan{MaxSeqs: in.MaxSeqs, MaxTokens: in.MaxTokens, MaxLogits: in.MaxLogits}
	for i, part := range parts {
		d, ok := in.device(part.Device)
		if !ok {
			return Plan{}, fmt.Errorf("device map: there is no device %v here; there is: %v", part.Device, in.ids())
		}
		s := Stage{Device: part.Device, Lo: part.Lo, Hi: part.Hi, Embed: i == 0, Head: i == len(parts)-1}
		s.Bytes.Weights = in.weights(s)
		s.Bytes.Activations = d.StepBytes
		p.Stages = append(p.Stages, s)
	}
	// The reserve of a device counts once, with its first stage.
	for i, s := range p.Stages {
		if slices.IndexFunc(p.Stages, func(o Stage) bool { return o.Device == s.Device }) == i {
			d, _ := in.device(s.Device)
			p.Stages[i].Bytes.Reserve = d.Reserve
		}
	}
	return in.fillKV(p)
}

func (in Input) check() error {
	switch {
	case len(in.Model.Layers) == 0:
		return fmt.Errorf("plan: the model has no layers")
	case in.BlockSize < 1 || in.MaxSeqs < 1 || in.MaxTokens < 1 || in.MaxLogits < 1 || in.MaxContext < 0:
		return fmt.Errorf("plan: %d sequences, %d tokens and %d logit rows a step, context %d, blocks of %d: out of range",
			in.MaxSeqs, in.MaxTokens, in.MaxLogits, in.MaxContext, in.BlockSize)
	case in.Model.MaxContext < 1:
		return fmt.Errorf("plan: the model has no context")
	case in.MaxContext > in.Model.MaxContext:
		return fmt.Errorf("plan: a context of %d tokens was asked for, the model is made for at most %d", in.MaxContext, in.Model.MaxContext)
	}
	return nil
}

func (in Input) device(id device.ID) (Device, bool) {
	i := slices.IndexFunc(in.Devices, func(d Device) bool { return d.Info.ID == id })
	if i < 0 {
		return Device{}, false
	}
	return in.Devices[i], true
}

func (in Input) ids() []device.ID {
	var ids []device.ID
	for _, d := range in.Devices {
		ids = append(ids, d.Info.ID)
	}
	return ids
}

func (in Input) weights(s Stage) int64 {
	var n int64
	for _, l := range in.Model.Layers[s.Lo:s.Hi] {
		n += l.Weights
	}
	switch {
	case s.Embed && s.Head && in.Model.Tied:
		n += max(in.Model.Embed, in.Model.Head)
	case s.Embed && s.Head:
		n += in.Model.Embed + in.Model.Head
	case s.Embed:
		n += in.Model.Embed
	case s.Head:
		n += in.Model.Head
	}
	return n
}

// kvBlock is the bytes of one K/V block of a stage.
func (in Input) kvBlock(s Stage) int64 {
	d, _ := in.device(s.Device)
	var elems int64
	for _, l := range in.Model.Layers[s.Lo:s.Hi] {
		elems += l.KVElems
	}
	return elems * int64(in.BlockSize) * int64(d.KVBits) / 8
}

// room is what a device may hold; 0 when its memory is unknown.
func (d Device) room() int64 {
	if d.Limit > 0 && (d.Info.FreeBytes == 0 || d.Limit < d.Info.FreeBytes) {
		return d.Limit
	}
	return d.Info.FreeBytes
}

// fillKV gives the K/V blocks: what context × sequences need, or as many as
// every device of the plan has room for.
func (in Input) fillKV(p Plan) (Plan, error) {
	context := in.MaxContext
	if context == 0 {
		context = in.Model.MaxContext
	}
	perSeq := (context + in.BlockSize - 1) / in.BlockSize
	p.Blocks = perSeq * in.MaxSeqs
	wanted, tightest := p.Blocks, ""
	for _, d := range in.Devices {
		used, block := Bytes{}, int64(0)
		for _, s := range p.Stages {
			if s.Device == d.Info.ID {
				block += in.kvBlock(s)
			}
		}
		if used = p.On(d.Info.ID); used.Total() == 0 {
			continue
		}
		room := d.room()
		if room == 0 {
			p.Reasons = append(p.Reasons, fmt.Sprintf("%v: free memory is unknown, taken as enough", d.Info.ID))
			continue
		}
		left := room - used.Total()
		if left < 0 {
			return Plan{}, fmt.Errorf("%w: %v has %s, but weights (%s), activations (%s) and reserve (%s) need %s: free memory, or use a smaller format, model, context or batch",
				ErrDoesNotFit, d.Info.ID, size(room), size(used.Weights), size(used.Activations), size(used.Reserve), size(used.Total()))
		}
		if block == 0 {
			continue
		}
		if n := left / block; n < int64(p.Blocks) {
			p.Blocks = int(n)
			tightest = fmt.Sprintf("%v has %s left for K/V, %s a block of %d tokens", d.Info.ID, size(left), size(block), in.BlockSize)
		}
	}
	need := perSeq
	if in.MaxContext == 0 {
		need = 1
	}
	if p.Blocks < need {
		return Plan{}, fmt.Errorf("%w: %s: that is a context of %d tokens, %d are wanted: lower the context, or free memory",
			ErrDoesNotFit, tightest, p.Blocks*in.BlockSize, max(in.MaxContext, in.BlockSize))
	}
	p.MaxContext = min(context, p.Blocks*in.BlockSize)
	switch {
	case p.MaxContext < context:
		p.Reasons = append(p.Reasons, fmt.Sprintf("context cut from %d to %d tokens: %s", context, p.MaxContext, tightest))
	case p.Blocks < wanted:
		p.Reasons = append(p.Reasons, fmt.Sprintf("%d K/V blocks where %d sequences of %d tokens could use %d: %s", p.Blocks, in.MaxSeqs, context, wanted, tightest))
	default:
		p.Reasons = append(p.Reasons, fmt.Sprintf("%d K/V blocks: enough for %d sequences of %d tokens", p.Blocks, in.MaxSeqs, context))
	}
	for i, s := range p.Stages {
		p.Stages[i].Bytes.KV = in.kvBlock(s) * int64(p.Blocks)
	}
	return p, nil
}

// size is like "1.5 GiB".
func size(n int64) string {
	v, unit := float64(n), "B"
	for _, u := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if v < 1024 && v > -1024 {
			break
		}
		v, unit = v/1024, u
	}
	if unit == "B" {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", v, unit)
}
