package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"infer/cmd/infer/gpucheck"
	"infer/runtime/device"
	"infer/runtime/devicemap"
	"infer/runtime/kernels/cuda"
)

// version is set by the build (-ldflags -X main.version).
var version = "dev"

func main() {
	gpucheck.Child()
	// The first SIGINT or SIGTERM cancels the command; a second one ends the process.
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, cancel)
	code := execute(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	cancel()
	os.Exit(code)
}

// Exit codes, as documented.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitDoesNotFit  = 3
	exitInterrupted = 130
)

// usageError is a mistake in how a command was called.
type usageError struct{ error }

func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// errReported ends a command that has already said what is wrong.
var errReported = errors.New("reported")

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	cmd := newRoot()
	cmd.SetArgs(args)
	cmd.SetIn(in)
	cmd.SetOut(out)
	cmd.SetErr(errOut)
	called, err := cmd.ExecuteContextC(ctx)
	code := exitCode(ctx, err)
	if err != nil && !errors.Is(err, errReported) {
		switch code {
		case exitInterrupted:
			fmt.Fprintln(errOut, "infer: interrupted")
		case exitUsage:
			fmt.Fprintf(errOut, "infer: %v\nTry: %s --help\n", err, called.CommandPath())
		default:
			fmt.Fprintf(errOut, "infer: %v\n", err)
		}
	}
	return code
}

func exitCode(ctx context.Context, err error) int {
	var usage usageError
	var machine *cuda.MachineError // of --simulate or --gpus
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &usage), errors.As(err, &machine):
		return exitUsage
	case errors.Is(err, devicemap.ErrDoesNotFit), errors.Is(err, device.ErrOutOfMemory):
		return exitDoesNotFit
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	return exitFailed
}
