package devicemap

import (
	"errors"
	"fmt"
	"strings"

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
	Workspace   int64 `json:"workspace"`   // of the backend's operations
	Reserve     int64 `json:"reserve"`     // left free
}

// Total of all kinds.
func (b Bytes) Total() int64 {
	return b.Weights + b.KV + b.Activations + b.Workspace + b.Reserve
}

// Used is what will be allocated: all but the reserve.
func (b Bytes) Used() int64 { return b.Total() - b.Reserve }

func (b Bytes) plus(o Bytes) Bytes {
	return Bytes{
		b.Weights + o.Weights, b.KV + o.KV, b.Activations + o.Activations, b.Workspace + o.Workspace, b.Reserve + o.Reserve,
	}
}

// Stage is a contiguous run of layers on one device. Neighbours may be on the
// same device when only one of them has its experts elsewhere.
type Stage struct {
	Device device.ID `json:"device"`
	Lo     int       `json:"lo"` // layers Lo..Hi, half-open
	Hi     int       `json:"hi"`
	Embed  bool      `json:"embed"` // with the token embedding
	Head   bool      `json:"head"`  // with final norm and output head
	Bytes  Bytes     `json:"bytes"` // on Device
	// ExpertsOn is where the routed experts of all of the stage's layers are
	// computed; the zero ID: on Device, with the rest. Away is what they take
	// there.
	ExpertsOn device.ID `json:"experts_on,omitzero"`
	Away      Bytes     `json:"away,omitzero"`
	// Seconds of a decode step of the predicted batch, experts elsewhere and
	// the way to them included.
	Seconds float64 `json:"seconds"`
}

// Split tells whether the stage's experts are on another device.
func (s Stage) Split() bool { return s.ExpertsOn != device.ID{} }

func (s Stage) String() string {
	var parts []string
	if s.Embed {
		parts = append(parts, "embedding")
	}
	switch {
	case s.Hi == s.Lo+1:
		parts = append(parts, fmt.Sprintf("layer %d", s.Lo))
	case s.Hi > s.Lo:
		parts = append(parts, fmt.Sprintf("layers %d-%d", s.Lo, s.Hi-1))
	}
	if s.Head {
		parts = append(parts, "head")
	}
	if s.Split() {
		parts = append(parts, "(experts on "+s.ExpertsOn.String()+")")
	}
	return s.Device.String() + ": " + strings.Join(parts, " ")
}

// Plan is the decision.
type Plan struct {
	Stages     []Stage `json:"stages"` // in order; the first has the embedding, the last the head
	Blocks     int     `json:"blocks"` // K/V blocks of each layer
	MaxContext int     `json:"max_context"`
	MaxSeqs    int     `json:"max_seqs"`
	MaxTokens  int     `json:"max_tokens"`
	MaxLogits  int     `json:"max_logits"`
	// MicroBatches that should be in flight when enough sequences decode, so
	// that every stage computes at once; 1: the whole batch goes through.
	MicroBatches int        `json:"micro_batches"`
	Predicted    Prediction `json:"predicted"`
	Reasons      []string   `json:"reasons"` // what was decided and why, for people
}

// Prediction of speed, from nominal bandwidths and rates: good for choosing
// between plans, and within a factor of two of what is measured.
type Prediction struct {
	Batch   int     `json:"batch"`   // sequences that decode: no more than K/V has room for
	Context int     `json:"context"` // tokens that each has behind it
	Prompt  int     `json:"prompt"`  // tokens of the prompt that TTFT is for
	Step    float64 `json:"step"`    // seconds of a decode step of the batch asked for, without micro-batches: what Auto minimises
	Whole   float64 `json:"whole"`   // seconds of a decode step of Batch without micro-batches
	TPOT    float64 `json:"tpot"`    // seconds between a sequence's tokens, with micro-batches
	Single  float64 `json:"single"`  // the same when one sequence decodes alone
	TTFT    float64 `json:"ttft"`    // seconds to the first token of a prompt
}

// Throughput in tokens a second of the whole batch.
func (p Prediction) Throughput() float64 {
	if p.TPOT <= 0 {
		return 0
	}
	return float64(p.Batch) / p.TPOT
}

// On sums up the plan's bytes on one device.
func (p Plan) On(id device.ID) Bytes {
	var b Bytes
	for _, s := range p.Stages {
		if s.Device == id {
			b = b.plus(s.Bytes)
		}
		if s.ExpertsOn == id {
			b = b.plus(s.Away)
		}
	}
	return b
}

// Devices that the plan uses, in the order of the stages.
func (p Plan) Devices() []device.ID {
	var ids []device.ID
	add := func(id device.ID) {
		for _, have := range ids {
			if have == id {
				return
			}
		}
		ids = append(ids, id)
	}
	for _, s := range p.Stages {
		add(s.Device)
	}
	for _, s := range p.Stages {
		if s.Split() {
			add(s.ExpertsOn)
		}
	}
	return ids
}
