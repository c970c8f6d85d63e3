// Package arch is the table of GPU architectures: what each exact compute
// capability may do.
//
//	ComputeCapability ──Lookup──► Row: features with their evidence, copy mode
//	                └─ no row ──► the unknown row: what is safe everywhere
//
// It must never order capabilities: a new part lies above every old range and
// behaves differently. There is == and String, and nothing to compare.
package arch
