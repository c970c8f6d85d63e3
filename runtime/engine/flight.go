package engine

import (
	"slices"
	"time"
)

// flight is a step under way.
type flight struct {
	step  *Step
	lane  int  // of the Runner
	whole bool // its logits come to the host, not only their maxima
	began time.Time
}

// start queues a step in a free lane.
func (e *Engine) start(st *Step) {
	f := flight{step: st, began: time.Now()}
	for i := range st.Rows {
		r := &st.Rows[i]
		if r.PromptN > 0 || r.Sample && !r.Seq.task.sampler.plain(len(r.Seq.Output())) {
			f.whole = true
		}
	}
	for e.flying(f.lane) {
		f.lane++
	}
	e.flights = append(e.flights, f)
	e.c.Runner.Start(f.lane, &st.Batch, f.whole)
}

// flying tells whether a step is under way in a lane.
func (e *Engine) flying(lane int) bool {
	for i := range e.flights {
		if e.flights[i].lane == lane {
			return true
		}
	}
	return false
}

// run computes one step.
func (e *Engine) run(st *Step) {
	e.start(st)
	e.finishStep()
}

// finishStep waits for the oldest step and hands out what it made.
func (e *Engine) finishStep() {
	f := e.flights[0]
	e.flights = slices.Delete(e.flights, 0, 1)
	st, began := f.step, f.began
	e.step, e.whole = st, f.whole
	// Closing does not interrupt a step: its own timeout bounds it.
	if err := e.c.Runner.Finish(f.lane); err != nil {
		if !e.rewind(err) && !e.recover(e.life, err) {
			e.fail(err)
		}
		return
	}
	e.rewinds = 0
	e.made = resize(e.made, len(st.Rows))
	if e.whole {
		e.workers.run(len(st.Rows))
	} else {
		for i := range st.Rows {
			e.choose(nil, i)
		}
	}

	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.outs = e.outs[:0]
	for i := range st.Rows {
		m := &e.made[i]
		if m.err != nil {
			e.sched.Cancel(st.Rows[i].Seq)
			m.news = append(m.news[:0], news{}) // nothing of the row is given out
		}
		if st.Rows[i].Sample {
			e.outs = append(e.outs, m.outcome())
		}
	}
	e.sched.Apply(e.outs)
	e.learn(st, now.Sub(began))
	if f := e.c.Events.Stepped; f != nil {
		f(len(st.Batch.Tokens))
	}
	for i := range st.Rows {
		m, q := &e.made[i], st.Rows[i].Seq
		if m.err != nil {
			e.finish(q.task, FinishNone, m.err, now)
			continue
		}
		if last := len(m.news) - 1; q.finish != FinishNone && last >= 0 {
			m.news[last].last = true
		}
		q.task.push(m.news, now)
		if q.finish != FinishNone {
			e.finish(q.task, q.finish, nil, now)
		}
	}
}
