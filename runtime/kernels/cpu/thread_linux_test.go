package cpu

import (
	"runtime"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// affinities notes where the threads that do the items may run. An item ends
// when all are under way, so that each thread has one.
type affinities struct {
	sets []unix.CPUSet
	all  sync.WaitGroup
}

func (a *affinities) run(_ *worker, lo, _ int) {
	if err := unix.SchedGetaffinity(0, &a.sets[lo]); err != nil {
		panic(err)
	}
	a.all.Done()
	a.all.Wait()
}

// With a thread for each core every core has one; the process's other threads
// may run everywhere, those that Go makes later included.
func TestEveryCoreHasOneThread(t *testing.T) {
	want := coreSets()
	if len(want) == 0 {
		t.Skip("not testable here: the system does not say which cores there are")
	}
	var all, sum unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	for _, s := range want {
		for i := range 64 * len(s) {
			if s.IsSet(i) {
				sum.Set(i)
			}
		}
	}
	if sum != all {
		t.Fatalf("the cores %v are not the processors that may be used, %v", want, all)
	}

	if len(want) > processors {
		t.Skipf("not testable here: %d cores, of which a quota, or GOMAXPROCS, leaves %d", len(want), processors)
	}
	p := newPool(len(want))
	defer p.close()
	a := &affinities{sets: make([]unix.CPUSet, len(want))}
	a.all.Add(len(want))
	done := make(chan bool)
	go func() {
		defer close(done)
		p.bind(0)
		p.run(a, len(want), 1)
	}()
	<-done
	for _, s := range want {
		if !slices.Contains(a.sets, s) {
			t.Errorf("no thread is bound to %v; they may run on %v", s, a.sets)
		}
	}
	for range 4 * runtime.NumCPU() {
		got := make(chan unix.CPUSet)
		go func() {
			runtime.LockOSThread() // a new thread for the next
			var s unix.CPUSet
			_ = unix.SchedGetaffinity(0, &s)
			got <- s
		}()
		if s := <-got; s != all {
			t.Fatalf("another thread may run on %v, want %v", s, all)
		}
	}
}

// Fewer threads than cores, or more, run where the system likes.
func TestOtherThreadsAreNotBound(t *testing.T) {
	n := len(coreSets())
	for _, threads := range []int{n - 1, n + 1} {
		if p := newPlacement(threads); p.cores != nil {
			t.Errorf("%d threads on %d cores are bound to %v", threads, n, p.cores)
		}
	}
}

// A pool leaves other goroutines a processor of Go's while its threads compute.
func TestPoolLeavesOneProc(t *testing.T) {
	n := processors
	p := newPool(n)
	defer p.close()
	if got := runtime.GOMAXPROCS(0); got <= n {
		t.Errorf("GOMAXPROCS is %d beside %d threads that compute", got, n)
	}
}
