//go:build !linux

package cpu

import "unsafe"

// mapMem gets at least n bytes of zeroed memory.
func mapMem(n int, _ pageKind) ([]byte, error) { return make([]byte, n+alignment), nil }

// aligned is n bytes of what mapMem gave for n.
func aligned(m []byte, n int) []byte {
	skip := int(-uintptr(unsafe.Pointer(&m[0])) & (alignment - 1))
	return m[skip : skip+n]
}

func widenMem([]byte) {}

func unmapMem([]byte) error { return nil }

func memory() (total, free int64) { return 0, 0 }
