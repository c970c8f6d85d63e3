package engine

import "errors"

// rewind goes on after a step whose batch arrived changed on a device. Its K/V
// may lie anywhere, in other sequences' pages or in those of the prefix cache:
// none of what is in the pages is used any more, and every live sequence is
// computed again from its tokens. It tells whether it could help: not when it
// has been tried several times without one good step.
func (e *Engine) rewind(cause error) bool {
	var b *batchError
	if e.rewinds == maxReplays || !errors.As(cause, &b) {
		return false
	}
	e.rewinds++
	for _, f := range e.flights {
		_ = e.c.Runner.Finish(f.lane) // waited for, and not used
	}
	e.flights = e.flights[:0]
	e.c.Runner.replays.Add(1)
	e.mu.Lock()
	e.sched.Requeue()
	e.sched.Restart(e.sched.Limits())
	e.mu.Unlock()
	if f := e.c.Events.Rewound; f != nil {
		f(cause)
	}
	return true
}
