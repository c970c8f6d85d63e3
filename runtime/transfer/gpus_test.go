package transfer

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"infer/runtime/arch"
	"infer/runtime/device"
	"infer/runtime/tensor"
)

// healthy allows direct copies between all of the GPUs.
func healthy(gpus []*gpu) *Router {
	var facts []LinkFacts
	for _, a := range gpus {
		for _, b := range gpus {
			if a != b {
				facts = append(facts, goodLink(a, b))
			}
		}
	}
	return NewRouter(facts, Events{})
}

func goodLink(a, b *gpu) LinkFacts {
	return LinkFacts{
		Pair: Pair{a.id, b.id}, FromRow: arch.Lookup(a.capability), ToRow: arch.Lookup(b.capability),
		Link: device.Link{From: a.id, To: b.id, PeerAccess: true, P2PStatus: "OK"}, Finding: Finding{Verdict: Healthy},
	}
}

func devicesOf(gpus []*gpu) []device.Device {
	var all []device.Device
	for _, g := range gpus {
		all = append(all, g)
	}
	return all
}

// chain is a pipeline as the engine has it: each stage consumes what came into
// its one hidden buffer, which the next copy overwrites, twice in a step.
type chain struct {
	w     *world
	ends  []End    // one hidden buffer for each GPU
	kept  [][2]End // what each stage made of the two
	c     Copier
	input [2][]byte
}

func newChain(t *testing.T, seed uint64, o Options, size int) *chain {
	w, gpus := newWorld(seed, 3)
	o.Devices = devicesOf(gpus)
	if o.Router == nil {
		o.Router = healthy(gpus)
	}
	p := &chain{w: w, c: New(o)}
	for _, g := range gpus {
		e := g.end(t, size)
		p.ends = append(p.ends, e)
		k := [2]End{e, e}
		for i := range k {
			k[i].Tensor = g.tensor(t, size)
		}
		p.kept = append(p.kept, k)
	}
	return p
}

// step takes two inputs through the pipeline; it returns what Commit says, and
// whether every stage saw the right bytes.
func (p *chain) step(t *testing.T, rng *rand.Rand) (right bool, committed error) {
	t.Helper()
	for i := range p.input {
		p.input[i] = make([]byte, p.ends[0].Tensor.Bytes())
		for j := range p.input[i] {
			p.input[i][j] = byte(rng.Uint32())
		}
		for s, e := range p.ends {
			if s == 0 {
				e.Stream.Upload(e.Tensor, p.input[i])
			} else if err := p.c.Move(t.Context(), e, p.ends[s-1]); err != nil {
				t.Fatal(err)
			}
			e.Ops.Copy(p.kept[s][i].Tensor, e.Tensor)
		}
	}
	for _, e := range p.ends {
		if err := e.Stream.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	right = true
	for s, e := range p.ends {
		for i := range p.input {
			got := make([]byte, len(p.input[i]))
			e.Stream.(*queued).inner.Download(got, p.kept[s][i].Tensor)
			right = right && bytes.Equal(got, p.input[i])
		}
	}
	return right, p.c.Commit(1)
}

// In whatever order streams run, all bytes arrive where and when they should:
// directly and by way of the host, in one piece and in chunks.
func TestOrder(t *testing.T) {
	for _, size := range []int{64, 1000} {
		for name, o := range map[string]Options{
			"direct":            {},
			"staged":            {Router: NewRouter(nil, Events{}), Chunk: 1000},
			"chunked":           {Router: NewRouter(nil, Events{}), Chunk: 96},
			"direct, waiting":   {Sync: true},
			"staged, waiting":   {Router: NewRouter(nil, Events{}), Chunk: 96, Sync: true},
			"without verifying": {Verify: VerifyOff},
		} {
			for seed := range uint64(60) {
				p := newChain(t, seed, o, size)
				rng := rand.New(rand.NewPCG(seed, 2))
				for range 3 {
					right, err := p.step(t, rng)
					if !right || err != nil {
						t.Fatalf("%s, %d bytes, seed %d: right %t, %v", name, size, seed, right, err)
					}
				}
				if err := p.c.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// Many ways to host memory and back within one step, as experts there make
// them, need a bounded number of staging buffers.
func TestThereAndBack(t *testing.T) {
	const size, chunk, trips = 200, 96, 40
	for seed := range uint64(20) {
		_, gpus := newWorld(seed, 1)
		host, g := open(t, 0, size/4), gpus[0].end(t, size)
		c := New(Options{Chunk: chunk, Devices: []device.Device{gpus[0]}})
		want := make([]byte, size)
		g.Stream.Upload(g.Tensor, want)
		for i := range trips {
			if err := c.Move(t.Context(), host.End, g); err != nil {
				t.Fatal(err)
			}
			b := host.read()
			for j := range b {
				b[j] += byte(i * j)
				want[j] += byte(i * j)
			}
			host.Stream.Upload(host.Tensor, b)
			e := host.End
			var err error
			if e.Ready, err = c.Ready(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			if err := c.Move(t.Context(), g, e); err != nil {
				t.Fatal(err)
			}
		}
		if err := g.Stream.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, size)
		g.Stream.(*queued).inner.Download(got, g.Tensor)
		if err := c.Commit(1); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("seed %d: right %t, %v", seed, bytes.Equal(got, want), err)
		}
		if gpus[0].pinned > 10*chunk {
			t.Fatalf("seed %d: %d bytes of staging buffers", seed, gpus[0].pinned)
		}
		if err := c.Close(); err != nil || gpus[0].pinned != 0 {
			t.Fatalf("%d bytes stay, %v", gpus[0].pinned, err)
		}
	}
}

// Buffers are not filled anew before they are read, though nobody waits for
// the GPU between copies to it.
func TestManyFromTheHost(t *testing.T) {
	const size, copies = 64, 30
	for seed := range uint64(20) {
		_, gpus := newWorld(seed, 1)
		host, g := open(t, 0, size/4), gpus[0].end(t, size)
		c := New(Options{Devices: []device.Device{gpus[0]}})
		var kept []tensor.Tensor
		for i := range copies {
			host.Stream.Upload(host.Tensor, bytes.Repeat([]byte{byte(i)}, size))
			e := host.End
			var err error
			if e.Ready, err = c.Ready(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			if err := c.Move(t.Context(), g, e); err != nil {
				t.Fatal(err)
			}
			kept = append(kept, gpus[0].tensor(t, size))
			g.Ops.Copy(kept[i], g.Tensor)
		}
		if err := g.Stream.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, k := range kept {
			got := make([]byte, size)
			g.Stream.(*queued).inner.Download(got, k)
			if !bytes.Equal(got, bytes.Repeat([]byte{byte(i)}, size)) {
				t.Fatalf("seed %d: copy %d is %v", seed, i, got)
			}
		}
		if err := c.Commit(1); err != nil {
			t.Fatal(err)
		}
	}
}

// Each half of a barrier is needed: without it some order of the streams gives
// wrong bytes, and that is seen. What Commit can see, it does see.
func TestBarrierRemoved(t *testing.T) {
	type mutation struct {
		o    Options
		deaf func(p *chain, s *queued, m *mark) bool
		// digest: every wrong outcome must be found by Commit itself.
		digest bool
	}
	event := func(p *chain, pick func(*pair) []device.Event) func(m *mark) bool {
		return func(m *mark) bool {
			for _, x := range p.c.(*copier).pairs {
				for _, e := range pick(x) {
					if e == m {
						return true
					}
				}
			}
			return false
		}
	}
	staged := Options{Router: NewRouter(nil, Events{}), Chunk: 96}
	for name, m := range map[string]mutation{
		"the copy does not wait for the destination": {
			deaf: func(p *chain, _ *queued, e *mark) bool {
				return event(p, func(x *pair) []device.Event { return []device.Event{x.ready} })(e)
			},
		},
		"the destination does not wait for the copy": {
			digest: true,
			deaf: func(p *chain, _ *queued, e *mark) bool {
				return event(p, func(x *pair) []device.Event { return []device.Event{x.sent} })(e)
			},
		},
		"the way up does not wait for the way down": {
			o: staged, digest: true,
			deaf: func(p *chain, _ *queued, e *mark) bool {
				return event(p, func(x *pair) (l []device.Event) {
					for _, s := range x.slots {
						l = append(l, s.filled)
					}
					return l
				})(e)
			},
		},
		"a staging buffer is filled before it is free": {
			o: staged, digest: true,
			deaf: func(p *chain, _ *queued, e *mark) bool {
				return event(p, func(x *pair) (l []device.Event) {
					for _, s := range x.slots {
						l = append(l, s.free)
					}
					return l
				})(e)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			wrong, found := 0, 0
			for seed := range uint64(100) {
				p := newChain(t, seed, m.o, 1000)
				p.w.deaf = func(s *queued, e *mark) bool { return m.deaf(p, s, e) }
				right, err := p.step(t, rand.New(rand.NewPCG(seed, 2)))
				if !right {
					wrong++
					if err != nil {
						found++
					} else if m.digest {
						t.Fatalf("seed %d: wrong bytes were committed", seed)
					}
				}
			}
			if wrong == 0 {
				t.Fatal("no order of the streams shows that the barrier is gone")
			}
			t.Logf("wrong in %d of 100 orders, found by Commit in %d", wrong, found)
		})
	}
}

func TestStepsWithoutAllocation(t *testing.T) {
	for name, o := range map[string]Options{"direct": {}, "staged": {Router: NewRouter(nil, Events{}), Chunk: 96}} {
		w, gpus := newWorld(1, 2)
		o.Devices = devicesOf(gpus)
		if o.Router == nil {
			o.Router = healthy(gpus)
		}
		c := New(o)
		a, b := gpus[0].end(t, 1000), gpus[1].end(t, 1000)
		// Streams that do nothing: what is counted is the copier's own.
		a.Stream, b.Stream = idleStream{}, idleStream{}
		a.Ops, b.Ops = &equalDigests{}, &equalDigests{}
		step := func() {
			if err := errors.Join(c.Move(t.Context(), b, a), c.Commit(1)); err != nil {
				t.Fatal(err)
			}
		}
		step()
		if n := testing.AllocsPerRun(100, step); n > 0 {
			t.Errorf("%s: %g allocations a copy", name, n)
		}
		_ = w
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		for _, g := range gpus {
			if g.pinned != 0 {
				t.Errorf("%s: %d bytes of pinned memory are not freed", name, g.pinned)
			}
		}
	}
}

// A part without a row has each copy waited for.
func TestUnknownPartWaits(t *testing.T) {
	for _, c := range []struct {
		capability string
		want       int
	}{{"8.6", 0}, {"13.0", 4}} {
		_, gpus := newWorld(1, 2)
		gpus[1].capability, _ = arch.Parse(c.capability)
		a, b := gpus[0].end(t, 1000), gpus[1].end(t, 1000)
		s := &counting{}
		a.Stream, b.Stream = s, s
		a.Ops, b.Ops = &equalDigests{}, &equalDigests{}
		k := New(Options{Devices: devicesOf(gpus), Chunk: 500})
		if err := k.Move(t.Context(), b, a); err != nil {
			t.Fatal(err)
		}
		if s.syncs != c.want {
			t.Errorf("%s: waited %d times, want %d", c.capability, s.syncs, c.want)
		}
	}
}

func TestVerifyModes(t *testing.T) {
	for text, want := range map[string]string{"always": "111111", "off": "000000", "sampled:3": "001001", "sampled:1": "111111"} {
		v, err := ParseVerify(text)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for step := uint64(1); step <= 6; step++ {
			got += fmt.Sprint(map[bool]int{true: 1}[v.Step(step)])
		}
		if got != want || (v.String() != text && text != "sampled:1") {
			t.Errorf("%s: %s, %v", text, got, v)
		}
	}
	for _, text := range []string{"", "sampled", "sampled:0", "sampled:-1", "sampled:x", "on"} {
		if v, err := ParseVerify(text); err == nil {
			t.Errorf("%q was read as %v", text, v)
		}
	}
}
