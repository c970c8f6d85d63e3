// Package cuda computes on NVIDIA GPUs, real ones or simulated: devices,
// streams and operations over the driver, and the kernels, CUDA C in src,
// compiled by clang to the PTX in ptx, which is committed and embedded.
//
//	Ops ─► list of commands ─► owner of the GPU (one thread) ─► driver
//	        a launch: kernel, grid,      │ new: one by one
//	        parameters                   └ seen before: one graph
//
//	src/*.cu ─clang─► ptx/*.ptx ─embed─► the driver's compiler, for the GPU that is there
//	                              └────► runtime/internal/cuda/ptx, which runs it on the CPU
//
// Everything that is queued becomes a command; a batch of them goes to the
// owner at once. The host waits only in Sync, or when its staging memory is
// full. What differs between two steps of decoding lies in one buffer of the
// device (batch), so that their launches are equal to the byte: then they are
// replayed from a graph. Nothing else is replayed.
//
// Each kernel's comment in src says its grid, block, parameters and shapes. A
// name ends in its element types: of the weight or the pages, then of the
// activations. Activations are bf16 (fast) or f32 (as exact as the CPU's).
//
// An output's additions have an order that depends on its own shape (the
// weight's inputs, the position's context) alone: the kernel for few rows and
// the one for many give the same bits, and so do attention for one row and for
// a chunk of a prompt. Sums that are split have fixed parts, added in order.
// The code is plain sm_80 PTX 7.8: every GPU since compiles it.
//
// compile.sh (make ptx) regenerates the PTX; ptx/MANIFEST holds the compiler,
// the flags and the hashes, and a test fails when a source is newer. The long
// sweeps of the tests run with INFER_CUDA_SWEEP=1.
//
// It must never need a GPU in its own tests, wait without a deadline, nor
// launch PTX that MANIFEST does not vouch for.
package cuda
