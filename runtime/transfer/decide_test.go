package transfer

import (
	"strings"
	"testing"

	"infer/runtime/arch"
	"infer/runtime/device"
)

func id(i int) device.ID { return device.ID{Kind: device.CUDA, Index: i} }

// Every reason alone keeps a link from carrying data directly, and says so.
func TestDecide(t *testing.T) {
	good := func() LinkFacts {
		return LinkFacts{
			Pair: Pair{id(0), id(1)}, FromRow: arch.Lookup(arch.Of(8, 6)), ToRow: arch.Lookup(arch.Of(8, 6)),
			Link: device.Link{PeerAccess: true, P2PStatus: "OK"}, Finding: Finding{Verdict: Healthy},
		}
	}
	for _, c := range []struct {
		name   string
		change func(f *LinkFacts)
		code   string // that decides; "": direct
		why    string
		probe  bool // the link may be probed
	}{
		{"all well", func(*LinkFacts) {}, "", "the probe passed", true},
		{"NVML silent", func(f *LinkFacts) { f.Link.P2PStatus = "" }, "", "the probe passed", true},
		{"source on the host", func(f *LinkFacts) { f.From.Kind = device.CPU }, ReasonHost, "host memory", false},
		{"destination on the host", func(f *LinkFacts) { f.To.Kind = device.CPU }, ReasonHost, "host memory", false},
		{"forbidden", func(f *LinkFacts) { f.Forbidden = "--no-peer" }, ReasonForbidden, "--no-peer", false},
		{"other generations", func(f *LinkFacts) { f.ToRow = arch.Lookup(arch.Of(12, 0)) }, ReasonArch, "two generations", false},
		{"unknown part", func(f *LinkFacts) { f.FromRow = arch.Lookup(arch.Of(13, 0)) }, ReasonArch, "13.0", false},
		{"no access", func(f *LinkFacts) { f.Link.PeerAccess = false }, ReasonDriver, "no peer access", false},
		{"NVML contradicts", func(f *LinkFacts) { f.Link.P2PStatus = "CNS" }, ReasonNVML, "chipset not supported", false},
		{"NVML has a new word", func(f *LinkFacts) { f.Link.P2PStatus = "XYZ" }, ReasonNVML, "XYZ", false},
		{"not probed", func(f *LinkFacts) { f.Finding = Finding{} }, ReasonProbe, "not probed", true},
		{"corrupt", func(f *LinkFacts) { f.Finding = Finding{Verdict: Corrupt, Detail: "zeros"} }, ReasonProbe, "corrupt: zeros", true},
		{"slow", func(f *LinkFacts) { f.Finding.Verdict = Slow }, ReasonProbe, "slow", true},
		{"hung", func(f *LinkFacts) { f.Finding.Verdict = Hung }, ReasonProbe, "hung", true},
		{"unavailable", func(f *LinkFacts) { f.Finding.Verdict = Unavailable }, ReasonProbe, "unavailable", true},
		{"inconclusive", func(f *LinkFacts) { f.Finding.Verdict = Inconclusive }, ReasonProbe, "inconclusive", true},
		{"a verdict of the future", func(f *LinkFacts) { f.Finding.Verdict = "splendid" }, ReasonProbe, "splendid", true},
		{"quarantine", func(f *LinkFacts) { f.Quarantined = "step 9" }, ReasonQuarantine, "step 9", true},
	} {
		f := good()
		c.change(&f)
		d := Decide(f)
		if (d.Route == PeerDirect) != (c.code == "") || !strings.Contains(d.Why(), c.why) || MayProbe(f) != c.probe {
			t.Errorf("%s: %v, %s, may be probed %t", c.name, d.Route, d.Why(), MayProbe(f))
		}
		against := ""
		for _, r := range d.Reasons {
			if !r.OK && against == "" {
				against = r.Code
			}
			if r.Text == "" {
				t.Errorf("%s: reason %s without text", c.name, r.Code)
			}
		}
		if against != c.code {
			t.Errorf("%s: %q decides, want %q", c.name, against, c.code)
		}
	}
}

func TestJudge(t *testing.T) {
	ok := Measurement{Copies: 10, Peer: Speed{GBps: 25}, Staged: Speed{GBps: 12}, Ceiling: 31.5}
	for _, c := range []struct {
		name   string
		change func(m *Measurement)
		want   Verdict
		says   string
	}{
		{"well", func(*Measurement) {}, Healthy, ""},
		{"no speeds", func(m *Measurement) { m.Peer, m.Staged, m.Ceiling = Speed{}, Speed{}, 0 }, Healthy, ""},
		{"as slow as staging", func(m *Measurement) { m.Peer.GBps = 11.5 }, Healthy, ""},
		{"slower", func(m *Measurement) { m.Peer.GBps = 2.6 }, Slow, "2.60 GB/s where host staging has 12.0"},
		{"faster than the bus", func(m *Measurement) { m.Peer.GBps = 103 }, Inconclusive, "103 GB/s is more than the link can carry"},
		{"nothing copied", func(m *Measurement) { m.Copies = 0 }, Inconclusive, "nothing"},
		{"set-up", func(m *Measurement) { m.Copies, m.Setup = 0, "out of memory" }, Inconclusive, "out of memory"},
		{"error", func(m *Measurement) { m.Error = "CUDA_ERROR_X" }, Unavailable, "CUDA_ERROR_X"},
		{"hung", func(m *Measurement) { m.TimedOut = true }, Hung, "after 10 copies"},
		{"corrupt", func(m *Measurement) { m.Corruption = &Corruption{Kind: Zeros, Size: 64} }, Corrupt, "zeros from byte 0 of 64"},
	} {
		m := ok
		c.change(&m)
		if f := Judge(m); f.Verdict != c.want || !strings.Contains(f.Detail, c.says) {
			t.Errorf("%s: %s", c.name, f)
		}
	}
}

func TestCeiling(t *testing.T) {
	for _, c := range []struct {
		kind       string
		gen, width [2]int
		want       float64
	}{
		{"NV12", [2]int{}, [2]int{}, 600},
		{"PIX", [2]int{4, 4}, [2]int{16, 16}, 31.5},
		{"SYS", [2]int{5, 4}, [2]int{16, 4}, 7.876},
		{"PHB", [2]int{0, 4}, [2]int{16, 16}, 0},
		{"PHB", [2]int{9, 9}, [2]int{16, 16}, 0},
		{"NVx", [2]int{4, 4}, [2]int{16, 16}, 0},
	} {
		if got := Ceiling(c.kind, c.gen, c.width); got < c.want*0.999 || got > c.want*1.001 {
			t.Errorf("%s %v ×%v: %g, want %g", c.kind, c.gen, c.width, got, c.want)
		}
	}
}

func TestClassify(t *testing.T) {
	const n = 4096
	want, earlier, poison := pattern{1, 3}.bytes(n), pattern{2, 5}.bytes(n), sentinel.bytes(n)
	harmed := func(f func(b []byte)) []byte {
		b := append([]byte(nil), want...)
		f(b)
		return b
	}
	for _, c := range []struct {
		name   string
		got    []byte
		kind   Kind
		offset int64
		shift  int
	}{
		{"zeros", make([]byte, n), Zeros, 0, 0},
		{"nothing arrived", poison, NeverWritten, 0, 0},
		{"the copy before", earlier, Stale, 0, 0},
		{"half", harmed(func(b []byte) { copy(b[n/2:], poison[n/2:]) }), NeverWritten, n / 2, 0},
		{"half zero", harmed(func(b []byte) { clear(b[n/2:]) }), Zeros, n / 2, 0},
		{"one bit", harmed(func(b []byte) { b[1000] ^= 8 }), FlippedBits, 1000, 0},
		{"bits here and there", harmed(func(b []byte) { b[10] ^= 1; b[2000] ^= 2; b[4000] ^= 4 }), FlippedBits, 10, 0},
		{"late by 16", harmed(func(b []byte) { copy(b[16:], want) }), Shifted, 16, 16},
		{"early by 3", harmed(func(b []byte) { copy(b, want[3:]) }), Shifted, 0, -3},
		{"others", pattern{9, 7}.bytes(n), OtherBytes, 0, 0},
	} {
		k := Classify(want, c.got, poison, earlier)
		if k == nil || k.Kind != c.kind || k.Shift != c.shift || k.Size != n || k.Expected == k.Got {
			t.Errorf("%s: %v", c.name, k)
			continue
		}
		if d := k.Offset - c.offset; d < 0 || d > 2 { // the first bytes may agree by chance
			t.Errorf("%s: first wrong byte %d, want %d", c.name, k.Offset, c.offset)
		}
	}
	if k := Classify(want, want, poison, earlier); k != nil {
		t.Errorf("equal: %v", k)
	}
}
