package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"infer/runtime/device"
	"infer/runtime/devicemap"
	"infer/runtime/engine"
	"infer/runtime/kernels"
	"infer/runtime/transfer"
)

// scrubPause is between two looks at a piece of the weights on GPUs.
const scrubPause = time.Second

// placement loads the session's model as planned, and anew over the rest when
// devices are lost: then the planner decides, whatever map was given.
func (s *session) placement(r *request, progress func(int64), log zerolog.Logger) *engine.Placement {
	verify, _ := transfer.ParseVerify(r.flags.transfer.verify) // checked before
	p := &engine.Placement{
		Runner: engine.RunnerConfig{
			Model: r.model, Checkpoint: s.checkpoint, Format: r.flags.format(), Progress: progress,
			Copies: transfer.Options{Router: s.router, Verify: verify, Sync: r.flags.transfer.synchronous()},
		},
		Excluded: func(id device.ID, why error) {
			log.Error().Err(why).Str("device", id.String()).Msg("the model cannot be loaded there: trying without it")
		},
	}
	p.Plan = func(gone []device.ID) (devicemap.Plan, []kernels.Backend, error) {
		plan := s.plan
		if len(gone) > 0 {
			again := *r
			s.devices.gone = gone
			again.whatIf = s.devices.whatIf(&again.flags)
			again.flags.deviceMap, again.flags.gpuLayers = "auto", -1
			again.flags.maxMemory, again.flags.reserve = notOf(gone, again.flags.maxMemory), notOf(gone, again.flags.reserve)
			again.flags.ctx = min(again.flags.ctx, s.plan.MaxContext)
			var err error
			if plan, _, err = again.plan(); err != nil {
				return plan, nil, fmt.Errorf("plan without %v: %w", gone, err)
			}
		}
		backends, err := s.devices.open(plan)
		return plan, backends, err
	}
	return p
}

// notOf leaves out the entries of a flag like cuda:0=20GiB,cpu=8GiB that are
// for devices which are gone.
func notOf(gone []device.ID, entries string) string {
	var kept []string
	for entry := range strings.SplitSeq(entries, ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(entry), "=")
		if !slices.Contains(names(gone), name) {
			kept = append(kept, entry)
		}
	}
	return strings.Join(kept, ",")
}

func names(ids []device.ID) []string {
	var all []string
	for _, id := range ids {
		all = append(all, id.String())
	}
	return all
}
