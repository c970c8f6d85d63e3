package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"infer/runtime/device"
)

// scrubber says when the next piece of the weights is looked at. Memory of
// consumer cards has no error correction: a bit that flips stays flipped, and
// makes every later answer wrong.
type scrubber struct {
	timer   *time.Timer
	last    time.Time
	next    int // piece
	changed map[device.ID]int
}

// due is a channel that fires a pause after the last look; nil with 0.
func (s *scrubber) due(pause time.Duration) <-chan time.Time {
	if pause == 0 {
		return nil
	}
	wait := pause - time.Since(s.last)
	if s.timer == nil {
		s.timer = time.NewTimer(wait)
	} else {
		s.timer.Reset(wait)
	}
	return s.timer.C
}

// overdue tells whether the last look is longer ago than it may be under load.
func (s *scrubber) overdue(limit time.Duration) bool {
	if limit == 0 {
		return false
	}
	if s.last.IsZero() {
		s.last = time.Now()
	}
	return time.Since(s.last) > limit
}

// scrub looks at the next piece of the weights on GPUs. When it has changed,
// nobody knows since when: what runs is failed, and the weights are loaded
// again. A device on which that happens twice is not used any more.
func (e *Engine) scrub(ctx context.Context) {
	s := &e.scrubber
	s.last = time.Now()
	n, all, err := e.c.Runner.scrub(ctx, s.next)
	s.next = (s.next + 1) % max(1, all)
	e.mu.Lock()
	e.stats.ScrubBytes += uint64(n)
	if n > 0 && s.next == 0 {
		e.stats.ScrubPasses++
	}
	e.mu.Unlock()
	var w *WeightsError
	if !errors.As(err, &w) {
		return // a device that does not answer is the next step's matter
	}
	e.mu.Lock()
	e.stats.ScrubFaults++
	now := time.Now()
	fault := fmt.Errorf("%w: %w", ErrFault, err)
	for _, q := range e.sched.All() {
		if q.admitted {
			e.sched.Cancel(q)
			e.finish(q.task, FinishNone, fault, now)
		}
	}
	e.mu.Unlock()
	if f := e.c.Events.WeightsChanged; f != nil {
		f(err)
	}
	if s.changed == nil {
		s.changed = map[device.ID]int{}
	}
	s.changed[w.Device]++
	var lost []device.ID
	if s.changed[w.Device] > 1 {
		lost = append(lost, w.Device)
	}
	if e.c.Recover == nil {
		e.giveUp(fault)
		return
	}
	e.replace(ctx, lost, err)
}

// scrub compares piece i of all with what was sent.
func (r *Runner) scrub(ctx context.Context, i int) (bytes int64, all int, err error) {
	at := (*stage)(nil)
	for _, st := range r.stages {
		if i >= all && i < all+len(st.checked) {
			at, i = st, i-all
		}
		all += len(st.checked)
	}
	if at == nil {
		return 0, all, nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	w := &at.checked[i]
	w.ops.Digest(&w.got, w.Memory)
	if err := w.stream.Sync(ctx); err != nil {
		return 0, all, err
	}
	return w.Memory.Bytes(), all, w.check()
}
