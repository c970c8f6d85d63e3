package kernels

import (
	"infer/runtime/device"
	"infer/runtime/tensor"
)

// BlockSize is the number of tokens in one K/V page (block).
const BlockSize = 16

// Format is how a weight matrix is held in a device's memory.
type Format uint8

// The resident formats. Q8 and Q4 have groups of 32 along the input.
const (
	AsStored Format = iota // whatever the checkpoint has: F32, F16 or BF16
	F32
	F16
	BF16
	Q8
	Q4
)

func (f Format) String() string {
	return [...]string{"as-stored", "f32", "f16", "bf16", "q8", "q4"}[f]
}

// Matrix is where a weight's values come from: Rows × Cols, row-major, read in
// pieces so that packing needs a bounded amount of memory. Rows are outputs,
// columns inputs (the layout of a PyTorch Linear).
type Matrix interface {
	DType() tensor.DType // F32, F16 or BF16
	Rows() int
	Cols() int
	// ReadRows fills dst with rows lo..hi, little-endian. Safe for concurrent use.
	ReadRows(dst []byte, lo, hi int) error
}

// Weight is a matrix in a backend's own layout.
type Weight interface {
	Format() Format
	Rows() int // outputs
	Cols() int // inputs
	Bytes() int64
	Free() error
}

// Backend computes on one device.
type Backend interface {
	Device() device.Device
	// ActType is the element type of activations (hidden states), KVType the
	// element type of K/V pages.
	ActType() tensor.DType
	KVType() tensor.DType
	// Pack reads a matrix and lays it out for MatMul and Embed. A format the
	// backend cannot compute with is ErrNotSupported.
	Pack(s device.Stream, m Matrix, f Format) (Weight, error)
	// NewOps opens the operations on a stream of this device.
	NewOps(s device.Stream) (Ops, error)
	// Layout is what memory things take here.
	Layout() Layout
}

// PackJob is one call of Pack.
type PackJob struct {
	Matrix Matrix
	Format Format
}

// BatchPacker is a Backend that packs many matrices faster than one after the
// other.
type BatchPacker interface {
	// PackAll is Pack of every job, in any order. An error leaves no weight
	// behind; it is that of the job with the index failed.
	PackAll(s device.Stream, jobs []PackJob) (all []Weight, failed int, err error)
}

// Batch is one step's work as the scheduler made it: T tokens (rows) of S
// sequences. Each sequence has a run of consecutive rows. Ops keep no slice of
// it after the step. T, S ≥ 1.
type Batch struct {
	Tokens    []int32 // [T] ids
	Positions []int32 // [T] position of each token in its sequence, from 0
	Slots     []int32 // [T] where its K/V goes: block × BlockSize + offset
	Starts    []int32 // [S+1] rows of sequence s are Starts[s]..Starts[s+1]
	Contexts  []int32 // [S] K/V length of the sequence with this step's tokens
	// BlockTables[s][i] is the page that holds positions
	// i×BlockSize..(i+1)×BlockSize of sequence s.
	BlockTables [][]int32
	// Logits are the rows (ascending) whose logits are wanted; may be empty.
	Logits []int32
}

// Activation of a gated MLP.
type Activation uint8

// Activations: SiLU x·σ(x); GELU exact (erf); GELUTanh its tanh approximation.
const (
	SiLU Activation = iota
	GELU
	GELUTanh
)

// MatMulArgs: Dst[t,n] (+)= Σ_k X[t,k] · W[n,k] + Bias[n].
type MatMulArgs struct {
	Dst  tensor.Tensor // [T, W.Rows]; activations, or F32 for logits
	X    tensor.Tensor // [T, W.Cols] activations
	W    Weight
	Bias tensor.Tensor // [W.Rows] F32, or none
	Add  bool          // add to what Dst holds (the residual) instead of overwriting it
}

// Heads describes the columns of a fused QKV tensor: Q heads, then K heads,
// then V heads, each Dim wide.
type Heads struct {
	Q, KV, Dim int
}

// Cols is the width of a fused QKV row.
func (h Heads) Cols() int { return (h.Q + 2*h.KV) * h.Dim }

// KVDim is how many elements of a K/V type the K, or V, of one token and head
// takes: dim, and in I8 four more, the bytes of its scale.
func KVDim(dim int, t tensor.DType) int {
	if t == tensor.I8 {
		return dim + 4
	}
	return dim
}

// KVLayer is one layer's K/V pages: K and V are each
// [blocks, KV heads, BlockSize, KVDim] in the backend's KVType. In what
// order the elements of one block and head lie is the backend's own: Rotary
// writes them and Attention reads them, nobody else; whole blocks may be copied.
type KVLayer struct {
	K, V tensor.Tensor
}

// RotaryArgs: in place on QKV, for each row: per-head RMSNorm of Q and K when
// QNorm, KNorm are given; rotation of Q and K by the row's position, halves
// paired (x[i], x[i+Rot/2]), with Rot = 2 × columns of Cos, further elements of
// a head untouched; then K and V go to the row's slot in the pages.
type RotaryArgs struct {
	QKV          tensor.Tensor // [T, Heads.Cols()] activations
	Heads        Heads
	QNorm, KNorm tensor.Tensor // [Dim] F32, or none
	Eps          float32
	Cos, Sin     tensor.Tensor // [positions, Rot/2] F32
	KV           KVLayer
}

// AttentionArgs: Dst row t = softmax(Scale · q·k) · v per head, over the
// positions p of its own sequence with p ≤ Positions[t] and, when Window > 0,
// p > Positions[t] − Window. Heads are grouped: Q head h reads K/V head
// h / (Heads.Q / Heads.KV). K and V come from the pages only (Rotary wrote
// this step's).
type AttentionArgs struct {
	Dst    tensor.Tensor // [T, Heads.Q × Heads.Dim] activations
	QKV    tensor.Tensor // [T, Heads.Cols()]
	Heads  Heads
	KV     KVLayer
	Window int // 0: no window
	Scale  float32
}

// Digest is the 128-bit digest of a buffer's bytes.
type Digest [2]uint64

// Ops are queued on one stream, in order. Operands live on its device; shapes
// must agree (a mismatch is a programming error and panics). Errors of the
// device stick to the stream. "Activations" are of the backend's ActType.
type Ops interface {
	// Begin makes b the batch of the ops that follow, until the next Begin.
	Begin(b *Batch)
	// Embed: dst[t] = table row Tokens[t]; dst [T, table.Cols] activations.
	Embed(dst tensor.Tensor, table Weight)
	// RMSNorm: dst = x / √(mean(x²) + eps) · w for each row; w [H] F32.
	RMSNorm(dst, x, w tensor.Tensor, eps float32)
	MatMul(a MatMulArgs)
	Rotary(a RotaryArgs)
	Attention(a AttentionArgs)
	// GatedAct: dst[t,i] = act(gateUp[t,i]) · gateUp[t,I+i]; gateUp [T, 2I].
	GatedAct(dst, gateUp tensor.Tensor, act Activation)
	// GatherRows: dst[r] = src[Logits[r]]; dst [len(Logits), H].
	GatherRows(dst, src tensor.Tensor)
	// Argmax: dst[r] = index of the largest logit of row r, the lowest index
	// among equals; −1 when the row holds a NaN or +Inf, or nothing above −Inf:
	// no token may come of it. dst [R] I32, logits [R, V] F32.
	Argmax(dst, logits tensor.Tensor)
	// Copy: dst = src, same size, both on this device.
	Copy(dst, src tensor.Tensor)
	// Digest of t's bytes, valid in *out after the stream's Sync: two
	// independent 64-bit sums over position-mixed words, so that the order
	// of additions does not matter. The same on every backend.
	Digest(out *Digest, t tensor.Tensor)
}
