package engine

import (
	"context"
	"fmt"

	"infer/models"
	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
	"infer/runtime/transfer"
)

// away is the second device of a stage, which has its mixtures of experts. All
// its methods do nothing on nil: a stage without.
//
//	stage's device   attention ─► x ─┐                    ┌─► x ─► attention …
//	                                copy                  copy
//	experts' device                  └─► norm, router, experts
type away struct {
	id     device.ID
	stream device.Stream
	ops    kernels.Ops
	err    error // the first failed copy of the step; later ones are left out
}

// openAway opens the place of the stage's experts, if the plan has one. What it
// opened is in st.away even when it fails.
func (r *Runner) openAway(st *stage, backends []kernels.Backend) (*models.Place, error) {
	if !st.Split() {
		return nil, nil
	}
	b, err := backendOf(backends, st.ExpertsOn)
	if err != nil {
		return nil, err
	}
	a := &away{id: st.ExpertsOn}
	if a.stream, err = b.Device().NewStream(); err != nil {
		return nil, err
	}
	st.away = a
	if a.ops, err = b.NewOps(a.stream); err != nil {
		return nil, err
	}
	move := func(dst, src transfer.End) {
		if a.err == nil {
			a.err = ready(r.bound, r.lanes[0].copier, dst, src) // such plans have one lane
		}
	}
	return &models.Place{
		Backend: b, Stream: a.stream, Ops: a.ops,
		There: func(dst, src tensor.Tensor) { move(a.end(dst), st.end(src)) },
		Back:  func(dst, src tensor.Tensor) { move(st.end(dst), a.end(src)) },
	}, nil
}

func (a *away) end(t tensor.Tensor) transfer.End {
	return transfer.End{Device: a.id, Stream: a.stream, Ops: a.ops, Tensor: t}
}

func (a *away) begin(b *kernels.Batch) {
	if a != nil {
		a.err = nil
		a.ops.Begin(b)
	}
}

// failed is the first copy's error of this step.
func (a *away) failed() error {
	if a == nil || a.err == nil {
		return nil
	}
	return fmt.Errorf("experts on %v: %w", a.id, a.err)
}

func (a *away) sync(ctx context.Context) error {
	if a == nil {
		return nil
	}
	return a.stream.Sync(ctx)
}

func (a *away) broken() error {
	if a == nil {
		return nil
	}
	return a.stream.Err()
}

func (a *away) close() error {
	if a == nil {
		return nil
	}
	return a.stream.Close()
}
