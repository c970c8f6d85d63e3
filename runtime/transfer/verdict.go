package transfer

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Verdict of a probe about one directed link.
type Verdict string

// The verdicts. Only a Healthy link carries data directly.
const (
	NotProbed    Verdict = ""
	Healthy      Verdict = "healthy"
	Corrupt      Verdict = "corrupt"      // other bytes arrived
	Slow         Verdict = "slow"         // slower than host staging
	Hung         Verdict = "hung"         // no answer in time
	Unavailable  Verdict = "unavailable"  // refused, or it ended the probe's process
	Inconclusive Verdict = "inconclusive" // the probe itself could not be trusted
)

// Speed of a path; 0 where it was not measured.
type Speed struct {
	GBps float64 `json:"gbps"` // 10⁹ bytes a second, one way
	US   float64 `json:"us"`   // latency of a small copy, microseconds
}

// Measurement is what a probe saw of one directed link.
type Measurement struct {
	Copies     int         `json:"copies"`               // made and compared
	Bytes      int64       `json:"bytes"`                // by them
	Corruption *Corruption `json:"corruption,omitempty"` // the first
	Staging    string      `json:"staging,omitempty"`    // host staging is faulty as well: how
	TimedOut   bool        `json:"timed_out,omitempty"`
	Error      string      `json:"error,omitempty"` // of the driver, for a copy
	Setup      string      `json:"setup,omitempty"` // what kept the probe from copying at all
	Peer       Speed       `json:"peer"`
	Staged     Speed       `json:"staged"`
	Ceiling    float64     `json:"ceiling_gbps,omitempty"` // what the link can carry at most; 0: unknown
	// KernelReads: whether a kernel that loads a peer's memory saw the right
	// bytes. Nothing here does that in production; it is for the report.
	KernelReads Verdict `json:"kernel_reads,omitempty"`
}

// Finding is a verdict with what it rests on.
type Finding struct {
	Verdict Verdict `json:"verdict"`
	Detail  string  `json:"detail,omitempty"`
	Measurement
}

// String is like "corrupt: zeros from byte 4096 of 65536".
func (f Finding) String() string {
	if f.Detail == "" {
		return string(f.Verdict)
	}
	return string(f.Verdict) + ": " + f.Detail
}

func (f Finding) speeds() string {
	if f.Peer.GBps == 0 {
		return ""
	}
	s := fmt.Sprintf(": %s GB/s", round(f.Peer.GBps))
	if f.Staged.GBps > 0 {
		s += fmt.Sprintf(", %s staged", round(f.Staged.GBps))
	}
	return s
}

// How far measured speeds may be off before they are a verdict.
const (
	slowerThanStaging = 0.9  // of the staged speed
	fasterThanLink    = 1.15 // times the ceiling
)

// Judge turns a measurement into a verdict.
func Judge(m Measurement) Finding {
	f := Finding{Measurement: m}
	set := func(v Verdict, format string, args ...any) Finding {
		f.Verdict, f.Detail = v, fmt.Sprintf(format, args...)
		return f
	}
	switch {
	case m.TimedOut:
		return set(Hung, "no answer in time after %d copies", m.Copies)
	case m.Corruption != nil:
		return set(Corrupt, "%s", m.Corruption)
	case m.Error != "":
		return set(Unavailable, "%s", m.Error)
	case m.Setup != "":
		return set(Inconclusive, "%s", m.Setup)
	case m.Copies == 0:
		return set(Inconclusive, "nothing was copied")
	case m.Ceiling > 0 && m.Peer.GBps > m.Ceiling*fasterThanLink:
		return set(Inconclusive, "%s GB/s is more than the link can carry (%s): the measurement, or the copy, is not real", round(m.Peer.GBps), round(m.Ceiling))
	case m.Peer.GBps > 0 && m.Peer.GBps < m.Staged.GBps*slowerThanStaging:
		return set(Slow, "%s GB/s where host staging has %s", round(m.Peer.GBps), round(m.Staged.GBps))
	}
	f.Verdict = Healthy
	return f
}

// round leaves three digits.
func round(x float64) string {
	if x == 0 {
		return "0"
	}
	d := 2 - int(math.Floor(math.Log10(math.Abs(x))))
	return strconv.FormatFloat(x, 'f', max(0, min(d, 3)), 64)
}

// Ceiling is what a link can carry one way, in GB/s; 0 when unknown. kind is
// as topology tools print it; gen and width are of both ends' PCIe links, 0
// when unknown.
func Ceiling(kind string, gen, width [2]int) float64 {
	if n, ok := strings.CutPrefix(kind, "NV"); ok {
		// The fastest NVLink there is carries 50 GB/s each way.
		lanes, err := strconv.Atoi(n)
		if err != nil || lanes < 1 {
			return 0
		}
		return 50 * float64(lanes)
	}
	perLane := map[int]float64{1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.877}
	least := 0.0
	for i := range gen {
		v := perLane[gen[i]] * float64(width[i])
		if v == 0 {
			return 0
		}
		if least == 0 || v < least {
			least = v
		}
	}
	return least
}
