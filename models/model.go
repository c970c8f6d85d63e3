package models

import (
	"context"

	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/loader"
	"infer/runtime/tensor"
)

// Where a tensor belongs when it is not in a layer (TensorSpec.Layer).
const (
	InEmbedding = -1
	InHead      = -2 // final norm and output head
)

// TensorSpec is one tensor that a model reads from its checkpoint.
type TensorSpec struct {
	Name  string
	Shape []int
	Layer int // 0-based, or InEmbedding, InHead
	// Expert marks what goes to LoadOptions.Experts where there is one: a
	// layer's experts, and the norm and the router before them.
	Expert bool
}

// Config is what every decoder has, whatever its family, checked and with
// defaults filled in.
type Config struct {
	Architecture string // config.json architectures[0]
	VocabSize    int
	Hidden       int
	Intermediate int
	Layers       int
	Heads        kernels.Heads
	MaxPositions int // context length the model was made for, rotary scaling included
	Tied         bool
	Windows      []int   // each layer's attention window, 0 for none; nil when no layer has one
	StopIDs      []int32 // eos_token_id of config.json; generation_config.json may say otherwise
	// KVLayerBytes per token and layer are 2 × Heads.KV × kernels.KVDim elements.

	// Of mixtures of experts; 0 in a model without.
	Experts            int // in a layer that has them
	ExpertsPerToken    int
	ExpertIntermediate int // width of one
}

// Model is a checkpoint's architecture: no weights are read before Load.
type Model interface {
	Config() Config
	// Tensors lists what Load of all layers reads, in file-independent order;
	// a tied head is listed once, as the embedding. (A stage with the head but
	// not the embedding reads it too.)
	Tensors() []TensorSpec
	// Load reads and packs the weights of one stage. Cancelling ctx stops it.
	Load(ctx context.Context, o LoadOptions) (Stage, error)
}

// LoadOptions say which part of a model is wanted, and where.
type LoadOptions struct {
	Lo, Hi       int  // layers Lo..Hi, half-open
	Embed, Head  bool // with the token embedding; with final norm and output head
	Checkpoint   *loader.Checkpoint
	Backend      kernels.Backend
	Stream       device.Stream
	Format       kernels.Format // of the large matrices
	MaxTokens    int            // rows in a step, at most
	MaxLogits    int            // rows of logits in a step, at most
	MaxPositions int            // context length to make rotary tables for
	// Progress is told the bytes of the checkpoint read since its last call;
	// calls may come from several goroutines at once.
	Progress func(bytes int64)
	// Experts is where the mixtures of experts of the stage are, when not with
	// the rest; nil: there.
	Experts *Place
}

// Place is a second device of a stage, for its mixtures of experts: norm,
// router and experts of a layer. Only the residual stream crosses, there and
// back, so that both devices compute what one would.
type Place struct {
	Backend kernels.Backend // its ActType is that of the stage's backend
	Stream  device.Stream
	Ops     kernels.Ops // opened on Stream
	// There and Back queue a copy of src, of the stage's device, to dst, of this
	// one, and of src here to dst there: behind what is queued on the source's
	// stream and before what comes on the destination's. A failure is kept by
	// whoever gave the functions, as a Stream keeps its own.
	There, Back func(dst, src tensor.Tensor)
}

// Stage is a contiguous run of layers with its weights and scratch memory on
// one device.
type Stage interface {
	// Forward queues one step. ops.Begin(b) has been called. hidden is
	// [T, Hidden] in the backend's ActType: input unless the stage has the
	// embedding, and the output unless it has the head; a stage that has both
	// does not touch it. logits is [len(b.Logits), VocabSize] F32, written by a
	// stage with the head. kv has one entry for each layer of the stage.
	Forward(ops kernels.Ops, b *kernels.Batch, kv []kernels.KVLayer, hidden, logits tensor.Tensor)
	// Bytes of device memory: weights, and scratch; without what is in
	// LoadOptions.Experts.
	Bytes() (weights, scratch int64)
	// ExpertBytes are those of LoadOptions.Experts.
	ExpertBytes() (weights, scratch int64)
	Close() error
}

// Verifiable is a Stage that knows what its memory must hold.
type Verifiable interface {
	// Resident lists weights, norms and tables, on the stage's device and on
	// that of its experts.
	// Weights of a backend that does not know their digest are left out.
	Resident() []kernels.Resident
}
