package cuda

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// What Open says when there is nothing to open.
var (
	// ErrNoDriver: there is no CUDA driver on this machine.
	ErrNoDriver = errors.New("no CUDA driver")
	// ErrNotBuilt: this program was built without CUDA. It is an ErrNoDriver too.
	ErrNotBuilt = fmt.Errorf("%w: this program was built without it (build tag cuda, CGO_ENABLED=1)", ErrNoDriver)
	// ErrClosed: the Device or Driver has been closed.
	ErrClosed = errors.New("cuda: closed")
)

// Codes of the driver that callers act upon.
const (
	CodeOutOfMemory = 2
	CodeNoDevice    = 100
	CodeNotFound    = 500
	CodeNotReady    = 600
)

// Error is a call that the driver did not carry out.
type Error struct {
	Code   int    // CUresult
	Name   string // the driver's name for it: CUDA_ERROR_ILLEGAL_ADDRESS
	Text   string // the driver's explanation
	Call   string // the function called: cuLaunchKernel
	Detail string // what it was called for: sizes, names, the compiler's log; may be ""
	Device int    // as numbered by Driver.Devices; −1: none in particular
}

func (e *Error) Error() string {
	s := "cuda: "
	if e.Device >= 0 {
		s = fmt.Sprintf("cuda:%d: ", e.Device)
	}
	s += e.Call
	if e.Detail != "" {
		s += " (" + e.Detail + ")"
	}
	s += fmt.Sprintf(": %s (%d)", e.Name, e.Code)
	if e.Text != "" {
		s += ": " + e.Text
	}
	return s
}

// Is makes errors.Is(err, &Error{Code: c}) ask for the code alone.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Call == "" && t.Name == ""
}

// Code is the driver's code in err: 0 when err is nil, −1 when err is no
// error of the driver.
func Code(err error) int {
	if err == nil {
		return 0
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return -1
}

// Sticky says that the device's context is gone with this error: every later
// call on the device fails, and only a new process gets it back.
func (e *Error) Sticky() bool {
	switch e.Code {
	case 4, // DEINITIALIZED
		46,            // DEVICE_UNAVAILABLE
		214, 220, 226, // ECC_UNCORRECTABLE, NVLINK_UNCORRECTABLE, CONTAINED
		700, 702, 709, 710, // ILLEGAL_ADDRESS, LAUNCH_TIMEOUT, CONTEXT_IS_DESTROYED, ASSERT
		714, 715, 716, 717, 718, 719, // faults of a kernel, LAUNCH_FAILED
		999: // UNKNOWN: what a GPU that fell off the bus gives
		return true
	}
	return false
}

// DeadlineError says that a device's owner did not come back in time. It may
// be stuck in the driver; the device is not to be used any more.
type DeadlineError struct {
	Device int
	Waited time.Duration
	Err    error // of the context
}

func (e *DeadlineError) Error() string {
	return fmt.Sprintf("cuda:%d: the device's thread did not answer within %v: %v",
		e.Device, e.Waited.Round(time.Millisecond), e.Err)
}

// Unwrap is the context's error.
func (e *DeadlineError) Unwrap() error { return e.Err }

// Timeout is true when the wait ended by a deadline rather than by a cancel.
func (e *DeadlineError) Timeout() bool { return errors.Is(e.Err, context.DeadlineExceeded) }
