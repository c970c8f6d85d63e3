package main

import (
	"fmt"

	"infer/runtime/devicemap"
	"infer/runtime/kernels"
)

// roofline holds what a device gives at most against what a model asks of it:
// a step can be no faster than its weights and K/V are read, and than its
// products are made.
type roofline struct {
	peak   kernels.Peak
	model  *devicemap.Model
	kvBits int
	held   float64 // of the planned bytes of weights
}

// roofline measures; nil where the model is on several devices, or on one that
// cannot be measured here.
func (s *session) roofline() (*roofline, error) {
	used := s.devices.inUse()
	if len(used) != 1 {
		return nil, nil
	}
	b, ok := used[0].(kernels.Roofline)
	if !ok {
		return nil, nil
	}
	r := &roofline{model: &s.input.Model, held: 1}
	if m := s.engine.Memory(); len(m) == 1 && m[0].Planned.Weights > 0 {
		r.held = float64(m[0].Weights) / float64(m[0].Planned.Weights)
	}
	for _, d := range s.input.Devices {
		if d.Info.ID != used[0].Device().Info().ID {
			continue
		}
		if d.Model != nil {
			r.model = d.Model
		}
		r.kvBits = d.KVBits
	}
	var err error
	r.peak, err = b.Peak(s.format)
	return r, err
}

// share is the part of the peak that a test uses, the higher one of reading and
// computing, and what that is of. It makes so many steps a second, each of rows
// tokens of seqs sequences that have context tokens behind them.
func (r *roofline) share(steps float64, rows, seqs, context int) (share float64, of string) {
	weights, kv, macs := r.model.Head, int64(0), int64(seqs)*r.model.HeadMACs
	for _, l := range r.model.Layers {
		experts := l.Experts
		if l.NumExperts > 0 {
			experts = experts * int64(min(rows*l.TopK, l.NumExperts)) / int64(l.NumExperts)
		}
		kv += int64(seqs*context) * l.KVElems * int64(r.kvBits) / 8
		weights += l.Weights + experts
		macs += int64(rows) * (l.MACs + l.ExpertMACs)
	}
	read := float64(weights)*r.held + float64(kv)
	byMemory, byUnit := steps*read/r.peak.Read, steps*float64(macs)/r.peak.MACs
	if byMemory >= byUnit {
		return byMemory, fmt.Sprintf("the read bandwidth of %.1f GB/s", r.peak.Read/1e9)
	}
	return byUnit, fmt.Sprintf("the %.0f billion multiply-adds a second of %s", r.peak.MACs/1e9, r.peak.Unit)
}
