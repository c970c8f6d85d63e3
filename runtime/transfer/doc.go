// Package transfer moves activations between devices and proves that they
// arrived.
//
//	source device                host                 destination device
//	 hidden ──digest──┐                                ┌──digest── hidden
//	    └──download───┼──► staging buffer ──upload─────┼─────►┘
//	                  └───────────── Commit compares ──┘
//
// Success reported by a driver proves nothing: every copy carries a digest,
// computed on the source before it and on the destination, by the consumer's
// own stream, after it. Nothing that a step made may be used before Commit.
package transfer
