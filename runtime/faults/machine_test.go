package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"infer/runtime/device"
	"infer/runtime/internal/cuda/sim"
	"infer/runtime/kernels/cuda"
	"infer/runtime/transfer"
)

// open opens a simulated machine as production does; the seed picks the order of
// its work and where faults strike. end ends it.
func open(spec sim.Spec, seed uint64) (sys *cuda.System, machine *sim.Machine, end func(), err error) {
	machine, err = sim.New(spec, sim.Options{Seed: 1 + seed, Workers: 1})
	if err != nil {
		return nil, nil, nil, err
	}
	sys, err = cuda.Open(cuda.Options{Machine: machine, Timeout: 20 * time.Second})
	if err != nil {
		return nil, nil, nil, errors.Join(err, machine.Close())
	}
	return sys, machine, func() {
		_ = machine.Close() // first: what hangs ends with it
		_ = sys.Close()
	}, nil
}

// needSim skips where the build has no door to the driver.
func needSim(t testing.TB) {
	t.Helper()
	spec, err := sim.Preset("1xRTX-4090")
	if err != nil {
		t.Fatal(err)
	}
	_, _, end, err := open(spec, 0)
	if errors.Is(err, cuda.ErrNoDriver) {
		t.Skipf("simulated GPUs need cgo and the build tag cuda: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	end()
}

// spawn probes on a machine of its own, as a child process does.
func spawn(spec sim.Spec, patience time.Duration) transfer.Spawn {
	return func(ctx context.Context, pairs []transfer.Pair, emit func([]byte)) error {
		sys, machine, end, err := open(spec, 0)
		if err != nil {
			return err
		}
		defer end()
		p := transfer.Probe{Links: sys.Links(), Patience: patience}
		for i := range sys.Infos() {
			b, err := sys.Backend(i)
			if err != nil {
				return err
			}
			p.Backends = append(p.Backends, b)
		}
		if err := p.Run(ctx, pairs, lines(emit)); err != nil {
			return err
		}
		return json.NewEncoder(lines(emit)).Encode(transfer.Line{Modelled: machine.Time().Seconds()})
	}
}

// lines calls itself for each line written to it.
type lines func([]byte)

func (f lines) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		f(line)
	}
	return len(p), nil
}

// survey finds out about a machine's links.
func survey(t testing.TB, spec sim.Spec, patience time.Duration) transfer.Survey {
	t.Helper()
	sys, _, end, err := open(spec, 0)
	if err != nil {
		t.Fatal(err)
	}
	v := transfer.Surveyor{Infos: sys.Infos(), Links: sys.Links(), Spawn: spawn(spec, patience), Limit: 20 * time.Minute}
	end()
	return v.Survey(t.Context())
}

// topologies are the machines of a folder, by name.
func topologies(t testing.TB, dir string) map[string]sim.Spec {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]sim.Spec{}
	for _, f := range files {
		s, err := sim.Read(f)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(f), ".json")] = s
	}
	if len(all) == 0 {
		t.Fatalf("%s has no machines", dir)
	}
	return all
}

func topology(t testing.TB, name string) sim.Spec {
	t.Helper()
	s, err := sim.Read(filepath.Join("testdata", "topologies", name+".json"))
	if errors.Is(err, os.ErrNotExist) {
		s, err = sim.Preset(name)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func gpu(i int) device.ID { return device.ID{Kind: device.CUDA, Index: i} }
