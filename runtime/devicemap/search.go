package devicemap

import (
	"math"
	"slices"
)

// The search. A plan is a path: devices in some order, each with a run of
// layers. The time of a run is a sum over its layers, so that the best way to
// have layers 0..j with the devices of a set, ending on d, is
//
//	best(set, d, j) = t_d(0..j) + min over i of ( m(i) − t_d(0..i) )
//	m(i)            = min over p in set−d of best(set−d, p, i) + hop(p, d)
//
// where i runs over what d's memory allows: from lo(j) to j−1. lo grows with
// j, so that the minimum is that of a sliding window.

var inf = math.Inf(1)

// Places of a run in a path.
const (
	first = iota
	middle
	last
	only
)

// class is devices that are alike in all that the search looks at.
type class struct {
	ids   []int // into Input.Devices, ascending
	cpu   bool
	room  float64   // bytes for runs of layers; +Inf when unknown
	time  []float64 // time[j]: of layers 0..j
	bytes []int64   // of layers 0..j: weights and the K/V that must fit
	moe   []int     // of layers 0..j, those with routed experts
	light int       // layers before this have their experts elsewhere
	head  float64   // time
	stage int64     // bytes of any stage
	// By place: bytes of embedding and head, and scratch of a stage that has its
	// experts, and of one that has not.
	ends, scratch, split [4]int64
}

// fits tells whether layers i..j fit. A run with experts of its own and experts
// elsewhere is two stages.
func (c *class) fits(i, j, place int) bool {
	n := c.bytes[j] - c.bytes[i] + c.stage + c.ends[place]
	if c.light <= i { // most often
		return float64(n+c.scratch[place]) <= c.room
	}
	cut := min(c.light, j)
	switch away, own := c.moe[cut] > c.moe[i], c.moe[j] > c.moe[cut]; {
	case !away:
		n += c.scratch[place]
	case !own:
		n += c.split[place]
	default:
		a, b := middle, middle
		if place == first || place == only {
			a = first
		}
		if place == last || place == only {
			b = last
		}
		n += c.stage + c.split[a] + c.scratch[b]
		if place == only { // a tied head is no longer with the embedding
			n += c.ends[first] + c.ends[last] - c.ends[only]
		}
	}
	return float64(n) <= c.room
}

// costs are by number of layers, 0..hi; +Inf where there is no way. Beyond hi
// there is none.
type costs struct {
	v  []float64
	hi int
}

func (c *costs) at(j int) float64 {
	if j > c.hi {
		return inf
	}
	return c.v[j]
}

// search is one problem: classes, hops and how many layers must run on a CPU.
type search struct {
	layers  int
	classes []class
	hops    [][]float64 // [from][to] class
	onCPU   int         // layers that the CPU must have; −1: as is best
	limit   float64     // costs above it are of no interest
	tail    []float64   // tail[j]: layers j.. take no less
	window  []candidate // scratch: of the sliding window
}

// bound sets tail: each layer on the device that is fastest for it.
func (s *search) bound() {
	n := s.layers
	s.tail = make([]float64, n+1)
	for l := n - 1; l >= 0; l-- {
		least := inf
		for i := range s.classes {
			least = min(least, s.classes[i].time[l+1]-s.classes[i].time[l])
		}
		s.tail[l] = s.tail[l+1] + least
	}
}

// within tells whether a path of this cost for layers 0..j may still be of
// interest.
func (s *search) within(cost float64, j int) bool {
	return cost+s.tail[j]*(1-1e-12) <= s.limit
}

// candidate is a beginning of a run, with its cost less the time of layers 0..i.
type candidate struct {
	i int
	v float64
}

// run is one device's layers in a found path.
type run struct {
	class  int
	lo, hi int
}

// begin is the cost of having layers 0..j on c first: only j layers, or all.
func (s *search) begin(out *costs, c *class) {
	out.v[0], out.hi = inf, 0
	for j := 1; j < s.layers && c.fits(0, j, first); j++ {
		if out.v[j] = inf; s.allowed(c, 0, j) && s.within(c.time[j], j) {
			out.v[j], out.hi = c.time[j], j
		}
	}
	n := s.layers
	if c.fits(0, n, only) && s.allowed(c, 0, n) && s.within(c.time[n]+c.head, n) {
		for j := out.hi + 1; j < n; j++ {
			out.v[j] = inf
		}
		out.v[n], out.hi = c.time[n]+c.head, n
	}
}

// extend is the cost of having layers 0..j with the last run on c, where m is
// the cost of the layers before it, the hop included.
func (s *search) extend(out, m *costs, c *class) {
	q, time := s.window[:0], c.time
	next := 1
	out.v[0], out.v[1], out.hi = inf, inf, 0
	for j := 2; j <= s.layers; j++ {
		place := s.placeOf(j)
		for ; next < j && next <= m.hi; next++ {
			if m.v[next] == inf || c.cpu && !s.allowed(c, next, s.layers) {
				continue
			}
			v := m.v[next] - time[next]
			for len(q) > 0 && q[len(q)-1].v > v {
				q = q[:len(q)-1]
			}
			q = append(q, candidate{next, v})
		}
		for len(q) > 0 && !c.fits(q[0].i, j, place) {
			q = q[1:]
		}
		if out.v[j] = inf; len(q) == 0 {
			if next > m.hi {
				return
			}
			continue
		}
		if c.cpu && s.onCPU >= 0 && j < s.layers {
			continue // the CPU's run is first or last
		}
		v := time[j] + q[0].v
		if j == s.layers {
			v += c.head
		}
		if s.within(v, j) {
			out.v[j], out.hi = v, j
		}
	}
}

// placeOf a run behind others that ends before layer j.
func (s *search) placeOf(j int) int {
	if j == s.layers {
		return last
	}
	return middle
}

// allowed applies onCPU: the CPU's run has that many layers.
func (s *search) allowed(c *class, i, j int) bool {
	return !c.cpu || s.onCPU < 0 || j-i == s.onCPU
}

// follows tells whether a run on class d may come behind one on p when the
// devices before d are CPUs only, or not: the CPU is first or last.
func (s *search) follows(p, d int, onlyCPUs bool) bool {
	return !s.classes[p].cpu || s.classes[d].cpu || onlyCPUs
}

// table has the best costs for each count of devices of each class, a state.
type table struct {
	stride []int   // of a class in a state's number
	cost   []costs // [state × class]
	least  []costs // [state] over all GPUs that are last; made when needed
}

// take lowers m to cost + hop.
func (m *costs) take(cost *costs, hop float64, layers int) {
	hi := min(cost.hi, layers-1)
	for j := m.hi + 1; j <= hi; j++ {
		m.v[j] = inf
	}
	m.hi = max(m.hi, hi)
	from, to := cost.v[:hi+1], m.v[:hi+1]
	for i, v := range from {
		if v += hop; v < to[i] {
			to[i] = v
		}
	}
}

// solve tries every order of every set of devices. It returns the best path
// and its cost, +Inf when nothing fits.
func (s *search) solve() ([]run, float64) {
	k, n := len(s.classes), s.layers
	t := &table{stride: make([]int, k)}
	states := 1
	for d, c := range s.classes {
		t.stride[d] = states
		states *= len(c.ids) + 1
	}
	t.cost, t.least = make([]costs, states*k), make([]costs, states)
	s.window = make([]candidate, 0, n+1)
	slab := make([]float64, 0)
	m, row := &costs{v: make([]float64, n+1)}, &costs{v: make([]float64, n+1)}
	bestCost, bestState, bestUsed, bestLast := inf, 0, 0, 0
	for state := 1; state < states; state++ {
		used, gpus := 0, 0
		for d := range s.classes {
			c := s.count(t, state, d)
			used += c
			if !s.classes[d].cpu {
				gpus += c
			}
		}
		for d := range s.classes {
			if s.count(t, state, d) == 0 {
				continue
			}
			c, prev := &s.classes[d], state-t.stride[d]
			if prev == 0 {
				s.begin(row, c)
			} else {
				before := gpus
				if !c.cpu {
					before--
				}
				s.reach(m, t, prev, d, before == 0)
				s.extend(row, m, c)
			}
			if row.hi == 0 {
				continue
			}
			if len(slab) <= row.hi {
				slab = make([]float64, 64*(n+1))
			}
			out := &t.cost[state*k+d]
			out.hi = copy(slab, row.v[:row.hi+1]) - 1
			out.v, slab = slab[:out.hi+1:out.hi+1], slab[out.hi+1:]
			if s.onCPU > 0 && used == gpus {
				continue // the CPU has no layers
			}
			if v := out.at(n); v < bestCost || v == bestCost && v < inf && used < bestUsed {
				bestCost, bestState, bestUsed, bestLast = v, state, used, d
			}
		}
	}
	if bestCost == inf {
		return nil, inf
	}
	return s.trace(t, bestState, bestLast), bestCost
}

// count is how many devices of class d a state has.
func (s *search) count(t *table, state, d int) int {
	return state / t.stride[d] % (len(s.classes[d].ids) + 1)
}

// reach makes m the cost of what can come before a run on d: the devices of
// prev have all layers but d's.
func (s *search) reach(m *costs, t *table, prev, d int, onlyCPUs bool) {
	k := len(s.classes)
	m.v[0], m.hi = inf, 0
	hop, even := s.evenHop(d)
	if even {
		m.take(s.leastOf(t, prev), hop, s.layers)
	}
	for p := range s.classes {
		if cost := &t.cost[prev*k+p]; cost.hi > 0 && s.follows(p, d, onlyCPUs) && (!even || s.classes[p].cpu) {
			m.take(cost, s.hops[p][d], s.layers)
		}
	}
}

// evenHop tells whether d is equally far from every GPU, and how far.
func (s *search) evenHop(d int) (float64, bool) {
	hop := -1.0
	for p := range s.classes {
		switch {
		case s.classes[p].cpu || p == d && len(s.classes[d].ids) == 1:
		case hop < 0:
			hop = s.hops[p][d]
		case hop != s.hops[p][d]:
			return 0, false
		}
	}
	return hop, hop >= 0
}

// leastOf is the least cost over the GPUs that a state may end on.
func (s *search) leastOf(t *table, state int) *costs {
	least := &t.least[state]
	if least.v == nil {
		k := len(s.classes)
		least.v = make([]float64, s.layers+1)
		least.v[0] = inf
		for p := range s.classes {
			if cost := &t.cost[state*k+p]; cost.hi > 0 && !s.classes[p].cpu {
				least.take(cost, 0, s.layers)
			}
		}
	}
	return least
}

// trace walks back from the end: at each run it finds again which beginning
// and which device before it gave the cost.
func (s *search) trace(t *table, state, d int) []run {
	k, j := len(s.classes), s.layers
	m := &costs{v: make([]float64, s.layers+1)}
	var path []run
	for {
		c, prev := &s.classes[d], state-t.stride[d]
		if prev == 0 {
			path = append(path, run{d, 0, j})
			slices.Reverse(path)
			return path
		}
		gpus := 0
		for e := range s.classes {
			if !s.classes[e].cpu {
				gpus += s.count(t, prev, e)
			}
		}
		s.reach(m, t, prev, d, gpus == 0)
		i := s.start(m, c, j)
		path = append(path, run{d, i, j})
		for p := range s.classes {
			cost := &t.cost[prev*k+p]
			if cost.hi > 0 && s.follows(p, d, gpus == 0) && cost.at(i)+s.hops[p][d] == m.v[i] {
				d = p
				break
			}
		}
		state, j = prev, i
	}
}

// start is the beginning of the last run that extend chose for j.
func (s *search) start(m *costs, c *class, j int) int {
	place := s.placeOf(j)
	best, at := inf, 0
	for i := 1; i < j && i <= m.hi; i++ {
		if m.v[i] < inf && c.fits(i, j, place) && (!c.cpu || s.allowed(c, i, s.layers)) {
			if v := m.v[i] - c.time[i]; v < best {
				best, at = v, i
			}
		}
	}
	return at
}
