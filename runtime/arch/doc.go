// Package arch is the table of GPU architectures: what each exact compute
// capability may do.
//
//	ComputeCapability ──Lookup──► Row: image, features with their evidence, copy mode, peers
//	                └─ no row ──► the unknown row: what is safe everywhere
//
// It must never order capabilities: a new part lies above every old range and
// behaves differently. There is == and String, and nothing to compare. A test
// of internal/rules looks for ordered comparisons in the whole tree.
//
// To add a part, add its Row to the table and its line to table_test.go.
package arch
