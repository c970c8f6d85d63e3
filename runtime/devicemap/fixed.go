package devicemap

import (
	"fmt"
	"strings"

	"infer/runtime/device"
)

// Fixed plans memory for given parts, which must cover the layers in order.
func Fixed(in Input, parts []Part) (Plan, error) {
	if err := in.check(); err != nil {
		return Plan{}, err
	}
	if err := covers(parts, len(in.Model.Layers)); err != nil {
		return Plan{}, err
	}
	var p Plan
	for i, part := range parts {
		s := Stage{Device: part.Device, Lo: part.Lo, Hi: part.Hi, Embed: i == 0, Head: i == len(parts)-1}
		if part.ExpertsOn != (device.ID{}) && !in.hasExperts(0, len(in.Model.Layers)) {
			return Plan{}, fmt.Errorf("device map: experts are on %v, but this model has no routed experts", part.ExpertsOn)
		}
		if part.ExpertsOn != part.Device && in.hasExperts(part.Lo, part.Hi) {
			s.ExpertsOn = part.ExpertsOn
		}
		for _, id := range []device.ID{s.Device, s.ExpertsOn} {
			if id != (device.ID{}) && in.index(id) < 0 {
				return Plan{}, fmt.Errorf("device map: there is no device %v here; there is: %s", id, names(in.ids()))
			}
		}
		p.Stages = append(p.Stages, s)
	}
	p.Reasons = append(p.Reasons, "the map is the user's")
	return in.finish(p)
}

func (in *Input) hasExperts(lo, hi int) bool {
	for _, l := range in.Model.Layers[lo:hi] {
		if l.Experts > 0 {
			return true
		}
	}
	return false
}

// names is like "cuda:0, cuda:1, cpu".
func names(ids []device.ID) string {
	var all []string
	for _, id := range ids {
		all = append(all, id.String())
	}
	return strings.Join(all, ", ")
}
