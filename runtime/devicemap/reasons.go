package devicemap

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"infer/runtime/device"
)

// why says in words what the stages came of. They have room for K/V of so many
// sequences of so many tokens.
func (in *Input) why(stages []Stage, tokens, seqs int) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	used := Plan{Stages: stages}.Devices()
	wanted := fmt.Sprintf("K/V for %d tokens", tokens)
	if seqs > 1 {
		wanted = fmt.Sprintf("K/V for %d sequences of %d tokens", seqs, tokens)
	}
	b := in.builder(in.blocks(tokens) * seqs)
	gpus := slices.DeleteFunc(in.ids(), isCPU)
	onGPUs := len(in.Model.Layers) // as the user said
	if in.GPULayers != nil {
		onGPUs = *in.GPULayers
	}
	var idle, small, without []string
	for _, id := range gpus {
		if slices.Contains(used, id) || onGPUs == 0 {
			continue
		}
		d := &in.Devices[in.index(id)]
		switch room, _ := d.room(); {
		case room == 0:
			without = append(without, id.String())
		case room-d.Reserve < b.leastStage(id):
			need := b.leastStage(id)
			small = append(small, fmt.Sprintf("%v: a layer with its K/V and workspace needs %s, %s may be used", id, size(need), size(max(room-d.Reserve, 0))))
		default:
			idle = append(idle, id.String())
		}
	}
	switch first := used[0]; {
	case len(gpus) == 0 && len(used) == 1:
		say("%v: the only kind of device here", first)
	case onGPUs == 0:
		say("%v alone: no layers were to be on GPUs", first)
	case len(used) > 1 && onGPUs < len(in.Model.Layers):
		say("%d layers were to be on GPUs; in this order a step is predicted to be fastest", onGPUs)
	case len(used) == 1 && !isCPU(first):
		say("%v alone has memory for the model and %s: no link to cross", first, wanted)
	case len(used) == 1 && len(idle) > 0:
		say("%v alone: with layers on GPUs a step is predicted to be no faster", first)
	case len(used) == 1:
		say("%v alone: the GPUs have no memory for a layer", first)
	case b.oneHasRoom():
		say("one GPU alone would be slower: in this order and with this many layers each a step is predicted to be fastest")
	default:
		say("no GPU alone has memory for the model and %s; in this order and with this many layers each a step is predicted to be fastest", wanted)
	}
	for i, s := range stages {
		switch {
		case s.Split():
			say("%v: %s of routed experts are on %v, as the GPUs have no memory for them; attention and the rest stay on the GPU", s.Device, layersText(s), s.ExpertsOn)
		case !isCPU(s.Device) || len(gpus) == 0 || len(used) == 1 || s.Hi == s.Lo || onGPUs < len(in.Model.Layers):
		case b.movable(stages, i):
			say("%v computes %s: more of them on GPUs would hardly make a step faster", s.Device, layersText(s))
		default:
			say("%v computes %s, which the GPUs have no memory for: reading them over PCIe in each step would take longer", s.Device, layersText(s))
		}
	}
	if len(idle) > 0 && (len(used) > 1 || !isCPU(used[0])) {
		say("not used: %s: more devices in the chain would not make a sequence faster; a larger context or batch, or a map, brings them in", strings.Join(idle, ", "))
	}
	for _, text := range small {
		say("not used: %s", text)
	}
	if len(without) > 0 {
		say("not used: %s: no memory is reported; --max-memory says what may be used", strings.Join(without, ", "))
	}
	if in.MaxContext == 0 && tokens < min(in.context(), PlanContext) {
		say("K/V for no more than %d tokens has room", tokens)
	}
	return out
}

// leastStage is the bytes of the smallest stage that a device could have: one
// layer, its experts elsewhere if there is where.
func (b *builder) leastStage(id device.ID) int64 {
	least := int64(math.MaxInt64)
	d := &b.in.Devices[b.in.index(id)]
	for l := range b.in.Model.Layers {
		s := Stage{Device: id, Lo: l, Hi: l + 1}
		if b.experts >= 0 && b.in.hasExperts(l, l+1) {
			s.ExpertsOn = b.in.Devices[b.experts].Info.ID
		}
		on, _ := b.in.bytes(s)
		least = min(least, on.Total()+b.blocks*b.in.kvBlock(d, l, l+1))
	}
	return least
}

// oneHasRoom tells whether the whole model fits some GPU.
func (b *builder) oneHasRoom() bool {
	return slices.ContainsFunc(b.devices, func(i int) bool {
		id := b.in.Devices[i].Info.ID
		return !isCPU(id) && b.fit([]Stage{{Device: id, Hi: len(b.in.Model.Layers), Embed: true, Head: true}})
	})
}

// movable tells whether a GPU beside the i-th stage has room for one layer more.
func (b *builder) movable(stages []Stage, i int) bool {
	for _, k := range []int{i - 1, i + 1} {
		if k < 0 || k >= len(stages) || isCPU(stages[k].Device) || stages[k].Split() {
			continue
		}
		moved := slices.Clone(stages)
		if k < i {
			moved[k].Hi++
			moved[i].Lo++
		} else {
			moved[k].Lo--
			moved[i].Hi--
		}
		if moved[i].Lo == moved[i].Hi { // the GPU takes over the embedding or the head
			moved[k].Embed, moved[k].Head = moved[k].Embed || moved[i].Embed, moved[k].Head || moved[i].Head
			moved = slices.Delete(moved, i, i+1)
		}
		if b.fit(moved) {
			return true
		}
	}
	return false
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
	var total, beside int64
	for i := range in.Devices {
		d := &in.Devices[i]
		beside = max(beside, d.Scratch.Last+d.Workspace)
		room, known := d.room()
		if !known {
			continue
		}
		left := max(room-d.Reserve, 0)
		total += left
		have = append(have, fmt.Sprintf("%v %s", d.Info.ID, size(left)))
	}
	text := fmt.Sprintf("weights are %s, K/V for %s %s, and activations up to %s on a device; there is %s",
		size(weights), seqsText(in.fullSeqs(), tokens), size(kv), size(beside), strings.Join(have, ", "))
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
