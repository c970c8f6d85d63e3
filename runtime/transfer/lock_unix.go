//go:build linux || darwin || freebsd

package transfer

import (
	"os"

	"golang.org/x/sys/unix"
)

// tryLock takes an exclusive lock, which ends with the file's closing, if no
// one has it.
func tryLock(f *os.File) bool {
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}
