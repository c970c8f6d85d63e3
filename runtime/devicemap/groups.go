package devicemap

import (
	"slices"

	"infer/runtime/device"
)

// group finds devices that are alike. With many of them, memory does not count:
// how the plan is searched for must not depend on it, else more memory could
// give a slower one. When the sets are too many still each device is alone, and
// orders are tried.
func (b *builder) group() {
	few := 1<<min(len(b.devices), 30) <= maxStates
	for _, i := range b.devices {
		at := slices.IndexFunc(b.groups, func(g []int) bool { return b.alike(g[0], i, few) })
		if at < 0 {
			b.groups = append(b.groups, []int{i})
		} else {
			b.groups[at] = append(b.groups[at], i)
		}
	}
	states := 1
	for _, g := range b.groups {
		states = min(states*(len(g)+1), maxStates+1)
	}
	if b.grouped = states <= maxStates; !b.grouped {
		b.alone()
	}
}

// alone makes each device a group, of which orders are tried.
func (b *builder) alone() {
	b.groups, b.grouped = nil, false
	for _, i := range b.devices {
		b.groups = append(b.groups, []int{i})
	}
}

// uneven tells whether the memory differs in some group.
func (b *builder) uneven() bool {
	return slices.ContainsFunc(b.groups, func(g []int) bool {
		return slices.ContainsFunc(g, func(i int) bool { return b.room(i) != b.room(g[0]) })
	})
}

func (b *builder) room(i int) int64 {
	room, _ := b.in.Devices[i].room()
	return room
}

// alike tells whether two devices can stand for each other, by their memory too
// or but for it.
func (b *builder) alike(i, j int, memory bool) bool {
	x, y := b.in.Devices[i], b.in.Devices[j]
	if isCPU(x.Info.ID) || isCPU(y.Info.ID) || b.hop[i][j] != b.hop[j][i] {
		return false
	}
	x.Info, y.Info, x.Limit, y.Limit = device.Info{}, device.Info{}, 0, 0
	if memory && b.room(i) != b.room(j) || x != y {
		return false
	}
	for _, k := range b.devices {
		if k != i && k != j && (b.hop[i][k] != b.hop[j][k] || b.hop[k][i] != b.hop[k][j]) {
			return false
		}
	}
	return true
}
