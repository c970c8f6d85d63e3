// Package ptx parses and runs PTX, NVIDIA's assembly language for GPUs, on the
// CPU: the very text that ships, so that a kernel is proven on a machine
// without a GPU.
//
//	text ─► Parse ─► Module ─► Kernel.Launch(grid, block, params, Memory)
//	          │                   │
//	          │ lexer, parser     │ blocks on worker goroutines
//	          │ calls inlined     │   warps in turn, until each waits or ends
//	          │ blocks laid out   │     one instruction, 32 lanes at a time
//	          │ registers placed  │
//	          ▼                   ▼
//	     closures, one an    Stats: instructions, bytes, sectors, conflicts
//	     instruction         *Fault: what went wrong, where, by which thread
//
// A warp's lanes that diverge are run lowest position first; the layout of the
// basic blocks (see layout) makes them meet again where their paths join.
// Warp-wide instructions wait for the lanes they name, barriers for the warps
// of the block, and a cp.async lands in shared memory only when its group is
// waited for.
//
// Every launch finds accesses outside allocations, misaligned ones, writes to
// read-only memory, diverged warp-wide instructions and barriers, deadlocks and
// runaway loops. With Options.Checks it also finds reads of memory that was
// never written, cp.async destinations that are used too early, and data races.
//
// What it is not: a model of time (it counts, the caller models), nor of a
// weak memory order (a block's accesses happen in program order; blocks meet
// in atomic operations). Blocks do not wait for each other: a grid-wide barrier
// ends as a runaway kernel. Blocks that touch the same memory without atomic
// operations are not looked for, but run on goroutines that touch it likewise:
// with more than one worker Go's race detector reports them. The approximate
// functions are computed to single precision, tanh.approx to the 11 bits the
// hardware gives, and the sums of a matrix product in double precision.
//
// It must never read or write host memory outside the Regions that Memory gives
// it, whatever the PTX says, and never panic on any text.
package ptx
