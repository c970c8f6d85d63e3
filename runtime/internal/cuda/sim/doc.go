// Package sim is machines that are not there: N GPUs with their memory,
// streams, links and faults, behind the functions of NVIDIA's driver, so that
// the code that drives real GPUs runs unchanged, down to the PTX, where there
// is none.
//
//	Spec (preset or topology file) ─► New ─► Machine
//	                                          │ one GPU each: address range, allocations, sticky error
//	  driver calls ──► streams (queues) ──────┤ work runs only when something waits for it;
//	                   events, graphs         │ a seeded generator picks which stream goes next
//	                                          ├─ kernels: ptx interprets the module's text
//	                                          ├─ copies: along a directed link, through its Faults
//	                                          └─ clock: modelled time per engine; Stats, Spans
//
// A missing wait shows as wrong data because nothing runs in the order of the
// calls but what streams and events order. A pointer of another device is an
// illegal address unless peer access was enabled. After an illegal address,
// and the like, every call on the device returns the same error.
//
// The core is plain Go with methods named after the driver's functions and its
// result codes. With the build tag cuda, Install puts it behind the driver's
// C functions, where package cuda finds it instead of libcuda.
//
// Modelled time is a roofline: a kernel takes the longest of bytes ÷ memory
// bandwidth, multiply-adds ÷ tensor rate and instructions ÷ instruction rate,
// plus a launch. Bytes are those its threads asked for, but each allocation
// counts at most once: what is read again is taken to hit a cache. A copy takes
// its link's latency + bytes ÷ bandwidth; copies into or out of one device
// share its engine for that direction. For one thread of calls and one seed
// the results and times are always the same.
//
// It must never touch memory other than what it allocated or was handed, never
// spin while it waits, and never let a fault show that was not asked for.
package sim
