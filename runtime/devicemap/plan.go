package devicemap

import (
	"errors"
	"fmt"

	"infer/runtime/device"
)

// ErrDoesNotFit: the model and one sequence of the context need more memory
// than there is.
var ErrDoesNotFit = errors.New("does not fit in memory")

// Bytes of one device or stage, by kind.
type Bytes struct {
	Weights     int64 `json:"weights"`
	KV          int64 `json:"kv"`
	Activations int64 `json:"activations"` // hidden states, scratch of the layers, logits
	Reserve     int64 `json:"reserve"`     // left free
}

// Total of all kinds.
func (b Bytes) Total() int64 { return b.Weights + b.KV + b.Activations + b.Reserve }

// Model is what the planner knows of a model, in the format that will be
// resident.
type Model struct {
	Layers     []Layer
	Embed      int64 // bytes of the token embedding
	Head       int64 // bytes of final norm and output head; of a tied head, the embedding again
	Tied       bool  // a stage with both embedding and head holds the matrix once
	MaxContext int   // positions the model was made for
}

// Layer is the size of one layer.
type Layer struct {
	Weights int64
	KVElems int64 // K/V elements per token
}

// Device is a device that may be used.
type Device struct {
	Info      device.Info
	Limit     int64 // bytes at most; 0: what is free
	Reserve   int64 // bytes to leave free
	KVBits    int   // of one K/V element in this backend
	ActBits   int   // of one activation element
	StepBytes int64 // scratch that a stage needs beside weights and K/V, for MaxTokens and MaxLogits
}

// Input of a planner.
type Input struct {
	Model      Model
	Devices    []Device
	BlockSize  int // tokens in a K/V block
	MaxContext int // tokens of one sequence; 0: as much as the model has and memory allows
	MaxSeqs    int // running at a time
	MaxTokens  int // rows of a step
	MaxLogits  int // rows of logits of a step
}

// Stage is a contiguous run of layers on one device.
type Stage struct {
	Device device.ID `json:"device"`
	Lo     int       `json:"lo"` // layers Lo..Hi, half-open
	Hi     int       `json:"hi"`
	Embed  bool      `json:"embed"` // with the token embedding
	Head   bool      `json:"head"`  // with final norm and output head
	Bytes  Bytes     `json:"bytes"`
}

func (s Stage) String() string {
	parts := ""
	if s.Embed {
		parts += " embedding"
	}
	if s.Hi > s.Lo {
		parts += fmt.Sprintf(" layers %d-%d", s.Lo, s.Hi-1)
	}
	if s.Head {
		parts += " head"
	}
	return s.Device.String() + ":" + parts
}

// Plan is the decision.
type Plan struct {
	Stages     []Stage  `json:"stages"` // in order; the first has the embedding, the last the head
	Blocks     int      `json:"blocks"` // K/V blocks of each layer
	MaxContext int      `json:"max_context"`
	MaxSeqs    int      `json:"max_seqs"`
	MaxTokens  int      `json:"max_tokens"`
	MaxLogits  int      `json:"max_logits"`
	Reasons    []string `json:"reasons"` // what was decided and why, for people
}

// On sums up the plan's bytes on one device.
func (p Plan) On(id device.ID) Bytes {
	var b Bytes
	for _, s := range p.Stages {
		if s.Device == id {
			b.Weights += s.Bytes.Weights
			b.KV += s.Bytes.KV
			b.Activations += s.Bytes.Activations
			b.Reserve += s.Bytes.Reserve
		}
	}
	return b
}
