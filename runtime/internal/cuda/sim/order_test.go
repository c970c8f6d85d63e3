package sim

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// A program is random work on buffers of several devices, in the order it must
// appear to happen.
type program struct {
	devices int
	buffers []int // device of each
	steps   []step
	waits   [][2]int // step waits for step, over streams
}

type step struct {
	kind     string // mix, add (dst += src, one device), copy, set, upload
	dst, src int
	a, c     uint32
	stream   int // two for each device
}

const progWords = 32

// reads says whether a step reads a buffer; all write dst, and mix and add read it.
func (s step) reads(b int) bool {
	return (s.kind == "mix" || s.kind == "add") && s.dst == b || (s.kind == "add" || s.kind == "copy") && s.src == b
}

func conflict(a, b step) bool {
	return a.dst == b.dst || a.reads(b.dst) || b.reads(a.dst)
}

// newProgram makes a program, with a wait for each pair of steps on different
// streams that must not change places and is not kept in order otherwise.
func newProgram(r *rand.Rand, devices, steps int) *program {
	p := &program{devices: devices}
	for d := range devices {
		for range 3 {
			p.buffers = append(p.buffers, d)
		}
	}
	before := make([]map[int]bool, steps) // all that a step comes after
	for i := range steps {
		s := step{dst: r.IntN(len(p.buffers)), src: r.IntN(len(p.buffers)), a: r.Uint32() | 1, c: r.Uint32()}
		s.kind = []string{"mix", "mix", "add", "copy", "copy", "set", "upload"}[r.IntN(7)]
		if s.src == s.dst || s.kind == "add" && p.buffers[s.src] != p.buffers[s.dst] {
			s.kind = "mix"
		}
		d := p.buffers[s.dst]
		if s.kind == "copy" && r.IntN(2) == 0 {
			d = p.buffers[s.src]
		}
		s.stream = 2*d + r.IntN(2)
		before[i] = map[int]bool{}
		after := func(j int) {
			before[i][j] = true
			for k := range before[j] {
				before[i][k] = true
			}
		}
		for j := i - 1; j >= 0; j-- {
			if p.steps[j].stream == s.stream {
				after(j)
				break
			}
		}
		for j := i - 1; j >= 0; j-- {
			if conflict(p.steps[j], s) && !before[i][j] {
				p.waits = append(p.waits, [2]int{i, j})
				after(j)
			}
		}
		p.steps = append(p.steps, s)
	}
	return p
}

// sequential is what the program computes.
func (p *program) sequential() [][]byte {
	out := make([][]byte, len(p.buffers))
	for i := range out {
		out[i] = words(progWords, uint32(i))
	}
	for _, s := range p.steps {
		switch s.kind {
		case "mix":
			out[s.dst] = mixed(out[s.dst], s.a, s.c)
		case "add":
			out[s.dst] = added(out[s.dst], out[s.src])
		case "copy":
			copy(out[s.dst], out[s.src])
		case "set":
			for i := range out[s.dst] {
				out[s.dst][i] = byte(s.c)
			}
		case "upload":
			copy(out[s.dst], words(progWords, s.c))
		}
	}
	return out
}

// run does it on a machine, but for one wait; -1 leaves none out.
func (p *program) run(t *testing.T, preset string, seed uint64, omit int, concurrent bool) [][]byte {
	b := machine(t, preset, Options{Seed: seed, Workers: 1})
	var bufs, streams []uint64
	for i, d := range p.buffers {
		bufs = append(bufs, b.upload(d, words(progWords, uint32(i))))
	}
	for d := range p.devices {
		streams = append(streams, b.stream(d), b.stream(d))
		for o := range p.devices {
			if o != d && b.CanAccessPeer(d, o) {
				b.ok(b.Device(d).EnablePeer(o))
			}
		}
	}
	host := b.pinned(int64(4 * progWords * len(p.steps)))
	events := make([]uint64, len(p.steps))
	recorded := make([]chan struct{}, len(p.steps))
	for i, s := range p.steps {
		events[i], recorded[i] = b.event(s.stream/2), make(chan struct{})
	}
	one := func(i int) {
		s := p.steps[i]
		d := s.stream / 2
		q := streams[s.stream]
		for w, pair := range p.waits {
			if pair[0] == i && w != omit {
				if concurrent {
					<-recorded[pair[1]]
				}
				b.ok(b.Device(d).StreamWaitEvent(q, events[pair[1]]))
			}
		}
		switch s.kind {
		case "mix":
			b.ok(b.mix(d, q, bufs[s.dst], s.a, s.c, progWords))
		case "add":
			b.ok(b.Device(d).Launch(b.fns[d]["add"], [3]uint32{1, 1, 1}, [3]uint32{progWords, 1, 1}, 0, q, pack(bufs[s.dst], bufs[s.src], uint32(progWords))))
		case "copy":
			b.ok(b.Device(d).Copy(bufs[s.dst], bufs[s.src], 4*progWords, q))
		case "set":
			b.ok(b.Device(d).Set(bufs[s.dst], s.c, 1, 4*progWords, q, false))
		case "upload":
			h := host[4*progWords*i : 4*progWords*(i+1)]
			copy(h, words(progWords, s.c))
			b.ok(b.Device(d).CopyToDevice(bufs[s.dst], h, q))
		}
		b.ok(b.Device(d).EventRecord(events[i], q))
		close(recorded[i])
	}
	if concurrent {
		var wg sync.WaitGroup
		for d := range p.devices {
			wg.Go(func() {
				for i, s := range p.steps {
					if s.stream/2 == d {
						one(i)
					}
				}
				for b.Device(d).StreamQuery(streams[2*d]) == NotReady {
				}
				b.ok(b.Device(d).Synchronize())
			})
		}
		wg.Wait()
	} else {
		for i := range p.steps {
			one(i)
		}
		for d := range p.devices {
			b.ok(b.Device(d).Synchronize())
		}
	}
	out := make([][]byte, len(bufs))
	for i, x := range bufs {
		out[i] = b.download(p.buffers[i], x, 4*progWords)
	}
	return out
}

func same(a, b [][]byte) bool {
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

func TestOrderedProgramsGiveTheSequentialResult(t *testing.T) {
	seeds := uint64(200)
	if testing.Short() {
		seeds = 30
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 1))
		preset, devices := "2xRTX-4090", 2
		if seed%2 == 1 {
			preset, devices = "3xH100-SXM", 3
		}
		p := newProgram(r, devices, 40)
		if !same(p.run(t, preset, seed, -1, false), p.sequential()) {
			t.Fatalf("seed %d: another result", seed)
		}
	}
}

func TestConcurrentCallersGiveTheSequentialResult(t *testing.T) {
	for seed := range uint64(20) {
		p := newProgram(rand.New(rand.NewPCG(seed, 2)), 3, 60)
		if !same(p.run(t, "3xH100-SXM", seed, -1, true), p.sequential()) {
			t.Fatalf("seed %d: another result", seed)
		}
	}
}

// Whichever wait is left out, some seed shows it.
func TestAMissingWaitShows(t *testing.T) {
	shown, hidden := 0, 0
	for n := range uint64(12) {
		p := newProgram(rand.New(rand.NewPCG(n, 3)), 2, 8)
		want := p.sequential()
		for omit, w := range p.waits {
			// What it guards must be seen at the end.
			other := *p
			other.steps = append([]step(nil), p.steps...)
			moved := other.steps[w[0]]
			copy(other.steps[w[1]+1:w[0]+1], other.steps[w[1]:w[0]])
			other.steps[w[1]] = moved
			if same(other.sequential(), want) {
				continue
			}
			found := false
			for seed := uint64(0); seed < 200 && !found; seed++ {
				found = !same(p.run(t, "2xRTX-4090", seed, omit, false), want)
			}
			if found {
				shown++
			} else {
				hidden++
				t.Logf("program %d: nobody missed wait %d (step %d for %d)", n, omit, w[0], w[1])
			}
		}
	}
	if hidden > 0 || shown < 20 {
		t.Errorf("of %d missing waits %d showed", shown+hidden, shown)
	}
}

func TestSameSeedSameTimes(t *testing.T) {
	times := func(seed uint64) time.Duration {
		b := machine(t, "2xRTX-4090", Options{Seed: seed})
		s := []uint64{b.stream(0), b.stream(0), b.stream(1)}
		x := []uint64{b.alloc(0, 1<<16), b.alloc(0, 1<<16), b.alloc(1, 1<<16)}
		for i := range 60 {
			k := i % 3
			b.ok(b.mix(k/2, s[k], x[k], 3, 1, 1<<10))
			if i%7 == 0 {
				b.ok(b.Device(0).Copy(x[2], x[0], 1<<16, s[0]))
			}
		}
		b.ok(b.Device(0).Synchronize())
		b.ok(b.Device(1).Synchronize())
		return b.Time()
	}
	if a, c := times(3), times(3); a != c {
		t.Errorf("the same seed took %v and %v", a, c)
	}
}
