package cuda

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"slices"

	driver "infer/runtime/internal/cuda"
)

const (
	// minGraph commands in a row are worth a graph.
	minGraph = 8
	// maxGraphs are kept of a stream, those used last: one for each number of
	// sequences and each doubling of the longest context.
	maxGraphs = 64
)

// graphs replays runs of commands that have come before. What changes from step
// to step lies in the device's memory, so that the commands of two steps with
// as many sequences are the same, to the byte; nothing else is ever replayed.
// Only the owner uses it.
type graphs struct {
	seed  maphash.Seed
	known map[uint64]*graph
	turn  uint64
}

type graph struct {
	cmds   []command
	params []byte
	exec   driver.GraphExec
	made   bool
	used   uint64 // turn
}

// run issues commands lo..hi: one by one when they are new, as a graph from
// their second time on.
func (g *graphs) run(t *driver.Thread, s *stream, l *list, lo, hi int) {
	cmds := l.cmds[lo:hi]
	params := l.params[cmds[0].lo:cmds[len(cmds)-1].hi]
	g.turn++
	if g.known == nil {
		g.known, g.seed = make(map[uint64]*graph), maphash.MakeSeed()
	}
	key := g.hash(cmds, params)
	e := g.known[key]
	switch {
	case e == nil || !e.same(cmds, params):
		g.forget(t, key)
		if len(g.known) >= maxGraphs {
			g.forget(t, g.oldest())
		}
		e = &graph{cmds: slices.Clone(cmds), params: bytes.Clone(params), used: g.turn}
		for i := range e.cmds {
			e.cmds[i].lo -= cmds[0].lo
			e.cmds[i].hi -= cmds[0].lo
		}
		g.known[key] = e
		s.issueAll(t, l, cmds)
		return
	case !e.made:
		if err := e.capture(t, s); err != nil {
			s.fail(fmt.Errorf("make a graph of %d operations, %v to %v, on %v: %w", len(cmds), &cmds[0], &cmds[len(cmds)-1], s.dev.id, s.dev.classify(err)))
			return
		}
	}
	e.used = g.turn
	s.count.Graphs++
	if err := t.LaunchGraph(e.exec, s.handle); err != nil {
		s.fail(fmt.Errorf("replay %d operations, %v to %v, on %v: %w", len(cmds), &cmds[0], &cmds[len(cmds)-1], s.dev.id, s.dev.classify(err)))
	}
}

func (s *stream) issueAll(t *driver.Thread, l *list, cmds []command) {
	for i := range cmds {
		if err := s.issue(t, l, &cmds[i]); err != nil {
			s.fail(fmt.Errorf("%v on %v: %w", &cmds[i], s.dev.id, s.dev.classify(err)))
			return
		}
	}
}

func (g *graphs) hash(cmds []command, params []byte) uint64 {
	h := maphash.Bytes(g.seed, params)
	for i := range cmds {
		c := &cmds[i]
		for _, v := range [...]uint64{uint64(c.op)<<32 | uint64(c.block), uint64(c.grid[0])<<32 | uint64(c.grid[1]), uint64(c.grid[2]), uint64(c.dst), uint64(c.src), uint64(c.n)} {
			h = (h ^ v) * 0x9e3779b97f4a7c15
			h ^= h >> 32
		}
	}
	return h
}

func (e *graph) same(cmds []command, params []byte) bool {
	return bytes.Equal(e.params, params) && slices.EqualFunc(e.cmds, cmds, func(a, b command) bool {
		return a.op == b.op && a.fn == b.fn && a.grid == b.grid && a.block == b.block &&
			a.dst == b.dst && a.src == b.src && a.n == b.n && a.value == b.value && a.hi-a.lo == b.hi-b.lo
	})
}

// capture makes the graph; it runs nothing.
func (e *graph) capture(t *driver.Thread, s *stream) error {
	if err := t.BeginCapture(s.handle); err != nil {
		return err
	}
	l := &list{params: e.params}
	var first error
	launches := s.count.Launches
	for i := range e.cmds {
		if first = s.issue(t, l, &e.cmds[i]); first != nil {
			break
		}
	}
	s.count.Launches = launches
	made, err := t.EndCapture(s.handle)
	if first != nil {
		if err == nil {
			_ = t.DestroyGraph(made) // what was wrong before counts
		}
		return first
	}
	if err != nil {
		return err
	}
	if e.exec, err = t.Instantiate(made); err == nil {
		e.made = true
	}
	if derr := t.DestroyGraph(made); err == nil {
		err = derr
	}
	return err
}

func (g *graphs) oldest() uint64 {
	var key uint64
	used := uint64(1<<64 - 1)
	for k, e := range g.known {
		if e.used < used {
			key, used = k, e.used
		}
	}
	return key
}

func (g *graphs) forget(t *driver.Thread, key uint64) {
	if e := g.known[key]; e != nil && e.made {
		_ = t.DestroyGraphExec(e.exec) // an error of earlier work shows at the next wait
	}
	delete(g.known, key)
}

func (g *graphs) close(t *driver.Thread) {
	for k := range g.known {
		g.forget(t, k)
	}
}
