package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/rs/zerolog"

	"infer/runtime/device"
	"infer/runtime/devicemap"
	"infer/runtime/kernels"
	"infer/runtime/kernels/cpu"
	"infer/runtime/kernels/cuda"
)

// devices are what a session may compute on: the CPU, and the GPUs of this
// machine or of a simulated one. A GPU is opened when a plan names it.
type devices struct {
	cpu  *cpu.Backend
	gpus *cuda.System // nil: none
	mu   sync.Mutex
	used []kernels.Backend // guarded by mu: it changes when a device is lost
	gone []device.ID       // lost, or unable to hold what they were given
}

// openDevices opens the CPU and finds the GPUs, unless the map leaves them out.
// A machine without a driver is not an error, unless the map names a GPU.
func openDevices(f *computeFlags, log zerolog.Logger) (_ *devices, err error) {
	limits, err := f.memoryLimits()
	if err != nil {
		return nil, err
	}
	d := &devices{}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()
	named := strings.Contains(f.deviceMap, string(device.CUDA))
	auto := f.deviceMap == "" || f.deviceMap == "auto"
	if auto || named || f.simulate != "" || f.mapsModules() {
		d.gpus, err = cuda.Open(cuda.Options{
			Simulate: f.simulate, Precision: cuda.Precision(f.precision), MemoryLimit: gpuLimits(limits),
			Synchronous: f.transfer.synchronous(),
		})
		switch {
		case errors.Is(err, cuda.ErrNoDriver) && !named && f.simulate == "":
			log.Debug().Err(err).Msg("no GPUs")
		case errors.Is(err, cuda.ErrNoDriver) && named:
			return nil, fmt.Errorf("device map %s: %w", f.deviceMap, err)
		case err != nil && auto && f.simulate == "":
			return nil, fmt.Errorf("%w (--device-map cpu does without GPUs)", err)
		case err != nil:
			return nil, err
		case strings.HasPrefix(d.gpus.Note(), "CUDA_VISIBLE_DEVICES"):
			log.Warn().Msg(d.gpus.Note())
		}
		if d.gpus != nil {
			notices(d.gpus, log)
		}
	}
	known := []string{device.ID{Kind: device.CPU}.String()}
	if d.gpus != nil {
		for _, info := range d.gpus.Infos() {
			known = append(known, info.ID.String())
		}
	}
	for id := range limits {
		if !slices.Contains(known, id) {
			return nil, usagef("--max-memory %s: there is no device %s here; there is: %s", f.maxMemory, id, strings.Join(known, ", "))
		}
	}
	precision := cpu.Precision(f.precision)
	if precision == cpu.Precision(cuda.BF16) {
		precision = cpu.Auto
	}
	// More threads than processors would only wait for each other.
	threads := min(f.threads, cpu.Processors())
	d.cpu, err = cpu.Open(cpu.Options{Threads: threads, Precision: precision, KV: f.cpuKV(), MemoryLimit: limits[known[0]], BesideGPUs: len(known) > 1})
	if err != nil {
		return nil, err
	}
	return d, nil
}

func gpuLimits(limits map[string]int64) map[int]int64 {
	byIndex := map[int]int64{}
	for name, n := range limits {
		if id, err := devicemap.ParseID(name); err == nil && id.Kind == device.CUDA {
			byIndex[id.Index] = n
		}
	}
	return byIndex
}

// whatIf is the devices as the planner wants them.
func (d *devices) whatIf(f *computeFlags) whatIf {
	var w whatIf
	if d.gpus != nil {
		infos := d.gpus.Infos()
		for _, info := range infos {
			if usable(info) && !slices.Contains(d.gone, info.ID) {
				w.places = append(w.places, gpuPlace(info, f))
			}
		}
		w.links = hops(infos, d.gpus.Links())
	}
	w.places = append(w.places, cpuPlace(d.cpu.Device().Info(), f))
	return w
}

// open opens the backends that a plan names.
func (d *devices) open(p devicemap.Plan) ([]kernels.Backend, error) {
	var all []device.ID
	for _, s := range p.Stages {
		all = append(all, s.Device)
		if s.ExpertsOn.Kind != "" {
			all = append(all, s.ExpertsOn)
		}
	}
	var used []kernels.Backend
	for _, id := range all {
		var b kernels.Backend = d.cpu
		if id.Kind == device.CUDA {
			var err error
			if b, err = d.gpus.Backend(id.Index); err != nil {
				return nil, err
			}
		}
		if !slices.Contains(used, b) {
			used = append(used, b)
		}
	}
	d.mu.Lock()
	d.used = used
	d.mu.Unlock()
	return used, nil
}

// inUse are the backends that the present plan names.
func (d *devices) inUse() []kernels.Backend {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.used
}

// String is like "cuda:0 (NVIDIA H100), cpu (AMD EPYC, 2 threads, avx2)".
func (d *devices) String() string {
	var all []string
	for _, b := range d.inUse() {
		info := b.Device().Info()
		unit := "threads"
		if info.GPU != nil {
			unit = "multiprocessors"
			if info.GPU.Simulated {
				info.Name += ", simulated"
			}
		}
		all = append(all, fmt.Sprintf("%v (%s, %d %s, %s)", info.ID, info.Name, info.Units, unit, info.Features))
	}
	return strings.Join(all, ", ")
}

func (d *devices) close() error {
	var errs []error
	if d.gpus != nil {
		errs = append(errs, d.gpus.Close())
	}
	if d.cpu != nil {
		errs = append(errs, d.cpu.Device().Close())
	}
	return errors.Join(errs...)
}
