package sim

import (
	"bytes"
	"encoding/json"
	"math/bits"
	"testing"
	"time"
)

// pair is two devices with a buffer each: src holds a pattern, dst another.
type pair struct {
	*bench
	src, dst  uint64
	s         uint64 // stream of the source's device
	data, old []byte
}

func newPair(t *testing.T, n int, faults ...Fault) *pair {
	b := machine(t, "2xA100-SXM", Options{Seed: 1, Faults: faults})
	b.ok(b.Device(0).EnablePeer(1))
	b.ok(b.Device(1).EnablePeer(0))
	p := &pair{bench: b, data: words(n, 1), old: words(n, 2), s: b.stream(0)}
	p.src, p.dst = b.alloc(0, int64(4*n)), b.alloc(1, int64(4*n))
	p.put(0, p.src, p.data)
	p.put(1, p.dst, p.old)
	return p
}

// put and get go past the faults of the host's ways.
func (p *pair) put(d int, at uint64, data []byte) {
	a, off, _ := p.span(at, int64(len(data)))
	copy(a.data[off:], data)
}

func (p *pair) get(at uint64, n int) []byte {
	a, off, _ := p.span(at, int64(n))
	return bytes.Clone(a.data[off : off+int64(n)])
}

// send copies 0 to 1 and gives what is there then.
func (p *pair) send() []byte {
	p.t.Helper()
	p.ok(p.Device(0).Copy(p.dst, p.src, int64(len(p.data)), p.s))
	p.ok(p.Device(0).StreamSynchronize(p.s))
	return p.get(p.dst, len(p.data))
}

func flipped(a, b []byte) int {
	n := 0
	for i := range a {
		n += bits.OnesCount8(a[i] ^ b[i])
	}
	return n
}

func TestDataFaultsOfPeerCopies(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault Fault
		right func(p *pair, got []byte) bool
	}{
		{"none", Fault{Kind: Zeros, From: 1, To: 0}, func(p *pair, got []byte) bool { return bytes.Equal(got, p.data) }}, // the other direction
		{"zeros", Fault{Kind: Zeros, To: 1}, func(p *pair, got []byte) bool { return bytes.Equal(got, make([]byte, len(got))) }},
		{"stale", Fault{Kind: Stale, To: 1}, func(p *pair, got []byte) bool { return bytes.Equal(got, p.old) }},
		{"driver-lies", Fault{Kind: DriverLies, To: 1}, func(p *pair, got []byte) bool { return bytes.Equal(got, p.old) }},
		{"bitflip", Fault{Kind: BitFlip, To: 1}, func(p *pair, got []byte) bool { return flipped(got, p.data) == 1 }},
		{"shift", Fault{Kind: Shift, To: 1, Bytes: 4}, func(p *pair, got []byte) bool {
			return bytes.Equal(got[4:], p.data[:len(got)-4]) && bytes.Equal(got[:4], p.old[:4])
		}},
		{"partial", Fault{Kind: Partial, To: 1}, func(p *pair, got []byte) bool {
			h := len(got) / 2
			return bytes.Equal(got[:h], p.data[:h]) && bytes.Equal(got[h:], p.old[h:])
		}},
		{"garbage", Fault{Kind: Garbage, To: 1}, func(p *pair, got []byte) bool { return flipped(got, p.data) > len(got)/2 }},
		{"any", Fault{Kind: Zeros, From: Any, To: Any}, func(p *pair, got []byte) bool { return bytes.Equal(got, make([]byte, len(got))) }},
		{"another path", Fault{Kind: Zeros, To: 1, Paths: []Path{PeerKernel, DriverStaged}}, func(p *pair, got []byte) bool { return bytes.Equal(got, p.data) }},
		{"larger ones only", Fault{Kind: Zeros, To: 1, MinBytes: 1 << 20}, func(p *pair, got []byte) bool { return bytes.Equal(got, p.data) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPair(t, 256, c.fault)
			if !c.right(p, p.send()) {
				t.Error("other bytes than the fault gives")
			}
		})
	}
}

func TestStaleWriteComesLate(t *testing.T) {
	p := newPair(t, 64, Fault{Kind: Stale, To: 1, Times: 1})
	if !bytes.Equal(p.send(), p.old) {
		t.Fatal("not stale")
	}
	other := p.alloc(1, 256)
	p.ok(p.Device(0).Copy(other, p.src, 256, p.s))
	p.ok(p.Device(0).Synchronize())
	if !bytes.Equal(p.get(p.dst, 256), p.data) {
		t.Error("the late write never came")
	}
}

func TestWhichCopiesAreStruck(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault Fault
		bad   []int
	}{
		{"every third", Fault{Every: 3}, []int{3, 6, 9}},
		{"after four", Fault{After: 4}, []int{5, 6, 7, 8, 9}},
		{"after four, twice", Fault{After: 4, Times: 2}, []int{5, 6}},
		{"after two, every second", Fault{After: 2, Every: 2}, []int{4, 6, 8}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.fault.Kind, c.fault.To = BitFlip, 1
			p := newPair(t, 64, c.fault)
			var bad []int
			for i := 1; i < 10; i++ {
				if !bytes.Equal(p.send(), p.data) {
					bad = append(bad, i)
				}
			}
			if len(bad) != len(c.bad) || len(bad) > 0 && bad[0] != c.bad[0] || bad[len(bad)-1] != c.bad[len(c.bad)-1] {
				t.Errorf("copies %v were bad, not %v", bad, c.bad)
			}
			if got := p.Stats().Faults[BitFlip]; got != len(c.bad) {
				t.Errorf("%d strikes counted", got)
			}
		})
	}
}

func TestFaultUnderTrafficOnly(t *testing.T) {
	p := newPair(t, 64, Fault{Kind: Zeros, To: 1, Busy: true})
	if !bytes.Equal(p.send(), p.data) {
		t.Fatal("struck without traffic")
	}
	s2, back := p.stream(1), p.alloc(0, 256)
	bad := 0
	for range 20 {
		p.ok(p.Device(1).Copy(back, p.dst, 256, s2)) // waits in its own queue
		if !bytes.Equal(p.send(), p.data) {
			bad++
		}
		p.ok(p.Device(1).Synchronize())
	}
	if bad == 0 {
		t.Error("never struck under traffic")
	}
}

func TestFaultsOfKernelReads(t *testing.T) {
	zero := make([]byte, 256)
	for _, c := range []struct {
		name  string
		fault Fault
		right func(p *pair, got []byte) bool
	}{
		{"zeros", Fault{Kind: Zeros, To: 1, Paths: []Path{PeerKernel}}, func(p *pair, got []byte) bool { return bytes.Equal(got, zero) }},
		{"bitflip", Fault{Kind: BitFlip, To: 1}, func(p *pair, got []byte) bool { return flipped(got, p.data) == 1 }},
		{"stale", Fault{Kind: Stale, To: 1}, func(p *pair, got []byte) bool { return bytes.Equal(got, zero) }},
		{"copies only", Fault{Kind: Zeros, To: 1, Paths: []Path{PeerCopy}}, func(p *pair, got []byte) bool { return bytes.Equal(got, p.data) }},
		{"the other way", Fault{Kind: Zeros, From: 1, To: 0}, func(p *pair, got []byte) bool { return bytes.Equal(got, p.data) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPair(t, 64, c.fault)
			out, s := p.alloc(1, 256), p.stream(1)
			read := func() []byte {
				p.ok(p.move(1, s, out, p.src, 64))
				p.ok(p.Device(1).StreamSynchronize(s))
				return p.get(out, 256)
			}
			if !c.right(p, read()) {
				t.Error("other bytes than the fault gives")
			}
			if c.name == "stale" && !bytes.Equal(read(), p.data) {
				t.Error("the second read is not of what was there at the first")
			}
		})
	}
	// A copy over the same link is right when only kernels see the fault.
	p := newPair(t, 64, Fault{Kind: Zeros, To: 1, Paths: []Path{PeerKernel}})
	if !bytes.Equal(p.send(), p.data) {
		t.Error("a copy was struck")
	}
}

func TestFaultsOfKernelWrites(t *testing.T) {
	for kind, want := range map[FaultKind]func(p *pair) []byte{
		Zeros:      func(p *pair) []byte { return make([]byte, 256) },
		DriverLies: func(p *pair) []byte { return p.old },
		Slow:       func(p *pair) []byte { return p.data },
	} {
		p := newPair(t, 64, Fault{Kind: kind, To: 1})
		for i, b := range p.data {
			p.old[i] = ^b
		}
		p.put(1, p.dst, p.old)
		p.ok(p.move(0, p.s, p.dst, p.src, 64))
		p.ok(p.Device(0).Synchronize())
		got, w := p.get(p.dst, 256), want(p)
		if !bytes.Equal(got, w) {
			t.Errorf("%s: a kernel's writes to a peer arrived otherwise", kind)
		}
	}
}

func TestHungCopy(t *testing.T) {
	p := newPair(t, 64, Fault{Kind: Hang, To: 1})
	e := p.event(0)
	p.ok(p.Device(0).Copy(p.dst, p.src, 256, p.s))
	p.ok(p.Device(0).EventRecord(e, p.s))
	s1 := p.stream(1)
	p.ok(p.Device(1).StreamWaitEvent(s1, e))
	for range 1000 {
		p.want(p.Device(0).StreamQuery(p.s), NotReady)
		p.want(p.Device(0).EventQuery(e), NotReady)
		p.want(p.Device(1).StreamQuery(s1), NotReady)
	}
	// Other streams go on.
	other := p.stream(0)
	p.ok(p.mix(0, other, p.src, 3, 1, 64))
	p.ok(p.Device(0).StreamSynchronize(other))
	// Whoever waits for it waits for ever.
	done := make(chan Result, 1)
	go func() { done <- p.Device(0).MemFree(p.src) }()
	select {
	case r := <-done:
		t.Errorf("free came back: %s", r)
	case <-time.After(20 * time.Millisecond):
	}
	// Until somebody gives up.
	p.EndHangs()
	p.want(<-done, LaunchTimeout)
	p.want(p.Device(0).StreamQuery(p.s), LaunchTimeout)
	p.ok(p.Device(1).StreamSynchronize(s1))
}

func TestErrorCodes(t *testing.T) {
	p := newPair(t, 64, Fault{Kind: Failing, To: 1, Code: InvalidValue, Times: 1})
	p.want(p.Device(0).Copy(p.dst, p.src, 256, p.s), InvalidValue)
	if !bytes.Equal(p.send(), p.data) {
		t.Error("the next copy is wrong")
	}
	p = newPair(t, 64, Fault{Kind: Failing, To: 1, Code: ECCUncorrectable})
	p.ok(p.Device(0).Copy(p.dst, p.src, 256, p.s))
	p.want(p.Device(0).StreamSynchronize(p.s), ECCUncorrectable)
	p.want(p.Device(0).Synchronize(), ECCUncorrectable)
	p.ok(p.Device(1).Synchronize())
}

func TestLostDevice(t *testing.T) {
	p := newPair(t, 64, Fault{Kind: Lost, Device: 1, After: 3})
	s, e := p.stream(1), p.event(1)
	for range 5 {
		p.ok(p.mix(1, s, p.dst, 1, 1, 64))
	}
	p.ok(p.Device(1).EventRecord(e, s))
	p.ok(p.Device(0).StreamWaitEvent(p.s, e))
	p.want(p.Device(1).StreamSynchronize(s), Unknown)
	for range 3 {
		_, r := p.Device(1).MemAlloc(64)
		p.want(r, Unknown)
		p.want(p.Device(1).StreamQuery(s), Unknown)
		p.want(p.Device(1).Synchronize(), Unknown)
	}
	if got := p.Stats().Devices[1].Kernels; got != 3 {
		t.Errorf("%d kernels ran", got)
	}
	// Whoever waited for its mark goes on.
	p.ok(p.Device(0).StreamSynchronize(p.s))
	// A new context does not bring it back.
	p.ok(p.Device(1).Reset())
	mod, _, r := p.Device(1).ModuleLoad([]byte(kernels))
	p.ok(r)
	f, r := p.Device(1).ModuleFunction(mod, "mix")
	p.ok(r)
	p.ok(p.Device(1).Launch(f, [3]uint32{1, 1, 1}, [3]uint32{1, 1, 1}, 0, 0, make([]byte, 20)))
	p.want(p.Device(1).Synchronize(), Unknown)
}

func TestAllocationFails(t *testing.T) {
	b := machine(t, "2xRTX-4090", Options{Faults: []Fault{{Kind: NoMemory, Device: 0, After: 2, Times: 1}}})
	for i, want := range []Result{Success, Success, OutOfMemory, Success} {
		if _, r := b.Device(0).MemAlloc(64); r != want {
			t.Errorf("allocation %d: %s", i+1, r)
		}
	}
}

func TestBitRot(t *testing.T) {
	for _, f := range []Fault{{Kind: BitRot, After: 5}, {Kind: BitRot, AtUS: 20}} {
		b := machine(t, "RTX-4090", Options{Faults: []Fault{f}})
		weights, other := words(1000, 1), b.alloc(0, 4000)
		p := b.upload(0, weights)
		b.ok(b.Device(0).Set(other, 1, 1, 4000, 0, true))
		at := 0
		for i := 1; i < 20; i++ {
			b.ok(b.mix(0, 0, other, 1, 0, 10))
			b.ok(b.Device(0).Synchronize())
			if n := flipped(b.download(0, p, 4000), weights); n > 1 {
				t.Fatalf("%d bits flipped", n)
			} else if n == 1 && at == 0 {
				at = i
			}
		}
		if at == 0 || f.After > 0 && at != 6 {
			t.Errorf("%+v: struck at launch %d", f, at)
		}
		if !bytes.Equal(b.download(0, other, 4000), bytes.Repeat([]byte{1}, 4000)) {
			t.Error("struck what was never uploaded")
		}
	}
}

func TestHostPathsCorrupt(t *testing.T) {
	data, zero := words(64, 1), make([]byte, 256)
	b := machine(t, "2xRTX-4090", Options{Faults: []Fault{{Kind: Zeros, From: Host, To: 0, Every: 2}, {Kind: BitFlip, From: 1, To: Host}}})
	up := func(d int) []byte {
		p := b.upload(d, data)
		a, _, _ := b.span(p, 256)
		return a.data
	}
	if !bytes.Equal(up(0), data) || !bytes.Equal(up(0), zero) || !bytes.Equal(up(1), data) || !bytes.Equal(up(0), data) {
		t.Error("uploads to device 0 are to be zero every second time, to device 1 never")
	}
	if got := b.download(0, b.upload(0, data), 256); !bytes.Equal(got, zero) {
		t.Error("the fourth upload is not zero")
	}
	if got := b.download(1, b.upload(1, data), 256); flipped(got, data) != 1 {
		t.Error("no bit of a download from device 1 flipped")
	}
}

func TestDriversOwnStaging(t *testing.T) {
	for _, faulty := range []bool{false, true} {
		f := []Fault{{Kind: Zeros, From: Any, To: Any}} // of peer access: not this way
		if faulty {
			f = append(f, Fault{Kind: Stale, To: 1, Paths: []Path{DriverStaged}})
		}
		b := machine(t, "2xRTX-4090", Options{Faults: f})
		src, dst := b.upload(0, words(64, 1)), b.upload(1, words(64, 2))
		b.ok(b.Device(0).Copy(dst, src, 256, 0))
		b.ok(b.Device(0).Synchronize())
		if got := bytes.Equal(b.download(1, dst, 256), words(64, 1)); got == faulty {
			t.Errorf("faulty %v: arrived %v", faulty, got)
		}
	}
}

func TestLiesGiveAccess(t *testing.T) {
	b := machine(t, "2xRTX-5090", Options{Faults: []Fault{{Kind: DriverLies, From: 0, To: 1}}})
	if !b.CanAccessPeer(0, 1) || b.CanAccessPeer(1, 0) {
		t.Error("the driver does not lie in the one direction")
	}
	b.ok(b.Device(0).EnablePeer(1))
	if l, _ := b.Link(0, 1); *l.P2PStatus != "OK" {
		t.Error("NVML tells the truth")
	}
}

func TestUnknownCapability(t *testing.T) {
	b := machine(t, "2xRTX-5090", Options{Faults: []Fault{{Kind: UnknownCapability, Device: 1, Capability: "14.2"}}})
	if b.Device(0).Capability() != "12.0" || b.Device(1).Capability() != "14.2" {
		t.Error(b.Device(0).Capability(), b.Device(1).Capability())
	}
	major, _ := b.Device(1).Attribute(75)
	minor, _ := b.Device(1).Attribute(76)
	if major != 14 || minor != 2 {
		t.Error(major, minor)
	}
}

func TestSlowLink(t *testing.T) {
	p := newPair(t, 1<<12)
	p.send()
	fast := p.Time()
	q := newPair(t, 1<<12, Fault{Kind: Slow, To: 1, Factor: 50})
	q.send()
	if slow := q.Time(); slow < 45*fast || slow > 55*fast {
		t.Errorf("%v and %v", fast, slow)
	}
}

func TestInjectAndHeal(t *testing.T) {
	p := newPair(t, 64)
	p.Inject(Fault{Kind: Zeros, To: 1})
	if bytes.Equal(p.send(), p.data) {
		t.Error("an injected fault did nothing")
	}
	p.Heal()
	if !bytes.Equal(p.send(), p.data) {
		t.Error("still ill")
	}
}

func TestFaultFromJSON(t *testing.T) {
	var f Fault
	if err := json.Unmarshal([]byte(`{"kind": "bitflip", "to": 1, "every": 3, "paths": ["peer-kernel"]}`), &f); err != nil {
		t.Fatal(err)
	}
	if f.Kind != BitFlip || f.From != Any || f.To != 1 || f.Device != Any || f.Every != 3 || f.check(2) != nil {
		t.Errorf("%+v", f)
	}
	if json.Unmarshal([]byte(`{"kind": "bitflip", "too": 1}`), &f) == nil {
		t.Error("an unknown field of a fault was taken")
	}
	for _, bad := range []Fault{
		{Kind: "odd"},
		{Kind: Zeros, To: 2},
		{Kind: Zeros, From: -3},
		{Kind: Lost, Device: Host},
		{Kind: Zeros, Paths: []Path{"air"}},
		{Kind: Zeros, Every: -1},
		{Kind: UnknownCapability, Capability: "x"},
	} {
		if bad.check(2) == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}
