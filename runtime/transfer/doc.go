// Package transfer moves activations between devices and proves that they
// arrived.
//
//	                 ┌────────────── PeerDirect ───────────────┐
//	source device    │              host                       ▼  destination device
//	 hidden ─digest──┴──download──► pinned buffers ──upload────────► hidden ─digest
//	            └────────────────── Commit compares ──────────────────────────┘
//
// Success reported by a driver proves nothing: every copy carries a digest,
// computed on the source before it and on the destination, by the consumer's
// own stream, after it. Nothing that a step made may be used before Commit. A
// directed link that brings other bytes is put into quarantine, and carries
// nothing directly any more.
//
// Deciding is pure: LinkFacts ──Decide──► Decision (a Route with its reasons);
// Measurement ──Judge──► Finding. A link is PeerDirect only if the table of
// architectures, the driver, NVML, the probe and the user allow it; all else is
// HostStaged, by way of buffers of our own: the driver never chooses.
//
// This package must never trust a return code, decide by a device's name, or
// let a copy wait without a deadline.
package transfer
