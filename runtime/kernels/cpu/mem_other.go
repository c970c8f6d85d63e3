//go:build !linux

package cpu

// mapMem gets n bytes of zeroed memory.
func mapMem(n int) ([]byte, error) { return make([]byte, n), nil }

func unmapMem([]byte) error { return nil }

func memory() (total, free int64) { return 0, 0 }

func cores() int { return 0 }
