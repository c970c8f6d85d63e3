package cpu

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"infer/runtime/kernels"
)

// unit is one that multiplies, measured by a loop that does nothing else.
type unit struct {
	name string
	macs int         // multiply-adds for each of n
	loop func(n int) // n ≥ 1
}

// units of a path.
type units struct {
	read func(p *uint64, n int) // n: a multiple of 32, at least that
	mul  [3]unit                // for weights as they are stored, of q8 and of q4
}

var unitsGo = units{readGo, [3]unit{{"scalar float32", 8, peakGo}, {"scalar float32", 8, peakGo}, {"scalar float32", 8, peakGo}}}

// peakSink keeps what was computed from being left out.
var peakSink atomic.Uint64

func peakGo(n int) {
	var a, b, c, d, e, f, g, h float32
	x := float32(n)
	for range n {
		a, b, c, d = a*x+x, b*x+x, c*x+x, d*x+x
		e, f, g, h = e*x+x, f*x+x, g*x+x, h*x+x
	}
	peakSink.Add(uint64(a + b + c + d + e + f + g + h))
}

func readGo(p *uint64, n int) {
	var a, b, c, d uint64
	for words := unsafe.Slice(p, n); len(words) >= 8; words = words[8:] {
		a, b, c, d = a+words[0]+words[4], b+words[1]+words[5], c+words[2]+words[6], d+words[3]+words[7]
	}
	peakSink.Add(a + b + c + d)
}

const (
	peakPasses = 7 // of which the best counts for multiply-adds, the middle one for memory
	peakPiece  = 1 << 20
	peakMemory = 1 << 30  // more than caches hold
	leastPeak  = 64 << 20 // less says nothing about memory
	peakLoops  = 20_000
	peakItems  = 32 // for each thread
)

// Peak implements kernels.Roofline. It takes a gigabyte of memory, or half of
// what is free.
func (b *Backend) Peak(f kernels.Format) (kernels.Peak, error) {
	u := b.path.units.mul[0]
	switch f {
	case kernels.F16, kernels.F32:
		if b.path.exact != nil { // those are multiplied by its kernels
			u = b.path.exact.units.mul[0]
		}
	case kernels.Q8:
		u = b.path.units.mul[1]
	case kernels.Q4:
		u = b.path.units.mul[2]
	}
	n := min(peakMemory, b.dev.Info().FreeBytes/2) / peakPiece
	if n*peakPiece < leastPeak {
		return kernels.Peak{}, fmt.Errorf("measure the memory of %v: %d bytes are free, %d are needed", id, b.dev.Info().FreeBytes, 2*leastPeak)
	}
	buf, err := b.dev.alloc(n*peakPiece, hugePages)
	if err != nil {
		return kernels.Peak{}, fmt.Errorf("measure the memory of %v: %w", id, err)
	}
	r := &reading{mem: buf.mem}
	items := len(b.dev.pool.workers) * peakItems
	p := kernels.Peak{Unit: u.name}
	b.dev.pool.run(r, int(n), 1) // writes: memory never written is not there
	r.read = b.path.units.read
	var took [peakPasses]time.Duration
	for i := range took {
		began := time.Now()
		b.dev.pool.run(r, int(n), 1)
		took[i] = time.Since(began)
		began = time.Now()
		b.dev.pool.run(multiplying(u.loop), items, 1)
		p.MACs = max(p.MACs, float64(items*peakLoops*u.macs)/time.Since(began).Seconds())
	}
	slices.Sort(took[:])
	p.Read = float64(n*peakPiece) / took[peakPasses/2].Seconds()
	return p, buf.Free()
}

type multiplying func(n int)

func (m multiplying) run(_ *worker, lo, hi int) { m((hi - lo) * peakLoops) }

// reading writes, then reads, pieces of memory.
type reading struct {
	mem  []byte
	read func(p *uint64, n int) // nil: write
}

func (r *reading) run(_ *worker, lo, hi int) {
	p, n := (*uint64)(unsafe.Pointer(&r.mem[lo*peakPiece])), (hi-lo)*peakPiece/8
	if r.read != nil {
		r.read(p, n)
		return
	}
	for i, words := 0, unsafe.Slice(p, n); i < n; i++ {
		words[i] = uint64(i)
	}
}
