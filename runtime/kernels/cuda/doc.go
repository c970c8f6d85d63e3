// Package cuda is the kernels for NVIDIA GPUs: CUDA C in src, compiled by clang
// to the PTX in ptx, which is committed and embedded. compile.sh (make ptx)
// regenerates it; ptx/MANIFEST holds the compiler, the flags and the hashes,
// and a test fails when a source is newer than its PTX.
//
//	src/*.cu ─clang─► ptx/*.ptx ─embed─► the driver's compiler, for the GPU that is there
//	                              └────► runtime/internal/cuda/ptx, which runs it on the CPU in tests
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
// The test's long sweep runs with INFER_CUDA_SWEEP=1.
//
// It must never use a driver or a GPU in its own tests, nor PTX that MANIFEST
// does not vouch for.
package cuda
