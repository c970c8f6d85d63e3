package sim

import (
	"fmt"
	"syscall"
)

// newBacking gets n bytes of host memory that is taken only where it is
// touched, outside the Go heap: a GPU's 32 GiB may be allocated on a machine
// that has less, and C may keep its address.
func newBacking(n int64) ([]byte, error) {
	b, err := syscall.Mmap(-1, 0, int(n), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("%d bytes of host memory: %w", n, err)
	}
	return b, nil
}

func freeBacking(b []byte) { _ = syscall.Munmap(b) }
