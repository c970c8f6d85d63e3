package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/rs/zerolog"

	"infer/runtime/arch"
	"infer/runtime/device"
	"infer/runtime/devicemap"
	"infer/runtime/kernels/cuda"
	"infer/runtime/transfer"
)

// transferFlags say how bytes get between devices.
type transferFlags struct {
	verify string
	noPeer bool
	sync   bool
}

// forbidden is why direct copies between GPUs are not wanted; "" when they are.
func (f *transferFlags) forbidden() string {
	if f.noPeer {
		return "--no-peer"
	}
	// Users of NCCL expect its switch to work everywhere. It is a number there.
	if n, err := strconv.Atoi(os.Getenv("NCCL_P2P_DISABLE")); err == nil && n != 0 {
		return "NCCL_P2P_DISABLE is set"
	}
	return ""
}

// synchronous tells whether every launch and copy is waited for.
func (f *transferFlags) synchronous() bool {
	n, err := strconv.Atoi(os.Getenv("CUDA_LAUNCH_BLOCKING"))
	return f.sync || err == nil && n != 0
}

// linksDir is where findings about links are kept.
func linksDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("findings about links are not kept: %w", err)
	}
	return filepath.Join(dir, "infer", "links"), nil
}

// linkStore opens what is known of the links of a machine. Without it they are
// probed at each start.
func linkStore(gpus *cuda.System, simulate string) (*transfer.Store, error) {
	dir, err := linksDir()
	if err != nil {
		return nil, err
	}
	return transfer.OpenStore(dir, transfer.KeyOf(gpus.Infos(), os.DirFS("/"), simulatedName(simulate)))
}

// simulatedName tells one simulated machine from another, also from one of the
// same name whose file was changed.
func simulatedName(spec string) string {
	if spec == "" {
		return ""
	}
	if text, err := os.ReadFile(spec); err == nil {
		sum := sha256.Sum256(text)
		return spec + " " + hex.EncodeToString(sum[:8])
	}
	return spec
}

// probeLimit is when a probe is ended. It takes a tenth of that once contexts
// are made, which a driver may need seconds for; kernels of simulated GPUs are
// interpreted.
func probeLimit(gpus []device.Info) time.Duration {
	switch {
	case slices.ContainsFunc(gpus, func(i device.Info) bool { return i.GPU.Simulated }):
		return 3 * time.Minute
	case len(gpus) > 2:
		return 30 * time.Second
	}
	return 10 * time.Second
}

// surveyOptions of survey.
type surveyOptions struct {
	forbidden string // why the user forbids peer copies
	simulate  string
	only      []transfer.Pair // that matter; nil: all
	again     bool            // also what is known
	soak      time.Duration   // for each pair
}

// survey finds out which links between GPUs may be used.
func survey(ctx context.Context, gpus *cuda.System, o surveyOptions) transfer.Survey {
	store, err := linkStore(gpus, o.simulate)
	infos := gpus.Infos()
	links := gpus.Links()
	v := transfer.Surveyor{
		Infos: infos, Links: links, Forbidden: o.forbidden, Store: store, Only: o.only, Again: o.again,
		Spawn: probeChild(o.simulate, "--soak", o.soak.String()), Limit: probeLimit(infos) + o.soak*time.Duration(len(links)),
	}
	s := v.Survey(ctx)
	s.Problems = slices.DeleteFunc(append(s.Problems, err), func(err error) bool { return err == nil })
	return s
}

// routes surveys the links that a plan needs.
func routes(ctx context.Context, d *devices, f *computeFlags, plan devicemap.Plan, log zerolog.Logger) *transfer.Router {
	if d.gpus == nil {
		return nil
	}
	used := hopsOf(plan)
	s := survey(ctx, d.gpus, surveyOptions{forbidden: f.transfer.forbidden(), simulate: f.simulate, only: used})
	for _, err := range s.Problems {
		log.Warn().Err(err).Msg("what is known of links cannot be read or kept: they may be probed at each start")
	}
	for _, fact := range s.Facts {
		if !slices.Contains(used, fact.Pair) {
			continue
		}
		decision := transfer.Decide(fact)
		event := log.Debug()
		if fact.Finding.Verdict != transfer.Healthy && transfer.MayProbe(fact) {
			event = log.Warn()
		}
		event.Str("from", fact.From.String()).Str("to", fact.To.String()).Str("route", decision.Route.Label()).Msg(decision.Why())
	}
	store, _ := linkStore(d.gpus, f.simulate)
	infos := d.gpus.Infos()
	return transfer.NewRouter(s.Facts, transfer.Events{Quarantined: func(p transfer.Pair, why string) {
		log.Error().Str("from", p.From.String()).Str("to", p.To.String()).Str("why", why).
			Msg("a link brought other bytes than were sent: it goes by way of the host from now on; see: infer doctor")
		if store == nil {
			return
		}
		if err := store.Quarantine(infos, p, why); err != nil {
			log.Warn().Err(err).Msg("the quarantine is not kept")
		}
	}})
}

// hopsOf lists the links between GPUs that a plan uses. After a device is lost
// there may be others: they go by way of the host.
func hopsOf(p devicemap.Plan) []transfer.Pair {
	pairs := []transfer.Pair{}
	add := func(from, to device.ID) {
		pair := transfer.Pair{From: from, To: to}
		if from != to && from.Kind == device.CUDA && to.Kind == device.CUDA && !slices.Contains(pairs, pair) {
			pairs = append(pairs, pair)
		}
	}
	for i, st := range p.Stages {
		if i > 0 {
			add(p.Stages[i-1].Device, st.Device)
		}
		if st.Split() {
			add(st.Device, st.ExpertsOn)
			add(st.ExpertsOn, st.Device)
		}
	}
	return pairs
}

// notices says what is special about GPUs, once.
func notices(gpus *cuda.System, log zerolog.Logger) {
	var said []string
	for _, info := range gpus.Infos() {
		if n := arch.Lookup(info.GPU.Capability).Notice(); n != "" && !slices.Contains(said, n) {
			said = append(said, n)
			log.Warn().Str("gpu", info.Name).Msg(n)
		}
	}
}

// usable tells whether kernels run on a GPU at all.
func usable(info device.Info) bool {
	return info.GPU == nil || arch.Lookup(info.GPU.Capability).Image != arch.NoImage
}
