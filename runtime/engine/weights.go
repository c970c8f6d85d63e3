package engine

import (
	"context"
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

// checkedWeight is one piece of a stage's memory that can be verified.
type checkedWeight struct {
	kernels.Resident
	got kernels.Digest
}

// verifyWeights holds what a GPU got against what was sent to it.
func (r *Runner) verifyWeights(ctx context.Context, st *stage) error {
	v, ok := st.model.(models.Verifiable)
	if !ok || st.Device.Kind == device.CPU || r.verify == transfer.VerifyOff {
		return nil
	}
	for _, w := range v.Resident() {
		st.checked = append(st.checked, checkedWeight{Resident: w})
	}
	for i := range st.checked {
		st.ops.Digest(&st.checked[i].got, st.checked[i].Memory)
	}
	if err := st.stream.Sync(ctx); err != nil {
		return fmt.Errorf("read weights back: %w", err)
	}
	for i := range st.checked {
		if err := st.checked[i].check(st.Device); err != nil {
			return err
		}
	}
	return nil
}

func (w *checkedWeight) check(id device.ID) error {
	if w.got == w.Sent {
		return nil
	}
	return &WeightsError{Device: id, What: w.What, Bytes: w.Memory.Bytes(), Sent: w.Sent, Got: w.got}
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
