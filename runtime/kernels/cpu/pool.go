package cpu

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// task is work that can be cut into items. It is called by several goroutines
// at once, each with items lo..hi of its own and its own worker.
type task interface {
	run(w *worker, lo, hi int)
}

// How often who waits looks for work before it sleeps: long enough for the gaps
// inside a step.
const (
	pauses       = 300 // 35 µs, 100 on some processors: the thread keeps its own
	yields       = 100 // about 20 µs in which others may have it
	looksCrowded = 5
)

// turn is how long a thread computes before it lets others have the processor,
// when it holds no item that the rest would have to wait for. It is shorter
// than the ticks, of 1 to 10 ms, at which systems end a thread's turn.
const turn = 500 * time.Microsecond

// pool runs tasks on a fixed set of goroutines, the caller among them. Each has
// a thread of its own (the caller if it is bound), unless there are more of them
// than processors.
//
// Each worker has a range of items of its own (so that it meets the same rows
// of a weight in every step), and when it is through helps the others: a
// worker that the machine does not let run holds nothing up but the items it
// has taken.
type pool struct {
	workers []*worker // [0] is the caller's
	crowded bool      // more workers than processors
	place   placement

	mu      sync.Mutex // one task at a time
	task    task
	pending atomic.Int64 // items that are not done
	epoch   atomic.Uint32
	closed  atomic.Bool
	done    sync.WaitGroup
	caller  sleeper
}

// worker is one goroutine's part of the pool.
type worker struct {
	id    int
	since time.Duration // its turn, by clock
	// cursor is items not yet taken, packed so that one compare-and-swap takes
	// some: end (24 bits) | next (24) | how many to take (16).
	_      [64]byte
	cursor atomic.Uint64
	_      [56]byte
	sleeper
	scratch
}

const (
	maxItems = 1<<24 - 1
	maxGrain = 1<<16 - 1
)

// sleeper lets a goroutine wait for another one's call.
type sleeper struct {
	asleep atomic.Bool
	wake   chan struct{}
}

// sleep waits for rouse unless ready holds.
func (s *sleeper) sleep(ready func() bool) {
	s.asleep.Store(true)
	if ready() && s.asleep.CompareAndSwap(true, false) {
		return
	}
	<-s.wake
}

func (s *sleeper) rouse() {
	if s.asleep.Load() && s.asleep.CompareAndSwap(true, false) {
		s.wake <- struct{}{}
	}
}

func newPool(threads int) *pool {
	p := &pool{crowded: threads > processors}
	if !p.crowded {
		p.place = newPlacement(threads)
		spareProc(threads)
	}
	p.caller.wake = make(chan struct{}, 1)
	for i := range threads {
		w := &worker{id: i}
		w.wake = make(chan struct{}, 1)
		p.workers = append(p.workers, w)
	}
	for _, w := range p.workers[1:] {
		p.done.Add(1)
		go p.loop(w)
	}
	return p
}

// close ends the workers. No task may be running.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed.Store(true)
	p.epoch.Add(1)
	for _, w := range p.workers[1:] {
		w.rouse()
	}
	p.done.Wait()
}

// run does items 0..n of t, in pieces of up to grain, and returns when all are
// done. One task runs at a time.
func (p *pool) run(t task, n, grain int) {
	if n <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed.Load() {
		panic("cpu: work on a closed device")
	}
	grain = min(max(grain, 1), maxGrain)
	if n > maxItems {
		panic("cpu: too many items in a task")
	}
	if n <= grain || len(p.workers) == 1 {
		t.run(p.workers[0], 0, n)
		p.workers[0].mm = mmArgs{}
		return
	}
	p.task = t
	p.pending.Store(int64(n))
	lo := 0
	for i, w := range p.workers {
		hi := n * (i + 1) / len(p.workers)
		w.cursor.Store(uint64(hi)<<40 | uint64(lo)<<16 | uint64(grain))
		lo = hi
	}
	p.epoch.Add(1)
	for _, w := range p.workers[1:] {
		w.rouse()
	}
	p.work(p.workers[0])
	for i := 0; p.pending.Load() != 0; i++ {
		if !p.look(i) {
			p.caller.sleep(p.idle)
		}
	}
	p.task = nil
}

func (p *pool) idle() bool { return p.pending.Load() == 0 }

// look passes the moment before look i; false when it is time to sleep. After
// the pauses the system may give the processor to another process: who waits
// does not use up its time.
func (p *pool) look(i int) bool {
	switch {
	case p.crowded:
		runtime.Gosched()
		return i < looksCrowded
	case i < pauses:
		pause(6)
	default:
		yield()
	}
	return i < pauses+yields
}

// bind gives the calling goroutine's thread to worker i until the goroutine
// ends.
func (p *pool) bind(i int) {
	if !p.crowded {
		p.place.bind(i)
	}
}

// processors is how many threads can compute at once; pools raise GOMAXPROCS.
var processors = min(runtime.GOMAXPROCS(0), runtime.NumCPU())

// Processors is how many threads can compute at once, by the processors and the
// quota that the process had when it started.
func Processors() int { return processors }

var procs sync.Mutex

// spareProc lets other goroutines run while threads of a pool compute: each
// keeps one of GOMAXPROCS.
func spareProc(threads int) {
	procs.Lock()
	defer procs.Unlock()
	if runtime.GOMAXPROCS(0) <= threads {
		runtime.GOMAXPROCS(threads + 1)
	}
}

var started = time.Now()

// clock is the time since the program's start.
func clock() time.Duration { return time.Since(started) }

// loop is a worker's life.
func (p *pool) loop(w *worker) {
	defer p.done.Done()
	p.bind(w.id)
	var seen uint32
	changed := func() bool { return p.epoch.Load() != seen }
	for {
		for i := 0; !changed(); i++ {
			if !p.look(i) {
				w.sleep(changed)
			}
		}
		seen = p.epoch.Load()
		if p.closed.Load() {
			return
		}
		p.work(w)
	}
}

// breathe ends w's turn if it has been long: a thread that the system puts aside
// in the middle of an item holds the others up for the length of a tick.
func (w *worker) breathe() {
	if clock()-w.since < turn {
		return
	}
	yield()
	w.since = clock()
}

// work does what is left, first w's own items, then those of the others.
//
// A worker that comes late may meet the next task's items here. That is fine:
// whatever it reads of the task, it reads after it has taken items, and as
// long as those are not done the task stays.
func (p *pool) work(w *worker) {
	n := len(p.workers)
	for i := range n {
		from := p.workers[(w.id+i)%n]
		for {
			w.breathe()
			c := from.cursor.Load()
			hi, lo, grain := int(c>>40), int(c>>16&maxItems), int(c&maxGrain)
			if lo >= hi {
				break
			}
			to := min(lo+grain, hi)
			if !from.cursor.CompareAndSwap(c, uint64(hi)<<40|uint64(to)<<16|uint64(grain)) {
				continue
			}
			p.task.run(w, lo, to)
			w.mm = mmArgs{} // keep no pointer to memory that may be unmapped
			if p.pending.Add(int64(lo-to)) == 0 {
				p.caller.rouse()
			}
		}
	}
}
