package engine

import (
	"context"
	"errors"
	"fmt"

	"infer/models"
	"infer/runtime/device"
	"infer/runtime/devicemap"
	"infer/runtime/kernels"
	"infer/runtime/transfer"
)

// StageError is what went wrong with a stage while it was loaded.
type StageError struct {
	Stage devicemap.Stage
	Err   error
}

func (e *StageError) Error() string { return fmt.Sprintf("load %v: %v", e.Stage, e.Err) }
func (e *StageError) Unwrap() error { return e.Err }

// at is the device that what went wrong with a stage went wrong on.
func (e *StageError) at() device.ID {
	var w *WeightsError
	var away *awayError
	switch {
	case errors.As(e.Err, &w):
		return w.Device
	case errors.As(e.Err, &away):
		return away.on
	}
	return e.Stage.Device
}

// awayError is of the device of a stage's experts.
type awayError struct {
	on  device.ID
	err error
}

func (e *awayError) Error() string { return fmt.Sprintf("experts on %v: %v", e.on, e.err) }
func (e *awayError) Unwrap() error { return e.err }

// WeightsError: the memory of a device does not hold what was sent there.
type WeightsError struct {
	Device    device.ID
	What      string
	Bytes     int64
	Sent, Got kernels.Digest
}

func (e *WeightsError) Error() string {
	return fmt.Sprintf("%s of %d bytes on %v changed: sent digest %016x%016x, the device holds %016x%016x",
		e.What, e.Bytes, e.Device, e.Sent[0], e.Sent[1], e.Got[0], e.Got[1])
}

// checkedWeight is one piece of a GPU's memory that can be verified, with what
// reads it there.
type checkedWeight struct {
	kernels.Resident
	on     device.ID
	ops    kernels.Ops
	stream device.Stream
	got    kernels.Digest
}

// verifyWeights holds what the GPUs of a stage got against what was sent to
// them.
func (r *Runner) verifyWeights(ctx context.Context, st *stage) error {
	v, ok := st.model.(models.Verifiable)
	if !ok || r.verify == transfer.VerifyOff {
		return nil
	}
	for _, w := range v.Resident() {
		c := checkedWeight{Resident: w, on: st.Device, ops: st.ops, stream: st.stream}
		if b, ok := w.Memory.Buf.(device.Buffer); ok && st.away != nil && b.Device() == st.away.id {
			c.on, c.ops, c.stream = st.away.id, st.away.ops, st.away.stream
		}
		if c.on.Kind != device.CPU {
			st.checked = append(st.checked, c)
		}
	}
	for i := range st.checked {
		w := &st.checked[i]
		w.ops.Digest(&w.got, w.Memory)
	}
	for i := range st.checked {
		w := &st.checked[i]
		if err := w.stream.Sync(ctx); err != nil {
			return fmt.Errorf("read weights back: %w", err)
		}
		if err := w.check(); err != nil {
			return err
		}
	}
	return nil
}

func (w *checkedWeight) check() error {
	if w.got == w.Sent {
		return nil
	}
	return &WeightsError{Device: w.on, What: w.What, Bytes: w.Memory.Bytes(), Sent: w.Sent, Got: w.got}
}

// batchCheck is the digest of a step's batch, as sent to a stage's device and
// as it arrived there.
type batchCheck struct {
	sent, got kernels.Digest
	on        bool
}

// verifyBatch queues the digest of the batch that stage i computed with.
func (r *Runner) verifyBatch(l *lane, i int) {
	c := &l.checks[i]
	c.on = false
	if v, ok := l.ops[i].(kernels.BatchVerifier); ok && r.verify.Step(l.step) {
		c.on = true
		v.VerifyBatch(&c.sent, &c.got)
	}
}

// checkBatches compares them, after the step.
func (r *Runner) checkBatches(l *lane) error {
	var bad transfer.Mismatches
	for i, st := range r.stages {
		if b := &l.checks[i]; b.on && b.sent != b.got {
			bad = append(bad, &transfer.MismatchError{
				Route: transfer.HostStaged, From: device.ID{Kind: device.CPU}, To: st.Device, Step: l.step,
				Sent: b.sent, Got: b.got, What: "the batch", Suspect: &st.Device,
			})
		}
	}
	if bad == nil {
		return nil
	}
	return &batchError{bad}
}

// batchError: a device computed with another batch than was sent to it, and
// may have written K/V over that of any sequence.
type batchError struct{ transfer.Mismatches }

func (e *batchError) Unwrap() error { return e.Mismatches }
