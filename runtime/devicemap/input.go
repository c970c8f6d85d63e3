package devicemap

import (
	"fmt"
	"slices"

	"infer/runtime/device"
)

// Model is what the planner knows of a model, as it will be resident.
type Model struct {
	Layers     []Layer
	Embed      int64 // bytes of the token embedding
	Head       int64 // bytes of final norm and output head where the embedding is not, or is another matrix
	TiedHead   int64 // bytes of a tied head on a stage that has the embedding: the final norm
	Tied       bool
	TableRow   int64 // bytes that every stage with layers holds for each position: rotary tables
	MaxContext int   // positions the model was made for
	Hidden     int   // elements of a token's row between stages
	HeadMACs   int64 // multiplications of the output head for one row
}

// Layer is the size and the work of one layer.
type Layer struct {
	Weights    int64 // bytes, without routed experts
	Experts    int64 // bytes of the routed experts
	KVElems    int64 // K/V elements per token
	MACs       int64 // multiplications per token, without routed experts and attention's own
	ExpertMACs int64 // of the experts that a token takes
	// Choice: a token takes TopK of NumExperts; 0 of 0 in a dense layer.
	TopK, NumExperts int
	Window           int // attention looks back so far; 0: without end
}

// Scratch is what a stage needs beside weights and K/V for a step: hidden
// states, what the layers compute in, logits. It differs with the stage's
// place.
type Scratch struct {
	First  int64 // with the embedding
	Middle int64 // with neither
	Last   int64 // with the head
	Only   int64 // with both
	Bare   int64 // with embedding or head, and no layer
}

func (s Scratch) of(st Stage) int64 {
	switch {
	case st.Embed && st.Head:
		return s.Only
	case st.Lo == st.Hi:
		return s.Bare
	case st.Embed:
		return s.First
	case st.Head:
		return s.Last
	}
	return s.Middle
}

func (s Scratch) byPlace() [4]int64 {
	return [4]int64{first: s.First, middle: s.Middle, last: s.Last, only: s.Only}
}

// Device is a device that may be used.
type Device struct {
	Info      device.Info
	Limit     int64  // bytes at most; 0: what is free
	Reserve   int64  // bytes to leave free
	KVBits    int    // of one K/V element in this backend
	ActBits   int    // of one activation element
	Model     *Model // sizes as this backend holds them; nil: Input.Model
	Scratch   Scratch
	Split     Scratch // of a stage whose experts are elsewhere
	Experts   int64   // scratch that a stage's experts elsewhere need here
	Workspace int64   // bytes of the backend's operations, once a stage
	GBps      float64 // of memory, 10⁹ bytes a second; 0: unknown
	TFlops    float64 // 10¹² operations a second of matrix products; 0: unknown
	LayerUS   float64 // microseconds a layer takes whatever its size: launches
}

// Link is a directed way between two devices as copies will go.
type Link struct {
	From, To device.ID
	GBps     float64
	US       float64 // microseconds before the first byte, waits included
	Kind     string  // for people: "NV4", "PIX, host staged"
}

// Input of the planner.
type Input struct {
	Model      Model
	Devices    []Device
	Links      []Link // a pair that is not there crosses host memory at a usual speed
	BlockSize  int    // tokens in a K/V block
	MaxContext int    // tokens of one sequence; 0: as much as the model has and memory allows
	MaxSeqs    int    // running at a time
	MaxTokens  int    // rows of a step
	MaxLogits  int    // rows of logits of a step
	// FullSeqs is how many sequences of the whole context must have K/V at the
	// same time; 0: one.
	FullSeqs int
	// Batch and Context are what speed is predicted for, and the plan made for;
	// 0: MaxSeqs, and half of the context.
	Batch, Context int
	// GPULayers is how many layers run on GPUs, the others on the CPU; nil: the
	// planner decides.
	GPULayers *int
}

// MaxSeqs is how many sequences can be planned for; beyond it sums would not be
// exact any more.
const MaxSeqs = 1 << 20

func (in *Input) check() error {
	switch {
	case len(in.Model.Layers) == 0:
		return fmt.Errorf("plan: the model has no layers")
	case in.BlockSize < 1 || in.MaxSeqs < 1 || in.MaxTokens < 1 || in.MaxLogits < 1 || in.MaxContext < 0 || in.FullSeqs < 0,
		in.MaxSeqs > MaxSeqs || in.FullSeqs > MaxSeqs:
		return fmt.Errorf("plan: %d sequences (%d in full), %d tokens and %d logit rows a step, context %d, blocks of %d: out of range",
			in.MaxSeqs, in.FullSeqs, in.MaxTokens, in.MaxLogits, in.MaxContext, in.BlockSize)
	case in.Model.MaxContext < 1:
		return fmt.Errorf("plan: the model has no context")
	case in.MaxContext > in.Model.MaxContext:
		return fmt.Errorf("plan: a context of %d tokens was asked for, the model is made for at most %d", in.MaxContext, in.Model.MaxContext)
	}
	for _, d := range in.Devices {
		if d.Model != nil && len(d.Model.Layers) != len(in.Model.Layers) {
			return fmt.Errorf("plan: %v holds the model as %d layers, it has %d", d.Info.ID, len(d.Model.Layers), len(in.Model.Layers))
		}
	}
	return nil
}

func (in *Input) index(id device.ID) int {
	return slices.IndexFunc(in.Devices, func(d Device) bool { return d.Info.ID == id })
}

func (in *Input) ids() []device.ID {
	var ids []device.ID
	for _, d := range in.Devices {
		ids = append(ids, d.Info.ID)
	}
	return ids
}

// model is the model as d holds it.
func (in *Input) model(d *Device) *Model {
	if d.Model != nil {
		return d.Model
	}
	return &in.Model
}

// context that is planned for.
func (in *Input) context() int {
	if in.MaxContext > 0 {
		return in.MaxContext
	}
	return in.Model.MaxContext
}

func (in *Input) fullSeqs() int { return max(in.FullSeqs, 1) }

func (in *Input) blocks(tokens int) int { return (tokens + in.BlockSize - 1) / in.BlockSize }

// bytes of a stage but for K/V and the device's reserve.
func (in *Input) bytes(s Stage) (on, away Bytes) {
	d := &in.Devices[in.index(s.Device)]
	m := in.model(d)
	on.Activations, on.Workspace = d.Scratch.of(s), d.Workspace
	if s.Split() {
		on.Activations = d.Split.of(s)
	}
	for _, l := range m.Layers[s.Lo:s.Hi] {
		on.Weights += l.Weights
		if !s.Split() {
			on.Weights += l.Experts
		}
	}
	if s.Hi > s.Lo {
		on.Weights += in.tables(m, in.context())
	}
	on.Weights += m.ends(s.Embed, s.Head)
	if s.Split() {
		e := &in.Devices[in.index(s.ExpertsOn)]
		for _, l := range in.model(e).Layers[s.Lo:s.Hi] {
			away.Weights += l.Experts
		}
		away.Activations, away.Workspace = e.Experts, e.Workspace
	}
	return on, away
}

// tables is the bytes of a stage's rotary tables: two, each aligned.
func (in *Input) tables(m *Model, positions int) int64 {
	half := m.TableRow / 2 * int64(positions)
	return 2 * ((half + 63) &^ 63)
}

// ends is the bytes of embedding and head.
func (m *Model) ends(embed, head bool) int64 {
	switch {
	case embed && head && m.Tied:
		return m.Embed + m.TiedHead
	case embed && head:
		return m.Embed + m.Head
	case embed:
		return m.Embed
	case head:
		return m.Head
	}
	return 0
}

// kvBlock is the bytes of one K/V block of layers lo..hi on d.
func (in *Input) kvBlock(d *Device, lo, hi int) int64 {
	var n int64
	for _, l := range in.model(d).Layers[lo:hi] {
		// Each layer's K and V are buffers of their own.
		n += l.KVElems * int64(in.BlockSize) * int64(d.KVBits) / 8
	}
	return n
}

// room is what a device may hold, reserve included. known is false for a CPU
// whose free memory nobody can tell, which is taken as enough. A GPU that
// reports no memory has none.
func (d *Device) room() (n int64, known bool) {
	free := d.Info.FreeBytes
	switch {
	case d.Limit > 0 && (free == 0 || d.Limit < free):
		return d.Limit, true
	case free > 0:
		return free, true
	}
	return 0, d.Info.ID.Kind != device.CPU
}

// size is like "1.5 GiB".
func size(n int64) string {
	v, unit := float64(n), "B"
	for _, u := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if v < 1024 && v > -1024 {
			break
		}
		v, unit = v/1024, u
	}
	if unit == "B" {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", v, unit)
}
