package engine

import (
	"infer/runtime/device"
	"infer/runtime/devicemap"
)

// Memory is what was planned for one device, and what is allocated there.
type Memory struct {
	Device  device.ID
	Planned devicemap.Bytes
	Used    int64 // bytes that the device has given out; −1: it does not count
	Weights int64 // bytes that weights take, experts elsewhere not counted
}

// offBy is the part by which use may differ from plan without being worth a
// word.
const offBy = 0.02

// Off tells whether more than 2 % is wrong with the plan: more is used than was
// planned, or less than all but the workspace, which grows as it is needed, and on
// a CPU a quarter of the weights: so much less bfloat16 may take.
func (m Memory) Off() bool {
	if m.Used < 0 {
		return false
	}
	used, most := float64(m.Used), float64(m.Planned.Used())
	least := most - float64(m.Planned.Workspace)
	if m.Device.Kind == device.CPU {
		least -= float64(m.Planned.Weights) / 4
	}
	return used > most*(1+offBy) || used < least*(1-offBy)
}

// Memory of every device that the plan uses.
func (r *Runner) Memory() []Memory {
	var all []Memory
	held := r.Bytes()
	for _, id := range r.plan.Devices() {
		m := Memory{Device: id, Planned: r.plan.On(id), Used: -1}
		for _, b := range r.backends {
			if a, ok := b.Device().(device.Accountant); ok && b.Device().Info().ID == id {
				m.Used = a.UsedBytes()
			}
		}
		for i, s := range r.plan.Stages {
			if s.Device == id {
				m.Weights += held[i].Weights
			}
		}
		all = append(all, m)
	}
	return all
}

// Memory of every device that is computed on.
func (e *Engine) Memory() []Memory {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.c.Runner.Memory()
}
