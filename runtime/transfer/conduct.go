package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"infer/runtime/arch"
	"infer/runtime/device"
)

// Spawn runs a probe of pairs, in another process where it can do harm there
// only, until it ends or ctx does; emit is called with each line it prints. A
// probe stops after a pair that hung or failed, since that spoils its streams.
type Spawn func(ctx context.Context, pairs []Pair, emit func(line []byte)) error

// Line of a probe's output: a pair begins, or was measured.
type Line struct {
	Begin  *IDPair      `json:"begin,omitempty"`
	Result *Measurement `json:"result,omitempty"` // of the pair that began last
	Took   float64      `json:"seconds,omitempty"`
	// Modelled is the time that a simulated machine's clock counted for all of
	// the probe: its last line.
	Modelled float64 `json:"modelled_seconds,omitempty"`
}

// IDPair is a Pair in JSON.
type IDPair struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// Survey is what is known of a machine's links before routes are chosen.
type Survey struct {
	Facts    []LinkFacts
	Probed   []Pair        // now; others come from the cache, or need none
	Took     time.Duration // of probing
	Modelled time.Duration // of that, by a simulated machine's clock
	Problems []error       // of the store: nothing depends on it
}

// Surveyor finds out about links.
type Surveyor struct {
	Infos     []device.Info // of the GPUs
	Links     []device.Link
	Forbidden string // why the user forbids peer copies; "" when allowed
	Store     *Store // nil: nothing is remembered
	Spawn     Spawn
	Limit     time.Duration // of all probing
	// Only are the links that may be used; nil: all.
	Only []Pair
	// Again probes what is known already; quarantine and crashes stay.
	Again bool
}

// Survey probes what is not known and may be used.
func (v *Surveyor) Survey(ctx context.Context) Survey {
	var s Survey
	info := map[device.ID]device.Info{}
	for _, i := range v.Infos {
		info[i.ID] = i
	}
	at := func(p Pair) ends { return endsOf(v.Infos, p) }
	found, bad, crashed := map[ends]Finding{}, map[ends]string{}, map[ends]string{}
	if v.Store != nil {
		var err1, err2 error
		found, bad, err1 = v.Store.load()
		crashed, err2 = v.Store.crashes()
		s.Problems = append(s.Problems, err1, err2)
	}
	var todo []Pair
	for _, l := range v.Links {
		p := Pair{l.From, l.To}
		f := LinkFacts{
			Pair: p, Link: l, FromRow: rowOf(info[l.From]), ToRow: rowOf(info[l.To]), Forbidden: v.Forbidden,
			Quarantined: bad[at(p)],
		}
		if MayProbe(f) {
			why, dead := crashed[at(p)]
			known, ok := found[at(p)]
			switch {
			case dead:
				f.Finding = Finding{Verdict: Unavailable, Detail: why + "; it is not tried again before: infer doctor --forget"}
			case ok && !v.Again:
				f.Finding = known
			case v.Only == nil || slices.Contains(v.Only, p):
				todo = append(todo, p)
			}
		}
		s.Facts = append(s.Facts, f)
	}
	if len(todo) == 0 || v.Spawn == nil {
		return s
	}
	began := time.Now()
	fresh := v.conduct(ctx, todo, at, &s)
	s.Took = time.Since(began)
	for i := range s.Facts {
		p := s.Facts[i].Pair
		f, ok := fresh[p]
		if !ok {
			continue
		}
		s.Facts[i].Finding = f
		s.Probed = append(s.Probed, p)
		if v.Store != nil && f.Verdict != Inconclusive {
			s.Problems = append(s.Problems, v.Store.saveFinding(at(p), f))
		}
	}
	return s
}

// conduct has pairs probed, whatever becomes of the probes' processes.
func (v *Surveyor) conduct(ctx context.Context, todo []Pair, at func(Pair) ends, s *Survey) map[Pair]Finding {
	limit := v.Limit
	if limit == 0 {
		limit = 3 * time.Second
	}
	all, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	fresh := map[Pair]Finding{}
	for len(todo) > 0 && all.Err() == nil {
		var open *Pair
		progress := false
		err := v.Spawn(all, todo, func(line []byte) {
			var l Line
			if json.Unmarshal(line, &l) != nil {
				return
			}
			switch {
			case l.Begin != nil:
				p := Pair{device.ID{Kind: device.CUDA, Index: l.Begin.From}, device.ID{Kind: device.CUDA, Index: l.Begin.To}}
				if slices.Contains(todo, p) {
					open, progress = &p, true
				}
			case l.Modelled > 0:
				s.Modelled += time.Duration(l.Modelled * 1e9)
			case l.Result != nil && open != nil:
				fresh[*open] = Judge(*l.Result)
				open = nil
			}
		})
		if ctx.Err() != nil { // called off: the probe's end says nothing of its link
			if v.Store != nil {
				s.Problems = append(s.Problems, v.Store.sweep(false))
			}
			return fresh
		}
		if v.Store != nil && err != nil {
			s.Problems = append(s.Problems, v.Store.sweep(all.Err() == nil))
		}
		switch {
		case open == nil:
		case all.Err() != nil:
			fresh[*open] = Finding{Verdict: Hung, Detail: fmt.Sprintf("no answer within the probe's %v", limit)}
		default:
			detail := "the process that probed it ended"
			if err != nil {
				detail += ": " + err.Error()
			}
			fresh[*open] = Finding{Verdict: Unavailable, Detail: detail + "; it is not tried again before: infer doctor --forget"}
			if v.Store != nil {
				s.Problems = append(s.Problems, v.Store.crashed(at(*open), detail))
			}
		}
		todo = slices.DeleteFunc(todo, func(p Pair) bool { _, done := fresh[p]; return done })
		if !progress {
			if err == nil {
				err = errors.New("the probe said nothing")
			}
			for _, p := range todo {
				fresh[p] = Finding{Verdict: Inconclusive, Detail: "the probe did not run: " + err.Error()}
			}
			return fresh
		}
	}
	for _, p := range todo {
		fresh[p] = Finding{Verdict: Inconclusive, Detail: fmt.Sprintf("the probe's %v were over before its turn", limit)}
	}
	return fresh
}

func rowOf(i device.Info) arch.Row {
	if i.GPU == nil {
		return arch.Row{}
	}
	return arch.Lookup(i.GPU.Capability)
}
