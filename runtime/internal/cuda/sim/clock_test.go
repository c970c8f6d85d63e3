package sim

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"
)

func near(got, want time.Duration) bool {
	d := got - want
	return d > -want/50-2 && d < want/50+2
}

func TestCopyTimes(t *testing.T) {
	const n = 1 << 24
	b := machine(t, "2xRTX-4090", Options{})
	p, q := b.alloc(0, n), b.alloc(1, n)
	host := b.pinned(n)
	took := func(f func()) time.Duration {
		at := b.Time()
		f()
		return b.Time() - at
	}
	slot := 0.85 * 16 * 1.969e9
	up := took(func() { b.ok(b.Device(0).CopyToDeviceNow(p, host)) })
	if want := hostLatency + seconds(n/slot); !near(up, want) {
		t.Errorf("an upload took %v, not %v", up, want)
	}
	staged := took(func() { b.ok(b.Device(0).CopyNow(q, p, n)) })
	if want := 14*time.Microsecond + seconds(n/slot); !near(staged, want) {
		t.Errorf("a staged copy took %v, not %v", staged, want)
	}
	local := took(func() { b.ok(b.Device(0).CopyNow(p, p, n)) })
	if want := launchTime + seconds(2*n/1010e9); !near(local, want) {
		t.Errorf("a copy on the device took %v, not %v", local, want)
	}
	nv := machine(t, "2xH100-SXM", Options{})
	x, y := nv.alloc(0, n), nv.alloc(1, n)
	nv.ok(nv.Device(0).EnablePeer(1))
	nv.ok(nv.Device(0).CopyNow(y, x, n))
	if want := 2*time.Microsecond + seconds(n/(0.83*450e9)); !near(nv.Time(), want) {
		t.Errorf("a copy over NVLink took %v, not %v", nv.Time(), want)
	}
}

func TestKernelTimes(t *testing.T) {
	const n = 1 << 18
	b := machine(t, "RTX-5090", Options{})
	p, s := b.upload(0, words(n, 1)), b.stream(0)
	at := b.Time()
	b.ok(b.mix(0, s, p, 3, 1, n))
	b.ok(b.Device(0).StreamSynchronize(s))
	k := b.Stats().Kernels[0]
	// It reads and writes each byte, yet of one allocation: once.
	if want := launchTime + max(seconds(4*n/1790e9), seconds(float64(k.Stats.ThreadInstructions)/52.4e12)); !near(b.Time()-at, want) {
		t.Errorf("took %v, not %v", b.Time()-at, want)
	}
	if k.Bytes != 4*n || k.Launches != 1 || k.Name != "mix" || k.Time != b.Time()-at || k.Stats.GlobalRead != 4*n {
		t.Errorf("%+v", k)
	}
}

// Two devices work at the same time, two kernels of one device do not; copies
// run beside kernels.
func TestOverlap(t *testing.T) {
	const n = 1 << 14
	for seed := range uint64(5) {
		b := machine(t, "2xRTX-4090", Options{Seed: seed})
		x, y, z := b.upload(0, words(n, 1)), b.upload(0, words(n, 1)), b.upload(1, words(n, 1))
		s, s2, s3 := b.stream(0), b.stream(0), b.stream(1)
		at := b.Time()
		for range 10 {
			b.ok(b.mix(0, s, x, 3, 1, n))
			b.ok(b.mix(0, s2, y, 3, 1, n))
			b.ok(b.mix(1, s3, z, 3, 1, n))
		}
		b.ok(b.Device(1).Synchronize())
		one := b.Time() - at
		b.ok(b.Device(0).Synchronize())
		both := b.Time() - at
		if !near(both, 2*one) {
			t.Errorf("seed %d: ten kernels %v, twenty %v", seed, one, both)
		}
		if f := b.Busy(0, "compute", at, b.Time()); f < 0.99 {
			t.Errorf("device 0 worked %.2f of the time", f)
		}
		if f := b.Busy(1, "compute", at, b.Time()); f < 0.49 || f > 0.51 {
			t.Errorf("device 1 worked %.2f of the time", f)
		}
		if d := b.Stats().Devices; d[0].ComputeTime != both || d[1].ComputeTime != one {
			t.Errorf("counted %v and %v, not %v and %v", d[0].ComputeTime, d[1].ComputeTime, both, one)
		}
		host := b.pinned(4 * n)
		at = b.Time()
		b.ok(b.Device(0).CopyToDevice(x, host, s))
		b.ok(b.mix(0, s2, y, 3, 1, n))
		b.ok(b.Device(0).Synchronize())
		if d, want := b.Time()-at, hostLatency+seconds(4*n/(0.85*31.504e9)); !near(d, want) {
			t.Errorf("seed %d: a copy beside a kernel took %v, not %v", seed, d, want)
		}
	}
}

// Whatever order work is booked in, an engine is never used twice at a time,
// and gaps are filled.
func TestEngine(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		var e engine
		var got []slot
		for range 100 {
			ready, d := time.Duration(r.IntN(1000)), time.Duration(1+r.IntN(20))
			at := e.fit(ready, d)
			for _, s := range got {
				if at < s.to && s.from < at+d {
					t.Fatalf("%v for %v meets %v", at, d, s)
				}
			}
			if at < ready {
				t.Fatalf("%v before %v", at, ready)
			}
			e.book(at, d)
			got = append(got, slot{at, at + d})
		}
	}
	var e engine
	e.book(0, 10)
	e.book(20, 10)
	if at := e.fit(5, 10); at != 10 {
		t.Errorf("a gap that fits was left: %v", at)
	}
	if at := e.fit(5, 11); at != 30 {
		t.Errorf("%v", at)
	}
}

func TestTrace(t *testing.T) {
	b := machine(t, "RTX-5090", Options{})
	p := b.upload(0, words(64, 1))
	b.ok(b.mix(0, 0, p, 3, 1, 64))
	b.ok(b.Device(0).Synchronize())
	var buf bytes.Buffer
	if err := b.WriteTrace(&buf); err != nil {
		t.Fatal(err)
	}
	var got struct {
		TraceEvents []struct {
			Name string
			Dur  float64
		}
	}
	if err := json.Unmarshal(buf.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.TraceEvents) != 2 || got.TraceEvents[0].Name != "upload" || got.TraceEvents[1].Name != "mix" || got.TraceEvents[1].Dur <= 0 {
		t.Errorf("%+v", got)
	}
}
