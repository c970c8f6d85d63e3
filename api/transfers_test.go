package api

import (
	"errors"
	"strings"
	"testing"
)

// Metrics and health tell the same of links and devices.
func TestDevices(t *testing.T) {
	s := New(Config{})
	var lost error
	s.SetModel(Model{Name: "m", Context: 9, Tokenizer: newFakeTokenizer(), Stats: func() Stats {
		return Stats{Devices: Devices{
			Verify: "always", Replays: 3, Lost: 1, Recovering: lost, ScrubBytes: 77, ScrubPasses: 2, ScrubFaults: 1,
			Links: []Link{
				{
					From: "cuda:0", To: "cuda:1", Route: "host_staged", Why: "in quarantine: step 9", Probe: "healthy", Quarantined: "step 9",
					Verified: 40, Mismatched: 2, Bytes: map[string]uint64{"peer_direct": 1000, "host_staged": 500},
				},
				{From: "cuda:1", To: "cuda:0", Route: "peer_direct", Why: "the probe passed", Probe: "healthy", Bytes: map[string]uint64{"peer_direct": 8}},
			},
		}}
	}})
	text := ask(s, "GET", "/metrics", "").Body.String()
	for _, line := range []string{
		`infer_transfer_bytes_total{dst="cuda:1",model_name="m",route="peer_direct",src="cuda:0"} 1000`,
		`infer_transfer_bytes_total{dst="cuda:1",model_name="m",route="host_staged",src="cuda:0"} 500`,
		`infer_transfer_verified_total{dst="cuda:1",model_name="m",src="cuda:0"} 40`,
		`infer_transfer_mismatch_total{dst="cuda:1",model_name="m",src="cuda:0"} 2`,
		`infer_link_quarantined{dst="cuda:1",model_name="m",src="cuda:0"} 1`,
		`infer_link_quarantined{dst="cuda:0",model_name="m",src="cuda:1"} 0`,
		`infer_step_replays_total{model_name="m"} 3`,
		`infer_device_lost_total{model_name="m"} 1`,
		`infer_recovering{model_name="m"} 0`,
		`infer_weight_scrub_bytes_total{model_name="m"} 77`,
		`infer_weight_scrub_passes_total{model_name="m"} 2`,
		`infer_weight_scrub_faults_total{model_name="m"} 1`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("/metrics lacks %s", line)
		}
	}
	expect(t, ask(s, "GET", "/health", ""), 200,
		assertion{"status", "eq", "ok"}, assertion{"devices.verify", "eq", "always"}, assertion{"devices.step_replays", "type", "number"},
		assertion{"devices.links.0.why", "has", "quarantine"}, assertion{"devices.links.1.route", "eq", "peer_direct"})

	// While a lost device's work is loaded elsewhere, the server is alive but
	// not ready.
	lost = errors.New("cuda:1: CUDA_ERROR_ECC_UNCORRECTABLE")
	expect(t, ask(s, "GET", "/health", ""), 200, assertion{"devices.recovering", "has", "ECC"})
	expect(t, ask(s, "GET", "/ready", ""), 503, assertion{"error.message", "has", "ECC"})
}
