//go:build linux || darwin

package hub

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// freeSpace gives the bytes that this user may still write below dir.
func freeSpace(dir string) (uint64, bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, false
	}
	return uint64(st.Bavail) * uint64(st.Bsize), true
}

// noSpace names the reason when a write failed because the disk is full.
func noSpace(err error, m meta) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fmt.Errorf("%w for %s (%d bytes): %w; what is there is kept", ErrDiskFull, m.name, m.size, err)
	}
	return err
}
