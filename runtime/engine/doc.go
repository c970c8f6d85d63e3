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
// The engine never imports a concrete backend: cmd/infer hands them in.
package engine
