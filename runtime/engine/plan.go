package engine

import (
	"fmt"

	"infer/models"
	"infer/runtime/device"
	"infer/runtime/devicemap"
	"infer/runtime/kernels"
	"infer/runtime/loader"
)

// PlanOptions are what the user may say about memory and batch; zero values
// are the defaults noted.
type PlanOptions struct {
	Format     kernels.Format
	MaxContext int // 0: the model's, or what memory allows
	MaxSeqs    int // 0: 32
	MaxTokens  int // of a step; 0: 512, and never below MaxSeqs
}

// PlanInput measures a model for the planner. Devices are in the order of
// backends; the caller may set their Limit and Reserve. The CPU's memory is
// everybody's: an eighth of what is free is left to others unless the caller
// says otherwise.
func PlanInput(m models.Model, ck *loader.Checkpoint, backends []kernels.Backend, o PlanOptions) (devicemap.Input, error) {
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
	in.Model = devicemap.Model{Layers: make([]devicemap.Layer, c.Layers), Tied: c.Tied, MaxContext: c.MaxPositions}
	for i := range in.Model.Layers {
		in.Model.Layers[i].KVElems = 2 * int64(c.Heads.KV) * int64(c.Heads.Dim)
	}
	for _, t := range m.Tensors() {
		n, err := residentBytes(t, ck, o.Format)
		switch {
		case err != nil:
			return in, err
		case t.Layer == models.InEmbedding:
			in.Model.Embed += n
		case t.Layer == models.InHead:
			in.Model.Head += n
		default:
			in.Model.Layers[t.Layer].Weights += n
		}
	}
	if c.Tied {
		in.Model.Head += in.Model.Embed
	}
	context := o.MaxContext
	if context == 0 {
		context = c.MaxPositions
	}
	for _, b := range backends {
		d := devicemap.Device{Info: b.Device().Info(), KVBits: b.KVType().Bits(), ActBits: b.ActType().Bits()}
		d.StepBytes = stepBytes(c, in, int64(d.ActBits)/8) + int64(context)*int64(c.Heads.Dim)*4 // rotary tables
		if d.Info.ID.Kind == device.CPU {
			d.Reserve = d.Info.FreeBytes / 8
		}
		in.Devices = append(in.Devices, d)
	}
	return in, nil
}

// residentBytes of one tensor: matrices in the format, vectors in F32.
func residentBytes(t models.TensorSpec, ck *loader.Checkpoint, f kernels.Format) (int64, error) {
	elems := int64(1)
	for _, d := range t.Shape {
		elems *= int64(d)
	}
	if len(t.Shape) < 2 {
		return 4 * elems, nil
	}
	switch f {
	case kernels.AsStored:
		stored, ok := ck.Tensor(t.Name)
		if !ok {
			return 0, fmt.Errorf("plan: tensor %q is not in %s", t.Name, ck.Name)
		}
		return elems * int64(stored.DType.Bits()) / 8, nil
	case kernels.F32:
		return 4 * elems, nil
	case kernels.F16, kernels.BF16:
		return 2 * elems, nil
	case kernels.Q8: // groups of 32 with a scale of 16 bits
		return elems + elems/16, nil
	}
	return elems/2 + elems/16, nil
}

// stepBytes is the scratch of one stage: what models/layers lays out, the
// hidden states, and logits with their host copy.
func stepBytes(c models.Config, in devicemap.Input, act int64) int64 {
	t, rows := int64(in.MaxTokens), int64(in.MaxLogits)
	h, i := int64(c.Hidden), int64(c.Intermediate)
	attention := t * int64(c.Heads.Cols()+c.Heads.Q*c.Heads.Dim)
	return act*(2*t*h+max(attention, 3*t*i, rows*h)) + 8*rows*int64(c.VocabSize)
}
