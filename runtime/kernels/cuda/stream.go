package cuda

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"infer/runtime/device"
	driver "infer/runtime/internal/cuda"
	"infer/runtime/tensor"
)

const (
	// flushAt commands go to the owner together, so that the device begins
	// while the host is still queueing. A step that may be replayed is kept
	// together.
	flushAt = 24
	// spin is how long the owner asks again before others get it.
	spin = 100 * time.Microsecond
	// The pause between two such times grows from one to the other.
	minPause = 20 * time.Microsecond
	maxPause = 100 * time.Microsecond
)

// Counts of what a stream has given to the driver.
type Counts struct {
	Launches int64 // of kernels one by one
	Graphs   int64 // replays of many
	Copies   int64 // between host and device, and devices
	Waits    int64 // of the host
}

// stream is a device.Stream: a list of commands, handed to the device's owner
// in batches.
type stream struct {
	dev    *Device
	handle driver.Stream
	err    atomic.Pointer[error]

	cur   *list
	spare chan *list
	hold  bool // collect the whole step
	dirty bool // something was queued since the last wait
	layer int32
	span  [2]string // first and last operation since the last wait
	stage staging
	ops   []*ops // on this stream
	// One of them may hold an operation back, to see what follows.
	postponed *ops

	results results
	graphs  graphs // the owner's
	count   Counts // the owner's; its waits the caller's

	// A wait in progress: what the owner is to do, and what came of it.
	turn struct {
		list   *list
		half   *half // nil: all work
		done   bool
		worked bool // the driver took its time: no pause is needed
	}
	step func(*driver.Thread) error
}

func newStream(d *Device) (_ *stream, err error) {
	s := &stream{dev: d, spare: make(chan *list, 16), layer: -1}
	s.step = s.look
	s.cur = newList(s)
	defer func() {
		if err != nil {
			for i := range s.stage.halves {
				if b := s.stage.halves[i].buf; b != nil {
					err = errors.Join(err, b.Free())
				}
			}
		}
	}()
	for i := range s.stage.halves {
		b, err := d.AllocHost(halfBytes)
		if err != nil {
			return nil, err
		}
		s.stage.halves[i].buf = b.(*hostBuffer)
	}
	err = d.do("make a stream", func(t *driver.Thread) (err error) {
		for i := range s.stage.halves {
			if s.stage.halves[i].mark, err = t.NewEvent(false); err != nil {
				return err
			}
		}
		s.handle, err = t.NewStream()
		return err
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// push appends a command.
func (s *stream) push(op opcode, name string) *command {
	s.settle()
	if !s.hold && len(s.cur.cmds) >= flushAt {
		s.flush()
	}
	if s.span[0] == "" {
		s.span[0] = name
	}
	s.span[1], s.dirty = name, true
	n := len(s.cur.params) // it has none, as yet
	s.cur.cmds = append(s.cur.cmds, command{op: op, name: name, layer: s.layer, lo: n, hi: n})
	return &s.cur.cmds[len(s.cur.cmds)-1]
}

// launch begins a launch; its parameters are appended to the list that it
// gives, then ended.
func (s *stream) launch(name string, f *function, x, y, z int, block uint32) *list {
	c := s.push(opLaunch, name)
	l := s.cur
	l.align(16)
	c.fn, c.grid, c.block, c.lo = f, [3]uint32{uint32(x), uint32(y), uint32(z)}, block, len(l.params)
	return l
}

// end closes the launch that was begun last.
func (l *list) end() { l.cmds[len(l.cmds)-1].hi = len(l.params) }

// take gives the list so far and begins another.
func (s *stream) take() *list {
	l := s.cur
	if len(l.cmds) == 0 {
		return nil
	}
	l.steady = s.hold && !s.dev.sys.options.NoGraphs && !s.dev.sys.options.Synchronous
	select {
	case s.cur = <-s.spare:
	default:
		s.cur = newList(s)
	}
	return l
}

// flush hands what is queued to the owner.
func (s *stream) flush() {
	if l := s.take(); l != nil {
		s.dev.owner.Post(l.post)
	}
}

// settle queues what was postponed: before anything else is.
func (s *stream) settle() {
	if o := s.postponed; o != nil {
		s.postponed = nil
		o.multiply("MatMul", tensor.Tensor{}, 0)
	}
}

func (s *stream) Upload(dst tensor.Tensor, src []byte) {
	mustSize("Upload", int64(len(src)), dst.Bytes())
	s.own("Upload", dst)
	s.upload("Upload", at(dst), src)
}

func (s *stream) Download(dst []byte, src tensor.Tensor) {
	mustSize("Download", int64(len(dst)), src.Bytes())
	s.own("Download", src)
	s.download("Download", dst, at(src))
}

// CopyTo implements device.PeerStream.
func (s *stream) CopyTo(dst, src tensor.Tensor) {
	mustSize("CopyTo", src.Bytes(), dst.Bytes())
	s.own("CopyTo", src)
	to, ok := dst.Buf.(*buffer)
	if !ok || to.dev.sys != s.dev.sys {
		panic(fmt.Sprintf("cuda: CopyTo from %v to memory that is not a GPU's of this machine", s.dev.id))
	}
	c := s.push(opPeer, "copy to "+to.dev.id.String())
	c.dst, c.src, c.n, c.peer = at(dst), at(src), src.Bytes(), to.dev
	if to.dev == s.dev {
		c.op = opCopy
	}
}

// Record hands the work so far to the owner: another stream may wait for it.
func (s *stream) Record(e device.Event) {
	ev := e.(*event)
	c := s.push(opRecord, "Record")
	c.event, c.seq = ev, ev.recorded.Add(1)
	s.flush()
}

func (s *stream) Wait(e device.Event) {
	ev := e.(*event)
	seq := ev.recorded.Load()
	if seq == 0 {
		return // never recorded: there is nothing to wait for
	}
	c := s.push(opWait, "Wait")
	c.event, c.seq = ev, seq
}

// Sync waits for everything queued; one turn of the owner when the device is
// done by then.
func (s *stream) Sync(ctx context.Context) error {
	s.settle()
	s.results.fetch(s)
	if err := s.Err(); err != nil || s.dirty {
		if err := s.await(ctx, nil); err != nil {
			return err
		}
	}
	s.stage.halves[s.stage.now^1].release()
	s.stage.halves[s.stage.now].release()
	s.results.deliver()
	s.hold, s.dirty, s.span = false, false, [2]string{}
	return nil
}

// Err is the stream's first error, or that of its device.
func (s *stream) Err() error {
	if e := s.err.Load(); e != nil {
		return *e
	}
	return s.dev.lostErr()
}

func (s *stream) fail(err error) { s.err.CompareAndSwap(nil, &err) }

// await hands what is queued to the owner and waits until the device is done
// with all of it, or with half h. After a wait that was given up there is no
// other: the owner may still have its turn before it.
func (s *stream) await(ctx context.Context, h *half) error {
	if err := s.Err(); err != nil {
		s.flush() // so that nobody waits for its records
		return err
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.dev.sys.options.Timeout)
		defer cancel()
	}
	s.count.Waits++
	start := time.Now()
	s.turn.list, s.turn.half, s.turn.done = s.take(), h, false
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		err := s.dev.owner.Run(ctx, s.step)
		if err == nil {
			if err := s.Err(); err != nil {
				return err
			}
			if s.turn.done {
				return nil
			}
			if err = ctx.Err(); err == nil {
				if !s.turn.worked {
					time.Sleep(pause)
				}
				continue
			}
		}
		deadline, _ := ctx.Deadline()
		err = fmt.Errorf("wait for %v (%s to %s): not done after %v, the limit was %v: %w", s.dev.id, s.span[0], s.span[1],
			time.Since(start).Round(time.Millisecond), deadline.Sub(start).Round(time.Millisecond), err)
		if !errors.Is(ctx.Err(), context.Canceled) {
			err = fmt.Errorf("%w: %w", device.ErrDeviceLost, err)
			s.dev.lose(err)
		}
		s.fail(err)
		return err
	}
}

// look is the owner's part of await.
func (s *stream) look(t *driver.Thread) error {
	w := &s.turn
	if l := w.list; l != nil {
		w.list = nil
		l.execute(t)
	}
	if s.Err() != nil {
		return nil
	}
	start := time.Now()
	for n := 0; ; n++ {
		var done bool
		var err error
		if w.half != nil {
			done, err = t.QueryEvent(w.half.mark)
		} else {
			done, err = t.Query(s.handle)
		}
		switch {
		case err != nil:
			s.fail(fmt.Errorf("%s to %s on %v: %w", s.span[0], s.span[1], s.dev.id, s.dev.classify(err)))
			return nil
		case done:
			w.done = true
			return nil
		case time.Since(start) > spin:
			w.worked = n < 8
			return nil
		}
	}
}

// Counts of the stream so far. Not while work is queued.
func (s *stream) Counts() Counts { return s.count }

// Close waits for the work and frees what the stream has.
func (s *stream) Close() error {
	_ = s.Sync(context.Background()) // its error was, or will be, the device's
	var errs []error
	for _, o := range s.ops {
		errs = append(errs, o.close())
	}
	if b := s.results.buf; b != nil {
		errs = append(errs, b.Free())
	}
	if s.dev.lostErr() == nil {
		errs = append(errs, s.dev.do("close a stream", func(t *driver.Thread) error {
			s.graphs.close(t)
			err := t.DestroyStream(s.handle)
			for i := range s.stage.halves {
				err = errors.Join(err, t.DestroyEvent(s.stage.halves[i].mark))
			}
			return err
		}))
	}
	for i := range s.stage.halves {
		errs = append(errs, s.stage.halves[i].buf.Free())
	}
	return errors.Join(errs...)
}

// own panics when a tensor is not of this stream's device.
func (s *stream) own(op string, ts ...tensor.Tensor) {
	for _, t := range ts {
		if t.IsNone() {
			continue
		}
		if b, ok := t.Buf.(*buffer); !ok || b.dev != s.dev {
			panic(fmt.Sprintf("cuda: %s on %v: %v%v lies elsewhere", op, s.dev.id, t.DType, t.Shape))
		}
	}
}

func mustSize(what string, have, want int64) {
	if have != want {
		panic(fmt.Sprintf("cuda: %s of %d bytes where the tensor has %d", what, have, want))
	}
}

func word(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
