//go:build unix

package tokenizer

import (
	"syscall"
	"testing"
	"time"
)

// cpuTime is what the process has used so far: on a busy machine the clock says
// little.
func cpuTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
