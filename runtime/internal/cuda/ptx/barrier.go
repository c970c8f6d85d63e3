package ptx

import "math/bits"

// barrierOp is a bar or barrier instruction.
type barrierOp struct {
	id      uintptr // slot of the barrier's number
	count   uintptr // slot of the thread count
	counted bool
	arrive  bool // arrives without waiting
	red     redKind
	dst     uintptr // result: slot, or predicate number
	pred    int
	predInv uint32
}

type redKind uint8

const (
	redNone redKind = iota
	redPopc
	redAnd
	redOr
)

// barrierResult remembers where a waiting warp wants a reduction's result.
type barrierResult struct {
	op   *barrierOp
	mask uint32
}

// barrier is one of a block's sixteen.
type barrier struct {
	arrived int // warps
	want    int // warps; 0: all that have not ended
	pc      int32
	ones    int // threads whose predicate was true
	threads int // threads that took part in the reduction
	members []int
	used    bool
}

// barrier is the warp's arrival. Its live lanes are together.
func (w *warp) barrier(in *inst, pc int32) {
	op := in.bar
	l := bits.TrailingZeros32(w.active)
	w.pc = pc // for reports
	id := view[uint32](w, op.id)[l]
	if id >= 16 {
		w.fail(FaultIllegalOperand, l, "barrier number %d of 16", id)
		return
	}
	want := 0
	if op.counted {
		n := view[uint32](w, op.count)[l]
		if n == 0 || n%lanesPerWarp != 0 || int(n) > len(w.blk.all)*lanesPerWarp {
			w.fail(FaultIllegalOperand, l, "thread count %d is not a multiple of 32 up to the block's %d threads", n, w.blk.l.threads)
			return
		}
		want = int(n) / lanesPerWarp
	}
	b := &w.blk.bars[id]
	switch {
	case !b.used:
		b.used, b.want, b.pc = true, want, pc
	case b.want != want:
		w.fail(FaultBarrier, l, "barrier %d is waited for with different thread counts: the other is at %s", id, w.k.describe(b.pc))
		return
	case want == 0 && b.pc != pc:
		w.fail(FaultBarrier, l, "threads of one block wait for barrier %d at different places: the other is %s", id, w.k.describe(b.pc))
		return
	}
	b.arrived++
	b.members = append(b.members, w.num)
	if op.red != redNone {
		b.threads += bits.OnesCount32(w.active)
		b.ones += bits.OnesCount32((w.preds[op.pred] ^ op.predInv) & w.active)
	}
	w.pc = in.next
	if !op.arrive {
		w.state, w.waiting, w.barPC = warpAtBarrier, int(id), pc
		w.barRed = barrierResult{}
		if op.red != redNone {
			w.barRed = barrierResult{op, w.active}
		}
	}
	w.blk.complete(int(id))
}

// recheck completes barriers that only lacked a warp which has ended.
func (b *blockRun) recheck() {
	for id := range b.bars {
		if b.bars[id].used {
			b.complete(id)
		}
	}
}

// complete releases the warps that wait at barrier id if all have arrived.
func (b *blockRun) complete(id int) {
	bar := &b.bars[id]
	want := bar.want
	if want == 0 {
		for _, w := range b.warps {
			if w.state != warpDone {
				want++
			}
		}
	}
	if bar.arrived < want || bar.arrived == 0 {
		return
	}
	for _, w := range b.warps {
		if w.state == warpAtBarrier && w.waiting == id {
			w.state = warpReady
			if w.barRed.op != nil {
				w.barRed.write(w, bar)
			}
		}
	}
	b.shadow.join(bar.members, bar.want == 0)
	b.gshadow.join(bar.members, bar.want == 0)
	b.order.join(bar.members, bar.want == 0)
	*bar = barrier{members: bar.members[:0]}
}

func (r barrierResult) write(w *warp, bar *barrier) {
	switch r.op.red {
	case redPopc:
		d := view[uint32](w, r.op.dst)
		for m := r.mask; m != 0; {
			d[lane(&m)] = uint32(bar.ones)
		}
	case redAnd, redOr:
		v := uint32(0)
		if r.op.red == redAnd && bar.ones == bar.threads || r.op.red == redOr && bar.ones > 0 {
			v = allLanes
		}
		w.preds[r.op.dst] = w.preds[r.op.dst]&^r.mask | v&r.mask
	}
}

// buildBarrier handles bar and barrier: sync, arrive, red, and bar.warp.sync.
func buildBarrier(b *builder) exec {
	s := b.s
	if s.has("warp") {
		b.args(1)
		b.member(0)
		return func(w *warp, _ uint32) { w.blk.warpSync(w.num) }
	}
	op := &barrierOp{}
	b.in.kind, b.in.bar = kBar, op
	args := s.args
	if s.has("red") {
		switch {
		case s.has("popc"):
			op.red, op.dst = redPopc, b.dst(0, tU32)
		case s.has("and"), s.has("or"):
			op.red = redAnd
			if s.has("or") {
				op.red = redOr
			}
			n, _ := b.pred(b.arg(0))
			op.dst = uintptr(n)
		default:
			return nil
		}
		b.arg(2)
		op.pred, op.predInv = b.pred(&args[len(args)-1])
		args = args[1 : len(args)-1]
	}
	op.arrive = s.has("arrive")
	if len(args) < 1 || len(args) > 2 {
		b.fail("needs a barrier number, and perhaps a thread count")
	}
	op.id = b.srcOp(&args[0], tU32)
	if len(args) == 2 {
		op.counted, op.count = true, b.srcOp(&args[1], tU32)
	}
	// barrier() does the work: exec marks only that the form is known.
	return func(*warp, uint32) {}
}
