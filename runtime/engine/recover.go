package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"infer/runtime/device"
	"infer/runtime/devicemap"
	"infer/runtime/kernels"
	"infer/runtime/transfer"
)

// closeTime bounds how long a device that may not answer any more is waited
// for while its memory is given back.
const closeTime = 10 * time.Second

// lost names the devices that nothing can be computed on any more: those with
// a sticky error, and those that copies by way of the host do not get through
// to.
func (r *Runner) lost(err error) []device.ID {
	var ids []device.ID
	add := func(id device.ID) {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for i, st := range r.stages {
		if r.streamErr(i) != nil && !alive(st.backend) {
			add(st.Device)
		}
		if st.away.broken() != nil {
			add(st.away.id)
		}
	}
	if ids == nil { // none is lost, but streams are broken
		for i, st := range r.stages {
			if r.streamErr(i) != nil {
				add(st.Device)
			}
		}
	}
	if len(ids) > 0 {
		// Others may wait for what the lost one will never do. A stream that
		// cannot be emptied has no use either.
		ctx, cancel := context.WithTimeout(context.Background(), min(r.timeout/8, closeTime))
		defer cancel()
		for i, st := range r.stages {
			for _, l := range r.lanes {
				if s := l.streams[i]; s.Err() == nil && s.Sync(ctx) != nil {
					add(st.Device)
				}
			}
			if st.away.broken() == nil && st.away.sync(ctx) != nil {
				add(st.away.id)
			}
		}
	}
	var m transfer.Mismatches
	if errors.As(err, &m) {
		for _, e := range m {
			if e.Suspect != nil {
				add(*e.Suspect)
			}
		}
	}
	return ids
}

// alive tells whether a device still works: a stream may only have waited for
// another device's.
func alive(b kernels.Backend) bool {
	s, err := b.Device().NewStream()
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return errors.Join(s.Sync(ctx), s.Close()) == nil
}

// discard frees what the runner holds, as far as its devices answer.
func (r *Runner) discard() error {
	done := make(chan error, 1)
	go func() { done <- r.Close() }()
	select {
	case err := <-done:
		return err
	case <-time.After(closeTime):
		return fmt.Errorf("devices did not give their memory back within %v", closeTime)
	}
}

// recover goes on without the devices that a step lost: every live sequence is
// computed again from its tokens, which are on the host. Callers only see a
// pause. It tells whether there was anything to recover from.
func (e *Engine) recover(ctx context.Context, cause error) bool {
	lost := e.c.Runner.lost(cause)
	if len(lost) == 0 || e.c.Recover == nil {
		return false
	}
	if f := e.c.Events.DeviceLost; f != nil {
		f(lost, cause)
	}
	e.mu.Lock()
	e.stats.DevicesLost += uint64(len(lost))
	e.stats.FailedSteps++
	e.mu.Unlock()
	e.replace(ctx, lost, cause)
	return true
}

// replace closes the Runner, gets another from Config.Recover, and queues every
// live sequence again.
func (e *Engine) replace(ctx context.Context, lost []device.ID, cause error) {
	began := time.Now()
	e.mu.Lock()
	e.recovering = cause
	e.sched.Requeue()
	e.flights = e.flights[:0] // their streams end with the Runner
	replays := e.c.Runner.Replays()
	e.mu.Unlock()

	left := e.c.Runner.discard()
	r, err := e.c.Recover(ctx, lost, cause)
	if err == nil {
		err = without(r.Plan(), lost)
	}
	if err != nil {
		e.mu.Lock()
		e.recovering = nil
		e.mu.Unlock()
		e.giveUp(fmt.Errorf("%w: %w; going on without %v: %w; a new start tries all devices again", ErrFault, cause, lost, err))
		return
	}
	r.bindThread()
	now := time.Now()
	e.mu.Lock()
	e.c.Runner = r
	r.replays.Add(replays)
	r.replayed = e.c.Events.Replayed
	e.recovering = nil
	unfit := e.sched.Restart(limitsOf(r.Plan(), e.c))
	for _, q := range unfit {
		e.finish(q.task, FinishNone, fmt.Errorf("%w: %w; without %v there is room for %d tokens, this sequence has %d",
			ErrFault, cause, lost, e.sched.Limits().MaxContext, len(q.Tokens)), now)
	}
	e.mu.Unlock()
	if f := e.c.Events.Recovered; f != nil {
		f(r.Plan(), now.Sub(began), left)
	}
}

// without asserts that a plan does not use devices, so that each recovery has
// fewer of them.
func without(p devicemap.Plan, lost []device.ID) error {
	for _, st := range p.Stages {
		if slices.Contains(lost, st.Device) || st.Split() && slices.Contains(lost, st.ExpertsOn) {
			return fmt.Errorf("the new plan has %v again", st)
		}
	}
	return nil
}

// giveUp fails everything, now and from now on.
func (e *Engine) giveUp(err error) {
	if f := e.c.Events.Failed; f != nil {
		f(err)
	}
	e.mu.Lock()
	e.failed = err
	e.mu.Unlock()
	e.failAll(err)
}
