//go:build !linux

package sim

// newBacking gets n bytes of host memory.
func newBacking(n int64) ([]byte, error) { return make([]byte, n), nil }

func freeBacking([]byte) {}
