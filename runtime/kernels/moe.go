package kernels

import "infer/runtime/tensor"

// Mixtures of experts: each row goes to the K of E gated MLPs that its router
// logits are largest for.
//
//	x ─RMSNorm─► h ─MatMul(router)─► logits ─Route─► IDs, Weights
//	x += Σ_j Weights[j] · down[e]·(act(gate[e]·h) ⊙ up[e]·h),  e = IDs[j]
//
// The experts of a layer are stacked, so that they are two weights and not
// hundreds: the rows of expert e are those from e × ExpertRows(n) on, n of
// them, and zeros up to the next expert's.

// expertAlign is a multiple of every backend's rows in a tile or panel: an
// expert of a stack begins with one.
const expertAlign = 16

// ExpertRows is how many rows of a stack an expert with n outputs takes.
func ExpertRows(n int) int { return (n + expertAlign - 1) / expertAlign * expertAlign }

// Limits of Route, with room beyond every published model.
const (
	MaxExperts = 1024
	MaxChosen  = 32 // of them for a row
)

// RouteArgs: for each row, the experts of the K largest logits, the lower index
// first among equals, and the softmax of the logits (over all E) there.
//
// IDs ascend within a row: that fixes the order in which a row's experts are
// added, whatever their logits. A row whose logits hold a NaN or +Inf, or
// nothing above −Inf, gets the IDs 0..K−1 and weights of NaN, so that its
// result is NaN and no token comes of it.
type RouteArgs struct {
	IDs       tensor.Tensor // [T, K] I32
	Weights   tensor.Tensor // [T, K] F32
	Logits    tensor.Tensor // [T, E] F32
	Normalize bool          // divide a row's weights by their sum
}

// ExpertsArgs: Dst[t] += Weights[t,j] · y[t,j] for each j, ascending, where
//
//	y[t,j] = down[e] · (act(gate[e]·X[t]) ⊙ (up[e]·X[t])),  e = IDs[t,j]
//
// A row's result does not depend on which other rows go to the same experts.
type ExpertsArgs struct {
	Dst     tensor.Tensor // [T, H] activations
	X       tensor.Tensor // [T, H] activations
	IDs     tensor.Tensor // [T, K] I32, each in 0..Experts−1
	Weights tensor.Tensor // [T, K] F32
	GateUp  Weight        // [Experts × ExpertRows(2 × Inter), H]: gate, then up, of each expert
	Down    Weight        // [Experts × ExpertRows(H), Inter]
	Experts int
	Inter   int // width of an expert
	Act     Activation
	Scratch ExpertsScratch
}

// ExpertsScratch is memory that Experts works in. What it holds before and
// after means nothing.
type ExpertsScratch struct {
	Hidden tensor.Tensor // [T × K, 2 × Inter] activations
	Gated  tensor.Tensor // [T × K, Inter] activations
	Out    tensor.Tensor // [T × K, H] F32
	Order  tensor.Tensor // [≥ ExpertsOrder(T, K, Experts)] I32
}

// ExpertsOrder is how many numbers it takes to sort the rows by expert.
func ExpertsOrder(rows, chosen, experts int) int { return 2*rows*chosen + 3*experts + 1 }

// MoEOps are Ops of a backend that computes mixtures of experts.
type MoEOps interface {
	Ops
	Route(a RouteArgs)
	Experts(a ExpertsArgs)
}
