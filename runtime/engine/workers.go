package engine

import (
	"sync"
	"sync/atomic"
)

// workers do the rows of a step at the same time, each with scratch memory of
// its own.
type workers struct {
	fn      func(c *candidates, i int)
	scratch []*candidates // [0] is the caller's
	wake    []chan struct{}
	n       int
	next    atomic.Int64
	busy    sync.WaitGroup
	ended   sync.WaitGroup
}

// newWorkers makes n ≥ 1, the caller of run included.
func newWorkers(n int, fn func(c *candidates, i int)) *workers {
	w := &workers{fn: fn, scratch: []*candidates{new(candidates)}}
	for range n - 1 {
		c, wake := new(candidates), make(chan struct{})
		w.scratch, w.wake = append(w.scratch, c), append(w.wake, wake)
		w.ended.Go(func() {
			for range wake {
				w.work(c)
				w.busy.Done()
			}
		})
	}
	return w
}

// run calls fn for 0..n and returns when all are done.
func (w *workers) run(n int) {
	w.n = n
	w.next.Store(0)
	helpers := min(len(w.wake), n-1)
	w.busy.Add(helpers)
	for _, wake := range w.wake[:helpers] {
		wake <- struct{}{}
	}
	w.work(w.scratch[0])
	w.busy.Wait()
}

func (w *workers) work(c *candidates) {
	for {
		i := int(w.next.Add(1)) - 1
		if i >= w.n {
			return
		}
		w.fn(c, i)
	}
}

func (w *workers) close() {
	for _, wake := range w.wake {
		close(wake)
	}
	w.ended.Wait()
}
