//go:build linux || darwin || freebsd

package transfer

import (
	"os"
	"syscall"
)

// tryLock takes an exclusive lock, which ends with the file's closing, if no
// one has it.
func tryLock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
