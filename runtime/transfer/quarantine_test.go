package transfer

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// A direct copy that lies is found, its link is named and quarantined, and the
// next step goes by way of the host.
func TestQuarantine(t *testing.T) {
	w, gpus := newWorld(1, 3)
	var told []string
	r := healthy(gpus)
	r.events.Quarantined = func(p Pair, why string) { told = append(told, p.String()+": "+why) }
	p := newChain(t, 1, Options{}, 200)
	p.w = w
	p.ends, p.kept = nil, nil
	for _, g := range gpus {
		e := g.end(t, 200)
		p.ends = append(p.ends, e)
		p.kept = append(p.kept, [2]End{{Tensor: g.tensor(t, 200)}, {Tensor: g.tensor(t, 200)}})
	}
	p.c = New(Options{Devices: devicesOf(gpus), Router: r})
	bad := Pair{gpus[1].id, gpus[2].id}
	w.harm = func(at Pair, b []byte) {
		if at == bad {
			clear(b)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	_, err := p.step(t, rng)
	var ms Mismatches
	if !errors.As(err, &ms) || !ms.Direct() || len(ms) != 2 || (Pair{ms[0].From, ms[0].To}) != bad {
		t.Fatalf("Commit: %v", err)
	}
	if r.Route(bad) != HostStaged || r.Route(Pair{bad.To, bad.From}) != PeerDirect || len(told) != 1 {
		t.Errorf("route %v, back %v, told %q", r.Route(bad), r.Route(Pair{bad.To, bad.From}), told)
	}
	if right, err := p.step(t, rng); !right || err != nil {
		t.Errorf("the step after: right %t, %v", right, err)
	}
	for _, l := range r.Links() {
		if l.From == "cuda:1" && l.To == "cuda:2" {
			if l.Mismatched != 2 || l.Verified != 2 || l.Bytes != [2]uint64{400, 400} || l.Quarantined == "" || l.Why() == "" {
				t.Errorf("%+v", l)
			}
		}
	}
}
