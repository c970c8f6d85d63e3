package engine

import (
	"slices"

	"infer/runtime/kernels"
	"infer/runtime/kvcache"
)

// Requeue takes back what runs, the steps under way included: every running
// sequence waits in its old order, its K/V is gone, its tokens stay.
// Sequences cancelled within a step end.
func (s *Scheduler) Requeue() {
	for _, st := range s.open {
		for i := range st.Rows {
			q := st.Rows[i].Seq
			q.inStep = false
			if q.dropped {
				s.end(q, FinishNone)
			}
		}
	}
	s.spare, s.open = append(s.spare, s.open...), s.open[:0]
	for len(s.running) > 0 {
		s.preempt(s.running[len(s.running)-1])
	}
}

// Restart goes on under other limits with an empty cache; nothing runs.
// Sequences that do not fit any more are ended and returned; one that would
// have used the rest of the context has less of it.
func (s *Scheduler) Restart(l Limits) (unfit []*Sequence) {
	if len(s.running) > 0 || len(s.open) > 0 {
		panic("engine: Restart while sequences run")
	}
	l.MaxContext = min(l.MaxContext, l.Blocks*kernels.BlockSize)
	s.lim, s.blocks = l, kvcache.NewBlockManager(l.Blocks)
	for _, q := range slices.Clone(s.waiting) {
		if len(q.Tokens)+min(q.MaxNew, 1) > l.MaxContext {
			s.end(q, FinishNone)
			unfit = append(unfit, q)
			continue
		}
		q.limit = min(q.limit, l.MaxContext)
	}
	return unfit
}
