package cpu

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// count counts how often each item was done.
type count struct {
	done []atomic.Int32
	busy time.Duration
}

func (c *count) run(_ *worker, lo, hi int) {
	for i := lo; i < hi; i++ {
		c.done[i].Add(1)
	}
	for t := time.Now(); time.Since(t) < c.busy; {
	}
}

func TestPoolDoesEveryItemOnce(t *testing.T) {
	for _, threads := range []int{1, 2, 3, 8, 33} {
		p := newPool(threads)
		for i := range 300 {
			n, grain := i*i%1000+i%3, 1+i%17
			c := &count{done: make([]atomic.Int32, n)}
			p.run(c, n, grain)
			for j := range c.done {
				if got := c.done[j].Load(); got != 1 {
					t.Fatalf("%d threads, %d items by %d: item %d was done %d times", threads, n, grain, j, got)
				}
			}
			if i%50 == 0 {
				time.Sleep(2 * time.Millisecond) // the workers fall asleep
			}
		}
		p.close()
	}
}

// Several goroutines share a pool: each task is whole when run returns.
func TestPoolIsSharedSafely(t *testing.T) {
	p := newPool(3)
	defer p.close()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 200 {
				c := &count{done: make([]atomic.Int32, 5+i%40)}
				p.run(c, len(c.done), 1)
				for j := range c.done {
					if got := c.done[j].Load(); got != 1 {
						t.Errorf("item %d was done %d times", j, got)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

// With many more workers than processors a task still ends soon: nobody waits
// for a worker that has taken nothing.
func TestPoolOversubscribed(t *testing.T) {
	p := newPool(16 * runtime.NumCPU())
	defer p.close()
	// A collapse, as of spinning in turns, takes seconds a round and runs into
	// the test's own deadline.
	for range 500 {
		c := &count{done: make([]atomic.Int32, 64), busy: 5 * time.Microsecond}
		p.run(c, len(c.done), 4)
	}
}

func TestPoolSleepsAndCloses(t *testing.T) {
	for _, threads := range []int{processors, processors + 2} { // the latter give way sooner
		t.Run(fmt.Sprint(threads), func(t *testing.T) { sleepsAndCloses(t, threads) })
	}
}

func sleepsAndCloses(t *testing.T, threads int) {
	p := newPool(threads)
	c := &count{done: make([]atomic.Int32, 100)}
	p.run(c, 100, 1)
	for deadline := time.Now().Add(30 * time.Second); ; {
		asleep := 0
		for _, w := range p.workers[1:] {
			if w.asleep.Load() {
				asleep++
			}
		}
		if asleep == threads-1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d workers are asleep", asleep, threads-1)
		}
		time.Sleep(time.Millisecond)
	}
	p.close() // goleak sees a worker that stays
	defer func() {
		if recover() == nil {
			t.Error("work on a closed pool did not panic")
		}
	}()
	p.run(c, 100, 1)
}
