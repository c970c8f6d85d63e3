// Package gpucheck looks, in a few minutes, whether a GPU computes rightly
// with this program, and how near its memory's speed.
//
//	child process: kerneltest on the device ──► passed, or which tests are not
//	copy bandwidth, measured ─┬─► each kernel's bytes ÷ time, as a share of it
//	                          └─► random models of real shapes: tokens a second
//	                                              └──► one Report (JSON)
//
// A part that fails is a fault in the Report, and the other parts go on; the
// kernels' suite runs in a process of its own, so that an illegal address ends
// nothing else. On a simulated machine everything is shrunken: it tests this
// package, not a machine, and times mean nothing.
//
// It must never write to disk, and never fail for being slow.
package gpucheck
