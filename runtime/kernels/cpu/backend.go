package cpu

import (
	"fmt"
	"os"

	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// Precision says how exact the results are to be.
type Precision string

// Precisions: Auto takes what is fast and exact enough (K/V in BF16, and with
// dot products of bfloat16 what is multiplied with BF16 weights); F32 keeps
// everything but the weights in float32.
const (
	Auto Precision = "auto"
	F32  Precision = "f32"
)

// maxThreads bounds Options.Threads.
const maxThreads = 1024

// Options of a backend; the zero value is right for most.
type Options struct {
	Threads     int          // goroutines that compute; 0: one for each physical core
	Precision   Precision    // "": Auto
	KV          tensor.DType // F32, BF16 or I8; Invalid: by precision
	MemoryLimit int64        // bytes; 0: what is free now
	BesideGPUs  bool         // Auto rounds no activations for products, as it doesn't on GPUs
}

// Backend computes on the CPU.
type Backend struct {
	dev  *Device
	kv   tensor.DType
	path *path
}

// Open starts the pool; Device().Close ends it. A path that is forced by
// INFER_CPU but that this processor lacks is ErrNotSupported.
func Open(o Options) (*Backend, error) {
	p, err := choose(os.Getenv("INFER_CPU"))
	if err != nil {
		return nil, err
	}
	if o.Threads < 0 || o.Threads > maxThreads {
		return nil, fmt.Errorf("open the CPU: %d threads, want 1..%d, or 0 for one a core", o.Threads, maxThreads)
	}
	if o.Threads == 0 {
		o.Threads = defaultThreads()
	}
	if o.MemoryLimit < 0 {
		return nil, fmt.Errorf("open the CPU: memory limit of %d bytes", o.MemoryLimit)
	}
	if o.MemoryLimit == 0 {
		if _, o.MemoryLimit = memory(); o.MemoryLimit == 0 {
			o.MemoryLimit = 1 << 62 // unknown: the system says when it is enough
		}
	}
	switch o.Precision {
	case "":
		o.Precision = Auto
	case Auto, F32:
	default:
		return nil, fmt.Errorf("open the CPU: precision %q, want %q or %q", o.Precision, Auto, F32)
	}
	switch o.KV {
	case tensor.Invalid:
		o.KV = tensor.BF16
		if o.Precision == F32 {
			o.KV = tensor.F32
		}
	case tensor.F32, tensor.BF16, tensor.I8:
	default:
		return nil, fmt.Errorf("open the CPU: K/V of %v, want F32, BF16 or I8: %w", o.KV, device.ErrNotSupported)
	}
	if p.exact != nil && (o.Precision == F32 || o.BesideGPUs && p.rounds()) {
		p = p.exact
	}
	d := &Device{name: processor(), features: p.features, limit: o.MemoryLimit, pool: newPool(o.Threads)}
	return &Backend{dev: d, kv: o.KV, path: p}, nil
}

// defaultThreads is one for each physical core that this process may use: a
// second thread of a core has no arithmetic unit of its own.
func defaultThreads() int {
	n := processors
	if c := cores(); c > 0 {
		n = min(n, c)
	}
	return min(n, maxThreads)
}

// Device is the CPU.
func (b *Backend) Device() device.Device { return b.dev }

// BindThread implements kernels.ThreadBinder.
func (b *Backend) BindThread() { b.dev.pool.bind(0) }

// ActType is F32.
func (b *Backend) ActType() tensor.DType { return tensor.F32 }

// OperandType implements kernels.Rounder.
func (b *Backend) OperandType(d tensor.DType) tensor.DType {
	if d == tensor.BF16 && b.path.rounds() {
		return tensor.BF16
	}
	return tensor.F32
}

// KVType is BF16, F32 or I8, see Options.
func (b *Backend) KVType() tensor.DType { return b.kv }

// NewOps opens the operations.
func (b *Backend) NewOps(device.Stream) (kernels.Ops, error) {
	return &ops{pool: b.dev.pool, arena: &b.dev.arena, path: b.path}, nil
}
