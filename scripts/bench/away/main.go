package main

import (
	"flag"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

// long is what counts as being away.
const long = time.Millisecond

func main() {
	total := flag.Duration("t", 30*time.Second, "how long to measure")
	flag.Parse()
	var (
		wait sync.WaitGroup
		lock sync.Mutex
		gaps []time.Duration // above long, of all threads
	)
	threads := runtime.GOMAXPROCS(0)
	for range threads {
		wait.Go(func() {
			runtime.LockOSThread()
			var mine []time.Duration
			start := time.Now()
			for last := start; last.Sub(start) < *total; {
				now := time.Now()
				if d := now.Sub(last); d > long {
					mine = append(mine, d)
				}
				last = now
			}
			lock.Lock()
			defer lock.Unlock()
			gaps = append(gaps, mine...)
		})
	}
	wait.Wait()
	var sum time.Duration
	for _, d := range gaps {
		sum += d
	}
	fmt.Printf("%d threads that only read the clock for %v: away for more than %v %d times, %.2f %% of the time, %v at most\n",
		threads, *total, long, len(gaps), 100*float64(sum)/float64(*total)/float64(threads), slices.Max(append(gaps, 0)).Round(10*time.Microsecond))
}
