// Package kerneltest is the one suite that every kernels.Backend passes, and
// its benchmarks.
//
//	same random operands ─┬─► backend under test ─┐
//	                      └─► kernels/ref ────────┴─► difference ≤ bound
//
// The bounds follow from the arithmetic: so many roundings of the accumulator,
// times the sum of the absolute values that were added. Memory around every
// result is checked for stray writes, and memory that an operation must not
// read holds NaN. Where the contract promises the same bits (a row alone, in a
// batch, in chunks), bits are compared.
//
// A test that calls Run does nothing else; the suite skips nothing.
package kerneltest
