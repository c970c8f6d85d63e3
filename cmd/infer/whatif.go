package main

import (
	"fmt"
	"slices"
	"strings"

	"infer/runtime/device"
	"infer/runtime/devicemap"
	"infer/runtime/engine"
	"infer/runtime/kernels/cpu"
	"infer/runtime/kernels/cuda"
	"infer/runtime/tensor"
)

const (
	// What launching a layer's kernels costs whatever their size.
	gpuLayerUS = 15
	cpuLayerUS = 5
	// pcieShare of a slot's raw bandwidth is what copies reach.
	pcieShare = 0.8
	pcieUS    = 15
)

// whatIf is a machine to plan for: one that need not exist.
type whatIf struct {
	places   []engine.Place
	links    []devicemap.Link
	imagined bool // the CPU may have more memory than there is here
}

// describe makes the machine that --gpus or --simulate names, with a CPU whose
// memory is this machine's.
func describe(machine string, f *computeFlags) (whatIf, error) {
	infos, links, err := cuda.Describe(machine)
	if err != nil {
		return whatIf{}, err
	}
	w := whatIf{links: hops(infos, links), imagined: true}
	for _, info := range infos {
		w.places = append(w.places, gpuPlace(info, f))
	}
	host, err := cpuHere(f)
	w.places = append(w.places, host)
	return w, err
}

// cpuHere is this machine's CPU with all of its memory, for machines that need
// not exist.
func cpuHere(f *computeFlags) (engine.Place, error) {
	b, err := cpu.Open(cpu.Options{Threads: 1})
	if err != nil {
		return engine.Place{}, err
	}
	info := b.Device().Info()
	info.Name, info.FreeBytes = "this computer's memory", info.TotalBytes
	return cpuPlace(info, f), b.Device().Close()
}

// gpuPlace is a GPU as the planner wants it. A share of its memory is left
// free: for what the driver and kernels take beside buffers, and for others.
func gpuPlace(info device.Info, f *computeFlags) engine.Place {
	p := engine.Place{Layout: cuda.Precision(f.precision).Layout()}
	p.Info, p.TFlops, p.LayerUS = info, cuda.TFlops(info.Name), gpuLayerUS
	p.Reserve = max(128<<20, info.TotalBytes/50)
	if g := info.GPU; g != nil {
		p.GBps = g.MemoryGBps
	}
	return p
}

// cpuKV is the type of K/V on the CPU.
func (f *computeFlags) cpuKV() tensor.DType {
	switch {
	case f.kvCache == "q8":
		return tensor.I8
	case f.precision == string(cpu.F32):
		return tensor.F32
	}
	return tensor.BF16
}

// cpuPlace is a CPU as the planner wants it. Its memory is everybody's: an
// eighth is left to others.
func cpuPlace(info device.Info, f *computeFlags) engine.Place {
	p := engine.Place{Layout: cpu.Layout{KV: f.cpuKV()}}
	p.Info, p.LayerUS, p.Reserve = info, cpuLayerUS, info.FreeBytes/8
	return p
}

// hops says how fast rows cross between devices: directly where the driver and
// NVML say that a pair may, else through host memory. Whether bytes arrive is
// probed later; a pair that fails the probe is slower than planned, not wrong.
func hops(infos []device.Info, links []device.Link) []devicemap.Link {
	var all []devicemap.Link
	for _, l := range links {
		h := devicemap.Link{From: l.From, To: l.To, GBps: l.StagedGBps, US: 2 * l.StagedUS, Kind: l.Kind + ", through host memory"}
		if l.PeerAccess && l.PeerGBps > 0 && (l.P2PStatus == "" || l.P2PStatus == "OK") {
			h.GBps, h.US, h.Kind = l.PeerGBps, 5+l.PeerUS, l.Kind
		}
		all = append(all, h)
	}
	host := device.ID{Kind: device.CPU}
	for _, info := range infos {
		if g := info.GPU; g != nil && g.PCIeGen > 0 {
			speed := map[int]float64{1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}[g.PCIeGen] * float64(max(g.PCIeWidth, 1)) * pcieShare
			kind := fmt.Sprintf("PCIe %d x%d", g.PCIeGen, g.PCIeWidth)
			all = append(all, devicemap.Link{From: info.ID, To: host, GBps: speed, US: pcieUS, Kind: kind},
				devicemap.Link{From: host, To: info.ID, GBps: speed, US: pcieUS, Kind: kind})
		}
	}
	return all
}

// limit applies --max-memory and --reserve. What the user has limited needs no
// reserve beside, unless one was given.
func (f *computeFlags) limit(places []engine.Place, imagined bool) error {
	var known []string
	for _, p := range places {
		known = append(known, p.Info.ID.String())
	}
	sizes := func(flag, text string, set func(p *engine.Place, n int64)) error {
		for entry := range strings.SplitSeq(text, ",") {
			if entry = strings.TrimSpace(entry); entry == "" {
				continue
			}
			name, size, one := strings.Cut(entry, "=")
			if !one {
				name, size = "", entry
			}
			n, err := parseSize(size)
			if strings.Trim(size, "0") == "" && size != "" && flag == "reserve" {
				n, err = 0, nil
			}
			switch {
			case err != nil || !one && flag == "max-memory":
				return usagef("--%s %s: want entries like cuda:0=20GiB or cpu=8GiB", flag, text)
			case one && !slices.Contains(known, name):
				return usagef("--%s %s: there is no device %s here; there is: %s", flag, text, name, strings.Join(known, ", "))
			}
			for i := range places {
				if !one || places[i].Info.ID.String() == name {
					set(&places[i], n)
				}
			}
		}
		return nil
	}
	err := sizes("max-memory", f.maxMemory, func(p *engine.Place, n int64) {
		p.Limit, p.Reserve = n, 0
		if imagined && p.Info.ID.Kind == device.CPU {
			p.Info.Name, p.Info.TotalBytes, p.Info.FreeBytes = "CPU", n, n
		}
	})
	if err != nil {
		return err
	}
	return sizes("reserve", f.reserve, func(p *engine.Place, n int64) { p.Reserve = n })
}
