package api

import "github.com/prometheus/client_golang/prometheus"

// Devices is what has become of devices and of the ways between them, for
// /metrics and /health.
type Devices struct {
	Verify     string // always, sampled:N or off; "": nothing goes between devices
	Links      []Link // directed pairs of GPUs, and of GPU and CPU
	Replays    int64  // steps computed again, for copies that arrived changed
	Lost       int64  // devices
	Recovering error  // why a device was lost, until the rest goes on

	ScrubBytes, ScrubPasses, ScrubFaults int64 // of weights looked at after loading
}

// Link is a directed pair of devices.
type Link struct {
	From        string `json:"from"`
	To          string `json:"to"`
	Route       string `json:"route"` // peer_direct or host_staged
	Why         string `json:"why"`
	Probe       string `json:"probe,omitempty"` // the verdict
	Quarantined string `json:"quarantined,omitempty"`
	Verified    uint64 `json:"verified"`   // copies that arrived as sent
	Mismatched  uint64 `json:"mismatched"` // copies that did not

	Bytes map[string]uint64 `json:"bytes"` // by route
}

// deviceHealth is Devices in /health.
type deviceHealth struct {
	Verify     string `json:"verify"`
	Links      []Link `json:"links"`
	Replays    int64  `json:"step_replays"`
	Lost       int64  `json:"devices_lost"`
	Recovering string `json:"recovering,omitempty"`
}

// health of devices; nil when nothing goes between devices.
func (d *Devices) health() *deviceHealth {
	if d.Verify == "" {
		return nil
	}
	h := &deviceHealth{Verify: d.Verify, Links: d.Links, Replays: d.Replays, Lost: d.Lost}
	if h.Links == nil {
		h.Links = []Link{}
	}
	if d.Recovering != nil {
		h.Recovering = d.Recovering.Error()
	}
	return h
}

// deviceCollector makes metrics of it.
type deviceCollector struct {
	bytes, verified, mismatch, quarantined *prometheus.Desc
	replays, lost, recovering              *prometheus.Desc
	scrubBytes, scrubPasses, scrubFaults   *prometheus.Desc
}

func newDeviceCollector(labels prometheus.Labels) deviceCollector {
	own := func(name, help string, variable ...string) *prometheus.Desc {
		return prometheus.NewDesc("infer_"+name, help, variable, labels)
	}
	return deviceCollector{
		bytes:       own("transfer_bytes_total", "Bytes copied between devices.", "src", "dst", "route"),
		verified:    own("transfer_verified_total", "Copies between devices that arrived as they were sent.", "src", "dst"),
		mismatch:    own("transfer_mismatch_total", "Copies between devices that arrived changed; none of them reached a token.", "src", "dst"),
		quarantined: own("link_quarantined", "1 when production found the link faulty: it carries nothing directly.", "src", "dst"),
		replays:     own("step_replays_total", "Steps computed again, for copies that arrived changed."),
		lost:        own("device_lost_total", "Devices that stopped working."),
		recovering:  own("recovering", "1 while the model is loaded again without a lost device."),
		scrubBytes:  own("weight_scrub_bytes_total", "Weights on GPUs that were looked at after loading."),
		scrubPasses: own("weight_scrub_passes_total", "Times that all weights on GPUs were looked at."),
		scrubFaults: own("weight_scrub_faults_total", "Weights on GPUs that had changed."),
	}
}

func (c *deviceCollector) collect(d *Devices, put func(*prometheus.Desc, prometheus.ValueType, float64, ...string)) {
	for _, l := range d.Links {
		for route, n := range l.Bytes {
			put(c.bytes, prometheus.CounterValue, float64(n), l.From, l.To, route)
		}
		put(c.verified, prometheus.CounterValue, float64(l.Verified), l.From, l.To)
		put(c.mismatch, prometheus.CounterValue, float64(l.Mismatched), l.From, l.To)
		put(c.quarantined, prometheus.GaugeValue, flag(l.Quarantined != ""), l.From, l.To)
	}
	put(c.replays, prometheus.CounterValue, float64(d.Replays))
	put(c.lost, prometheus.CounterValue, float64(d.Lost))
	put(c.recovering, prometheus.GaugeValue, flag(d.Recovering != nil))
	put(c.scrubBytes, prometheus.CounterValue, float64(d.ScrubBytes))
	put(c.scrubPasses, prometheus.CounterValue, float64(d.ScrubPasses))
	put(c.scrubFaults, prometheus.CounterValue, float64(d.ScrubFaults))
}

func flag(on bool) float64 {
	if on {
		return 1
	}
	return 0
}
