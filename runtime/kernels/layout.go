package kernels

import "infer/runtime/tensor"

// Layout says what memory a backend takes, without opening a device: plans are
// made before there is one.
type Layout interface {
	// ActType and KVType are the backend's.
	ActType() tensor.DType
	KVType() tensor.DType
	// WeightBytes is what Pack takes for a matrix whose values are stored as
	// given; on a CPU BF16 may take a quarter less, as its values allow.
	// ErrNotSupported as Pack.
	WeightBytes(rows, cols int, stored tensor.DType, f Format) (int64, error)
	// AllocBytes is what an allocation of n bytes takes.
	AllocBytes(n int64) int64
	// OpsBytes is what the Ops of one stream take at most beside their
	// operands.
	OpsBytes(l OpsLimits) int64
}

// OpsLimits bounds the steps that an Ops will see.
type OpsLimits struct {
	Tokens, Seqs, Context, Logits int
	Heads                         Heads
}
