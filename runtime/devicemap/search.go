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

// class is devices that are alike in all that the search looks at.
type class struct {
	ids   []int // into Input.Devices, ascending
	cpu   bool
	room  float64   // bytes for runs of layers; +Inf when unknown
	time  []float64 // time[j]: of layers 0..j
	bytes []int64   // of layers 0..j: weights and the K/V that must fit
	light int       // layers before this have their experts elsewhere
	again int64     // bytes that two stages, one on each side of light, take more than one
	// By place: what the stage takes beside layers, and the time of the head.
	first, middle, last, only int64
	onlyAgain                 int64 // again, where the device has everything
	head                      float64
}

// fits tells whether layers i..j fit beside fixed bytes; again comes to them
// when the device has layers on both sides of light.
func (c *class) fits(i, j int, fixed, again int64) bool {
	n := c.bytes[j] - c.bytes[i] + fixed
	if i < c.light && c.light < j {
		n += again
	}
	return float64(n) <= c.room
}

// search is one problem: classes, hops and how many layers must run on a CPU.
type search struct {
	layers  int
	classes []class
	hops    [][]float64 // [from][to] class
	onCPU   int         // layers that the CPU must have; −1: as is best
	window  []int       // scratch: the sliding window's candidates
}

// run is one device's layers in a found path.
type run struct {
	class  int
	lo, hi int
}

// begin is the cost of having layers 0..j on c first: only j layers, or all.
func (s *search) begin(out []float64, c *class) {
	for j := 1; j < s.layers; j++ {
		if out[j] = inf; c.fits(0, j, c.first, c.again) && s.allowed(c, 0, j) {
			out[j] = c.time[j]
		}
	}
	n := s.layers
	if out[n] = inf; c.fits(0, n, c.only, c.onlyAgain) && s.allowed(c, 0, n) {
		out[n] = c.time[n] + c.head
	}
	out[0] = inf
}

// extend is the cost of having layers 0..j with the last run on c, where m[i]
// is the cost of layers 0..i before it, the hop included.
func (s *search) extend(out, m []float64, c *class) {
	q := s.window[:0]
	lo, next := 1, 1
	out[0], out[1] = inf, inf
	for j := 2; j <= s.layers; j++ {
		fixed := c.middle
		if j == s.layers {
			fixed = c.last
		}
		for ; next < j; next++ {
			if m[next] == inf || !s.allowed(c, next, s.layers) && c.cpu {
				continue
			}
			v := m[next] - c.time[next]
			for len(q) > 0 && m[q[len(q)-1]]-c.time[q[len(q)-1]] > v {
				q = q[:len(q)-1]
			}
			q = append(q, next)
		}
		for lo < j && !c.fits(lo, j, fixed, c.again) {
			lo++
		}
		head := 0
		for head < len(q) && q[head] < lo {
			head++
		}
		q = q[head:]
		if out[j] = inf; len(q) == 0 || c.cpu && s.onCPU >= 0 && j < s.layers {
			continue
		}
		out[j] = c.time[j] + (m[q[0]] - c.time[q[0]])
		if j == s.layers {
			out[j] += c.head
		}
	}
}

// allowed applies onCPU: the CPU's run is first or last and has that many.
func (s *search) allowed(c *class, i, j int) bool {
	return !c.cpu || s.onCPU < 0 || j-i == s.onCPU
}

// follows tells whether a run on class d may come behind one on p when the
// devices before d are CPUs only, or not: the CPU is first or last.
func (s *search) follows(p, d int, onlyCPUs bool) bool {
	return !s.classes[p].cpu || s.classes[d].cpu || onlyCPUs
}

// table has the best costs for each count of devices of each class.
type table struct {
	stride []int // of a class in a state's number
	cost   [][]float64
}

// states is how many sets of devices there are, classes taken as counts.
func (s *search) states() int {
	n := 1
	for _, c := range s.classes {
		if n *= len(c.ids) + 1; n > 1<<20 {
			return n
		}
	}
	return n
}

// solve tries every order of every set of devices. It returns the best path
// and its cost, +Inf when nothing fits.
func (s *search) solve() ([]run, float64) {
	k, n, states := len(s.classes), s.layers, s.states()
	s.window = make([]int, 0, n+1)
	t := table{make([]int, k), make([][]float64, states*k)}
	stride := 1
	for d, c := range s.classes {
		t.stride[d] = stride
		stride *= len(c.ids) + 1
	}
	m := make([]float64, n+1)
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
			out := make([]float64, n+1)
			if prev == 0 {
				s.begin(out, c)
			} else {
				before := gpus
				if !c.cpu {
					before--
				}
				if !s.reach(m, t, prev, d, before == 0) {
					continue
				}
				s.extend(out, m, c)
			}
			t.cost[state*k+d] = out
			if s.onCPU > 0 && used == gpus {
				continue // the CPU has no layers
			}
			if v := out[n]; v < bestCost || v == bestCost && v < inf && used < bestUsed {
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
func (s *search) count(t table, state, d int) int {
	return state / t.stride[d] % (len(s.classes[d].ids) + 1)
}

// reach fills m for a run on d behind the devices of prev.
func (s *search) reach(m []float64, t table, prev, d int, onlyCPUs bool) bool {
	k, any := len(s.classes), false
	for i := range m {
		m[i] = inf
	}
	for p := range s.classes {
		cost := t.cost[prev*k+p]
		if cost == nil || !s.follows(p, d, onlyCPUs) {
			continue
		}
		hop := s.hops[p][d]
		for i := 1; i < s.layers; i++ {
			if v := cost[i] + hop; v < m[i] {
				m[i] = v
				any = true
			}
		}
	}
	return any
}

// trace walks back from the end: at each run it finds again which beginning
// and which device before it gave the cost.
func (s *search) trace(t table, state, d int) []run {
	k, j := len(s.classes), s.layers
	m := make([]float64, s.layers+1)
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
			cost := t.cost[prev*k+p]
			if cost != nil && s.follows(p, d, gpus == 0) && cost[i]+s.hops[p][d] == m[i] {
				d = p
				break
			}
		}
		state, j = prev, i
	}
}

// start is the beginning of the last run that extend chose for j.
func (s *search) start(m []float64, c *class, j int) int {
	fixed := c.middle
	if j == s.layers {
		fixed = c.last
	}
	best, at := inf, 0
	for i := 1; i < j; i++ {
		if m[i] < inf && c.fits(i, j, fixed, c.again) && (!c.cpu || s.allowed(c, i, s.layers)) {
			if v := m[i] - c.time[i]; v < best {
				best, at = v, i
			}
		}
	}
	return at
}
