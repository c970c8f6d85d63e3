package faults

import (
	"testing"
	"time"

	"infer/runtime/transfer"
)

// Links that public reports tell of are judged as they should be: what is
// faulty never carries data directly, and what is sound, and offered, does.
func TestSurvey(t *testing.T) {
	needSim(t)
	for name, spec := range topologies(t, "testdata/topologies") {
		if !*full && len(spec.Devices) > 3 && name != "4xa10g-aws-g5" && name != "4x3090-nvlink-pairs-stock" {
			continue
		}
		faulty := map[transfer.Pair]string{}
		for _, l := range spec.Links {
			if l.Fault != "" && l.Fault != "none" {
				faulty[transfer.Pair{From: gpu(l.From), To: gpu(l.To)}] = l.Fault
			}
		}
		s := survey(t, spec, 2*time.Second)
		if want := len(spec.Devices) * (len(spec.Devices) - 1); len(s.Facts) != want {
			t.Errorf("%s: %d links, there are %d directed pairs", name, len(s.Facts), want)
		}
		most := 3 * time.Second
		if len(spec.Devices) > 2 {
			most = 10 * time.Second
		}
		if s.Modelled > most || len(s.Probed) > 0 && s.Modelled == 0 {
			t.Errorf("%s: probing %d links took %v of modelled time, want at most %v", name, len(s.Probed), s.Modelled, most)
		}
		for _, f := range s.Facts {
			d := transfer.Decide(f)
			bad := faulty[f.Pair]
			switch {
			case bad != "" && d.Route == transfer.PeerDirect:
				t.Errorf("%s: %v is %s and goes direct: %s", name, f.Pair, bad, f.Finding)
			case bad == "" && transfer.MayProbe(f) && d.Route != transfer.PeerDirect:
				t.Errorf("%s: %v has no fault and goes by the host: %s", name, f.Pair, d.Why())
			}
			if f.Finding.Staging != "" {
				t.Errorf("%s: %v: %s", name, f.Pair, f.Finding.Staging)
			}
		}
	}
}
