package engine

import (
	"errors"
	"time"

	"infer/runtime/kernels"
)

// Stats are an Engine's present state and its counters since the start.
type Stats struct {
	Running, Waiting      int
	BlocksUsed, BlocksAll int // K/V blocks held by live sequences; all
	BlocksCached          int // that hold a prefix some later sequence may use
	BlockSize, MaxContext int
	Draining              bool
	Failed                error // nothing can be computed any more
	Counters                    // of the Scheduler
	Evictions             uint64
	Steps, FailedSteps    uint64
	Replays               uint64 // of steps, for copies that arrived changed
	DevicesLost           uint64
	ScrubBytes            uint64 // weights looked at after they were loaded
	ScrubPasses           uint64 // times that all were
	ScrubFaults           uint64
	Recovering            error         // why a device was lost, until the rest goes on
	StepTime, LastStep    time.Duration // sum over all steps; of the last one
	LastTokens            int           // rows of the last step
	PrefillTokens         uint64        // computed for prompts, recomputation included
	Generated             uint64        // tokens
	Drafted, Accepted     uint64        // guessed tokens that were computed; of them kept
	FinishedStop          uint64        // sequences, by how they ended
	FinishedLength        uint64
	FinishedAbort         uint64 // cancelled by their caller, or past the deadline
	FinishedError         uint64 // by a fault
}

// step counts a committed step and returns how many of its rows were prompts'.
func (s *Stats) step(st *Step, outs []Outcome, d time.Duration) (promptRows int) {
	s.Steps++
	s.StepTime += d
	s.LastStep, s.LastTokens = d, len(st.Batch.Tokens)
	for _, o := range outs {
		s.Generated += uint64(1 + o.Accepted)
		s.Accepted += uint64(o.Accepted)
	}
	decode := 0
	for i := range st.Rows {
		if r := &st.Rows[i]; r.N-r.Draft == 1 && r.Sample && r.Lo > r.Seq.prompt-1 {
			decode += r.N
			s.Drafted += uint64(r.Draft)
		}
	}
	promptRows = len(st.Batch.Tokens) - decode
	s.PrefillTokens += uint64(promptRows)
	return promptRows
}

// count notes how a sequence ended.
func (s *Stats) count(why Finish, err error) {
	switch {
	case errors.Is(err, ErrFault) || errors.Is(err, ErrInvalid):
		s.FinishedError++
	case err != nil:
		s.FinishedAbort++
	case why == FinishStop:
		s.FinishedStop++
	default:
		s.FinishedLength++
	}
}

// Stats at this moment.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.stats
	s.Running, s.Waiting = e.sched.Running(), e.sched.Waiting()
	s.BlocksUsed, s.BlocksAll, s.BlocksCached = e.sched.BlocksUsed(), e.sched.blocks.Total(), e.sched.blocks.Cached()
	s.Evictions = e.sched.blocks.Evicted()
	s.BlockSize, s.MaxContext = kernels.BlockSize, e.sched.lim.MaxContext
	s.Replays = e.c.Runner.Replays()
	s.Counters, s.Draining, s.Failed = e.sched.Counters(), e.draining, e.failed
	s.Recovering = e.recovering
	return s
}
