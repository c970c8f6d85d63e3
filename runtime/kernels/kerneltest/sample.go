package kerneltest

import "infer/runtime/kernels"

// Sample makes the suite take one case of every n of its long lists with this
// backend, for one that is slow because it is simulated, or that is a
// variant of another. Which ones depends on n alone.
func Sample(b kernels.Backend, n int) kernels.Backend { return sampled{b, n} }

type sampled struct {
	kernels.Backend
	every int
}

// among tells whether case i of n is taken, of those that are each a list of
// their own: the fewer, the rarer cases are; the last at least.
func (p *pair) among(i, n int) bool {
	step := 1
	for e := p.every; e > 1; e /= 16 {
		step *= 2
	}
	return (n-1-i)%step == 0
}

// skip tells whether a case is left out.
func (p *pair) skip() bool {
	p.cases++
	return p.every > 1 && p.cases%p.every != 1
}
