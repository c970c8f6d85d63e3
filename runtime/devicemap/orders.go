package devicemap

import (
	"cmp"
	"slices"
)

// With many unlike devices there are too many sets to try. Then a number of
// orders is tried, each with every choice of devices to leave out. Which
// orders does not depend on memory, so that more memory is never slower here
// either.

// maxChains bounds the GPUs that a chain of nearest ones begins with.
const maxChains = 4

// orders of the classes, which have one device each: as they are numbered, the
// fastest first, and from each GPU on to the nearest; the CPU first or last.
func (s *search) orders() [][]int {
	var gpus, cpus []int
	for d := range s.classes {
		if s.classes[d].cpu {
			cpus = append(cpus, d)
		} else {
			gpus = append(gpus, d)
		}
	}
	n := s.layers
	bySpeed := slices.Clone(gpus)
	slices.SortStableFunc(bySpeed, func(a, b int) int { return cmp.Compare(s.classes[a].time[n], s.classes[b].time[n]) })
	chains := [][]int{gpus, bySpeed}
	for _, first := range bySpeed[:min(len(gpus), maxChains)] {
		chain, left := []int{first}, slices.Clone(bySpeed)
		for {
			left = slices.DeleteFunc(left, func(d int) bool { return d == chain[len(chain)-1] })
			if len(left) == 0 {
				break
			}
			at := chain[len(chain)-1]
			chain = append(chain, slices.MinFunc(left, func(a, b int) int { return cmp.Compare(s.hops[at][a], s.hops[at][b]) }))
		}
		chains = append(chains, chain)
	}
	if len(cpus) == 0 {
		return chains
	}
	var all [][]int
	for _, c := range chains {
		all = append(all, slices.Concat(cpus, c), slices.Concat(c, cpus))
	}
	return all
}

// singles is the same problem with a class for every device.
func (s *search) singles() *search {
	one := &search{layers: s.layers, onCPU: s.onCPU, limit: s.limit, tail: s.tail}
	var from []int
	for d, c := range s.classes {
		for i := range c.ids {
			alone := c
			alone.ids = c.ids[i : i+1]
			one.classes = append(one.classes, alone)
			from = append(from, d)
		}
	}
	for _, a := range from {
		row := make([]float64, 0, len(from))
		for _, b := range from {
			row = append(row, s.hops[a][b])
		}
		one.hops = append(one.hops, row)
	}
	return one
}

// solveOrders is the best of all orders.
func (s *search) solveOrders() ([]run, float64) {
	var best []run
	cost := inf
	for _, o := range s.orders() {
		if path, c := s.solveOrder(o); c < cost {
			best, cost = path, c
		}
	}
	return best, cost
}

// solveOrder finds the best path that uses devices only in the given order;
// each may be left out.
func (s *search) solveOrder(order []int) ([]run, float64) {
	n := s.layers
	s.window = make([]candidate, 0, n+1)
	all := make([]costs, len(order))
	for k := range all {
		all[k].v = make([]float64, n+1)
	}
	m, own := &costs{v: make([]float64, n+1)}, &costs{v: make([]float64, n+1)}
	begin := func(out *costs, k int) {
		s.begin(out, &s.classes[order[k]])
		if s.onCPU > 0 && k > 0 && s.classes[order[0]].cpu {
			out.hi = 0 // the CPU has to be the first
		}
	}
	follows := func(p, k int) bool {
		return s.follows(order[p], order[k], s.classes[order[p]].cpu && s.classes[order[0]].cpu)
	}
	before := func(k int) { // m for the k-th
		m.v[0], m.hi = inf, 0
		for p := range k {
			if follows(p, k) {
				m.take(&all[p], s.hops[order[p]][order[k]], n)
			}
		}
	}
	best, at := inf, 0
	for k, d := range order {
		out := &all[k]
		begin(own, k)
		before(k)
		s.extend(out, m, &s.classes[d])
		out.take(own, 0, n+1)
		mustEndHere := s.onCPU > 0 && !s.classes[order[0]].cpu
		if v := out.at(n); v < best && (!mustEndHere || s.classes[d].cpu) {
			best, at = v, k
		}
	}
	if best == inf {
		return nil, inf
	}
	var path []run
	for k, j := at, n; ; {
		begin(own, k)
		if own.at(j) == all[k].at(j) {
			path = append(path, run{order[k], 0, j})
			slices.Reverse(path)
			return path, best
		}
		before(k)
		i := s.start(m, &s.classes[order[k]], j)
		path = append(path, run{order[k], i, j})
		for p := range k {
			if follows(p, k) && all[p].at(i)+s.hops[order[p]][order[k]] == m.v[i] {
				k, j = p, i
				break
			}
		}
	}
}

func fill(v []float64, x float64) {
	for i := range v {
		v[i] = x
	}
}
