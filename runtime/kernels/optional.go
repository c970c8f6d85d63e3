package kernels

import "infer/runtime/tensor"

// What some Ops can do beside Ops itself; ask by a type assertion.

// LayerMarker names the layer that the operations that follow belong to, for
// errors; −1 for none, as after Begin.
type LayerMarker interface {
	Layer(n int)
}

// Comparison is what Prober.Compare finds.
type Comparison struct {
	Bad   int64 // bytes that differ
	First int64 // offset of the first of them; −1: none
}

// Pattern is word i (little-endian, from the buffer's start) of the pattern of
// a Prober: with step 0 a constant sentinel, else different everywhere.
func Pattern(seed, step, i uint64) uint64 { return DigestMix0(seed + i*step) }

// Prober writes patterns into memory and looks for what is not of them, on the
// device.
type Prober interface {
	// Fill writes the pattern over all bytes of dst; the last word is cut.
	Fill(dst tensor.Tensor, seed, step uint64)
	// Compare counts the bytes of t that are not the pattern's. *out is valid
	// after the stream's Sync.
	Compare(out *Comparison, t tensor.Tensor, seed, step uint64)
}

// PeerReader has kernels that read the memory of another device of the same
// kind by themselves, as models split within a layer do. Where the driver
// refuses, the stream's error is ErrNotSupported. The order with work of other
// streams is the caller's, by events.
type PeerReader interface {
	// PeerDigest is Ops.Digest of a tensor on another device.
	PeerDigest(out *Digest, t tensor.Tensor)
	// PeerCopy copies from another device's memory to this one's, by a kernel.
	PeerCopy(dst, src tensor.Tensor)
}

// VerifiableWeight knows what its bytes on the device must be.
type VerifiableWeight interface {
	Weight
	// Sent is the digest of the bytes as they were sent to the device.
	Sent() Digest
	// Memory is those bytes on the device.
	Memory() tensor.Tensor
}

// BatchVerifier is Ops that send the batch to their device in Begin.
type BatchVerifier interface {
	// VerifyBatch gives the digest of what was sent, and queues that of what
	// arrived, valid in *got after the stream's Sync. It comes after the last
	// operation on the batch.
	VerifyBatch(sent, got *Digest)
}

// Resident is memory of a device with the digest of what was sent there.
type Resident struct {
	What   string // for errors
	Memory tensor.Tensor
	Sent   Digest
}

// Roofline is a Backend that can measure the most that its device gives.
type Roofline interface {
	// Peak takes some tenths of a second, of a device that does nothing else;
	// f is the format of the weights.
	Peak(f Format) (Peak, error)
}

// Peak is the most that a device gives to products with weights of one format.
type Peak struct {
	Read float64 // bytes a second from memory
	MACs float64 // multiply-adds a second
	Unit string  // what does these, for people
}

// ThreadBinder is a Backend that computes on its caller's thread among others.
type ThreadBinder interface {
	// BindThread gives the calling goroutine's thread to the backend for as
	// long as the goroutine lives, which is to be the one that calls its
	// operations: steps are faster beside other processes.
	BindThread()
}

// Rounder is a Backend that rounds activations further than to ActType where it
// multiplies them.
type Rounder interface {
	// OperandType is what activations become in products with weights that are
	// stored as d, and queries and probabilities in those with K/V of d.
	OperandType(d tensor.DType) tensor.DType
}
