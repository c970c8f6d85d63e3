package transfer

import (
	"fmt"

	"infer/runtime/arch"
	"infer/runtime/device"
)

// Route is how bytes get from one device to another.
type Route uint8

// The routes.
const (
	HostStaged Route = iota // device → pinned host memory → device
	PeerDirect              // device → device
)

func (r Route) String() string {
	return [...]string{"host staged", "peer direct"}[r]
}

// Label is the route's name in metrics and JSON.
func (r Route) Label() string {
	return [...]string{"host_staged", "peer_direct"}[r]
}

// MarshalText implements encoding.TextMarshaler.
func (r Route) MarshalText() ([]byte, error) { return []byte(r.Label()), nil }

// Pair is a directed link.
type Pair struct{ From, To device.ID }

func (p Pair) String() string { return p.From.String() + " to " + p.To.String() }

// LinkFacts are all that the choice of a route looks at.
type LinkFacts struct {
	Pair
	Link      device.Link // what the driver and its tools say
	FromRow   arch.Row
	ToRow     arch.Row
	Forbidden string  // why the user forbids peer copies; "" when allowed
	Finding   Finding // the probe's; the zero value when there was none
	// Quarantined is what production found; "" when nothing.
	Quarantined string
}

// Reason is one of the things that a route depends on.
type Reason struct {
	Code string `json:"code"` // for programs
	OK   bool   `json:"ok"`   // speaks for peer copies
	Text string `json:"text"` // for people
}

// Decision is a route with all its reasons, in the order they were asked.
type Decision struct {
	Route   Route    `json:"route"`
	Reasons []Reason `json:"reasons"`
}

// Why is the reason that decided: the first that speaks against peer copies,
// or that all speak for them.
func (d Decision) Why() string {
	for _, r := range d.Reasons {
		if !r.OK {
			return r.Text
		}
	}
	if d.Route == PeerDirect {
		return "the probe passed"
	}
	return "host memory is the only path"
}

// Codes of reasons.
const (
	ReasonHost       = "host_memory"
	ReasonForbidden  = "forbidden"
	ReasonArch       = "architecture"
	ReasonDriver     = "driver_access"
	ReasonNVML       = "nvml_p2p"
	ReasonProbe      = "probe"
	ReasonQuarantine = "quarantine"
)

// MayProbe tells whether a link could become PeerDirect if its probe passed.
func MayProbe(f LinkFacts) bool {
	return peerReasons(f).firstNo() < 0
}

// Decide chooses the route: PeerDirect only if every reason speaks for it.
func Decide(f LinkFacts) Decision {
	rs := peerReasons(f)
	if rs.firstNo() < 0 {
		rs.probe(f.Finding)
		switch f.Quarantined {
		case "":
			rs.add(ReasonQuarantine, true, "not in quarantine")
		default:
			rs.add(ReasonQuarantine, false, "in quarantine: "+f.Quarantined)
		}
	}
	d := Decision{Route: HostStaged, Reasons: rs}
	if rs.firstNo() < 0 {
		d.Route = PeerDirect
	}
	return d
}

type reasons []Reason

func (rs *reasons) add(code string, ok bool, text string) {
	*rs = append(*rs, Reason{Code: code, OK: ok, Text: text})
}

func (rs reasons) firstNo() int {
	for i, r := range rs {
		if !r.OK {
			return i
		}
	}
	return -1
}

// peerReasons are those known before a probe. They end with the first that
// speaks against: what the driver says of a link that is forbidden is no
// reason.
func peerReasons(f LinkFacts) reasons {
	var rs reasons
	if f.From.Kind == device.CPU || f.To.Kind == device.CPU {
		rs.add(ReasonHost, false, "one end is host memory")
		return rs
	}
	if f.Forbidden != "" {
		rs.add(ReasonForbidden, false, "peer copies are forbidden: "+f.Forbidden)
		return rs
	}
	ok, why := arch.PeersPossible(f.FromRow, f.ToRow)
	if !ok {
		rs.add(ReasonArch, false, why)
		return rs
	}
	rs.add(ReasonArch, true, fmt.Sprintf("compute capabilities %v and %v may be probed", f.FromRow.Capability, f.ToRow.Capability))
	if !f.Link.PeerAccess {
		rs.add(ReasonDriver, false, "the driver offers no peer access")
		return rs
	}
	rs.add(ReasonDriver, true, "the driver offers peer access")
	switch s := f.Link.P2PStatus; s {
	case "OK":
		rs.add(ReasonNVML, true, "NVML agrees")
	case "":
		rs.add(ReasonNVML, true, "NVML does not say otherwise")
	default:
		rs.add(ReasonNVML, false, "NVML contradicts the driver: "+p2pWord(s))
	}
	return rs
}

func (rs *reasons) probe(f Finding) {
	switch f.Verdict {
	case Healthy:
		rs.add(ReasonProbe, true, "the probe passed"+f.speeds())
	case NotProbed:
		rs.add(ReasonProbe, false, "not probed")
	default:
		rs.add(ReasonProbe, false, "the probe says "+f.String())
	}
}

// p2pWord explains NVML's answer.
func p2pWord(s string) string {
	words := map[string]string{
		"CNS": "chipset not supported", "GNS": "GPU not supported", "TNS": "topology not supported",
		"DR": "disabled by a registry key", "NS": "not supported",
	}
	if w, ok := words[s]; ok {
		return s + " (" + w + ")"
	}
	return s
}
