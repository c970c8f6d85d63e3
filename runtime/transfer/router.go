package transfer

import (
	"slices"
	"sync"
	"sync/atomic"

	"infer/runtime/device"
)

// Events report what happens, for logs; funcs may be nil.
type Events struct {
	// Quarantined: a link was found faulty in production and carries nothing
	// directly any more.
	Quarantined func(p Pair, why string)
}

// Router knows the route of every directed pair, and counts what goes along
// it. It is safe for concurrent use.
type Router struct {
	events Events
	mu     sync.Mutex // guards the map and each link's facts
	links  map[Pair]*link
}

// link of a Router.
type link struct {
	facts    LinkFacts
	decision Decision

	direct     atomic.Bool // decision.Route is PeerDirect
	bytes      [2]atomic.Uint64
	verified   atomic.Uint64
	mismatched atomic.Uint64
}

// NewRouter decides the routes. Pairs that facts do not name are HostStaged.
func NewRouter(facts []LinkFacts, e Events) *Router {
	r := &Router{events: e, links: map[Pair]*link{}}
	for _, f := range facts {
		l := &link{facts: f}
		l.decide()
		r.links[f.Pair] = l
	}
	return r
}

func (l *link) decide() {
	l.decision = Decide(l.facts)
	l.direct.Store(l.decision.Route == PeerDirect)
}

// link of a pair, made when first used.
func (r *Router) link(p Pair) *link {
	r.mu.Lock()
	defer r.mu.Unlock()
	l, ok := r.links[p]
	if !ok {
		l = &link{facts: LinkFacts{Pair: p, Forbidden: "nothing is known of this link"}}
		l.decide()
		r.links[p] = l
	}
	return l
}

// Route of a pair.
func (r *Router) Route(p Pair) Route { return r.link(p).route() }

func (l *link) route() Route {
	if l.direct.Load() {
		return PeerDirect
	}
	return HostStaged
}

// Quarantine stops direct copies along a link.
func (r *Router) Quarantine(p Pair, why string) {
	l := r.link(p)
	r.mu.Lock()
	fresh := l.facts.Quarantined == ""
	if fresh {
		l.facts.Quarantined = why
		l.decide()
	}
	r.mu.Unlock()
	if fresh && r.events.Quarantined != nil {
		r.events.Quarantined(p, why)
	}
}

// LinkStatus is a link as metrics, health and doctor show it.
type LinkStatus struct {
	From        string      `json:"from"`
	To          string      `json:"to"`
	Decision                // route and reasons
	Link        device.Link `json:"-"`
	Finding     Finding     `json:"probe"`
	Quarantined string      `json:"quarantined,omitempty"`
	// Bytes copied, by Route.
	Bytes      [2]uint64 `json:"-"`
	Verified   uint64    `json:"verified"`   // copies whose digests agreed
	Mismatched uint64    `json:"mismatched"` // copies that arrived changed
}

// Links as they are now, ordered by name.
func (r *Router) Links() []LinkStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []LinkStatus
	pairs := make([]Pair, 0, len(r.links))
	for p := range r.links {
		pairs = append(pairs, p)
	}
	slices.SortFunc(pairs, comparePairs)
	for _, p := range pairs {
		l := r.links[p]
		all = append(all, LinkStatus{
			From: p.From.String(), To: p.To.String(), Decision: l.decision, Link: l.facts.Link, Finding: l.facts.Finding,
			Quarantined: l.facts.Quarantined, Bytes: [2]uint64{l.bytes[0].Load(), l.bytes[1].Load()},
			Verified: l.verified.Load(), Mismatched: l.mismatched.Load(),
		})
	}
	return all
}

func comparePairs(a, b Pair) int {
	if c := compareIDs(a.From, b.From); c != 0 {
		return c
	}
	return compareIDs(a.To, b.To)
}

func compareIDs(a, b device.ID) int {
	switch {
	case a.Kind != b.Kind && a.Kind > b.Kind:
		return -1 // cuda before cpu
	case a.Kind != b.Kind:
		return 1
	}
	return a.Index - b.Index
}
