// Package rules pins what the project promises about its own source: which
// room may import which, so that a wrong arrow fails the build, and that every
// package says in doc.go what it is for.
//
//	*.go ─parse─► imports, doc.go ─► faults
//
// It has tests only; nothing may import it.
package rules
