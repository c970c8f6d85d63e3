package transfer

import (
	"context"
	"fmt"

	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// End is one side of a copy: a tensor, and the stream and operations by which
// its device is reached.
type End struct {
	Device device.ID
	Stream device.Stream
	Ops    kernels.Ops
	Tensor tensor.Tensor
}

// Copier moves tensors between devices. It is used by one goroutine.
type Copier interface {
	// Move queues a copy of src to dst, of the same size, behind the work
	// queued on src's stream and before later work on dst's. It may wait, at
	// most until ctx ends.
	Move(ctx context.Context, dst, src End) error
	// Commit is called when all streams of the step have been synchronised,
	// and compares the digests of all copies since the last Commit. A
	// difference is a MismatchError; the copies are forgotten in any case.
	Commit(step uint64) error
}

// MismatchError: a copy reported success, but other bytes arrived than were
// sent.
type MismatchError struct {
	Route     string
	From, To  device.ID
	Bytes     int64
	Step      uint64
	Sent, Got kernels.Digest
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("step %d: copy of %d bytes from %v to %v (%s) arrived changed: sent digest %016x%016x, got %016x%016x",
		e.Step, e.Bytes, e.From, e.To, e.Route, e.Sent[0], e.Sent[1], e.Got[0], e.Got[1])
}
