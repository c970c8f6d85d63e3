package devicemap

// balance shares the layers out among the same devices in the same order so
// that there is room for more K/V, where that costs next to nothing: between
// GPUs of one kind it does not matter to a step's time which has how many, but
// the fullest one decides how much K/V there is. The stages have room for
// blocks, and take cost.
func (in *Input) balance(stages []Stage, blocks int, cost float64) []Stage {
	for _, s := range stages {
		if s.Split() {
			return stages
		}
	}
	b := in.builder(blocks)
	b.limit = cost * same
	if in.FullSeqs == 0 {
		b.limit = cost * balancedCost
	}
	b.groups, b.grouped = nil, false
	var order []int
	for i, s := range stages {
		b.groups = append(b.groups, []int{in.index(s.Device)})
		order = append(order, i)
	}
	try := func(n int) bool {
		b.blocks = int64(n)
		s := b.search(0, 1)
		path, c := s.solveOrder(order)
		if c == inf {
			return false
		}
		if more := b.stages(s, path, 0); len(more) == len(stages) {
			stages = more
		}
		return true
	}
	lo, hi := blocks, max(in.blocks(in.context())*max(in.MaxSeqs, in.fullSeqs()), blocks)
	if try(hi) {
		return stages
	}
	for hi-lo > 1+lo/128 {
		if mid := (lo + hi) / 2; try(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return stages
}
