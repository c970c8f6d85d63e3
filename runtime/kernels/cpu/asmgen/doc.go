// Package asmgen writes the assembly of the CPU's matrix products, which is
// a few loops in many register shapes.
//
//	Shape{Format, Rows, Panels} × ISA ─► MatMul ─► matmul_avx2_amd64.s …
//	                                        └─► machine (tests): runs it, on any processor
//
// A kernel multiplies Rows rows of float32 activations by Panels panels of 16
// outputs. Each output is one chain of fused multiply-adds over k, ascending,
// in every shape and for every ISA, so all of them give the same bits. With
// weights of integers the chain is over groups of 32 k; those for activations of
// bfloat16 (dots.go, amx.go) have an order of their own. What the kernels have
// in memory is described at mmArgs and in quant.go in package cpu.
//
// Nothing imports it: its own tests compare, or with -update write, the files
// in package cpu, and run every kernel on a model of the processor.
package asmgen
