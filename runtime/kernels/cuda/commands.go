package cuda

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"infer/runtime/device"
	driver "infer/runtime/internal/cuda"
)

// opcode is what a command asks of the driver.
type opcode uint8

const (
	opLaunch   opcode = iota
	opCopy            // within the device
	opSet             // bytes of one value
	opUpload          // from pinned memory
	opDownload        // to pinned memory
	opPeer            // to another device
	opMark            // a half of the staging memory is done with
	opRecord
	opWait
)

// command is one piece of work of a stream, before the driver has it.
type command struct {
	op    opcode
	name  string // the operation, for errors
	layer int32  // −1: none

	fn     *function // opLaunch: with params lo..hi of the list
	grid   [3]uint32
	block  uint32
	lo, hi int

	dst, src driver.Ptr // copies
	n        int64
	value    byte
	host     []byte
	peer     *Device

	half  *half
	event *event
	seq   uint64 // of the event's record
}

// replayable tells whether a command may be part of a graph: it does the same
// each time that it is issued.
func (c *command) replayable() bool { return c.op <= opSet }

func (c *command) String() string {
	s := c.name
	if c.fn != nil {
		s += " (kernel " + c.fn.name + ")"
	}
	if c.layer >= 0 {
		s += fmt.Sprintf(" of layer %d", c.layer)
	}
	return s
}

// list is commands in order, with the parameters of their launches. The host
// fills one while the owner works on those before it.
type list struct {
	stream *stream
	cmds   []command
	params []byte
	steady bool // launches may be replayed from a graph
	post   func(*driver.Thread)
}

func newList(s *stream) *list {
	l := &list{stream: s}
	l.post = l.execute
	return l
}

// execute gives the commands to the driver, on the owner, and the list back.
// After the stream's first error the rest is left out; who waits for one of
// its records is told.
func (l *list) execute(t *driver.Thread) {
	s := l.stream
	for i := 0; i < len(l.cmds); {
		c := &l.cmds[i]
		if err := s.Err(); err != nil {
			if c.op == opRecord {
				c.event.failed.CompareAndSwap(nil, &err)
				c.event.issued.Store(c.seq)
			}
			i++
			continue
		}
		n := 0
		for l.steady && i+n < len(l.cmds) && l.cmds[i+n].replayable() {
			n++
		}
		if n >= minGraph {
			s.graphs.run(t, s, l, i, i+n)
			i += n
			continue
		}
		if err := s.issue(t, l, c); err != nil {
			s.fail(fmt.Errorf("%v on %v: %w", c, s.dev.id, s.dev.classify(err)))
		} else if s.dev.sys.options.Synchronous {
			s.settleNow(t, c)
		}
		i++
	}
	clear(l.cmds)
	l.cmds, l.params, l.steady = l.cmds[:0], l.params[:0], false
	select {
	case s.spare <- l:
	default: // enough are kept
	}
}

// issue makes the driver call of one command.
func (s *stream) issue(t *driver.Thread, l *list, c *command) error {
	switch c.op {
	case opLaunch:
		if err := c.fn.resolve(t); err != nil {
			return err
		}
		s.count.Launches++
		return t.Launch(c.fn.handle, c.grid, [3]uint32{c.block, 1, 1}, 0, s.handle, l.params[c.lo:c.hi])
	case opCopy:
		return t.Copy(c.dst, c.src, c.n, s.handle)
	case opSet:
		return t.Set8(c.dst, c.value, c.n, s.handle)
	case opUpload:
		s.count.Copies++
		return t.CopyToDevice(c.dst, c.host, s.handle)
	case opDownload:
		s.count.Copies++
		return t.CopyToHost(c.host, c.src, s.handle)
	case opPeer:
		s.count.Copies++
		if err := s.dev.enablePeer(t, c.peer); err != nil {
			return err
		}
		return t.CopyPeer(c.dst, c.peer.owner, c.src, c.n, s.handle)
	case opMark:
		return t.Record(c.half.mark, s.handle)
	case opRecord:
		err := t.Record(c.event.handle, s.handle)
		if err != nil { // who waits must not take it for passed
			c.event.failed.CompareAndSwap(nil, &err)
		}
		c.event.issued.Store(c.seq)
		return err
	}
	if err := c.event.await(c.seq, s.dev.sys.options.Timeout); err != nil {
		return err
	}
	return t.WaitEvent(s.handle, c.event.handle)
}

// settleNow waits for one command on the owner: the synchronous mode.
func (s *stream) settleNow(t *driver.Thread, c *command) {
	limit := s.dev.sys.options.Timeout
	for start := time.Now(); ; {
		done, err := t.Query(s.handle)
		if waited := time.Since(start); err == nil && !done && waited > limit {
			err = fmt.Errorf("not done after %v, the limit is %v: %w", waited.Round(time.Millisecond), limit, device.ErrDeviceLost)
		}
		if err != nil {
			s.fail(fmt.Errorf("%v on %v: %w", c, s.dev.id, s.dev.classify(err)))
		}
		if err != nil || done {
			return
		}
	}
}

// The parameters of a launch are written behind one another, each aligned to
// its size, as the driver wants them.

func (l *list) align(n int) {
	for len(l.params)%n != 0 {
		l.params = append(l.params, 0)
	}
}

func (l *list) ptr(p driver.Ptr) { l.u64(uint64(p)) }

func (l *list) u64(v uint64) {
	l.align(8)
	l.params = binary.LittleEndian.AppendUint64(l.params, v)
}

func (l *list) i32(v int) {
	l.align(4)
	l.params = binary.LittleEndian.AppendUint32(l.params, uint32(int32(v)))
}

func (l *list) f32(v float32) {
	l.align(4)
	l.params = binary.LittleEndian.AppendUint32(l.params, math.Float32bits(v))
}
