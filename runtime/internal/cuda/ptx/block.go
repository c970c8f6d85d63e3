package ptx

import (
	"context"
	"fmt"
	"math/bits"
	"strings"
)

// count is how often an instruction was executed.
type count struct {
	issued uint64 // by warps
	lanes  uint64 // by threads
}

// memCount is what a memory instruction's accesses cost.
type memCount struct {
	requests  uint64 // warp-wide accesses
	sectors   uint64 // 32-byte sectors of global memory they touched
	conflicts uint64 // extra passes over the shared memory banks
}

// blockRun runs blocks, one after another, on one goroutine. Its warps, memory
// and counters are reused from block to block.
type blockRun struct {
	l       *launch
	k       *Kernel
	idx     [3]int
	num     int
	warps   []*warp
	all     []*warp
	shared  []byte
	bars    [16]barrier
	counts  []count
	mem     []memCount
	tlb     []tlbEntry
	watch   bool        // some check or the profile looks at memory accesses
	shadow  *shadow     // shared memory's; nil: not checked
	gshadow *shadow     // global memory's
	order   *blockOrder // of global memory between blocks; nil: not checked
	ticks   uint64      // of the clock registers
}

// sliceLen is how many instructions a warp runs before the next one's turn:
// long, for the cache, yet short enough that a warp which waits for another's
// store does not hold up the launch, and that cancelling is prompt.
const sliceLen = 1 << 14

// newBlockRun gives what runs the launch's blocks: one that an earlier launch of
// the same shape left behind, or a new one.
func newBlockRun(l *launch) *blockRun {
	k := l.k
	if l.opts.Checks == 0 {
		if b, _ := k.idle.Get().(*blockRun); b != nil && len(b.all) == warps(l.threads) {
			b.reuse(l)
			return b
		}
	}
	b := &blockRun{
		l: l, k: k, counts: make([]count, len(k.code)), mem: make([]memCount, k.refs), tlb: make([]tlbEntry, k.refs),
		shared: make([]byte, k.shared+l.cfg.SharedBytes), watch: l.opts.Profile,
	}
	for i := range warps(l.threads) {
		b.all = append(b.all, newWarp(b, i))
	}
	if l.opts.Checks&CheckShared != 0 && len(b.shared) > 0 {
		b.shadow, b.watch = newShadow(spShared, k.gran, len(b.all)), true
	}
	if l.opts.Checks&CheckGlobalRaces != 0 {
		b.gshadow, b.watch = newShadow(spGlobal, k.ggran, len(b.all)), true
	}
	if l.order != nil {
		b.order, b.watch = newBlockOrder(l.order, len(b.all)), true
	}
	return b
}

func warps(threads int) int { return (threads + lanesPerWarp - 1) / lanesPerWarp }

// reuse prepares a blockRun without checks for another launch.
func (b *blockRun) reuse(l *launch) {
	b.l, b.watch = l, l.opts.Profile
	clear(b.counts)
	clear(b.mem)
	if n := b.k.shared + l.cfg.SharedBytes; n <= cap(b.shared) {
		b.shared = b.shared[:n]
	} else {
		b.shared = make([]byte, n)
	}
	for _, w := range b.all {
		w.setLaunch()
	}
}

// release keeps the blockRun for the next launch of the kernel, without what it
// held of this one.
func (b *blockRun) release() {
	if b == nil || b.l.opts.Checks != 0 {
		return
	}
	clear(b.tlb)
	b.l = nil
	b.k.idle.Put(b)
}

// thread turns a thread's number in the block into threadIdx.
func (b *blockRun) thread(n int) [3]int {
	d := b.l.cfg.Block
	return [3]int{n % d[0], n / d[0] % d[1], n / (d[0] * d[1])}
}

// run executes block number n to its end.
func (b *blockRun) run(ctx context.Context, n int) *Fault {
	b.num, b.idx = n, b.l.index(n)
	// What nothing wrote is NaN in every float format: a read of it shows.
	for i := range b.shared {
		b.shared[i] = 0xff
	}
	for i := range b.bars {
		b.bars[i] = barrier{members: b.bars[i].members[:0]}
	}
	b.warps = b.warps[:0]
	for i, w := range b.all {
		w.start(b.l.threads - i*lanesPerWarp)
		w.setBlock()
		b.warps = append(b.warps, w)
	}
	b.shadow.newBlock()
	b.gshadow.newBlock()
	b.order.newBlock(n)
	var issued uint64
	for len(b.warps) > 0 {
		ran := false
		for i := 0; i < len(b.warps); i++ {
			w := b.warps[i]
			if w.state == warpReady {
				ran = true
				before := w.issued
				w.run(sliceLen)
				issued += w.issued - before
				if w.fault != nil {
					return w.fault
				}
				if issued > b.l.opts.MaxInstructions {
					return w.fail(FaultBudget, bits.TrailingZeros32(w.active),
						"the block has executed %d warp instructions; the launch allows %d", issued, b.l.opts.MaxInstructions)
				}
				if w.state == warpReady {
					// A whole slice without an end: see whether to go on.
					if err := ctx.Err(); err != nil {
						f := w.fail(FaultBudget, bits.TrailingZeros32(w.active), "cancelled")
						f.cause = err
						return f
					}
				}
			}
			if w.state == warpDone {
				b.warps = append(b.warps[:i], b.warps[i+1:]...)
				i--
				b.recheck()
			}
		}
		if !ran && len(b.warps) > 0 {
			return b.deadlock()
		}
	}
	return nil
}

// deadlock reports where each warp waits.
func (b *blockRun) deadlock() *Fault {
	var where []string
	for _, w := range b.warps {
		where = append(where, fmt.Sprintf("warp %d at barrier %d, %s", w.num, w.waiting, b.k.describe(w.barPC)))
		if len(where) == 4 && len(b.warps) > 4 {
			where = append(where, fmt.Sprintf("and %d more", len(b.warps)-4))
			break
		}
	}
	w := b.warps[0]
	w.pc = w.barPC
	return w.fail(FaultDeadlock, bits.TrailingZeros32(w.live), "%d of %d warps wait and none can go on: %s",
		len(b.warps), len(b.all), strings.Join(where, "; "))
}
