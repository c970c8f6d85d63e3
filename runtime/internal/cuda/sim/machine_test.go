package sim

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestKernelsOnOneDevice(t *testing.T) {
	b := machine(t, "RTX-5090", Options{Checks: CheckAll})
	data := words(1000, 1)
	p := b.upload(0, data)
	s := b.stream(0)
	b.ok(b.mix(0, s, p, 5, 3, 1000))
	b.ok(b.mix(0, s, p, 7, 1, 1000))
	b.ok(b.Device(0).StreamSynchronize(s))
	if got := b.download(0, p, 4000); !bytes.Equal(got, mixed(mixed(data, 5, 3), 7, 1)) {
		t.Error("two kernels gave other words")
	}
}

func TestWorkRunsOnlyWhenWaitedFor(t *testing.T) {
	b := machine(t, "RTX-5090", Options{})
	p, s := b.alloc(0, 64), b.stream(0)
	src := b.pinned(64)
	copy(src, "early")
	b.ok(b.Device(0).CopyToDevice(p, src, s))
	copy(src, "later")
	if got := b.Stats().Devices[0].Copies; got != 0 {
		t.Fatalf("%d copies ran before anything waited", got)
	}
	// A pinned source is read when the copy runs.
	for b.Device(0).StreamQuery(s) == NotReady {
	}
	if got := b.download(0, p, 5); string(got) != "later" {
		t.Errorf("got %q", got)
	}
	// A pageable one when it is called.
	pageable := []byte("early")
	b.ok(b.Device(0).CopyToDevice(p, pageable, s))
	copy(pageable, "later")
	b.ok(b.Device(0).StreamSynchronize(s))
	if got := b.download(0, p, 5); string(got) != "early" {
		t.Errorf("got %q", got)
	}
	// A large pageable one has run when the call returns.
	large := words(stagingPiece, 3)
	q := b.alloc(0, int64(len(large)))
	want := bytes.Clone(large)
	b.ok(b.Device(0).CopyToDevice(q, large, s))
	clear(large)
	if got := b.download(0, q, len(want)); !bytes.Equal(got, want) {
		t.Error("a large pageable copy read its source late")
	}
	// A pageable destination is there when the call returns.
	out := make([]byte, 5)
	b.ok(b.Device(0).CopyToHost(out, p, s))
	if string(out) != "early" {
		t.Errorf("got %q", out)
	}
}

func TestForeignPointers(t *testing.T) {
	b := machine(t, "2xH100-SXM", Options{})
	p0, p1 := b.upload(0, words(64, 1)), b.alloc(1, 256)
	s := b.stream(1)
	if p0>>addrShift == p1>>addrShift {
		t.Fatalf("%#x and %#x: no telling the devices apart", p0, p1)
	}
	b.ok(b.move(1, s, p1, p0, 64))
	b.want(b.Device(1).StreamSynchronize(s), IllegalAddress)
	b.want(b.mix(1, s, p1, 1, 1, 64), IllegalAddress)
	_, r := b.Device(1).MemAlloc(1)
	b.want(r, IllegalAddress)
	b.want(b.Device(1).MemFree(p1), IllegalAddress)
	b.ok(b.Device(0).Synchronize())

	b.ok(b.Device(1).Reset())
	b = machine(t, "2xH100-SXM", Options{})
	p0, p1 = b.upload(0, words(64, 1)), b.alloc(1, 256)
	s = b.stream(1)
	b.ok(b.Device(1).EnablePeer(0))
	b.want(b.Device(1).EnablePeer(0), PeerAlreadyEnabled)
	b.ok(b.move(1, s, p1, p0, 64))
	b.ok(b.Device(1).StreamSynchronize(s))
	if !bytes.Equal(b.download(1, p1, 256), words(64, 1)) {
		t.Error("a peer's memory read wrong")
	}
	b.ok(b.Device(1).DisablePeer(0))
	b.want(b.Device(1).DisablePeer(0), PeerNotEnabled)
	b.want(machine(t, "2xRTX-5090", Options{}).Device(0).EnablePeer(1), PeerAccessUnsupported)
}

func TestBadAddressesAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(b *bench) Result
		want Result
		text string
	}{
		"over the end": {func(b *bench) Result {
			p := b.alloc(0, 1000)
			b.ok(b.mix(0, 0, p, 1, 1, 251))
			return b.Device(0).Synchronize()
		}, IllegalAddress, "behind the end of allocation 1"},
		"freed": {func(b *bench) Result {
			p := b.alloc(0, 1000)
			b.ok(b.Device(0).MemFree(p))
			b.ok(b.mix(0, 0, p, 1, 1, 64))
			return b.Device(0).Synchronize()
		}, IllegalAddress, "allocation 1 of device 0 (1000 bytes"},
		"freed twice": {func(b *bench) Result {
			p := b.alloc(0, 1000)
			b.ok(b.Device(0).MemFree(p))
			return b.Device(0).MemFree(p)
		}, InvalidValue, "was freed"},
		"copy over the end": {func(b *bench) Result {
			return b.Device(0).CopyToDeviceNow(b.alloc(0, 10)+1, make([]byte, 10))
		}, InvalidValue, "1 bytes into allocation 1"},
		"copy to freed memory": {func(b *bench) Result {
			p, e := b.alloc(0, 64), b.stream(0)
			q := b.alloc(1, 64)
			b.ok(b.Device(1).Copy(p, q, 64, b.stream(1)))
			b.ok(b.Device(0).MemFree(p))
			_ = e
			return b.Device(1).Synchronize()
		}, IllegalAddress, "was freed"},
		"misaligned": {func(b *bench) Result {
			b.ok(b.Device(0).Launch(b.fns[0]["wrong"], [3]uint32{1, 1, 1}, [3]uint32{1, 1, 1}, 0, 0, pack(b.alloc(0, 64))))
			return b.Device(0).Synchronize()
		}, MisalignedAddress, "wrong: misaligned"},
		"trap": {func(b *bench) Result {
			b.ok(b.Device(0).Launch(b.fns[0]["stop"], [3]uint32{1, 1, 1}, [3]uint32{1, 1, 1}, 0, 0, nil))
			return b.Device(0).Synchronize()
		}, LaunchFailed, "trap"},
		"no device": {func(b *bench) Result { return b.Device(0).CopyNow(12, b.alloc(0, 8), 8) }, InvalidValue, "no device"},
		"never written": {func(b *bench) Result {
			p := b.alloc(0, 256)
			b.ok(b.mix(0, 0, p, 1, 1, 64))
			return b.Device(0).Synchronize()
		}, LaunchFailed, "uninitialised"},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{}
			if name == "never written" {
				o.Checks = CheckAll
			}
			b := machine(t, "2xRTX-4090", o)
			b.want(c.do(b), c.want)
			if r := b.Reports(); len(r) == 0 || !strings.Contains(r[len(r)-1].Text, c.text) {
				t.Errorf("reports %v do not say %q", r, c.text)
			}
		})
	}
}

func TestLaunchLimits(t *testing.T) {
	b := machine(t, "2xRTX-4090", Options{})
	g := b.Device(0)
	f := b.fns[0]["big"]
	one := [3]uint32{1, 1, 1}
	for _, c := range []struct {
		grid, block [3]uint32
		shared      uint32
		want        Result
	}{
		{one, one, 0, Success},
		{[3]uint32{0, 1, 1}, one, 0, InvalidValue},
		{[3]uint32{1, 65536, 1}, one, 0, InvalidValue},
		{one, [3]uint32{1025, 1, 1}, 0, InvalidValue},
		{one, [3]uint32{32, 33, 1}, 0, InvalidValue},
		{one, [3]uint32{1, 1, 65}, 0, InvalidValue},
		{one, one, 47 << 10, Success},
		{one, one, 47<<10 + 1, InvalidValue}, // with 1 KiB static: over 48 KiB
	} {
		b.want(g.Launch(f, c.grid, c.block, c.shared, 0, nil), c.want)
	}
	b.want(g.FuncSetAttribute(f, funcMaxDynamic, 101376-1024+1), InvalidValue)
	b.ok(g.FuncSetAttribute(f, funcMaxDynamic, 101376-1024))
	b.ok(g.Launch(f, one, one, 100352, 0, nil))
	b.ok(g.Synchronize())
	b.want(g.Launch(b.fns[0]["mix"], one, one, 0, 0, make([]byte, 16)), InvalidValue)
	b.ok(g.Launch(b.fns[0]["mix"], one, one, 0, 0, make([]byte, 24))) // n is 0; padded
	b.ok(g.Synchronize())
	b.want(g.Launch(b.fns[1]["mix"], one, one, 0, 0, make([]byte, 20)), InvalidHandle)
	b.want(g.Launch(f, one, one, 0, b.stream(1), nil), InvalidHandle)
}

func TestModules(t *testing.T) {
	b := machine(t, "RTX-3060", Options{})
	g := b.Device(0)
	for text, want := range map[string]Result{
		"nonsense": InvalidPTX,
		strings.Replace(kernels, "sm_80", "sm_90", 1):             InvalidPTX,
		strings.Replace(kernels, "sm_80", "sm_70", 1):             Success,
		strings.Replace(kernels, "sm_80", "sm_60a", 1):            InvalidPTX,
		strings.Replace(kernels, "version 7.8", "version 9.5", 1): UnsupportedPTXVersion,
	} {
		_, log, r := g.ModuleLoad([]byte(text + "\x00"))
		b.want(r, want)
		if want != Success && !strings.Contains(log, "ptxas") {
			t.Errorf("%s: log %q", r, log)
		}
	}
	h, _, r := g.ModuleLoad([]byte(".version 7.0\n.target sm_70\n.address_size 64\n.global .align 4 .b32 v[2] = {7, 9};\n" +
		".visible .entry k(.param .u64 o) { .reg .b64 %o, %v; .reg .b32 %r; ld.param.u64 %o, [o]; mov.u64 %v, v; ld.global.u32 %r, [%v+4]; st.global.u32 [%o], %r; st.global.u32 [%v], %r; ret; }"))
	b.ok(r)
	f, r := g.ModuleFunction(h, "k")
	b.ok(r)
	_, r = g.ModuleFunction(h, "none")
	b.want(r, NotFound)
	p := b.alloc(0, 4)
	b.ok(g.Launch(f, [3]uint32{1, 1, 1}, [3]uint32{1, 1, 1}, 0, 0, pack(p)))
	v, n, r := g.ModuleVariable(h, "v")
	b.ok(r)
	if got := b.download(0, v, 8); n != 8 || !bytes.Equal(got, []byte{9, 0, 0, 0, 9, 0, 0, 0}) {
		t.Errorf("variable of %d bytes reads %v", n, got)
	}
	b.ok(g.ModuleUnload(h))
	b.want(g.Launch(f, [3]uint32{1, 1, 1}, [3]uint32{1, 1, 1}, 0, 0, pack(p)), InvalidHandle)
}

func TestMemoryLimitAndAccounting(t *testing.T) {
	b := machine(t, "RTX-5090", Options{})
	g := b.Device(0)
	before, total, r := g.MemInfo()
	b.ok(r)
	if total < 31<<30 || total > 32<<30 || before >= total {
		t.Fatalf("%d of %d free", before, total)
	}
	// More than this machine may have: only what is touched is taken.
	p := b.alloc(0, before-1<<20)
	_, r = g.MemAlloc(2 << 20)
	b.want(r, OutOfMemory)
	b.ok(g.CopyToDeviceNow(p+1<<34, []byte("far")))
	if got := b.download(0, p+1<<34, 3); string(got) != "far" {
		t.Errorf("got %q", got)
	}
	b.ok(g.MemFree(p))
	if after, _, _ := g.MemInfo(); after != before {
		t.Errorf("%d free, then %d", before, after)
	}
	_, r = g.MemAlloc(0)
	b.want(r, InvalidValue)
	for range 50 {
		if p := b.alloc(0, 7); p%granule != 0 {
			t.Errorf("%#x is not aligned", p)
		}
	}
}

func TestNullStream(t *testing.T) {
	for seed := range uint64(40) {
		b := machine(t, "RTX-5090", Options{Seed: seed})
		data := words(64, 1)
		p := b.upload(0, data)
		s1, r := b.Device(0).StreamCreate(true)
		b.ok(r)
		s2, r := b.Device(0).StreamCreate(true)
		b.ok(r)
		b.ok(b.mix(0, s1, p, 3, 1, 64))
		b.ok(b.mix(0, 0, p, 5, 2, 64))
		b.ok(b.mix(0, s2, p, 7, 3, 64))
		b.ok(b.Device(0).StreamSynchronize(s2))
		if !bytes.Equal(b.download(0, p, 256), mixed(mixed(mixed(data, 3, 1), 5, 2), 7, 3)) {
			t.Fatalf("seed %d: the null stream did not order blocking streams", seed)
		}
	}
}

func TestEvents(t *testing.T) {
	b := machine(t, "2xRTX-4090", Options{})
	g := b.Device(0)
	s, s2 := b.stream(0), b.stream(0)
	e, e2 := b.event(0), b.event(0)
	b.ok(g.StreamWaitEvent(s2, e)) // never recorded: no-op
	b.ok(g.StreamSynchronize(s2))
	b.ok(g.EventQuery(e))
	b.ok(g.EventSynchronize(e))
	_, r := g.EventElapsed(e, e2)
	b.want(r, InvalidHandle)

	p := b.upload(0, words(1<<14, 1))
	b.ok(g.EventRecord(e, s))
	b.ok(b.mix(0, s, p, 3, 1, 1<<14))
	b.ok(g.EventRecord(e2, s))
	_, r = g.EventElapsed(e, e2)
	b.want(r, NotReady)
	b.ok(g.EventSynchronize(e2))
	d, r := g.EventElapsed(e, e2)
	b.ok(r)
	if d < launchTime || d > launchTime+time.Microsecond {
		t.Errorf("a small kernel took %v", d)
	}
	b.want(b.Device(1).EventRecord(e, b.stream(1)), InvalidHandle)
	b.ok(g.EventDestroy(e))
	b.want(g.EventRecord(e, s), InvalidHandle)
	untimed, r := g.EventCreate(false)
	b.ok(r)
	b.ok(g.EventRecord(untimed, s))
	_, r = g.EventElapsed(untimed, e2)
	b.want(r, InvalidHandle)
}

// A wait is for the recording of the call, not for a later one.
func TestWaitCapturesTheRecord(t *testing.T) {
	for seed := range uint64(30) {
		b := machine(t, "RTX-5090", Options{Seed: seed})
		g := b.Device(0)
		s, s2, e := b.stream(0), b.stream(0), b.event(0)
		data := words(64, 1)
		p := b.upload(0, data)
		b.ok(b.mix(0, s, p, 3, 1, 64))
		b.ok(g.EventRecord(e, s))
		b.ok(g.StreamWaitEvent(s2, e))
		b.ok(b.mix(0, s2, p, 5, 2, 64))
		b.ok(g.EventRecord(e, s2)) // a new one: if the wait were for it, nothing would move
		b.ok(g.StreamSynchronize(s2))
		if !bytes.Equal(b.download(0, p, 256), mixed(mixed(data, 3, 1), 5, 2)) {
			t.Fatalf("seed %d: the wait was not for the record before it", seed)
		}
	}
}

func TestDestroyedStreamGoesOn(t *testing.T) {
	b := machine(t, "RTX-5090", Options{})
	data := words(64, 1)
	p, s := b.upload(0, data), b.stream(0)
	b.ok(b.mix(0, s, p, 3, 1, 64))
	b.ok(b.Device(0).StreamDestroy(s))
	b.want(b.Device(0).StreamQuery(s), InvalidHandle)
	b.ok(b.Device(0).Synchronize())
	if !bytes.Equal(b.download(0, p, 256), mixed(data, 3, 1)) {
		t.Error("the work of a destroyed stream was lost")
	}
}

func TestPinnedMemoryReachesKernels(t *testing.T) {
	b := machine(t, "RTX-5090", Options{})
	h := b.pinned(256)
	copy(h, words(64, 9))
	p := b.alloc(0, 256)
	b.ok(b.move(0, 0, p, hostAddr(h), 64))
	if !bytes.Equal(b.download(0, p, 256), words(64, 9)) {
		t.Error("a kernel read pinned memory wrong")
	}
	b.ok(b.Device(0).HostFree(hostAddr(h)))
	b.want(b.Device(0).HostFree(hostAddr(h)), InvalidValue)

	reg := make([]byte, 4096)
	b.ok(b.Device(0).HostRegister(reg))
	b.want(b.Device(0).HostRegister(reg[10:20]), HostAlreadyRegistered)
	b.ok(b.Device(0).CopyToDevice(p, reg[:4], 0))
	copy(reg, "late")
	b.ok(b.Device(0).Synchronize())
	if got := b.download(0, p, 4); string(got) != "late" {
		t.Errorf("registered memory read at the call: %q", got)
	}
	b.ok(b.Device(0).HostUnregister(hostAddr(reg)))
	b.want(b.Device(0).HostUnregister(hostAddr(reg)), HostNotRegistered)
}

func TestSet(t *testing.T) {
	b := machine(t, "RTX-5090", Options{})
	p := b.alloc(0, 16)
	b.ok(b.Device(0).Set(p, 0x0201, 1, 4, 0, false))
	b.ok(b.Device(0).Set(p+4, 0x0201, 2, 2, 0, false))
	b.ok(b.Device(0).Set(p+8, 0x04030201, 4, 2, 0, true))
	if got := b.download(0, p, 16); !bytes.Equal(got, []byte{1, 1, 1, 1, 1, 2, 1, 2, 1, 2, 3, 4, 1, 2, 3, 4}) {
		t.Errorf("got %v", got)
	}
	b.want(b.Device(0).Set(p+1, 0, 4, 1, 0, true), InvalidValue)
	b.want(b.Device(0).Set(p, 0, 1, 17, 0, true), InvalidValue)
}

func TestCloseReleasesWaiters(t *testing.T) {
	s, err := Preset("RTX-5090")
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(s, Options{Faults: []Fault{{Kind: Hang, From: Host, To: 0}}})
	if err != nil {
		t.Fatal(err)
	}
	g := m.Device(0)
	p, _ := g.MemAlloc(1000)
	done := make(chan Result)
	go func() { done <- g.CopyToDeviceNow(p, make([]byte, 1000)) }()
	time.Sleep(20 * time.Millisecond)
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if r := <-done; r != Deinitialized {
		t.Error(r)
	}
	if r := g.Synchronize(); r != Deinitialized {
		t.Error(r)
	}
	if m.Close() == nil {
		t.Error("closed twice without a word")
	}
}
