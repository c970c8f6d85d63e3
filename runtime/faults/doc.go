// Package faults holds the whole runtime against machines that lie: simulated
// ones, with every fault that public reports tell of.
//
//	machine (topology, faults) ─► survey ─► routes ─► plan ─► engine ─► text
//	                                                                     │
//	the same model without faults ─────────────────────────────────────► = ?
//
// For each fault the text equals the fault-free text or, where nothing can be
// right, there is an error with a name: never a wrong token, never a wait past
// the deadline. With verification and probes off, the same matrix shows wrong
// tokens: the test is able to fail.
//
// make faults prints the table of outcomes; TOPOLOGIES=DIR adds machines. The
// package has only tests, and must have no part in production.
package faults
