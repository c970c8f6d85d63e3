package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"infer/runtime/device"
	"infer/runtime/devicemap"
	"infer/runtime/kernels"
)

// Placement loads a model onto devices: at first, and again onto the rest when
// some are lost.
type Placement struct {
	Runner RunnerConfig // Plan and Backends are filled in
	// Plan says where the model runs, without the devices that are gone, and
	// opens those it names.
	Plan func(gone []device.ID) (devicemap.Plan, []kernels.Backend, error)
	// Excluded is told of a device that the model could not be loaded onto; it
	// is gone from then on. May be nil.
	Excluded func(id device.ID, why error)

	gone []device.ID
}

// Load plans and loads. A device that does not take the weights is left out,
// if the model can do without.
func (p *Placement) Load(ctx context.Context) (*Runner, error) {
	var failed []error
	for {
		plan, backends, err := p.Plan(p.gone)
		if err != nil {
			return nil, errors.Join(append([]error{err}, failed...)...)
		}
		if err := without(plan, p.gone); err != nil {
			return nil, errors.Join(append(failed, err)...)
		}
		c := p.Runner
		c.Plan, c.Backends = plan, backends
		r, err := Load(ctx, c)
		var at *StageError
		switch {
		case err == nil:
			return r, nil
		case ctx.Err() != nil || !errors.As(err, &at) || at.at().Kind == device.CPU || !deviceFault(err):
			return nil, errors.Join(append(failed, err)...)
		}
		id := at.at()
		p.gone = append(p.gone, id)
		failed = append(failed, fmt.Errorf("left out %v: %w", id, err))
		if p.Excluded != nil {
			p.Excluded(id, err)
		}
	}
}

// deviceFault tells what is wrong with a device from what is wrong with files
// or plans.
func deviceFault(err error) bool {
	var w *WeightsError
	return errors.Is(err, device.ErrDeviceLost) || errors.Is(err, device.ErrOutOfMemory) || errors.Is(err, device.ErrRefused) || errors.As(err, &w)
}

// Recover is Config.Recover.
func (p *Placement) Recover(ctx context.Context, lost []device.ID, _ error) (*Runner, error) {
	for _, id := range lost {
		if !slices.Contains(p.gone, id) {
			p.gone = append(p.gone, id)
		}
	}
	return p.Load(ctx)
}
