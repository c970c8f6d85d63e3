// Package cpu is the CPU as a device: memory outside the Go heap, a pool of
// threads, and the operations of kernels.Ops with vector code.
//
//	Ops.MatMul ─► task ─► pool: items (panels of 16 outputs) by worker ─► kernel
//	                                                     path: amx │ avx512bf16 │ avx512 │ avx2 │ purego
//
// A weight lies in panels of 16 outputs, k after k (mmArgs; with dot products of
// bfloat16 in 12 bits a weight, dense.go), the K and V of a
// page likewise (page.go): so matrix products and attention share one set of
// kernels, which broadcast an activation to 16 outputs at once. Every output
// is one chain of additions along k, cut at places that depend on the weight's
// or the context's shape alone: a row's result has the same bits in any batch,
// any chunk, and for any number of threads.
//
// The path is the best by feature bits whose products are those of the Go code
// (check); INFER_CPU=amx|avx512bf16|avx512vnni|avx512|avxvnni|avx2|purego
// forces one. A build with the tag purego, or for another processor, has the
// Go code only.
//
// Where the pool has as many threads as there are cores (the default), each
// stays on one, its caller's among them (kernels.ThreadBinder): left to Linux,
// two of them share a core for long when another process has the other one.
// After half a millisecond a thread lets others have the processor when it is
// between items, so that it is not put aside in the middle of one.
//
// Work is done when the call of an operation returns. Nothing here allocates
// in a step, once the largest step has been seen.
package cpu
