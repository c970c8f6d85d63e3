package sim

import "time"

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

// sync waits for what is queued on a stream now.
func (m *Machine) sync(s *stream) Result {
	seq := s.queued
	if r := m.await(s.g, func() bool { return s.done >= seq }); r != Success {
		return r
	}
	m.now = max(m.now, s.ready)
	return Success
}
