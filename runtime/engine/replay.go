package engine

import (
	"context"
	"errors"

	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
	"infer/runtime/transfer"
)

// maxReplays bounds how often a step is computed again. One replay is enough
// unless the links that it takes instead are faulty as well.
const maxReplays = 4

// attempts waits for a queued step, and computes it again until all of its
// copies arrived as sent. That is safe to do: a step writes the same K/V into
// the same slots, and nothing was sampled from it. A batch that arrived changed
// may have named other slots: see Engine.rewind.
func (r *Runner) attempts(ctx context.Context, l *lane) error {
	for n := 0; ; n++ {
		if l.err == nil {
			l.err = r.wait(ctx, l)
		}
		if l.err != nil {
			l.copier.Abandon()
			return l.err
		}
		err := errors.Join(l.copier.Commit(l.step), l.delivery.check(l.step), r.checkBatches(l))
		if err == nil {
			return nil
		}
		if !replay(n, err) {
			return err
		}
		if err := r.harmed(ctx); err != nil {
			return err
		}
		r.replays.Add(1)
		if r.replayed != nil {
			r.replayed(err)
		}
		l.err = r.queue(ctx, l)
	}
}

// harmed waits for the steps behind the one that is about to be computed again.
// If the batch of one arrived changed, it may have written over the K/V that
// this one reads.
func (r *Runner) harmed(ctx context.Context) error {
	for _, l := range r.lanes {
		if !l.busy || l.err != nil {
			continue
		}
		if r.wait(ctx, l) != nil {
			continue // sticky: it ends this step too, or its own
		}
		if err := r.checkBatches(l); err != nil {
			return err
		}
	}
	return nil
}

// replay decides whether a step is computed again after its n-th replay did
// not pass. What a link brought changed takes another way next; what came
// changed by way of the host may do so once, as memory does, and is looked at
// half way the next time.
func replay(n int, err error) bool {
	var m transfer.Mismatches
	var b *batchError
	if n >= maxReplays || !errors.As(err, &m) || errors.As(err, &b) {
		return false
	}
	return n == 0 || m.Direct() || !m.Suspected()
}

// Replays is how many times steps were computed again. Safe for concurrent use.
func (r *Runner) Replays() uint64 { return r.replays.Load() }

// ready copies hidden states between devices when they are there to be copied.
func ready(ctx context.Context, c transfer.Copier, dst, src transfer.End) error {
	if src.Device.Kind == device.CPU {
		var err error
		if src.Ready, err = c.Ready(ctx, src); err != nil {
			return err
		}
	}
	return c.Move(ctx, dst, src)
}

// delivery is what a step brings to the host: it is verified like every copy.
type delivery struct {
	verify bool
	from   device.ID
	got    []byte
	sent   kernels.Digest
}

// fetch queues the download of a step's result from stage i.
func (r *Runner) fetch(l *lane, i int, dst []byte, src tensor.Tensor) {
	if id := r.stages[i].Device; r.verify.Step(l.step) && id.Kind != device.CPU {
		l.delivery = delivery{verify: true, from: id, got: dst}
		l.ops[i].Digest(&l.delivery.sent, src)
	}
	l.streams[i].Download(dst, src)
}

// check compares what arrived with what was sent.
func (a *delivery) check(step uint64) error {
	if !a.verify {
		return nil
	}
	got := kernels.DigestOf(a.got)
	if got == a.sent {
		return nil
	}
	return transfer.Mismatches{{
		Route: transfer.HostStaged, From: a.from, To: device.ID{Kind: device.CPU}, Bytes: int64(len(a.got)), Step: step,
		Sent: a.sent, Got: got, What: "the step's result", Suspect: &a.from,
	}}
}
