package engine

import (
	"fmt"

	"infer/models"
	"infer/runtime/device"
	"infer/runtime/devicemap"
	"infer/runtime/kernels"
	"infer/runtime/loader"
	"infer/runtime/tensor"
)

// PlanOptions are what the user may say about memory and batch; zero values
// are the defaults noted.
type PlanOptions struct {
	Format     kernels.Format
	MaxContext int // 0: the model's, or what memory allows
	MaxSeqs    int // 0: 32
	MaxTokens  int // of a step; 0: 512, and never below MaxSeqs
	// Stored is the type of tensors that the checkpoint does not have, when
	// planning without weights; Invalid: every tensor must be there.
	Stored tensor.DType
}

// stageAllocs bounds the allocations of a stage whose sizes are added up before
// they are rounded: arenas, hidden states, logits.
const stageAllocs = 8

// Place is a device that may be planned for, open or not.
type Place struct {
	devicemap.Device // Info, limits and speeds; the sizes are filled in
	Layout           kernels.Layout
}

// PlaceOf is an open backend as a Place. The CPU's memory is everybody's: an
// eighth of what is free is left to others unless the caller says otherwise.
func PlaceOf(b kernels.Backend) Place {
	p := Place{Layout: b.Layout()}
	p.Info = b.Device().Info()
	if p.Info.ID.Kind == device.CPU {
		p.Reserve = p.Info.FreeBytes / 8
	}
	return p
}

// PlanInput measures a model for the planner, with the open backends as they
// are.
func PlanInput(m models.Model, ck *loader.Checkpoint, backends []kernels.Backend, o PlanOptions) (devicemap.Input, error) {
	var places []Place
	for _, b := range backends {
		places = append(places, PlaceOf(b))
	}
	return Measure(m, ck, places, o)
}

// Measure sizes a model for the planner on each place: what loading would
// take, without reading weights. ck may be nil when o.Stored is set.
func Measure(m models.Model, ck *loader.Checkpoint, places []Place, o PlanOptions) (devicemap.Input, error) {
	c := m.Config()
	if o.MaxSeqs == 0 {
		o.MaxSeqs = 32
	}
	if o.MaxTokens == 0 {
		o.MaxTokens = 512
	}
	in := devicemap.Input{
		BlockSize: kernels.BlockSize, MaxContext: o.MaxContext, MaxSeqs: o.MaxSeqs,
		MaxTokens: max(o.MaxTokens, o.MaxSeqs),
	}
	// Prompt log-probabilities and scores want many rows of logits at once.
	const logitsBytes = 64 << 20
	in.MaxLogits = min(in.MaxTokens, max(o.MaxSeqs, 64, logitsBytes/(4*c.VocabSize)))
	dtype := func(t models.TensorSpec) (tensor.DType, error) {
		if ck != nil {
			if stored, ok := ck.Tensor(t.Name); ok {
				return stored.DType, nil
			}
		}
		if o.Stored == tensor.Invalid {
			return 0, fmt.Errorf("plan: tensor %q is not in the checkpoint", t.Name)
		}
		return o.Stored, nil
	}
	context := o.MaxContext
	if context == 0 {
		context = c.MaxPositions
	}
	measured := map[kernels.Layout]devicemap.Device{}
	for _, p := range places {
		d, ok := measured[p.Layout]
		if !ok {
			var err error
			if d, err = measure(m, dtype, p.Layout, &in, o.Format); err != nil {
				return in, err
			}
			measured[p.Layout] = d
		}
		sizes := d
		d = p.Device
		d.Model, d.Scratch, d.Split, d.Experts = sizes.Model, sizes.Scratch, sizes.Split, sizes.Experts
		d.KVBits, d.ActBits = p.Layout.KVType().Bits(), p.Layout.ActType().Bits()
		d.Workspace = p.Layout.OpsBytes(kernels.OpsLimits{
			Tokens: in.MaxTokens, Seqs: in.MaxSeqs, Context: context, Logits: in.MaxLogits, Heads: c.Heads,
		}) + stageAllocs*(p.Layout.AllocBytes(1)-1)
		in.Devices = append(in.Devices, d)
	}
	if len(in.Devices) > 0 {
		in.Model = *in.Devices[0].Model
	}
	return in, nil
}
