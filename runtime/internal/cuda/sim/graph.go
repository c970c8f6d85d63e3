package sim

import "time"

// Capture modes, by the driver's numbers.
const (
	captureGlobal      = 0
	captureThreadLocal = 1
	captureRelaxed     = 2
)

// capture is a graph in the making: what is queued on its streams becomes nodes.
type capture struct {
	origin         *stream
	mode           int
	nodes          []node
	tails          map[*stream][]int // last nodes of each stream
	invalid, ended bool
}

// node is one operation of a graph, and the nodes it comes after.
type node struct {
	op    *op
	after []int
}

// graph is a captured one.
type graph struct {
	g     *GPU
	nodes []node
}

// graphExec is a graph that can be launched.
type graphExec struct {
	graph
	idle []*graphRun
}

// graphRun is one launch of a graph.
type graphRun struct {
	exec  *graphExec
	state []nodeState
	ends  []time.Duration
	start time.Duration
	left  int
}

type nodeState uint8

const (
	nodeWaits nodeState = iota
	nodeDone
)

func (c *capture) add(s *stream, w *op) {
	c.nodes = append(c.nodes, node{w, c.tails[s]})
	c.tails[s] = []int{len(c.nodes) - 1}
}

// tail is what an event recorded on the stream now stands for.
func (c *capture) tail(s *stream) []int { return append([]int(nil), c.tails[s]...) }

func (c *capture) state() Result {
	if c.invalid {
		return CaptureInvalidated
	}
	return Success
}

// spoil makes the graph unusable; the streams stay in it until EndCapture.
func (c *capture) spoil() { c.invalid = true }

// join makes later work of a stream come after the nodes; a stream that was
// not part of the graph becomes so.
func (c *capture) join(s *stream, nodes []int) Result {
	if s.capture != nil && s.capture != c {
		c.spoil()
		s.capture.spoil()
		return CaptureIsolation
	}
	if s == s.g.null {
		c.spoil()
		return CaptureImplicit
	}
	s.capture = c
	have := c.tails[s]
	all := append([]int(nil), have...)
next:
	for _, n := range nodes {
		for _, k := range have {
			if k == n {
				continue next
			}
		}
		all = append(all, n)
	}
	c.tails[s] = all
	return c.state()
}

// close takes all streams out of the graph.
func (c *capture) close() {
	c.ended = true
	for s := range c.tails {
		s.capture = nil
	}
	c.origin.capture = nil
	if c.mode != captureRelaxed {
		c.origin.g.capturing--
	}
}

// endCapture is for a stream that goes away.
func (s *stream) endCapture() {
	if s.capture != nil {
		s.capture.spoil()
		s.capture.close()
	}
}

// noCapture refuses to look at a stream that is captured: nothing of it runs.
func (s *stream) noCapture() Result {
	if s.capture != nil {
		s.capture.spoil()
		return CaptureUnsupported
	}
	return Success
}

// unsafeInCapture refuses calls that wait while a stream is captured.
func (g *GPU) unsafeInCapture() Result {
	found := false
	for _, s := range g.m.streams {
		c := s.capture
		if c == nil || c.mode == captureRelaxed || c.mode == captureThreadLocal && c.origin.g != g {
			continue
		}
		c.spoil()
		found = true
	}
	if found {
		return CaptureUnsupported
	}
	return Success
}

// enter finds the stream of a call that queues work.
func (g *GPU) enter(handle uint64) (*stream, Result) {
	s, r := g.lookup(handle)
	if r != Success {
		return nil, r
	}
	if s == g.null && g.capturing > 0 {
		for _, o := range g.m.streams {
			if o.g == g && o.blocking && o.capture != nil {
				o.capture.spoil()
				return nil, CaptureImplicit
			}
		}
	}
	if s.capture != nil {
		return s, s.capture.state()
	}
	return s, Success
}

// StreamBeginCapture is cuStreamBeginCapture.
func (g *GPU) StreamBeginCapture(handle uint64, mode int) Result {
	g.m.mu.Lock()
	defer g.m.mu.Unlock()
	s, r := g.lookup(handle)
	if r != Success {
		return r
	}
	if s == g.null {
		return CaptureUnsupported
	}
	if s.capture != nil || mode < captureGlobal || mode > captureRelaxed {
		return InvalidValue
	}
	s.capture = &capture{origin: s, mode: mode, tails: map[*stream][]int{s: nil}}
	if mode != captureRelaxed {
		g.capturing++
	}
	return Success
}

// StreamEndCapture is cuStreamEndCapture.
func (g *GPU) StreamEndCapture(handle uint64) (uint64, Result) {
	m := g.m
	m.mu.Lock()
	defer m.mu.Unlock()
	s, r := g.lookup(handle)
	if r != Success {
		return 0, r
	}
	c := s.capture
	if c == nil {
		return 0, InvalidValue
	}
	if c.origin != s {
		c.spoil()
		return 0, CaptureUnmatched
	}
	joined := c.joined()
	c.close()
	switch {
	case c.invalid:
		return 0, CaptureInvalidated
	case !joined:
		return 0, CaptureUnjoined
	}
	h := m.handle()
	m.graphs[h] = &graph{g, c.nodes}
	return h, Success
}

// joined says whether the origin's last node comes after all nodes.
func (c *capture) joined() bool {
	reached := make([]bool, len(c.nodes))
	todo := c.tail(c.origin)
	count := 0
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !reached[n] {
			reached[n] = true
			count++
			todo = append(todo, c.nodes[n].after...)
		}
	}
	return count == len(c.nodes)
}

// GraphDestroy is cuGraphDestroy.
func (g *GPU) GraphDestroy(handle uint64) Result {
	g.m.mu.Lock()
	defer g.m.mu.Unlock()
	if g.m.graphs[handle] == nil {
		return InvalidValue
	}
	delete(g.m.graphs, handle)
	return Success
}

// GraphInstantiate is cuGraphInstantiate.
func (g *GPU) GraphInstantiate(handle uint64) (uint64, Result) {
	m := g.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := g.state(); r != Success {
		return 0, r
	}
	x := m.graphs[handle]
	if x == nil {
		return 0, InvalidValue
	}
	h := m.handle()
	m.execs[h] = &graphExec{graph: *x}
	return h, Success
}

// GraphExecDestroy is cuGraphExecDestroy.
func (g *GPU) GraphExecDestroy(handle uint64) Result {
	g.m.mu.Lock()
	defer g.m.mu.Unlock()
	if g.m.execs[handle] == nil {
		return InvalidValue
	}
	delete(g.m.execs, handle)
	return Success
}

// GraphLaunch is cuGraphLaunch.
func (g *GPU) GraphLaunch(handle, onto uint64) Result {
	m := g.m
	m.mu.Lock()
	defer m.mu.Unlock()
	s, r := g.enter(onto)
	if r != Success {
		return r
	}
	x := m.execs[handle]
	if x == nil || x.g != g {
		return InvalidValue
	}
	if s.capture != nil { // a graph within a graph
		return NotSupported
	}
	w := m.newOp(opGraph)
	w.graph = x.run()
	m.stats(g).GraphLaunches++
	m.push(s, w)
	return Success
}

// run takes an idle run of the graph, or makes one.
func (x *graphExec) run() *graphRun {
	var r *graphRun
	if n := len(x.idle); n > 0 {
		r = x.idle[n-1]
		x.idle = x.idle[:n-1]
		clear(r.state)
	} else {
		r = &graphRun{exec: x, state: make([]nodeState, len(x.nodes)), ends: make([]time.Duration, len(x.nodes))}
	}
	r.left, r.start = len(x.nodes), -1
	return r
}

// ready says whether a node of the graph can run now.
func (r *graphRun) ready(m *Machine, s *stream, i int) bool {
	if r.state[i] != nodeWaits {
		return false
	}
	n := &r.exec.nodes[i]
	for _, k := range n.after {
		if r.state[k] != nodeDone {
			return false
		}
	}
	return m.busy&m.reach(s, n.op) == 0
}

func (r *graphRun) runnable(m *Machine, s *stream) bool {
	if r.left == 0 {
		return true
	}
	for i := range r.state {
		if r.ready(m, s, i) {
			return true
		}
	}
	return false
}

// step runs one node that can run; which one is up to the seed.
func (r *graphRun) step(m *Machine, s *stream, w *op) {
	if r.start < 0 {
		s.ready = max(s.ready, w.issued)
		for _, k := range w.after {
			s.ready = max(s.ready, k.s.ready)
		}
		s.ready += graphTime
		r.start = s.ready
	}
	pick, count := -1, 0
	for i := range r.state {
		if r.ready(m, s, i) {
			if count++; m.rng.IntN(count) == 0 {
				pick = i
			}
		}
	}
	if pick >= 0 {
		n := &r.exec.nodes[pick]
		s.ready = r.start
		for _, k := range n.after {
			s.ready = max(s.ready, r.ends[k])
		}
		if !m.execNode(s, n.op) {
			return
		}
		r.state[pick], r.ends[pick] = nodeDone, s.ready
		r.left--
	}
	if r.left == 0 {
		s.ready = r.start
		for _, e := range r.ends {
			s.ready = max(s.ready, e)
		}
		r.exec.idle = append(r.exec.idle, r)
	}
}

func (m *Machine) execNode(s *stream, w *op) bool {
	if w.kind == opKernel {
		return m.runKernel(s, w, nodeTime)
	}
	return m.exec(s, w)
}
