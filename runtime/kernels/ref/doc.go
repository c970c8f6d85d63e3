// Package ref is the definition of every operation of kernels.Ops: plain Go,
// one loop per sum, float64 from the operands' loading to the result's single
// rounding. Other backends are right when they agree with it.
//
//	load (F32, F16, BF16 → float64) ─► the formula ─► round once ─► store
//
// It is a whole backend on host memory, so that models run on it too. Its
// activations and K/V are F32, but its operations take whatever element type
// their operands have, so that the definitions serve backends with other types.
//
// It never takes a short cut for speed: no vector code, no threads.
package ref
