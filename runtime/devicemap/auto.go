package devicemap

import (
	"cmp"
	"fmt"
	"slices"

	"infer/runtime/device"
)

const (
	// PlanContext is the context that must have K/V when the user asks for as
	// much as fits: less is a last resort.
	PlanContext = 8192
	// roomierCost is how much longer a step may take for more K/V.
	roomierCost = 1.05
	// balancedCost is how much longer a step may take for more K/V on the same
	// devices.
	balancedCost = 1.01
	// maxStates bounds the sets of devices that are all tried; 8 GPUs of 8
	// kinds and a CPU are 512.
	maxStates = 600
	// expertWork bounds the search over how many layers have their experts on
	// the CPU, in steps of its inner loop; maxCoarse is how many numbers are
	// tried at least.
	expertWork = 3e6
	maxCoarse  = 16
)

// Auto chooses the stages: those whose decode step is predicted to be fastest
// among all that fit. Layers that GPUs have no memory for run on the CPU, and
// of a mixture of experts the experts go there first.
func Auto(in Input) (Plan, error) {
	if err := in.check(); err != nil {
		return Plan{}, err
	}
	if len(in.Devices) == 0 {
		return Plan{}, fmt.Errorf("plan: no device")
	}
	tokens := in.context()
	if in.MaxContext == 0 {
		tokens = min(tokens, PlanContext)
	}
	wanted := tokens
	for {
		if stages, cost := in.choose(tokens, in.fullSeqs(), inf); stages != nil {
			seqs := in.fullSeqs()
			if more, t, n, c := in.roomier(stages, tokens, cost); more != nil {
				stages, tokens, seqs, cost = more, t, n, c
			}
			stages = in.balance(stages, in.blocks(tokens)*seqs, cost)
			return in.finish(Plan{Stages: stages, Reasons: in.why(stages, tokens, seqs)})
		}
		if in.MaxContext > 0 || tokens <= in.BlockSize {
			return Plan{}, in.tooLarge(wanted)
		}
		tokens = max(tokens/2, in.BlockSize)
	}
}

// roomier looks for a plan on more GPUs with K/V for more sequences, or longer
// ones, where the user has not said how much must fit: for a plan that is on
// several GPUs anyway, and leaves some out. It may be a little slower.
func (in *Input) roomier(stages []Stage, tokens int, cost float64) (more []Stage, context, seqs int, time float64) {
	used := Plan{Stages: stages}.Devices()
	idle := slices.ContainsFunc(in.Devices, func(d Device) bool {
		room, known := d.room()
		return !isCPU(d.Info.ID) && !slices.Contains(used, d.Info.ID) && (room > 0 || !known)
	})
	if in.FullSeqs > 0 || len(used) < 2 || !idle || slices.ContainsFunc(used, isCPU) {
		return nil, 0, 0, 0
	}
	// What is left when all weights are on GPUs, less what does not come out
	// even there.
	var room int64
	for i := range in.Devices {
		d := &in.Devices[i]
		if n, _ := d.room(); !isCPU(d.Info.ID) {
			room += max(0, n-d.Reserve-d.Workspace-d.Scratch.Last-in.model(d).Layers[0].Weights-in.model(d).Layers[0].Experts)
		}
	}
	d := &in.Devices[in.index(stages[0].Device)]
	for _, l := range in.model(d).Layers {
		room -= l.Weights + l.Experts
	}
	block := in.kvBlock(d, 0, len(in.Model.Layers))
	blocks := int((room - in.model(d).ends(true, false) - in.model(d).ends(false, true)) / max(block, 1))
	context = min(in.context(), blocks*in.BlockSize)
	seqs = min(blocks/max(in.blocks(context), 1), in.MaxSeqs)
	if context < tokens || context == tokens && seqs <= 1 {
		return nil, 0, 0, 0
	}
	more, time = in.choose(context, seqs, cost*roomierCost)
	return more, context, seqs, time
}

// choose gives the stages of the fastest plan with K/V for so many sequences of
// so many tokens, and the time of its decode step; nil when none fits that
// takes no longer than limit.
func (in *Input) choose(tokens, seqs int, limit float64) ([]Stage, float64) {
	b := in.builder(in.blocks(tokens) * seqs)
	if len(b.devices) == 0 {
		return nil, inf
	}
	b.limit = limit
	choices, step := b.lightChoices()
	slices.SortStableFunc(choices, func(x, y choice) int { return cmp.Compare(x.bound, y.bound) })
	var best []Stage
	cost, at := inf, -1
	try := func(c choice) bool {
		if c.bound >= cost {
			return false
		}
		stages, t := b.solve(c.light)
		if t >= cost {
			return false
		}
		best, cost, at = stages, t, c.light
		b.limit = min(b.limit, cost*same)
		return true
	}
	for _, c := range choices {
		try(c)
	}
	for step /= 2; step > 0 && at >= 0; step /= 2 { // nearer to the best
		_ = try(b.choice(at-step)) || try(b.choice(at+step))
	}
	return best, cost
}

// solve is the best plan with the experts of layers 0..light on the CPU, and
// its cost. Each stage with experts elsewhere needs scratch there; how many
// there are shows only in the plan.
func (b *builder) solve(light int) ([]Stage, float64) {
	for splits := 1; ; {
		s := b.search(light, splits)
		runs, c := s.find(b.grouped)
		if c == inf {
			return nil, inf
		}
		stages := b.stages(s, runs, light)
		n := 0
		for _, st := range stages {
			if st.Split() {
				n++
			}
		}
		if b.fit(stages) {
			return stages, c
		}
		if n <= splits {
			return nil, inf
		}
		splits = n
	}
}

// find solves the problem by all sets of devices, or by orders. A quick order
// says first what the best cannot be above.
func (s *search) find(sets bool) ([]run, float64) {
	if !sets {
		return s.solveOrders()
	}
	quick := s.singles()
	for _, o := range quick.orders()[:2] {
		if _, c := quick.solveOrder(o); c < s.limit {
			s.limit, quick.limit = c*same, c*same
		}
	}
	return s.solve()
}

// same is how far sums of the same floats in another order may be apart.
const same = 1 + 1e-9

// fit tells whether every device has room for the stages, to the byte.
func (b *builder) fit(stages []Stage) bool {
	for _, i := range b.devices {
		d := &b.in.Devices[i]
		room, known := d.room()
		if !known {
			continue
		}
		var used int64
		for _, s := range stages {
			if s.Device != d.Info.ID && s.ExpertsOn != d.Info.ID {
				continue
			}
			on, away := b.in.bytes(s)
			if s.ExpertsOn == d.Info.ID {
				used += away.Total()
				continue
			}
			used += on.Total()
			for l := s.Lo; l < s.Hi; l++ {
				used += b.blocks * b.kv[i][l]
			}
		}
		if used > 0 && used+d.Reserve > room {
			return false
		}
	}
	return true
}

// builder makes searches; what does not change with the experts is computed
// once.
type builder struct {
	in      *Input
	devices []int   // into in.Devices, those that may be used
	groups  [][]int // of them, alike: one class each
	grouped bool    // every set is tried
	experts int     // the CPU that may have experts of others; −1: none
	onCPU   int
	limit   float64     // plans that take longer are of no interest
	moe     []int       // of layers 0..j, those with routed experts
	hop     [][]float64 // [from][to] device
	blocks  int64       // of K/V that must fit
	kv      [][]int64   // [device][layer] bytes of one of them
	dense   [][]float64
	own     [][]float64 // experts where the layer is
	away    [][]float64 // experts on the CPU, from this device
}

func (in *Input) builder(blocks int) *builder {
	b := &builder{in: in, experts: -1, onCPU: -1, limit: inf, blocks: int64(blocks)}
	n := len(in.Model.Layers)
	if g := in.GPULayers; g != nil {
		b.onCPU = max(n-*g, 0)
	}
	moe := in.hasExperts(0, n)
	for i := range in.Devices {
		d := &in.Devices[i]
		cpu := isCPU(d.Info.ID)
		if b.onCPU == 0 && cpu || b.onCPU == n && !cpu {
			continue
		}
		if room, known := d.room(); known && room == 0 {
			continue
		}
		b.devices = append(b.devices, i)
		if cpu && moe && b.experts < 0 {
			b.experts = i
		}
	}
	if b.onCPU == n {
		b.onCPU = -1
	}
	b.moe = make([]int, n+1)
	for l, y := range in.Model.Layers {
		if b.moe[l+1] = b.moe[l]; y.Experts > 0 {
			b.moe[l+1]++
		}
	}
	w := in.decode()
	size := len(in.Devices)
	b.kv, b.dense, b.own, b.away = make([][]int64, size), make([][]float64, size), make([][]float64, size), make([][]float64, size)
	for _, i := range b.devices {
		d := &in.Devices[i]
		back := 0.0
		if b.experts >= 0 && i != b.experts {
			e := &in.Devices[b.experts]
			back = in.hop(d, e, w.rows) + in.hop(e, d, w.rows)
		}
		for l := range n {
			b.kv[i] = append(b.kv[i], in.kvBlock(d, l, l+1))
			b.dense[i] = append(b.dense[i], in.dense(d, l, w))
			b.own[i] = append(b.own[i], in.experts(d, l, w))
			t := 0.0
			if b.experts >= 0 && i != b.experts && in.model(d).Layers[l].Experts > 0 {
				t = in.experts(&in.Devices[b.experts], l, w) + back
			}
			b.away[i] = append(b.away[i], t)
		}
	}
	b.measureHops(w.rows)
	b.group()
	return b
}

// group finds devices that are alike. When the sets of them are too many each
// is alone, and orders are tried.
func (b *builder) group() {
	for _, i := range b.devices {
		at := slices.IndexFunc(b.groups, func(g []int) bool { return b.alike(g[0], i) })
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
	if b.grouped = states <= maxStates; b.grouped {
		return
	}
	b.groups = nil
	for _, i := range b.devices {
		b.groups = append(b.groups, []int{i})
	}
}

// alike tells whether two devices can stand for each other.
func (b *builder) alike(i, j int) bool {
	x, y := b.in.Devices[i], b.in.Devices[j]
	if isCPU(x.Info.ID) || isCPU(y.Info.ID) || b.hop[i][j] != b.hop[j][i] {
		return false
	}
	rx, _ := x.room()
	ry, _ := y.room()
	x.Info, y.Info, x.Limit, y.Limit = device.Info{}, device.Info{}, 0, 0
	if rx != ry || x != y {
		return false
	}
	for _, k := range b.devices {
		if k != i && k != j && (b.hop[i][k] != b.hop[j][k] || b.hop[k][i] != b.hop[k][j]) {
			return false
		}
	}
	return true
}

// measureHops fills in the time between each two devices.
func (b *builder) measureHops(rows int) {
	in := b.in
	type pair struct{ from, to device.ID }
	links := make(map[pair]*Link, len(in.Links))
	for i := range in.Links {
		l := &in.Links[i]
		if p := (pair{l.From, l.To}); links[p] == nil {
			links[p] = l
		}
	}
	b.hop = make([][]float64, len(in.Devices))
	for _, i := range b.devices {
		b.hop[i] = make([]float64, len(in.Devices))
		for _, j := range b.devices {
			x, y := &in.Devices[i], &in.Devices[j]
			b.hop[i][j] = in.over(links[pair{x.Info.ID, y.Info.ID}], x, y, rows)
		}
	}
}

// choice is how many leading layers have their experts on the CPU, and a time
// that no such plan is below.
type choice struct {
	light int
	bound float64
}

func (b *builder) choice(light int) choice {
	light = min(max(light, 0), len(b.in.Model.Layers))
	return choice{light, b.bound(light)}
}

// lightChoices are the numbers of leading layers to try, and how far they are
// apart: every number where that is quick.
func (b *builder) lightChoices() (list []choice, step int) {
	n := len(b.in.Model.Layers)
	if b.experts < 0 || len(b.devices) < 2 {
		return []choice{b.choice(0)}, 0
	}
	k := len(b.groups)
	work := 2 * k * k * n * maxChains // of one search
	if b.grouped {
		states := 1
		for _, g := range b.groups {
			states *= len(g) + 1
		}
		work = states * k * n
	}
	step = 1
	for n/step > max(maxCoarse, expertWork/work) {
		step *= 2
	}
	for light := 0; light < n; light += step {
		list = append(list, b.choice(light))
	}
	return append(list, b.choice(n)), step
}

// bound is a time that no plan with light such layers is below: as if layers
// could be cut to fill the fastest devices first, without hops. Experts on the
// CPU take what they take there wherever the rest of their layer is.
func (b *builder) bound(light int) float64 {
	n := len(b.in.Model.Layers)
	type place struct{ room, perByte float64 }
	var places []place
	var fixed float64
	for l := range light {
		fixed += b.own[b.experts][l]
	}
	least := make([]float64, n) // bytes of each layer on some device
	fill(least, inf)
	for _, g := range b.groups {
		d := &b.in.Devices[g[0]]
		room, known := d.room()
		p := place{float64((room - d.Reserve) * int64(len(g))), inf}
		if !known {
			p.room = inf
		}
		for l, y := range b.in.model(d).Layers {
			bytes, t := float64(y.Weights+b.blocks*b.kv[g[0]][l]), b.dense[g[0]][l]
			if l >= light {
				bytes, t = bytes+float64(y.Experts), t+b.own[g[0]][l]
			}
			least[l] = min(least[l], bytes)
			p.perByte = min(p.perByte, t/max(bytes, 1))
		}
		places = append(places, p)
	}
	slices.SortStableFunc(places, func(x, y place) int { return cmp.Compare(x.perByte, y.perByte) })
	left := sum(least)
	for _, p := range places {
		take := min(left, max(p.room, 0))
		fixed += take * p.perByte
		left -= take
	}
	if left > 0 {
		return inf
	}
	return fixed / same
}

// search makes the problem in which the experts of layers 0..light are on the
// CPU, for so many stages at most.
func (b *builder) search(light, splits int) *search {
	in, n := b.in, len(b.in.Model.Layers)
	s := &search{layers: n, onCPU: b.onCPU, limit: b.limit}
	w := in.decode()
	for _, g := range b.groups {
		d := &in.Devices[g[0]]
		m := in.model(d)
		c := class{ids: g, cpu: isCPU(d.Info.ID), head: in.head(d, w.seqs), moe: b.moe}
		room, known := d.room()
		room -= d.Reserve
		isExperts := g[0] == b.experts
		if isExperts && light > 0 {
			// What it holds for others. With its own run it holds those layers'
			// experts too, which are not counted again below.
			for _, l := range m.Layers[:light] {
				room -= l.Experts
			}
			room -= int64(splits) * (d.Experts + d.Workspace)
		}
		if c.room = float64(room); !known {
			c.room = inf
		}
		c.stage = d.Workspace + in.tables(m, in.context())
		c.ends = [4]int64{first: m.ends(true, false), last: m.ends(false, true), only: m.ends(true, true)}
		c.scratch, c.split = d.Scratch.byPlace(), d.Split.byPlace()
		if c.light = light; isExperts {
			c.light = 0
		}
		c.time, c.bytes = make([]float64, n+1), make([]int64, n+1)
		for l := range n {
			t, bytes := b.dense[g[0]][l], m.Layers[l].Weights+b.blocks*b.kv[g[0]][l]
			switch {
			case l >= light:
				t += b.own[g[0]][l]
				bytes += m.Layers[l].Experts
			case isExperts:
				t += b.own[g[0]][l]
			default:
				t += b.away[g[0]][l]
			}
			c.time[l+1], c.bytes[l+1] = c.time[l]+t, c.bytes[l]+bytes
		}
		s.classes = append(s.classes, c)
	}
	for _, from := range b.groups {
		var row []float64
		for _, to := range b.groups {
			other := to[0]
			if to[0] == from[0] && len(to) > 1 {
				other = to[1]
			}
			row = append(row, b.hop[from[0]][other])
		}
		s.hops = append(s.hops, row)
	}
	s.bound()
	return s
}

// stages names the devices of a path. A run on both sides of light becomes two
// stages.
func (b *builder) stages(s *search, path []run, light int) []Stage {
	next := make([]int, len(s.classes))
	var list []Stage
	for i, r := range path {
		id := b.in.Devices[s.classes[r.class].ids[next[r.class]]].Info.ID
		next[r.class]++
		st := Stage{Device: id, Lo: r.lo, Hi: r.hi, Embed: i == 0, Head: i == len(path)-1}
		var experts device.ID
		if b.experts >= 0 {
			experts = b.in.Devices[b.experts].Info.ID
		}
		cut := min(light, r.hi)
		if cut <= r.lo || id == experts || !b.in.hasExperts(r.lo, cut) {
			list = append(list, st)
			continue
		}
		rest := st
		st.Hi, st.ExpertsOn = cut, experts
		if cut == r.hi || !b.in.hasExperts(cut, r.hi) {
			st.Hi = r.hi
			list = append(list, st)
			continue
		}
		st.Head, rest.Embed, rest.Lo = false, false, cut
		list = append(list, st, rest)
	}
	return list
}

func isCPU(id device.ID) bool { return id.Kind == device.CPU }
