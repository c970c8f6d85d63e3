package transfer

import (
	"context"
	"errors"
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
	Ready  Ready // of a source in host memory
}

// Copier moves tensors between devices. It is used by one goroutine.
type Copier interface {
	// Ready waits until e's stream has written e's tensor, and gives the proof
	// of it, which a copy from host memory needs. It is good for this step.
	Ready(ctx context.Context, e End) (Ready, error)
	// Move queues a copy of src to dst, of the same size, behind the work
	// queued on src's stream and before later work on dst's. It may wait, at
	// most until ctx ends.
	Move(ctx context.Context, dst, src End) error
	// Commit is called when all streams of the step have been synchronised,
	// and compares the digests of all copies since the last Commit. Those that
	// differ are the error, which is Mismatches; links that carried them
	// directly are in quarantine from then on. The copies are forgotten in any
	// case.
	Commit(step uint64) error
	// Abandon forgets the copies of a step that failed, which say nothing of
	// the links.
	Abandon()
	// Close gives staging memory back; all work must have finished.
	Close() error
}

// ErrNotReady: a copy was asked for from host memory that nobody has said to
// be written.
var ErrNotReady = errors.New("the source of a copy is not known to be written")

// Ready is the proof that a tensor in host memory was written in this step.
type Ready struct {
	buf   tensor.Buffer
	epoch uint64
}

// MismatchError: a copy reported success, but other bytes arrived than were
// sent.
type MismatchError struct {
	Route     Route
	From, To  device.ID
	Bytes     int64 // 0: not known
	Step      uint64
	Sent, Got kernels.Digest
	What      string     // "" for hidden states between stages
	Suspect   *device.ID // the device whose half of a staged copy went wrong; nil: unknown
}

func (e *MismatchError) Error() string {
	what := e.What
	switch {
	case what == "":
		what = fmt.Sprintf("%d bytes", e.Bytes)
	case e.Bytes > 0:
		what = fmt.Sprintf("%d bytes of %s", e.Bytes, what)
	}
	s := fmt.Sprintf("step %d: copy of %s from %v to %v (%v) arrived changed: sent digest %016x%016x, got %016x%016x",
		e.Step, what, e.From, e.To, e.Route, e.Sent[0], e.Sent[1], e.Got[0], e.Got[1])
	if e.Suspect != nil {
		s += fmt.Sprintf("; it went wrong between %v and host memory", *e.Suspect)
	}
	return s
}

// Mismatches are all copies of one step that arrived changed.
type Mismatches []*MismatchError

func (m Mismatches) Error() string {
	if len(m) == 1 {
		return m[0].Error()
	}
	return fmt.Sprintf("%v (and %d more copies of the step)", m[0], len(m)-1)
}

// Unwrap gives errors.As each of them.
func (m Mismatches) Unwrap() []error {
	all := make([]error, len(m))
	for i, e := range m {
		all[i] = e
	}
	return all
}

// Direct tells whether one of the copies took a direct route, so that a replay
// takes another.
func (m Mismatches) Direct() bool {
	for _, e := range m {
		if e.Route == PeerDirect {
			return true
		}
	}
	return false
}

// Suspected tells whether each copy's fault is known to be a device's, so that
// a replay would teach nothing new.
func (m Mismatches) Suspected() bool {
	for _, e := range m {
		if e.Suspect == nil {
			return false
		}
	}
	return true
}
