package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
	"infer/runtime/transfer"
)

// lane is what a step in flight has for itself: queues, copies, results. With
// several lanes, micro-batches follow each other through the stages:
//
//	stage 0   A │ B │ A │ B │ …      A and B are steps of different sequences.
//	stage 1     │ A │ B │ A │ …      Each is sampled from while the other is computed.
//
// Weights, K/V pages, scratch and hidden states are the stage's. Whoever has
// the stage's turn uses them; its event says when the next may.
type lane struct {
	streams  []device.Stream // by stage
	ops      []kernels.Ops
	checks   []batchCheck
	copier   transfer.Copier
	delivery delivery

	raw    []byte    // host copy of Runner.out
	logits []float32 // the same as floats, for as many rows as were wanted so far
	ids    []byte    // host copy of Runner.largest
	choice []int32

	busy  bool   // a step is in flight
	step  uint64 // number
	batch *kernels.Batch
	whole bool
	err   error // of queueing
}

// Lanes is how many steps may be in flight.
func (r *Runner) Lanes() int { return len(r.lanes) }

// openLanes makes the lanes. The first has the streams that the stages were
// loaded with.
func (r *Runner) openLanes(c RunnerConfig) error {
	n := max(1, r.plan.MicroBatches)
	for k := range n {
		l := &lane{checks: make([]batchCheck, len(r.stages)), copier: transfer.New(c.Copies)}
		r.lanes = append(r.lanes, l)
		for i, st := range r.stages {
			if k == 0 {
				l.streams, l.ops = append(l.streams, st.stream), append(l.ops, st.ops)
				continue
			}
			if st.before != nil {
				l.streams, l.ops = append(l.streams, l.streams[i-1]), append(l.ops, l.ops[i-1])
				continue
			}
			s, err := st.backend.Device().NewStream()
			if err != nil {
				return err
			}
			l.streams = append(l.streams, s)
			ops, err := st.backend.NewOps(s)
			if err != nil {
				return err
			}
			l.ops = append(l.ops, ops)
		}
		if !c.sizesOnly {
			l.ids, l.choice = make([]byte, 4*r.plan.MaxLogits), make([]int32, r.plan.MaxLogits)
		}
	}
	r.done = r.lanes[0]
	if n == 1 {
		return nil
	}
	for _, st := range r.stages {
		if st.before == nil {
			var err error
			if st.turn, err = st.backend.Device().NewEvent(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Runner) closeLanes() error {
	var errs []error
	for k, l := range r.lanes {
		for i, s := range l.streams {
			if k > 0 && r.stages[i].before == nil {
				errs = append(errs, s.Close())
			}
		}
		errs = append(errs, l.copier.Close())
	}
	r.lanes = nil
	for _, st := range r.stages {
		if st.turn != nil {
			errs = append(errs, st.turn.Close())
		}
	}
	return errors.Join(errs...)
}

// Start queues a step in a lane that is free. Finish waits for it. Steps end in
// the order in which they were started.
func (r *Runner) Start(n int, b *kernels.Batch, wholeRows bool) {
	r.steps++
	l := r.lanes[n]
	l.busy, l.step, l.batch, l.whole = true, r.steps, b, wholeRows
	l.err = r.queue(r.context(), l)
}

// Finish waits for the lane's step and makes its results those that Row and
// Largest give. A step whose copies did not all arrive as sent is computed
// again. An error means that nothing of it may be used.
func (r *Runner) Finish(n int) error {
	l := r.lanes[n]
	r.done, l.busy = l, false
	if err := r.attempts(r.context(), l); err != nil {
		return fmt.Errorf("step %d (%d tokens of %d sequences): %w", l.step, len(l.batch.Tokens), len(l.batch.Contexts), err)
	}
	return nil
}

// queue puts the step's work behind what is queued on every stage.
func (r *Runner) queue(ctx context.Context, l *lane) error {
	l.delivery.verify = false
	b := l.batch
	rows, n := len(b.Tokens), len(b.Logits)
	for i, st := range r.stages {
		var hidden, logits tensor.Tensor
		if !st.hidden.IsNone() {
			hidden = st.hidden.Rows(0, rows)
		}
		if st.before == nil {
			if st.turn != nil {
				l.streams[i].Wait(st.turn)
			}
			if i > 0 {
				if err := r.move(ctx, l, i, hidden, r.stages[i-1].hidden.Rows(0, rows)); err != nil {
					return err
				}
				r.pass(l, i-1)
			}
			l.ops[i].Begin(b)
		}
		if st.Head {
			logits = r.out.Rows(0, n)
		}
		st.away.begin(b)
		st.model.Forward(l.ops[i], b, st.cache.Layers(), hidden, logits)
		if err := st.away.failed(); err != nil {
			return err
		}
		if st.before == nil {
			r.verifyBatch(l, i)
		}
	}
	last := len(r.stages) - 1
	switch {
	case n == 0:
	case l.whole:
		l.grow(n*r.model.VocabSize, r.plan.MaxLogits*r.model.VocabSize)
		r.fetch(l, last, l.raw[:4*n*r.model.VocabSize], r.out.Rows(0, n))
	default:
		l.ops[last].Argmax(r.largest.Rows(0, n), r.out.Rows(0, n))
		r.fetch(l, last, l.ids[:4*n], r.largest.Rows(0, n))
	}
	r.pass(l, last)
	return nil
}

// grow makes room for n logits, of at most so many. Most steps want a row or
// none, and the largest would be 64 MB that Go now and then has to clear.
func (l *lane) grow(n, most int) {
	if n > len(l.logits) {
		l.logits = make([]float32, min(max(n, 2*len(l.logits)), most))
		l.raw = bytesOf(l.logits)
	}
}

// pass gives the turn of stage i to the step behind: its work, and the copy of
// what came of it, are queued.
func (r *Runner) pass(l *lane, i int) {
	for r.stages[i].before != nil {
		i--
	}
	if e := r.stages[i].turn; e != nil {
		l.streams[i].Record(e)
	}
}

// wait for the lane's work.
func (r *Runner) wait(ctx context.Context, l *lane) error {
	for i, st := range r.stages {
		if err := l.streams[i].Sync(ctx); err != nil {
			return fmt.Errorf("wait for %v: %w", st.Stage, err)
		}
		if err := st.away.sync(ctx); err != nil {
			return fmt.Errorf("wait for experts of %v: %w", st.Stage, err)
		}
	}
	if !l.whole {
		for i := range len(l.batch.Logits) {
			l.choice[i] = int32(binary.LittleEndian.Uint32(l.ids[4*i:]))
		}
	}
	return nil
}

// move copies hidden states to stage i from the stage before.
func (r *Runner) move(ctx context.Context, l *lane, i int, dst, src tensor.Tensor) error {
	return ready(ctx, l.copier,
		transfer.End{Device: r.stages[i].Device, Stream: l.streams[i], Ops: l.ops[i], Tensor: dst},
		transfer.End{Device: r.stages[i-1].Device, Stream: l.streams[i-1], Ops: l.ops[i-1], Tensor: src})
}

// streamErr is the first error of a stage's streams.
func (r *Runner) streamErr(i int) error {
	if err := r.stages[i].stream.Err(); err != nil {
		return err
	}
	for _, l := range r.lanes {
		if i < len(l.streams) {
			if err := l.streams[i].Err(); err != nil {
				return err
			}
		}
	}
	return nil
}
