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
	return NewSizer(m, ck).Input(places, o)
}

// Sizer measures a model as often as there are plans to compare, and each
// layout and format only once.
type Sizer struct {
	m     models.Model
	ck    *loader.Checkpoint
	known map[sizing]devicemap.Device
}

// sizing is what sizes depend on.
type sizing struct {
	layout            kernels.Layout
	format            kernels.Format
	stored            tensor.DType
	tokens, logitRows int
}

// NewSizer measures nothing yet.
func NewSizer(m models.Model, ck *loader.Checkpoint) *Sizer {
	return &Sizer{m: m, ck: ck, known: map[sizing]devicemap.Device{}}
}

// Input is Measure.
func (z *Sizer) Input(places []Place, o PlanOptions) (devicemap.Input, error) {
	c := z.m.Config()
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
		if z.ck != nil {
			if stored, ok := z.ck.Tensor(t.Name); ok {
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
	for _, p := range places {
		key := sizing{p.Layout, o.Format, o.Stored, in.MaxTokens, in.MaxLogits}
		d, ok := z.known[key]
		if !ok {
			var err error
			if d, err = measure(z.m, dtype, p.Layout, &in, o.Format); err != nil {
				return in, err
			}
			z.known[key] = d
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
