package devicemap

import (
	"math"

	"infer/runtime/device"
)

// What of nominal figures real kernels and copies reach. Only ratios between
// devices decide; the absolute numbers make predictions believable.
const (
	memoryShare = 0.80 // of memory bandwidth, by matrix-vector products
	matrixShare = 0.50 // of the matrix rate, by large products

	// For devices that do not say.
	cpuGBps, gpuGBps     = 40.0, 400.0
	cpuTFlops, gpuTFlops = 0.5, 20.0

	// microGain is the part of a step's time that one micro-batch more must
	// come below to be worth its queues.
	microGain = 0.99

	// A hop that no Link describes goes through host memory.
	hopGBps, hopUS = 10.0, 30.0
)

func (d *Device) memory() float64 { // bytes a second
	g := d.GBps
	if g <= 0 {
		g = gpuGBps
		if d.Info.ID.Kind == device.CPU {
			g = cpuGBps
		}
	}
	return g * 1e9 * memoryShare
}

func (d *Device) rate() float64 { // operations a second
	t := d.TFlops
	if t <= 0 {
		t = gpuTFlops
		if d.Info.ID.Kind == device.CPU {
			t = cpuTFlops
		}
	}
	return t * 1e12 * matrixShare
}

// products is the time of matrix products over bytes of weights.
func (d *Device) products(bytes, macs float64, rows int) float64 {
	return max(bytes/d.memory(), 2*macs*float64(rows)/d.rate())
}

// work is what one step does: rows of tokens, each with a context behind it
// that its sequence's K/V is read for once in rowsPerSeq rows.
type work struct {
	rows    int
	seqs    int
	context int
}

// dense is the time of layer l on d without its routed experts.
func (in *Input) dense(d *Device, l int, w work) float64 {
	y := &in.model(d).Layers[l]
	behind := w.context
	if y.Window > 0 {
		behind = min(behind, y.Window)
	}
	kv := float64(w.seqs) * float64(behind) * float64(y.KVElems) * float64(d.KVBits) / 8
	return d.products(float64(y.Weights), float64(y.MACs), w.rows) + kv/d.memory() + d.LayerUS*1e-6
}

// experts is the time of layer l's routed experts on d: each row picks TopK,
// and those that some row picked are read.
func (in *Input) experts(d *Device, l int, w work) float64 {
	y := &in.model(d).Layers[l]
	if y.Experts == 0 {
		return 0
	}
	share := 1.0
	if y.NumExperts > 0 {
		share = 1 - math.Pow(1-float64(y.TopK)/float64(y.NumExperts), float64(w.rows))
	}
	return d.products(share*float64(y.Experts), float64(y.ExpertMACs), w.rows)
}

// head is the time of the output head on d for rows of logits.
func (in *Input) head(d *Device, rows int) float64 {
	m := in.model(d)
	bytes := m.Head
	if m.Tied {
		bytes = m.Embed
	}
	return d.products(float64(bytes), float64(m.HeadMACs), rows)
}

// hop is the time that rows take from one device to another.
func (in *Input) hop(from, to *Device, rows int) float64 {
	for i := range in.Links {
		if l := &in.Links[i]; l.From == from.Info.ID && l.To == to.Info.ID {
			return in.over(l, from, to, rows)
		}
	}
	return in.over(nil, from, to, rows)
}

// over is the time of a hop over a link; nil: one that nobody described.
func (in *Input) over(l *Link, from, to *Device, rows int) float64 {
	if from.Info.ID == to.Info.ID {
		return 0
	}
	bits := max(from.ActBits, to.ActBits, 16)
	bytes := float64(rows) * float64(in.Model.Hidden) * float64(bits) / 8
	g, us := hopGBps, hopUS
	if l != nil {
		if us = l.US; l.GBps > 0 {
			g = l.GBps
		}
	}
	return us*1e-6 + bytes/(g*1e9)
}

// away is what it costs to have layer l's experts on e rather than on d: there
// and back, and their time there.
func (in *Input) away(d, e *Device, l int, w work) float64 {
	if in.model(d).Layers[l].Experts == 0 {
		return 0
	}
	return in.experts(e, l, w) + in.hop(d, e, w.rows) + in.hop(e, d, w.rows)
}

// stage is the time of one stage for a step.
func (in *Input) stage(s Stage, w work) float64 {
	d := &in.Devices[in.index(s.Device)]
	var t float64
	for l := s.Lo; l < s.Hi; l++ {
		t += in.dense(d, l, w)
		if s.Split() {
			t += in.away(d, &in.Devices[in.index(s.ExpertsOn)], l, w)
		} else {
			t += in.experts(d, l, w)
		}
	}
	if s.Head {
		t += in.head(d, w.seqs)
	}
	return t
}

// decode is the step that plans are made for.
func (in *Input) decode() work {
	batch := in.Batch
	if batch == 0 {
		batch = in.MaxSeqs
	}
	return work{batch, batch, in.behind()}
}

// behind is the context that a sequence has on average.
func (in *Input) behind() int {
	if in.Context > 0 {
		return in.Context
	}
	context := in.MaxContext
	if context == 0 {
		context = min(in.Model.MaxContext, PlanContext)
	}
	return max(context/2, 1)
}

// predict fills in the plan's times, for a number of micro-batches; 0 chooses
// it.
func (in *Input) predict(p *Plan, flights int) {
	w := in.decode()
	times, hops := in.times(p, w)
	r := Prediction{Step: sum(times) + sum(hops)}
	// No more sequences than K/V has room for.
	w.context = min(w.context, p.MaxContext)
	w.seqs = min(w.seqs, max(p.Blocks/in.blocks(w.context+1), 1))
	w.rows = w.seqs
	r.Batch, r.Context = w.seqs, w.context
	times, hops = in.times(p, w)
	for i := range p.Stages {
		p.Stages[i].Seconds = times[i]
	}
	r.Whole = sum(times) + sum(hops)
	r.TPOT, p.MicroBatches = r.Whole, 1
	for n := 2; n <= 2*in.units(p) && in.overlaps(p); n++ {
		if flights == 0 && w.seqs < 2*n || flights > 0 && n != flights {
			continue
		}
		part := w
		part.rows = (w.rows + n - 1) / n
		part.seqs = part.rows
		times, hops := in.times(p, part)
		if t := max(float64(n)*in.busiest(p, times), sum(times)+sum(hops)); n == flights || t < r.TPOT*microGain {
			r.TPOT, p.MicroBatches = t, n
		}
	}
	one := w
	one.rows, one.seqs = 1, 1
	times, hops = in.times(p, one)
	r.Single = sum(times) + sum(hops)
	r.Prompt = max(1, min(1024, p.MaxContext-1))
	for left := r.Prompt; left > 0; left -= in.MaxTokens {
		chunk := work{min(left, in.MaxTokens), 1, r.Prompt - left/2}
		times, hops := in.times(p, chunk)
		r.TTFT += sum(times) + sum(hops)
	}
	p.Predicted = r
}

// times of the stages, and of the hops before each (0 before the first).
func (in *Input) times(p *Plan, w work) (stages, hops []float64) {
	for i, s := range p.Stages {
		stages = append(stages, in.stage(s, w))
		hop := 0.0
		if i > 0 {
			hop = in.hop(&in.Devices[in.index(p.Stages[i-1].Device)], &in.Devices[in.index(s.Device)], w.rows)
		}
		hops = append(hops, hop)
	}
	return stages, hops
}

// overlaps tells whether several steps can be in flight: the CPU computes where
// it is called, so that it has to be the first, and experts elsewhere are waited
// for.
func (in *Input) overlaps(p *Plan) bool {
	for i, s := range p.Stages {
		if s.Split() || i > 0 && isCPU(s.Device) {
			return false
		}
	}
	return in.units(p) > 1
}

// units is the number of devices that compute one after the other: neighbours
// on one device are one.
func (in *Input) units(p *Plan) int {
	n := 0
	for i, s := range p.Stages {
		if i == 0 || p.Stages[i-1].Device != s.Device {
			n++
		}
	}
	return n
}

// busiest is the time of the device that computes longest in a step. A device
// that has experts of others' stages cannot compute its own meanwhile.
func (in *Input) busiest(p *Plan, times []float64) float64 {
	var most float64
	for _, id := range p.Devices() {
		var t float64
		for i, s := range p.Stages {
			if s.Device == id || s.ExpertsOn == id {
				t += times[i]
			}
		}
		most = max(most, t)
	}
	return most
}

func sum(v []float64) float64 {
	var t float64
	for _, x := range v {
		t += x
	}
	return t
}
