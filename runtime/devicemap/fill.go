package devicemap

import (
	"fmt"
	"slices"
)

// finish gives a plan its bytes, K/V blocks and predictions. The stages have
// everything but Bytes.
func (in *Input) finish(p Plan) (Plan, error) {
	one, err := in.fill(p, 1)
	if err != nil {
		return Plan{}, err
	}
	in.predict(&one, 0)
	if one.MicroBatches == 1 {
		return one, nil
	}
	// Each step in flight has a workspace of its own.
	several, err := in.fill(p, one.MicroBatches)
	if err != nil {
		one.MicroBatches, one.Predicted.TPOT = 1, one.Predicted.Whole
		return one, nil
	}
	in.predict(&several, one.MicroBatches)
	return several, nil
}

// fill gives a plan its bytes and K/V blocks, for a number of steps in flight.
func (in *Input) fill(p Plan, flights int) (Plan, error) {
	p.MaxSeqs, p.MaxTokens, p.MaxLogits = in.MaxSeqs, in.MaxTokens, in.MaxLogits
	p.Stages, p.Reasons = slices.Clone(p.Stages), slices.Clone(p.Reasons)
	for i := range p.Stages {
		s := &p.Stages[i]
		s.Bytes, s.Away = in.bytes(*s)
		s.Bytes.Workspace *= int64(flights)
	}
	// The reserve of a device counts once, with the first stage that needs it.
	for _, id := range p.Devices() {
		reserve := in.Devices[in.index(id)].Reserve
		for i := range p.Stages {
			s := &p.Stages[i]
			if s.Device == id {
				s.Bytes.Reserve = reserve
				break
			}
			if s.ExpertsOn == id {
				s.Away.Reserve = reserve
				break
			}
		}
	}
	if err := in.fillKV(&p); err != nil {
		return Plan{}, err
	}
	return p, nil
}

// fillKV gives the K/V blocks: what context × sequences need, or as many as
// every device of the plan has room for.
func (in *Input) fillKV(p *Plan) error {
	context := in.context()
	perSeq := in.blocks(context)
	p.Blocks = perSeq * max(in.MaxSeqs, in.fullSeqs())
	wanted, tightest := p.Blocks, ""
	for i := range in.Devices {
		d := &in.Devices[i]
		used := p.On(d.Info.ID)
		if used.Total() == 0 {
			continue
		}
		var block int64
		for _, s := range p.Stages {
			if s.Device == d.Info.ID {
				block += in.kvBlock(d, s.Lo, s.Hi)
			}
		}
		room, known := d.room()
		if !known {
			p.Reasons = append(p.Reasons, fmt.Sprintf("%v: free memory is unknown, taken as enough", d.Info.ID))
			continue
		}
		left := room - used.Total()
		if left < 0 {
			return fmt.Errorf("%w: %v has %s, but weights (%s), activations (%s), workspace (%s) and reserve (%s) need %s: free memory, or use a smaller format, model, context or batch",
				ErrDoesNotFit, d.Info.ID, size(room), size(used.Weights), size(used.Activations), size(used.Workspace), size(used.Reserve), size(used.Total()))
		}
		if block == 0 {
			continue
		}
		if n := left / block; n < int64(p.Blocks) {
			p.Blocks = int(n)
			tightest = fmt.Sprintf("%v has %s left for K/V, %s a block of %d tokens", d.Info.ID, size(left), size(block), in.BlockSize)
		}
	}
	need := perSeq * in.fullSeqs()
	if in.MaxContext == 0 {
		need = 1
	}
	if p.Blocks < need {
		return fmt.Errorf("%w: %s: that is a context of %d tokens, %d are wanted: lower the context, or free memory",
			ErrDoesNotFit, tightest, p.Blocks*in.BlockSize/in.fullSeqs(), max(in.MaxContext, in.BlockSize))
	}
	p.MaxContext = min(context, p.Blocks*in.BlockSize)
	switch {
	case p.MaxContext < context:
		p.Reasons = append(p.Reasons, fmt.Sprintf("context cut from %d to %d tokens: %s", context, p.MaxContext, tightest))
	case p.Blocks < wanted:
		p.Reasons = append(p.Reasons, fmt.Sprintf("%d K/V blocks where %d sequences of %d tokens could use %d: %s", p.Blocks, in.MaxSeqs, context, wanted, tightest))
	default:
		p.Reasons = append(p.Reasons, fmt.Sprintf("%d K/V blocks: enough for %d sequences of %d tokens", p.Blocks, max(in.MaxSeqs, in.fullSeqs()), context))
	}
	for i, s := range p.Stages {
		if m := in.model(&in.Devices[in.index(s.Device)]); s.Hi > s.Lo { // of a context that was cut
			p.Stages[i].Bytes.Weights -= in.tables(m, context) - in.tables(m, p.MaxContext)
		}
		p.Stages[i].Bytes.KV = in.kvBlock(&in.Devices[in.index(s.Device)], s.Lo, s.Hi) * int64(p.Blocks)
	}
	return nil
}
