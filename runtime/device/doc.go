// Package device has the hardware nouns: Device (memory and its facts), Stream
// (ordered work on it), Event (order between streams), Buffer.
//
//	Device ──Alloc──► Buffer ◄── tensor.Tensor views
//	   └──NewStream──► Stream: Upload │ kernels.Ops … │ Download ──Sync──► host
//
// Work on a Stream may run later than the call that queues it; it runs in
// order, and its first error sticks to the Stream until Sync or Err is asked.
//
// This package holds no implementation: the CPU's is runtime/kernels/cpu.
package device
