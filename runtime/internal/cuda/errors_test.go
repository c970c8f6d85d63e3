package cuda

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestErrorText(t *testing.T) {
	e := &Error{Code: 700, Name: "CUDA_ERROR_ILLEGAL_ADDRESS", Text: "an illegal memory access was encountered", Call: "cuLaunchKernel", Device: 1}
	if got, want := e.Error(), "cuda:1: cuLaunchKernel: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	e = &Error{Code: 2, Name: "CUDA_ERROR_OUT_OF_MEMORY", Call: "cuMemAlloc", Detail: "4096 bytes", Device: -1}
	if got, want := e.Error(), "cuda: cuMemAlloc (4096 bytes): CUDA_ERROR_OUT_OF_MEMORY (2)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	wrapped := fmt.Errorf("loading: %w", e)
	if !errors.Is(wrapped, &Error{Code: CodeOutOfMemory}) || errors.Is(wrapped, &Error{Code: 1}) {
		t.Error("errors.Is does not ask for the code")
	}
	if Code(wrapped) != 2 || Code(nil) != 0 || Code(errors.New("x")) != -1 {
		t.Error("Code")
	}
}

func TestSticky(t *testing.T) {
	for code, want := range map[int]bool{
		1: false, 2: false, 218: false, 500: false, 600: false, 701: false, 704: false, 906: false,
		214: true, 700: true, 716: true, 719: true, 999: true,
	} {
		if got := (&Error{Code: code}).Sticky(); got != want {
			t.Errorf("code %d: sticky %v", code, got)
		}
	}
}

func TestNotBuiltIsNoDriver(t *testing.T) {
	if !errors.Is(ErrNotBuilt, ErrNoDriver) {
		t.Error("a build without the door is to be treated as a machine without a driver")
	}
}

func TestDeadlineErrorNamesDevice(t *testing.T) {
	e := &DeadlineError{Device: 3, Waited: 2 * time.Second, Err: context.DeadlineExceeded}
	if got := e.Error(); got != "cuda:3: the device's thread did not answer within 2s: context deadline exceeded" || !e.Timeout() {
		t.Error(got)
	}
}

func TestUnknownCodeHasAName(t *testing.T) {
	if name, text := builtinName(123456); name != "CUDA_ERROR_123456" || text == "" {
		t.Error(name, text)
	}
}
