package ptx

// block is a run of statements with one way in, at the top.
type block struct {
	start, end int // statements [start, end)
	succ       []int
	fall       int // the block control falls into; -1: none
	rpo        int // place in reverse postorder; -1: unreachable
	idom       int
	loop       *loop
}

type loop struct {
	head int
	in   map[int]bool
	up   *loop
}

func terminator(s *stmt) bool {
	switch s.op {
	case "bra", "brx", "ret", "exit", "trap":
		return true
	}
	return false
}

// blocks cuts the statements into basic blocks and links them.
func blocks(stmts []*stmt) []*block {
	lead := make([]bool, len(stmts)+1)
	lead[0] = true
	for i, s := range stmts {
		if !terminator(s) {
			continue
		}
		lead[i+1] = true
		for _, t := range targets(s) {
			lead[t.at] = true
		}
	}
	at := make([]int, len(stmts)+1) // statement to block
	var bs []*block
	for i := range stmts {
		if lead[i] {
			bs = append(bs, &block{start: i, fall: -1, rpo: -1})
		}
		at[i] = len(bs) - 1
		bs[len(bs)-1].end = i + 1
	}
	for bi, b := range bs {
		last := stmts[b.end-1]
		if terminator(last) {
			for _, t := range targets(last) {
				b.succ = append(b.succ, at[t.at])
			}
		}
		if (!terminator(last) || last.guard != nil) && bi+1 < len(bs) {
			b.fall = bi + 1
			b.succ = append(b.succ, bi+1)
		}
	}
	return bs
}

// targets lists the labels a terminator may go to.
func targets(s *stmt) []*label {
	switch s.op {
	case "bra":
		return []*label{s.args[0].tgt}
	case "brx":
		return s.tgts
	}
	return nil
}

// layout orders the reachable blocks so that, loops kept together, every block
// comes after all that lead to it. A warp that always runs its lanes with the
// lowest position first then brings diverged lanes together again at the
// nearest point all of them must pass.
func layout(bs []*block) []int {
	order := postorder(bs)
	preds := make([][]int, len(bs))
	for _, b := range order {
		for _, s := range bs[b].succ {
			preds[s] = append(preds[s], b)
		}
	}
	dominators(bs, order, preds)
	findLoops(bs, order, preds)

	wait := make([]int, len(bs)) // forward edges not yet placed
	for _, b := range order {
		for _, s := range bs[b].succ {
			if bs[s].rpo > bs[b].rpo {
				wait[s]++
			}
		}
	}
	ready := []int{order[0]}
	out := make([]int, 0, len(order))
	var cur *loop
	for len(ready) > 0 {
		pick := -1
		for l := cur; l != nil && pick < 0; l = l.up {
			for i := len(ready) - 1; i >= 0; i-- {
				if l.in[ready[i]] {
					pick = i
					break
				}
			}
		}
		if pick < 0 {
			pick = len(ready) - 1
		}
		b := ready[pick]
		ready = append(ready[:pick], ready[pick+1:]...)
		out = append(out, b)
		cur = bs[b].loop
		for _, s := range bs[b].succ {
			if bs[s].rpo > bs[b].rpo {
				if wait[s]--; wait[s] == 0 {
					ready = append(ready, s)
				}
			}
		}
	}
	return out
}

// postorder numbers the reachable blocks and returns them in reverse postorder.
func postorder(bs []*block) []int {
	type frame struct{ b, next int }
	state := make([]bool, len(bs))
	var post []int
	stack := []frame{{0, 0}}
	state[0] = true
	for len(stack) > 0 {
		f := &stack[len(stack)-1]
		if f.next < len(bs[f.b].succ) {
			s := bs[f.b].succ[f.next]
			f.next++
			if !state[s] {
				state[s] = true
				stack = append(stack, frame{s, 0})
			}
			continue
		}
		post = append(post, f.b)
		stack = stack[:len(stack)-1]
	}
	order := make([]int, len(post))
	for i, b := range post {
		order[len(post)-1-i] = b
	}
	for i, b := range order {
		bs[b].rpo = i
	}
	return order
}

// dominators is the iterative algorithm of Cooper, Harvey and Kennedy.
func dominators(bs []*block, order []int, preds [][]int) {
	for _, b := range order {
		bs[b].idom = -1
	}
	bs[order[0]].idom = order[0]
	for changed := true; changed; {
		changed = false
		for _, b := range order[1:] {
			dom := -1
			for _, p := range preds[b] {
				if bs[p].idom < 0 {
					continue
				}
				if dom < 0 {
					dom = p
					continue
				}
				for x := p; x != dom; {
					for bs[x].rpo > bs[dom].rpo {
						x = bs[x].idom
					}
					for bs[dom].rpo > bs[x].rpo {
						dom = bs[dom].idom
					}
				}
			}
			if bs[b].idom != dom {
				bs[b].idom, changed = dom, true
			}
		}
	}
}

// findLoops collects the natural loops and gives each block its innermost one.
func findLoops(bs []*block, order []int, preds [][]int) {
	dominates := func(a, b int) bool {
		for bs[b].rpo > bs[a].rpo {
			b = bs[b].idom
		}
		return a == b
	}
	// Headers in reverse postorder: an outer loop is seen before those inside.
	for _, h := range order {
		l := &loop{head: h, in: map[int]bool{h: true}}
		var work []int
		for _, p := range preds[h] {
			if dominates(h, p) {
				work = append(work, p)
			}
		}
		if len(work) == 0 {
			continue
		}
		for len(work) > 0 {
			b := work[len(work)-1]
			work = work[:len(work)-1]
			if !l.in[b] {
				l.in[b] = true
				work = append(work, preds[b]...)
			}
		}
		l.up = bs[h].loop
		for b := range l.in {
			bs[b].loop = l
		}
	}
}
