package sim

import "time"

// event is a mark that streams record and wait for.
type event struct {
	g      *GPU
	timing bool
	last   *record // nil: never recorded
}

// record is one recording of an event.
type record struct {
	passed bool
	at     time.Duration
	cap    *capture // recorded while a graph is captured
	nodes  []int
}

// EventCreate is cuEventCreate.
func (g *GPU) EventCreate(timing bool) (uint64, Result) {
	m := g.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := g.state(); r != Success {
		return 0, r
	}
	h := m.handle()
	m.events[h] = &event{g: g, timing: timing}
	return h, Success
}

// EventDestroy is cuEventDestroy.
func (g *GPU) EventDestroy(handle uint64) Result {
	m := g.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.events[handle] == nil {
		return InvalidHandle
	}
	delete(m.events, handle)
	return g.state()
}

// EventRecord is cuEventRecord: event and stream are of one device.
func (g *GPU) EventRecord(handle, onto uint64) Result {
	m := g.m
	m.mu.Lock()
	defer m.mu.Unlock()
	s, r := g.lookup(onto)
	if r != Success {
		return r
	}
	e := m.events[handle]
	if e == nil || e.g != g {
		return InvalidHandle
	}
	rec := &record{}
	e.last = rec
	if s.capture != nil {
		rec.cap, rec.nodes = s.capture, s.capture.tail(s)
		return s.capture.state()
	}
	w := m.newOp(opRecord)
	w.rec = rec
	m.push(s, w)
	return Success
}

// StreamWaitEvent is cuStreamWaitEvent: later work of the stream waits for what
// the event marks now. An event that was never recorded holds nothing up.
func (g *GPU) StreamWaitEvent(onto, handle uint64) Result {
	m := g.m
	m.mu.Lock()
	defer m.mu.Unlock()
	s, r := g.lookup(onto)
	if r != Success {
		return r
	}
	e := m.events[handle]
	if e == nil {
		return InvalidHandle
	}
	rec := e.last
	switch {
	case rec == nil:
		return Success
	case rec.cap != nil && rec.cap.ended:
		return InvalidValue
	case rec.cap != nil:
		return rec.cap.join(s, rec.nodes)
	case s.capture != nil:
		// What happened outside cannot be part of the graph.
		s.capture.spoil()
		return CaptureIsolation
	}
	w := m.newOp(opWait)
	w.rec = rec
	m.push(s, w)
	return Success
}

// EventQuery is cuEventQuery.
func (g *GPU) EventQuery(handle uint64) Result {
	m := g.m
	m.mu.Lock()
	defer m.mu.Unlock()
	rec, r := g.recorded(handle)
	if r != Success || rec == nil {
		return r
	}
	m.stats(g).Queries++
	return m.poll(g, func() bool { return rec.passed }, &rec.at)
}

// EventSynchronize is cuEventSynchronize.
func (g *GPU) EventSynchronize(handle uint64) Result {
	m := g.m
	m.mu.Lock()
	defer m.mu.Unlock()
	rec, r := g.recorded(handle)
	if r != Success || rec == nil {
		return r
	}
	m.stats(g).Syncs++
	if r := m.await(g, func() bool { return rec.passed }); r != Success {
		return r
	}
	m.now = max(m.now, rec.at)
	return Success
}

// recorded gives an event's last recording; nil if there is none.
func (g *GPU) recorded(handle uint64) (*record, Result) {
	if r := g.state(); r != Success {
		return nil, r
	}
	e := g.m.events[handle]
	if e == nil {
		return nil, InvalidHandle
	}
	if e.g.err != Success {
		return nil, e.g.err
	}
	if e.last != nil && e.last.cap != nil {
		e.last.cap.spoil()
		return nil, CaptureUnsupported
	}
	return e.last, Success
}

// EventElapsed is cuEventElapsedTime, by the modelled clock.
func (g *GPU) EventElapsed(from, to uint64) (time.Duration, Result) {
	m := g.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := g.state(); r != Success {
		return 0, r
	}
	a, b := m.events[from], m.events[to]
	if a == nil || b == nil || !a.timing || !b.timing || a.last == nil || b.last == nil {
		return 0, InvalidHandle
	}
	if !a.last.passed || !b.last.passed {
		return 0, NotReady
	}
	return b.last.at - a.last.at, Success
}
