//go:build !purego

package cpu

import (
	"sync"

	"golang.org/x/sys/unix"
)

// allowTiles asks the kernel for the tile registers, which a process has only
// then (arch_prctl(2): ARCH_REQ_XCOMP_PERM of XFEATURE_XTILEDATA).
var allowTiles = sync.OnceValue(func() error {
	const (
		request  = 0x1023
		tileData = 18
	)
	if _, _, err := unix.RawSyscall(unix.SYS_ARCH_PRCTL, request, tileData, 0); err != 0 {
		return err
	}
	return nil
})
