package devicemap

import (
	"cmp"
	"slices"

	"infer/runtime/device"
)

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
	groups  [][]int // of them, alike: one class each; memory may differ
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
		p := place{0, inf}
		for _, i := range g {
			p.room += float64(max(b.room(i)-d.Reserve, 0))
		}
		if _, known := d.room(); !known {
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
		for _, i := range g { // the least of any
			room = min(room, b.room(i))
		}
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
