package devicemap

import (
	"fmt"
	"slices"
	"strings"
)

// why says in words what the stages came of.
func (in *Input) why(stages []Stage, tokens, seqs int) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	p := Plan{Stages: stages}
	used := p.Devices()
	wanted := fmt.Sprintf("K/V for %d tokens", tokens)
	if seqs > 1 {
		wanted = fmt.Sprintf("K/V for %d sequences of %d tokens", seqs, tokens)
	}
	gpus := slices.DeleteFunc(in.ids(), isCPU)
	switch first := used[0]; {
	case len(used) == 1 && len(gpus) == 0:
		say("%v: the only kind of device here", first)
	case len(used) == 1 && !isCPU(first):
		say("%v alone has memory for the model and %s: no link to cross", first, wanted)
	case len(used) == 1:
		say("%v alone: no GPU may be used, or none is faster", first)
	default:
		say("the model and %s need %d devices; in this order and with this many layers each a step is predicted to be fastest", wanted, len(used))
	}
	for _, s := range stages {
		switch {
		case s.Split():
			say("%v: %s of routed experts are on %v, as the GPUs have no memory for them; attention and the rest stay on the GPU", s.Device, layersText(s), s.ExpertsOn)
		case isCPU(s.Device) && len(gpus) > 0 && len(used) > 1 && s.Hi > s.Lo:
			say("%v computes %s, which the GPUs have no memory for: reading them over PCIe in each step would take longer", s.Device, layersText(s))
		}
	}
	var idle, without []string
	for _, id := range gpus {
		if room, known := in.Devices[in.index(id)].room(); known && room == 0 {
			without = append(without, id.String())
		} else if !slices.Contains(used, id) {
			idle = append(idle, id.String())
		}
	}
	if len(idle) > 0 {
		say("not used: %s: more devices in the chain would not make a sequence faster; a larger context or batch, or a map, brings them in", strings.Join(idle, ", "))
	}
	if len(without) > 0 {
		say("not used: %s: no memory is reported; --max-memory says what may be used", strings.Join(without, ", "))
	}
	if in.MaxContext == 0 && tokens < min(in.context(), PlanContext) {
		say("K/V for no more than %d tokens has room", tokens)
	}
	return out
}

func layersText(s Stage) string {
	if s.Hi == s.Lo+1 {
		return fmt.Sprintf("layer %d", s.Lo)
	}
	return fmt.Sprintf("layers %d-%d", s.Lo, s.Hi-1)
}

// tooLarge is the error for a model that no plan fits, with the sums.
func (in *Input) tooLarge(tokens int) error {
	if len(in.Devices) == 1 {
		// One device: the exact account says more.
		id := in.Devices[0].Info.ID
		_, err := in.finish(Plan{Stages: []Stage{{Device: id, Hi: len(in.Model.Layers), Embed: true, Head: true}}})
		if err != nil {
			return err
		}
	}
	m := &in.Model
	weights := m.ends(true, true)
	var kv int64
	for _, l := range m.Layers {
		weights += l.Weights + l.Experts
	}
	d := &in.Devices[0]
	kv = in.kvBlock(d, 0, len(m.Layers)) * int64(in.blocks(tokens)*in.fullSeqs())
	var have []string
	var total int64
	for i := range in.Devices {
		d := &in.Devices[i]
		room, known := d.room()
		if !known {
			continue
		}
		left := max(room-d.Reserve, 0)
		total += left
		have = append(have, fmt.Sprintf("%v %s", d.Info.ID, size(left)))
	}
	text := fmt.Sprintf("weights are %s and K/V for %s %s, beside activations; there is %s",
		size(weights), seqsText(in.fullSeqs(), tokens), size(kv), strings.Join(have, ", "))
	if len(have) > 1 {
		text += fmt.Sprintf(", together %s", size(total))
	}
	if in.GPULayers != nil {
		text += fmt.Sprintf(", with %d layers on GPUs", *in.GPULayers)
	}
	return fmt.Errorf("%w: %s", ErrDoesNotFit, text)
}

func seqsText(n, tokens int) string {
	if n == 1 {
		return fmt.Sprintf("%d tokens", tokens)
	}
	return fmt.Sprintf("%d sequences of %d tokens", n, tokens)
}
