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
	null         uint64 // number of the null stream's operation to wait for
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

// runnable says whether a stream's front operation can run now.
func (m *Machine) runnable(s *stream) bool {
	w := s.front()
	if w == nil || s.running || s.hung {
		return false
	}
	for _, k := range w.after {
		if !k.passed() {
			return false
		}
	}
	switch w.kind {
	case opWait:
		return w.rec.passed
	case opGraph:
		return w.graph.runnable(m, s)
	}
	return m.busy&m.reach(s, w) == 0
}

// reach is the set of devices whose memory an operation may touch.
func (m *Machine) reach(s *stream, w *op) uint64 {
	switch w.kind {
	case opKernel:
		return s.g.bit | s.g.peers
	case opCopy:
		mask := s.g.bit
		if w.from >= 0 {
			mask |= 1 << w.from
		}
		if w.to >= 0 {
			mask |= 1 << w.to
		}
		return mask
	case opSet:
		return s.g.bit | s.g.peers
	}
	return 0
}

// advance runs one piece of work of any stream, or waits until one that runs
// has ended. It returns false when nothing can move.
func (m *Machine) advance() bool {
	if m.closed {
		return false
	}
	can := make([]*stream, 0, 16)
	for _, s := range m.active {
		if m.runnable(s) {
			can = append(can, s)
		}
	}
	if len(can) == 0 {
		if m.running == 0 {
			return false
		}
		m.wait()
		return true
	}
	s := can[m.rng.IntN(len(can))]
	if m.last != nil && m.rng.IntN(2) == 0 {
		// Often the same one again: some streams must run far ahead of others.
		for _, c := range can {
			if c == m.last {
				s = c
			}
		}
	}
	m.last = s
	m.step(s)
	return true
}

// step runs the front operation of a stream that is runnable.
func (m *Machine) step(s *stream) {
	w := s.front()
	if w.kind == opGraph {
		w.graph.step(m, s, w)
		if s.front() != w || w.graph.left > 0 || s.hung {
			return
		}
	} else if !m.exec(s, w) {
		return
	}
	m.finish(s, w)
}

// finish takes the front operation, which ran, off its stream.
func (m *Machine) finish(s *stream, w *op) {
	if s.front() != w { // the device failed meanwhile
		return
	}
	s.queue[s.head] = nil
	s.head++
	s.done = w.seq
	m.drop(w)
	if s.head == len(s.queue) {
		s.queue, s.head = s.queue[:0], 0
		s.listed = false
		for i, o := range m.active {
			if o == s {
				m.active = append(m.active[:i], m.active[i+1:]...)
				break
			}
		}
	}
	if m.waiters > 0 {
		m.moved.Broadcast()
	}
}

// wait gives the lock away until something moved.
func (m *Machine) wait() {
	m.waiters++
	m.moved.Wait()
	m.waiters--
}

// await runs work until the condition holds. A stream that hangs keeps it
// waiting until the machine is closed, as the driver would for ever.
func (m *Machine) await(g *GPU, done func() bool) Result {
	for !done() {
		if r := g.state(); r != Success {
			return r
		}
		if !m.advance() {
			if m.closed {
				return Deinitialized
			}
			m.wait()
		}
	}
	return g.state()
}

// drain runs all work of a device.
func (m *Machine) drain(g *GPU) Result {
	r := m.await(g, func() bool {
		for _, s := range m.active {
			if s.g == g {
				return false
			}
		}
		return true
	})
	return r
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

// poll runs some work and answers whether the condition holds.
func (m *Machine) poll(g *GPU, done func() bool, at *time.Duration) Result {
	for range 1 + m.rng.IntN(queryWork) {
		if done() || !m.mayAdvance() {
			break
		}
		if r := g.state(); r != Success {
			return r
		}
	}
	if r := g.state(); r != Success {
		return r
	}
	if !done() {
		return NotReady
	}
	m.now = max(m.now, *at)
	return Success
}

// mayAdvance is advance, but never waits for what another thread runs.
func (m *Machine) mayAdvance() bool {
	for _, s := range m.active {
		if m.runnable(s) {
			return m.advance()
		}
	}
	return false
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

// sync waits for what is queued on a stream now.
func (m *Machine) sync(s *stream) Result {
	seq := s.queued
	if r := m.await(s.g, func() bool { return s.done >= seq }); r != Success {
		return r
	}
	m.now = max(m.now, s.ready)
	return Success
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
