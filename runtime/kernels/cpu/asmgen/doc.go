// Package asmgen writes the assembly of the CPU's matrix products, which is
// one loop in many register shapes.
//
//	Shape{Format, Rows, Panels} × ISA ─► MatMul ─► matmul_avx2_amd64.s …
//
// A kernel multiplies Rows rows of float32 activations by Panels panels of 16
// outputs. Each output is one chain of fused multiply-adds over k, ascending,
// in every shape and for every ISA, so all of them give the same bits. What
// the kernels have in memory is described at mmArgs in package cpu.
//
// Nothing imports it: its own test compares, or with -update writes, the files
// in package cpu.
package asmgen
