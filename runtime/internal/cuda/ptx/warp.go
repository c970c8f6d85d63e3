package ptx

import (
	"math"
	"math/bits"
	"unsafe"
)

const (
	lanesPerWarp = 32
	allLanes     = 0xffffffff
)

type warpState uint8

const (
	warpReady warpState = iota
	warpAtBarrier
	warpDone
)

// fragment is a set of lanes that stand at the same instruction, aside from
// those that run.
type fragment struct {
	pc     int32
	mask   uint32
	parked bool // waits at a warp-wide instruction for other lanes
}

// warp is 32 threads. The lanes that run are those of active, at pc; others
// that went elsewhere at a branch are fragments. The lowest position runs
// first, and meets the others where the paths join (see layout).
type warp struct {
	blk    *blockRun
	k      *Kernel
	file   unsafe.Pointer // the register file: 32 lanes of each slot
	preds  []uint32
	store  []uint64 // what file points into
	active uint32
	live   uint32 // lanes that have not exited
	exists uint32 // lanes the block has threads for
	pc     int32
	other  int32 // the lowest position of a fragment that could run; MaxInt32: none
	frags  []fragment
	state  warpState
	num    int
	cc     uint32 // carry flags
	fault  *Fault
	issued uint64
	local  []byte // local memory of the 32 lanes
	linit  []byte // which bytes of it were written; nil: not tracked
	addr   [lanesPerWarp]uint64
	async  asyncCopies
	sum    [16][8]float64 // of the matrix product that runs

	waiting int // barrier it waits at
	barPC   int32
	barRed  barrierResult
}

func view[T any](w *warp, off uintptr) *[lanesPerWarp]T {
	return (*[lanesPerWarp]T)(unsafe.Add(w.file, off))
}

// lane takes the lowest lane out of m.
func lane(m *uint32) int {
	l := bits.TrailingZeros32(*m) & 31
	*m &= *m - 1
	return l
}

// run executes up to slice instructions, until the warp blocks, ends or faults.
func (w *warp) run(slice int) {
	code := w.k.code
	counts := w.blk.counts
	pc := w.pc
	n := 0
	for ; n < slice; n++ {
		if pc >= w.other {
			pc = w.meet(pc)
		}
		in := &code[pc]
		m := w.active
		if in.guard >= 0 {
			m &= w.preds[in.guard] ^ in.inv
		}
		c := &counts[pc]
		c.issued++
		if m == allLanes {
			c.lanes += 32
		} else {
			c.lanes += uint64(bits.OnesCount32(m))
		}
		switch in.kind {
		case kPlain:
			if m != 0 {
				in.exec(w, m)
			}
			pc = in.next
			continue
		case kMem:
			if m != 0 {
				w.pc = pc
				if in.exec(w, m); w.fault != nil {
					return
				}
			}
			pc = in.next
			continue
		case kBra:
			switch m {
			case 0:
				pc = in.next
			case w.active:
				pc = in.to
			default:
				w.split(in.to, m)
				w.active &^= m
				pc = in.next
			}
			continue
		}
		w.pc = pc
		switch in.kind {
		case kSync:
			if m == 0 {
				pc = in.next
				continue
			}
			if m = w.gather(in, m, c); m == 0 {
				if pc = w.pc; w.fault != nil {
					return
				}
				continue
			}
			if in.exec(w, m); w.fault != nil {
				return
			}
			pc = in.next
		case kBar:
			if m == 0 {
				pc = in.next
				continue
			}
			if m = w.gather(in, m, c); m == 0 {
				if pc = w.pc; w.fault != nil {
					return
				}
				continue
			}
			w.pc = in.next
			w.issued += uint64(n + 1)
			w.barrier(in, pc)
			if w.fault != nil || w.state != warpReady {
				return
			}
			w.issued -= uint64(n + 1)
			pc = in.next
		case kBrx:
			if pc = w.branchTable(in, m); w.fault != nil {
				return
			}
		case kExit:
			if pc = w.exit(in, m); w.state == warpDone || w.fault != nil {
				w.issued += uint64(n + 1)
				return
			}
		}
	}
	w.issued += uint64(n)
	w.pc = pc
}

// split puts lanes aside at position pc.
func (w *warp) split(pc int32, mask uint32) {
	w.frags = append(w.frags, fragment{pc: pc, mask: mask})
	w.other = min(w.other, pc)
}

// meet is called when the running lanes reach or pass the position of others:
// it merges those at the same position and lets the lowest run.
func (w *warp) meet(pc int32) int32 {
	if pc > w.other {
		w.frags = append(w.frags, fragment{pc: pc, mask: w.active})
		w.active = 0
		pc = w.other
	}
	w.resume(pc)
	return pc
}

// resume adds the fragments that can run at pc to the running lanes.
func (w *warp) resume(pc int32) {
	keep := w.frags[:0]
	w.other = math.MaxInt32
	for _, f := range w.frags {
		switch {
		case f.parked:
			keep = append(keep, f)
		case f.pc == pc:
			w.active |= f.mask
		default:
			keep = append(keep, f)
			w.other = min(w.other, f.pc)
		}
	}
	w.frags = keep
}

// gather brings together the lanes a warp-wide instruction needs and returns
// those that execute it. Zero: some have not arrived; the running lanes were
// parked and others run, at w.pc, or there is a fault because none can come.
func (w *warp) gather(in *inst, m uint32, c *count) uint32 {
	need := w.live
	if in.need != nil {
		if need = in.need(w, m) & w.live; w.fault != nil {
			return 0
		}
	}
	c.lanes -= uint64(bits.OnesCount32(m))
	if need&^w.active != 0 {
		keep := w.frags[:0]
		for _, f := range w.frags {
			if f.parked && f.pc == w.pc {
				w.active |= f.mask
				continue
			}
			keep = append(keep, f)
		}
		w.frags = keep
	}
	m = w.active
	if in.guard >= 0 {
		m &= w.preds[in.guard] ^ in.inv
	}
	if need&^w.active == 0 {
		if miss := need &^ m; miss != 0 {
			w.fail(FaultDivergence, bits.TrailingZeros32(miss),
				"the predicate keeps lanes %#x out of a warp-wide instruction that needs lanes %#x", miss, need)
			return 0
		}
		c.lanes += uint64(bits.OnesCount32(m))
		return m
	}
	if w.other == math.MaxInt32 {
		miss := need &^ w.active
		w.fail(FaultDivergence, bits.TrailingZeros32(miss),
			"lanes %#x are here and need lanes %#x, which %s", w.active, miss, w.whereabouts(miss))
		return 0
	}
	c.issued--
	w.frags = append(w.frags, fragment{pc: w.pc, mask: w.active, parked: true})
	w.active = 0
	w.pc = w.other
	w.resume(w.pc)
	return 0
}

// whereabouts says where the lanes of a mask stand.
func (w *warp) whereabouts(mask uint32) string {
	for _, f := range w.frags {
		if f.mask&mask != 0 {
			return "wait at " + w.k.describe(f.pc)
		}
	}
	return "are not in the warp"
}

// exit ends the lanes of m and gives the position to go on at.
func (w *warp) exit(in *inst, m uint32) int32 {
	w.live &^= m
	w.active &^= m
	if w.active != 0 {
		return in.next
	}
	if w.live == 0 {
		w.state = warpDone
		return w.pc
	}
	// Lanes that waited for those that ended may have enough now.
	pc := int32(math.MaxInt32)
	for i := range w.frags {
		w.frags[i].parked = false
		pc = min(pc, w.frags[i].pc)
	}
	w.resume(pc)
	return pc
}

// branchTable sends each lane to its entry of a brx.idx table.
func (w *warp) branchTable(in *inst, m uint32) int32 {
	idx := view[uint32](w, in.index)
	if rest := w.active &^ m; rest != 0 {
		w.split(in.next, rest)
	}
	for left := m; left != 0; {
		l := lane(&left)
		i := idx[l]
		if i >= uint32(len(in.table)) {
			w.fail(FaultIllegal, l, "branch index %d of a table of %d", i, len(in.table))
			return w.pc
		}
		w.split(in.table[i], 1<<l)
	}
	w.active = 0
	pc := w.other
	w.resume(pc)
	return pc
}

// start prepares the warp for a block's first instruction. Lanes at and above
// n do not exist.
func (w *warp) start(n int) {
	w.live = allLanes
	if n < lanesPerWarp {
		w.live = 1<<n - 1
	}
	w.exists, w.active = w.live, w.live
	w.pc, w.other, w.state = 0, math.MaxInt32, warpReady
	w.frags = w.frags[:0]
	w.cc, w.fault, w.issued = 0, nil, 0
	w.async.reset()
	for _, z := range w.k.zero {
		switch z.kind {
		case slot32:
			*view[uint32](w, z.off) = [lanesPerWarp]uint32{}
		case slot64:
			*view[uint64](w, z.off) = [lanesPerWarp]uint64{}
		case slotPred:
			w.preds[z.off] = 0
		}
	}
}
