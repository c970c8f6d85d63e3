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
// Races between the threads of a block are those that no barrier orders.
// Between blocks (CheckOrder) they are what PTX's memory consistency model calls
// so: two accesses of one byte, one of them a write, one of them weak (plain, or
// of a scope that leaves the other block out), and neither before the other in
// causality order. Memory itself stays sequentially consistent, so that the
// check does not wait for the wrong order to happen; it follows who knows what:
//
//	thread a            thread b, same block    thread c, another block
//	st [x]
//	bar.sync       ───► bar.sync
//	                    fence.acq_rel.gpu
//	                    atom [f]           ───► atom [f]
//	                                            fence.acq_rel.gpu
//	                                            ld [x]
//
// Modelled: release patterns (a fence or a .release operation, then a strong
// write of the same thread), acquire patterns (a strong read, then a fence of
// the same thread, or an .acquire operation), each of .gpu or .sys scope; chains
// of atomic operations on one address; that a red acquires nothing, and a failed
// compare-and-swap releases nothing; barriers, which hand on what any of their
// threads knows; and order through any number of threads and blocks.
//
// Not modelled: .cta and .cluster scopes order nothing between blocks, nor do
// they order the threads of one block, where only barriers count; fence.sc is
// an acq_rel one; proxies. Of a stretch that more than two warps read at once
// two are remembered, of unordered strong stores the last. Kernels that have no
// strong access to global memory cannot order their blocks; where these meet is
// looked at with CheckBlocks only.
//
// What it is not: a model of time (it counts, the caller models), nor a machine
// with a weak memory order (accesses happen in program order, one block's among
// the others'). Blocks do not wait for each other: a grid-wide barrier ends as a
// runaway kernel. The approximate functions are computed to single precision,
// tanh.approx to the 11 bits the hardware gives, and the sums of a matrix
// product in double precision.
//
// It must never read or write host memory outside the Regions that Memory gives
// it, whatever the PTX says, and never panic on any text.
package ptx
