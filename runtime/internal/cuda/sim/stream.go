package sim

import "time"

// stream is a queue of work of one device.
type stream struct {
	handle   uint64
	g        *GPU
	blocking bool // orders with the null stream

	queue        []*op
	head         int
	queued, done uint64 // operations ever
	listed       bool   // in Machine.active
	running      bool
	hung         bool
	gone         bool          // destroyed; its work goes on
	ready        time.Duration // modelled time its last operation ends
	capture      *capture
}

func (s *stream) pending() []*op { return s.queue[s.head:] }

func (s *stream) front() *op {
	if s.head == len(s.queue) {
		return nil
	}
	return s.queue[s.head]
}

type opKind uint8

const (
	opKernel opKind = iota
	opCopy
	opSet
	opRecord
	opWait
	opGraph
)

// op is one queued operation.
type op struct {
	kind   opKind
	seq    uint64
	issued time.Duration // modelled time of the call
	after  []mark        // places in other streams it waits for

	fn     *Function
	grid   [3]int
	block  [3]int
	shared int
	params []byte // reused

	dst, src place
	n        int64
	path     Path // empty: within one device
	from, to int
	staged   []byte // of a pageable source
	value    uint32
	width    int
	failing  *armed // its error comes when the copy runs

	rec   *record
	graph *graphRun
}

// mark is a place in a stream.
type mark struct {
	s   *stream
	seq uint64
}

func (k mark) passed() bool { return k.s.done >= k.seq }

// touches says whether a copy has the device (or Host) as one end.
func (w *op) touches(end int) bool { return end >= 0 && (w.from == end || w.to == end) }

// newOp takes a used operation if there is one, so that a launch costs no
// allocation.
func (m *Machine) newOp(kind opKind) *op {
	if n := len(m.spare); n > 0 {
		w := m.spare[n-1]
		m.spare = m.spare[:n-1]
		*w = op{kind: kind, params: w.params[:0], after: w.after[:0]}
		return w
	}
	return &op{kind: kind}
}

// drop ends an operation that will not run, or has.
func (m *Machine) drop(w *op) {
	if w.rec != nil && w.kind == opRecord {
		w.rec.passed = true
		w.rec.at = max(w.rec.at, m.now)
	}
	m.staged -= int64(len(w.staged))
	m.release(w)
}

func (m *Machine) release(w *op) {
	w.fn, w.rec, w.graph, w.staged, w.failing = nil, nil, nil, nil, nil
	w.dst, w.src = place{}, place{}
	clear(w.after)
	if len(m.spare) < 1024 {
		m.spare = append(m.spare, w)
	}
}

// push queues an operation, or adds it to the graph that is captured.
func (m *Machine) push(s *stream, w *op) {
	if s.capture != nil {
		s.capture.add(s, w)
		return
	}
	w.issued = m.now
	if s.blocking {
		m.orderWithNull(s, w)
	}
	s.queued++
	w.seq = s.queued
	if s.head > 64 && s.head*2 > len(s.queue) {
		n := copy(s.queue, s.queue[s.head:])
		clear(s.queue[n:])
		s.queue, s.head = s.queue[:n], 0
	}
	s.queue = append(s.queue, w)
	if !s.listed {
		s.listed = true
		m.active = append(m.active, s)
	}
	if m.waiters > 0 {
		m.moved.Broadcast()
	}
}

// orderWithNull is the rule of the legacy default stream: its work waits for
// all earlier work of blocking streams, and their later work for it.
func (m *Machine) orderWithNull(s *stream, w *op) {
	null := s.g.null
	if s != null {
		if null.done < null.queued {
			w.after = append(w.after, mark{null, null.queued})
		}
		return
	}
	for _, o := range m.active {
		if o.g == s.g && o.blocking && o != s && o.done < o.queued {
			w.after = append(w.after, mark{o, o.queued})
		}
	}
}

// lookup finds a stream of the device by its handle: 0, 1 and 2 are the
// driver's null stream.
func (g *GPU) lookup(handle uint64) (*stream, Result) {
	if r := g.state(); r != Success {
		return nil, r
	}
	if handle <= 2 {
		return g.null, Success
	}
	s := g.m.streams[handle]
	if s == nil || s.g != g {
		return nil, InvalidHandle
	}
	return s, Success
}

// StreamCreate is cuStreamCreate. A blocking stream orders itself with the
// null stream.
func (g *GPU) StreamCreate(blocking bool) (uint64, Result) {
	m := g.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := g.state(); r != Success {
		return 0, r
	}
	s := &stream{handle: m.handle(), g: g, blocking: blocking}
	m.streams[s.handle] = s
	return s.handle, Success
}

// StreamDestroy is cuStreamDestroy: it returns at once, queued work goes on.
func (g *GPU) StreamDestroy(handle uint64) Result {
	m := g.m
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.streams[handle]
	if s == nil || s.g != g {
		return InvalidHandle
	}
	s.endCapture()
	s.gone = true
	delete(m.streams, handle)
	return g.state()
}

// queryWork is how much work a query runs at most. A caller that polls gets
// there, but sees "not ready" too.
const queryWork = 32

// StreamQuery is cuStreamQuery: NotReady while there is work.
func (g *GPU) StreamQuery(handle uint64) Result {
	m := g.m
	m.mu.Lock()
	defer m.mu.Unlock()
	s, r := g.lookup(handle)
	if r != Success {
		return r
	}
	if r := s.noCapture(); r != Success {
		return r
	}
	m.stats(g).Queries++
	return m.poll(g, func() bool { return s.done == s.queued }, &s.ready)
}

// StreamSynchronize is cuStreamSynchronize.
func (g *GPU) StreamSynchronize(handle uint64) Result {
	m := g.m
	m.mu.Lock()
	defer m.mu.Unlock()
	s, r := g.lookup(handle)
	if r != Success {
		return r
	}
	if r := s.noCapture(); r != Success {
		return r
	}
	m.stats(g).Syncs++
	return m.sync(s)
}

// Synchronize is cuCtxSynchronize.
func (g *GPU) Synchronize() Result {
	m := g.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := g.state(); r != Success {
		return r
	}
	if r := g.unsafeInCapture(); r != Success {
		return r
	}
	m.stats(g).Syncs++
	if r := m.drain(g); r != Success {
		return r
	}
	m.now = max(m.now, g.null.ready)
	for _, s := range m.streams {
		if s.g == g {
			m.now = max(m.now, s.ready)
		}
	}
	return Success
}
