package ptx

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Checks are the optional checks of a launch. Illegal, misaligned and read-only
// accesses, diverged barriers, deadlocks and runaway loops are always found.
type Checks uint8

// The optional checks; they cost speed.
const (
	// CheckShared: shared memory: races, reads before any write, cp.async
	// destinations in flight. Volatile and relaxed accesses count as plain ones.
	CheckShared      Checks = 1 << iota
	CheckGlobalRaces        // races on global memory between the threads of one block
	CheckLocal              // reads of local memory before any write
	CheckGlobalInit         // reads of bytes that Region.Init says were never written
	// CheckOrder: races on global memory between blocks, in kernels whose blocks
	// can order their accesses: those with atomic operations, volatile and relaxed
	// accesses.
	CheckOrder
	CheckAll = CheckShared | CheckGlobalRaces | CheckLocal | CheckGlobalInit | CheckOrder
	// CheckBlocks is CheckOrder for all kernels, so also for those where any two
	// blocks that meet on a byte, one of them writing, are a race.
	CheckBlocks Checks = 1 << 7
)

// Config is the shape of a launch.
type Config struct {
	Grid, Block [3]int // x, y, z; each at least 1
	SharedBytes int    // dynamic shared memory
	// Symbols gives the device addresses of the module's .global and .const
	// variables. Those it does not name are read-only copies of their initial
	// contents.
	Symbols map[string]uint64
}

// Options say how a launch is run.
type Options struct {
	// Workers is how many blocks run at once; 0: as many as there are processors.
	// With 1 blocks run in order, one at a time, so that even float atomics give
	// the same bits every time.
	Workers int
	// MaxInstructions is what one block may execute, in warp instructions, before
	// the launch fails as runaway; 0: 2^30.
	MaxInstructions uint64
	Checks          Checks
	Profile         bool // count sectors and bank conflicts, and fill Stats.Lines
}

const (
	maxThreads     = 1024    // of a block
	maxSharedBytes = 1 << 20 // more than any GPU has; the device checks its own limit
	maxLocalBytes  = 1 << 30 // of all threads that run at once
)

// launch is one launch in progress.
type launch struct {
	k       *Kernel
	cfg     Config
	opts    Options
	params  []byte
	mem     Memory
	threads int
	blocks  int
	order   *gridOrder // nil: not checked
}

// index turns a block's number into blockIdx.
func (l *launch) index(n int) [3]int {
	g := l.cfg.Grid
	return [3]int{n % g[0], n / g[0] % g[1], n / (g[0] * g[1])}
}

// Launch runs the kernel on a grid of blocks and waits for its end. params are
// the parameter bytes as Params lays them out. If the kernel does something
// wrong the error is a *Fault; memory then holds what was written until that.
// Cancelling ctx ends the launch with ctx's error.
func (k *Kernel) Launch(ctx context.Context, cfg Config, params []byte, mem Memory, opts Options) (Stats, error) {
	l := &launch{k: k, cfg: cfg, opts: opts, mem: mem}
	if err := l.check(params); err != nil {
		return Stats{}, fmt.Errorf("ptx: launch of %s: %w", k.name, err)
	}
	if l.blocks > 1 && (opts.Checks&CheckOrder != 0 && k.talks || opts.Checks&CheckBlocks != 0) {
		l.order = &gridOrder{pages: map[uint64]*orderPage{}}
	}
	// Copied, and aligned for the widest load.
	words := make([]uint64, (len(params)+15)/8)
	if len(params) > 0 {
		l.params = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(params))
		copy(l.params, params)
	}
	workers := opts.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	workers = min(workers, l.blocks)
	runs := make([]*blockRun, workers)
	var next, stop atomic.Int64
	stop.Store(math.MaxInt64)
	var mu sync.Mutex
	var fault *Fault
	var failed error
	report := func(n int, f *Fault, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failed = err
			stop.Store(-1)
			return
		}
		if fault == nil || f.order < fault.order {
			fault = f
			stop.Store(int64(min(n, int(stop.Load()))))
		}
	}
	work := func(i int) {
		var b *blockRun
		defer func() {
			if r := recover(); r != nil {
				report(0, nil, fmt.Errorf("ptx: kernel %s: internal error: %v\n%s", k.name, r, debug.Stack()))
			}
		}()
		b = newBlockRun(l)
		runs[i] = b
		for {
			n := int(next.Add(1)) - 1
			if n >= l.blocks || int64(n) >= stop.Load() {
				return
			}
			if err := ctx.Err(); err != nil {
				report(n, nil, fmt.Errorf("ptx: kernel %s: stopped before block %d of %d: %w", k.name, n, l.blocks, err))
				return
			}
			switch f := b.run(ctx, n); {
			case f != nil && f.cause != nil:
				report(n, nil, fmt.Errorf("ptx: kernel %s: stopped in block %d of %d, %s: %w", k.name, n, l.blocks, place(f.Line, f.Source, f.Inst), f.cause))
				return
			case f != nil:
				report(n, f, nil)
				return
			}
		}
	}
	if workers == 1 {
		work(0)
	} else {
		var wg sync.WaitGroup
		for i := range workers {
			wg.Go(func() { work(i) })
		}
		wg.Wait()
	}
	if failed != nil {
		return Stats{}, failed
	}
	s := l.collect(runs)
	for _, b := range runs {
		b.release()
	}
	s.Blocks, s.Threads = int64(l.blocks), int64(l.blocks)*int64(l.threads)
	if fault != nil {
		return s, fault
	}
	return s, nil
}

// check validates the launch before anything is allocated for it.
func (l *launch) check(params []byte) error {
	k, cfg := l.k, l.cfg
	gridMax := [3]int{math.MaxInt32, 65535, 65535}
	blockMax := [3]int{1024, 1024, 64}
	l.threads, l.blocks = 1, 1
	for i := range 3 {
		if cfg.Grid[i] < 1 || cfg.Grid[i] > gridMax[i] {
			return fmt.Errorf("grid %v: dimension %d must be 1 to %d", cfg.Grid, i, gridMax[i])
		}
		if cfg.Block[i] < 1 || cfg.Block[i] > blockMax[i] {
			return fmt.Errorf("block %v: dimension %d must be 1 to %d", cfg.Block, i, blockMax[i])
		}
		l.threads *= cfg.Block[i]
		if l.blocks > math.MaxInt64/cfg.Grid[i] {
			return fmt.Errorf("grid %v has too many blocks", cfg.Grid)
		}
		l.blocks *= cfg.Grid[i]
	}
	if l.threads > maxThreads {
		return fmt.Errorf("block %v has %d threads; at most %d", cfg.Block, l.threads, maxThreads)
	}
	if n := k.MaxThreads(); n > 0 && l.threads > n {
		return fmt.Errorf("block %v has %d threads; the kernel was compiled for at most %d", cfg.Block, l.threads, n)
	}
	if d := k.fn.reqTid; d[0] > 0 && d != cfg.Block {
		return fmt.Errorf("block %v; the kernel was compiled for %v", cfg.Block, d)
	}
	if cfg.SharedBytes < 0 || cfg.SharedBytes+k.shared > maxSharedBytes {
		return fmt.Errorf("%d bytes of dynamic and %d of static shared memory; at most %d", cfg.SharedBytes, k.shared, maxSharedBytes)
	}
	if n := k.local * maxThreads * max(l.opts.Workers, runtime.GOMAXPROCS(0)); n > maxLocalBytes {
		return fmt.Errorf("%d bytes of local memory a thread are more than the interpreter gives", k.local)
	}
	if len(params) != k.bytes {
		return fmt.Errorf("%d bytes of parameters; the kernel takes %d", len(params), k.bytes)
	}
	if l.mem == nil {
		l.mem = Regions(nil)
	}
	if l.opts.MaxInstructions == 0 {
		l.opts.MaxInstructions = 1 << 30
	}
	return nil
}

// newWarp makes warp num of a block, its constants in place.
func newWarp(b *blockRun, num int) *warp {
	k := b.k
	w := &warp{blk: b, k: k, num: num, preds: make([]uint32, k.npred), store: make([]uint64, k.file/8)}
	w.file = unsafe.Pointer(unsafe.SliceData(w.store))
	if k.local > 0 {
		w.local = make([]byte, k.local*lanesPerWarp)
		if b.l.opts.Checks&CheckLocal != 0 {
			w.linit = make([]byte, len(w.local))
		}
	}
	for _, c := range k.consts {
		w.fill(c.off, c.wide, c.bits)
	}
	w.setLaunch()
	return w
}

// setLaunch updates what depends on the launch: addresses of module variables
// and special registers.
func (w *warp) setLaunch() {
	for _, s := range w.k.syms {
		addr, ok := w.blk.l.cfg.Symbols[s.vr.name]
		if !ok {
			addr = staticWindow + uint64(s.vr.offset)
		}
		w.fill(s.off, true, addr+uint64(s.add))
	}
	for _, s := range w.k.specs {
		if !specialPerBlock(s.name) {
			w.setSpecial(s)
		}
	}
}

// fill broadcasts a value to all lanes of a slot.
func (w *warp) fill(off uintptr, wide bool, bits uint64) {
	if wide {
		d := view[uint64](w, off)
		for l := range d {
			d[l] = bits
		}
		return
	}
	d := view[uint32](w, off)
	for l := range d {
		d[l] = uint32(bits)
	}
}

// setBlock updates what depends on the block: special registers, and local
// memory, which every block finds unwritten.
func (w *warp) setBlock() {
	for _, s := range w.k.specs {
		if specialPerBlock(s.name) {
			w.setSpecial(s)
		}
	}
	for i := range w.local {
		w.local[i] = 0xff
	}
	clear(w.linit)
}
