// Package engine runs sequences: a pure Scheduler picks a Batch, the Runner
// takes it through the stages of the plan, the Sampler picks tokens, and the
// step loop repeats that until nothing waits.
//
//	Generate ─► waiting queue ─► sched.Next ─► runner.Step ─► commit ─► sample ─► sched.Apply
//	   ▲                            (pure)      (devices)                            │
//	   └───────────────────────── Event per token ◄─────────────────────────────────┘
//
// A sequence's tokens do not depend on what else is in the batch, on how its
// prompt was cut into chunks, or on what the prefix cache held.
//
// One goroutine owns the Runner and the steps. A mutex guards the Scheduler,
// and is never held while a device computes, so that callers come and go
// within a step. A caller's tokens wait in its own task: the loop never waits
// for a caller.
//
// No token leaves, and no block enters the prefix cache, before the step that
// made it has been committed. A step that fails ends its sequences with
// ErrFault.
//
// The engine never imports a concrete backend: cmd/infer hands them in.
//
// Tests: testdata/scheduler holds scenarios as text (-rewrite updates them);
// INFER_STRESS=60s makes the stress test that long.
package engine
