package devicemap

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"infer/runtime/device"
)

// random is a model and a machine that hold it at times: sizes are chosen so
// that memory is short in some way for most.
func random(r *rand.Rand, maxDevices, maxLayers int) Input {
	layers := 1 + r.IntN(maxLayers)
	in := Input{
		BlockSize: 16, MaxContext: 16 * (1 + r.IntN(64)), MaxSeqs: 1 + r.IntN(16), FullSeqs: 1 + r.IntN(2),
		MaxTokens: 32, MaxLogits: 8,
	}
	const mb = 1 << 20
	m := &in.Model
	m.MaxContext, m.Hidden, m.Tied = 1<<20, 1024, r.IntN(2) == 0
	m.Embed, m.TiedHead = int64(r.IntN(40*mb)), 4096
	if m.Head = int64(r.IntN(40 * mb)); m.Tied {
		m.Head = m.Embed + m.TiedHead
	}
	m.HeadMACs, m.TableRow = m.Embed/2, 256
	kinds := 1 + r.IntN(2)
	moe := r.IntN(3) == 0
	for l := range layers {
		y := Layer{Weights: int64(10*mb) + int64(l%kinds)*3*mb, KVElems: 2048, MACs: 5 * mb, Window: 512 * (l % 2)}
		if moe && l%5 != 4 {
			y.Experts, y.NumExperts, y.TopK, y.ExpertMACs = int64(40+l%kinds)*mb, 32, 4, 3*mb
		}
		m.Layers = append(m.Layers, y)
	}
	var total int64
	for _, l := range m.Layers {
		total += l.Weights + l.Experts
	}
	total += m.Embed + m.Head
	// The GPU's layout pads.
	padded := *m
	padded.Layers = nil
	for _, l := range m.Layers {
		l.Weights, l.Experts = l.Weights*21/20, l.Experts*21/20
		padded.Layers = append(padded.Layers, l)
	}
	n := 1 + r.IntN(maxDevices)
	for i := range n {
		d := Device{
			Info: device.Info{ID: device.ID{Kind: device.CUDA, Index: i}}, KVBits: 16, ActBits: 32, Model: &padded,
			Scratch:   Scratch{First: mb, Middle: mb / 2, Last: 2 * mb, Only: 5 * mb / 2, Bare: mb / 4},
			Split:     Scratch{First: mb * 3 / 4, Middle: mb / 4, Last: mb * 3 / 2, Only: 2 * mb, Bare: mb / 4},
			Experts:   mb / 8,
			Workspace: int64(r.IntN(mb)), Reserve: int64(r.IntN(2 * mb)),
			GBps: []float64{300, 900, 1000, 1800}[r.IntN(4)], TFlops: 50, LayerUS: 10,
		}
		d.Info.FreeBytes = total/int64(n) + r.Int64N(total/2+8*mb)
		if i == n-1 && r.IntN(2) == 0 {
			d.Info.ID, d.Model, d.GBps, d.TFlops = device.ID{Kind: device.CPU}, nil, 40, 1
		}
		if i > 0 && r.IntN(3) == 0 && d.Info.ID.Kind == device.CUDA { // one like the one before
			like := in.Devices[i-1]
			like.Info.ID = d.Info.ID
			d = like
		}
		in.Devices = append(in.Devices, d)
	}
	for _, a := range in.Devices {
		for _, b := range in.Devices {
			if a.Info.ID != b.Info.ID && r.IntN(2) == 0 {
				in.Links = append(in.Links, Link{From: a.Info.ID, To: b.Info.ID, GBps: []float64{6, 12, 50, 300}[r.IntN(4)], US: []float64{3, 10, 40}[r.IntN(3)]})
			}
		}
	}
	return in
}

// checkPlan: every layer, embedding and head once; no device beyond its room.
func checkPlan(in *Input, p Plan) error {
	next := 0
	for i, s := range p.Stages {
		if s.Lo != next || s.Hi <= s.Lo || s.Embed != (i == 0) || s.Head != (i == len(p.Stages)-1) {
			return fmt.Errorf("stage %d is %v", i, s)
		}
		if isCPU(s.Device) && i > 0 && i < len(p.Stages)-1 {
			return fmt.Errorf("stage %d is on the CPU, between GPUs", i)
		}
		next = s.Hi
		on, away := in.bytes(s)
		on.Weights += in.tables(in.model(&in.Devices[in.index(s.Device)]), p.MaxContext) - in.tables(in.model(&in.Devices[in.index(s.Device)]), in.context())
		on.Workspace *= int64(p.MicroBatches)
		on.KV, on.Reserve, away.Reserve = s.Bytes.KV, s.Bytes.Reserve, s.Away.Reserve
		if on != s.Bytes || away != s.Away {
			return fmt.Errorf("stage %v: %+v and %+v, want %+v and %+v", s, s.Bytes, s.Away, on, away)
		}
	}
	if next != len(in.Model.Layers) {
		return fmt.Errorf("%d layers placed", next)
	}
	if need := in.blocks(in.MaxContext) * in.fullSeqs(); p.Blocks < need {
		return fmt.Errorf("%d blocks, %d are needed", p.Blocks, need)
	}
	for _, d := range in.Devices {
		room, known := d.room()
		if b := p.On(d.Info.ID); known && b.Total() > room {
			return fmt.Errorf("%v: %d bytes of %d", d.Info.ID, b.Total(), room)
		}
		if b := p.On(d.Info.ID); b.Total() > 0 && b.Reserve != d.Reserve {
			return fmt.Errorf("%v: reserve %d, want %d", d.Info.ID, b.Reserve, d.Reserve)
		}
	}
	return nil
}

func TestRandomMachines(t *testing.T) {
	count := 10_000
	if testing.Short() {
		count = 1000
	}
	fit, split, mixed := 0, 0, 0
	for seed := range count {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		in := random(r, 6, 40)
		p, err := Auto(in)
		again, err2 := Auto(in)
		if !reflect.DeepEqual(p, again) || fmt.Sprint(err) != fmt.Sprint(err2) {
			t.Fatalf("seed %d: another plan from the same input", seed)
		}
		if err != nil && !errors.Is(err, ErrDoesNotFit) {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err == nil {
			fit++
			for _, s := range p.Stages {
				if s.Split() {
					split++
					break
				}
			}
			if len(p.Stages) > 1 {
				mixed++
			}
			if err := checkPlan(&in, p); err != nil {
				t.Fatalf("seed %d: %v\n%v", seed, err, p.Stages)
			}
		}
		// Where nothing is said of K/V, room for more of it may cost a little.
		if seed%10 == 0 {
			one, free := in, in
			one.FullSeqs, free.FullSeqs = 1, 0
			p, err := Auto(one)
			q, err2 := Auto(free)
			if (err == nil) != (err2 == nil) || err == nil && q.Predicted.Step > p.Predicted.Step*roomierCost*balancedCost {
				t.Fatalf("seed %d: step %g for more K/V, %g for one sequence; %v, %v", seed, q.Predicted.Step, p.Predicted.Step, err, err2)
			}
		}
		// More memory: not slower, and what fitted still does.
		more := in
		more.Devices = append([]Device(nil), in.Devices...)
		d := &more.Devices[r.IntN(len(more.Devices))]
		d.Info.FreeBytes += r.Int64N(d.Info.FreeBytes)
		q, err3 := Auto(more)
		if err == nil && (err3 != nil || q.Predicted.Step > p.Predicted.Step*same) {
			t.Fatalf("seed %d: %v more: step %g, was %g; %v\n%v\n%v", seed, d.Info.ID, q.Predicted.Step, p.Predicted.Step, err3, p.Stages, q.Stages)
		}
	}
	t.Logf("%d of %d fit, %d on several devices, %d with experts elsewhere", fit, count, mixed, split)
	if fit < count/3 || fit > count*9/10 || mixed < count/5 || split < count/50 {
		t.Error("the machines are not varied enough to test anything")
	}
}

// brute tries every plan there is: orders of devices with the CPU first or
// last, cuts, and leading layers whose experts are on the CPU.
func brute(in *Input) (best float64, stages []Stage) {
	best = inf
	n := len(in.Model.Layers)
	cpu := -1
	for i, d := range in.Devices {
		if isCPU(d.Info.ID) {
			cpu = i
		}
	}
	lights := []int{0}
	if cpu >= 0 && len(in.Devices) > 1 && in.hasExperts(0, n) {
		for l := 1; l <= n; l++ {
			lights = append(lights, l)
		}
	}
	var order []int
	var cuts []int
	used := make([]bool, len(in.Devices))
	try := func(light int) {
		var list []Stage
		lo := 0
		for i, d := range order {
			hi := cuts[i]
			id := in.Devices[d].Info.ID
			cut := min(max(light, lo), hi)
			if d == cpu || !in.hasExperts(lo, cut) {
				cut = lo
			}
			if cut > lo && !in.hasExperts(cut, hi) {
				cut = hi
			}
			if cut > lo {
				list = append(list, Stage{Device: id, Lo: lo, Hi: cut, ExpertsOn: in.Devices[cpu].Info.ID})
			}
			if hi > cut {
				list = append(list, Stage{Device: id, Lo: cut, Hi: hi})
			}
			lo = hi
		}
		list[0].Embed, list[len(list)-1].Head = true, true
		p := Plan{Stages: list}
		t, hops := in.times(&p, in.decode())
		if c := sum(t) + sum(hops); c < best && feasible(in, list) {
			best, stages = c, list
		}
	}
	var place func(lo int)
	place = func(lo int) {
		if lo == n {
			for _, l := range lights {
				try(l)
			}
			return
		}
		for d := range in.Devices {
			k := len(order)
			if used[d] || k > 0 && order[k-1] == cpu && k > 1 {
				continue // behind the CPU at the end
			}
			used[d] = true
			order = append(order, d)
			for hi := lo + 1; hi <= n; hi++ {
				cuts = append(cuts, hi)
				place(hi)
				cuts = cuts[:k]
			}
			order = order[:k]
			used[d] = false
		}
	}
	place(0)
	return best, stages
}

func feasible(in *Input, stages []Stage) bool {
	total := make([]int64, len(in.Devices))
	blocks := int64(in.blocks(in.MaxContext) * in.fullSeqs())
	for _, s := range stages {
		on, away := in.bytes(s)
		d := in.index(s.Device)
		total[d] += on.Total() + blocks*in.kvBlock(&in.Devices[d], s.Lo, s.Hi)
		if s.Split() {
			total[in.index(s.ExpertsOn)] += away.Total()
		}
	}
	for i := range in.Devices {
		d := &in.Devices[i]
		if room, known := d.room(); known && total[i] > 0 && total[i]+d.Reserve > room {
			return false
		}
	}
	return true
}

func TestBruteForce(t *testing.T) {
	count, largest := 600, 8
	if testing.Short() {
		count, largest = 60, 0
	}
	fit := 0
	for seed := 0; seed < count || largest > 0; seed++ {
		r := rand.New(rand.NewPCG(uint64(seed), 2))
		devices, layers := 4, 7
		switch {
		case seed >= count:
			devices, layers = 4, 24
		case seed%10 == 0:
			devices, layers = 3, 24
		}
		in := random(r, devices, layers)
		if seed >= count {
			if len(in.Devices) < 4 || len(in.Model.Layers) < 24 {
				continue // not the largest
			}
			largest--
		}
		best, stages := brute(&in)
		p, err := Auto(in)
		if (err == nil) != (best < inf) {
			t.Fatalf("seed %d: %v, brute force finds %v of %g s", seed, err, stages, best)
		}
		if err != nil {
			continue
		}
		fit++
		if p.Predicted.Step > best*1.01 || p.Predicted.Step < best/same {
			t.Fatalf("seed %d: step of %g s, brute force finds %g\n%v\n%v", seed, p.Predicted.Step, best, p.Stages, stages)
		}
	}
	if fit < count/4 {
		t.Errorf("only %d of %d fit", fit, count)
	}
}

// On machines whose sets of devices are too many to be tried all, how the plan
// is searched for does not depend on memory: more of it is not slower, but for
// what balancing gains on one order and not on another.
func TestManyDevices(t *testing.T) {
	count := 300
	if testing.Short() {
		count = 20
	}
	for seed := range count {
		r := rand.New(rand.NewPCG(uint64(seed), 9))
		kinds, n := 2+r.IntN(4), 9+r.IntN(8)
		in := machine(n, 40, kinds, 0.8+0.6*r.Float64(), 0)
		in.FullSeqs = 1
		for range r.IntN(30) {
			a, b, speed := r.IntN(kinds), r.IntN(kinds), []float64{6, 12, 50, 300}[r.IntN(4)]
			for i := range n {
				for j := range n {
					if i != j && i%kinds == a && j%kinds == b {
						in.Links = append(in.Links, Link{From: in.Devices[i].Info.ID, To: in.Devices[j].Info.ID, GBps: speed, US: 10})
					}
				}
			}
		}
		p, err := Auto(in)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := checkPlan(&in, p); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for range 3 { // memory of one after the other: the kinds are no longer alike
			d := &in.Devices[r.IntN(n)]
			d.Info.FreeBytes += r.Int64N(d.Info.FreeBytes)
			more, err := Auto(in)
			if err != nil || more.Predicted.Step > p.Predicted.Step*1.005 {
				t.Fatalf("seed %d: %v more: step %g, was %g; %v", seed, d.Info.ID, more.Predicted.Step, p.Predicted.Step, err)
			}
			if err := checkPlan(&in, more); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			p = more
		}
	}
}
