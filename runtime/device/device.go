package device

import (
	"context"
	"errors"
	"strconv"
	"time"

	"infer/runtime/arch"
	"infer/runtime/tensor"
)

// Errors that callers act upon; implementations wrap them with the device,
// the call and the numbers.
var (
	ErrOutOfMemory  = errors.New("out of device memory")
	ErrDeviceLost   = errors.New("device lost")
	ErrNotSupported = errors.New("not supported by this device")
	ErrRefused      = errors.New("the driver refuses the kernels")
)

// Kind of a device.
type Kind string

// The kinds there are.
const (
	CPU  Kind = "cpu"
	CUDA Kind = "cuda"
)

// ID names a device on this machine.
type ID struct {
	Kind  Kind
	Index int
}

// String is "cpu" for the first CPU device, else like "cuda:0".
func (id ID) String() string {
	if id.Kind == CPU && id.Index == 0 {
		return string(CPU)
	}
	return string(id.Kind) + ":" + strconv.Itoa(id.Index)
}

// Info is what is known of a device without computing on it.
type Info struct {
	ID         ID
	Name       string // as the hardware calls itself
	TotalBytes int64  // memory; 0 when unknown
	FreeBytes  int64  // of it free when asked; 0 when unknown
	Units      int    // CPU: threads that compute; GPU: multiprocessors
	Features   string // for people: "avx2+fma+f16c"
	GPU        *GPU   // nil for a CPU
}

// GPU is what is known of a GPU beside Info.
type GPU struct {
	Capability    arch.ComputeCapability
	UUID          string  // "GPU-…", as the driver's tools print it
	PCI           string  // domain:bus:device.function, lower case
	NUMANode      int     // −1: unknown
	PCIeGen       int     // the best that card and slot agree on (an idle link is slower); 0: unknown
	PCIeWidth     int     // lanes of the link now; 0: unknown
	BAR1Bytes     int64   // 0: unknown
	MemoryGBps    float64 // of the device's memory, 10⁹ bytes a second; 0: unknown
	DriverVersion string  // "" when unknown
	Simulated     bool    // no hardware: a simulated machine
}

// Link is what the driver and its tools say of one directed pair of GPUs. None
// of it proves that bytes arrive.
type Link struct {
	From, To   ID
	Kind       string  // as topology tools print it: NV4, PIX, PXB, PHB, NODE, SYS; "" unknown
	PeerAccess bool    // the driver says that From can be copied to To directly
	P2PStatus  string  // NVML's: OK, GNS, CNS, TNS …; "" unknown
	PeerGBps   float64 // nominal, one way; 0: unknown
	StagedGBps float64 // through host memory; 0: unknown
	PeerUS     float64 // latency in microseconds; 0: unknown
	StagedUS   float64
}

// Buffer is memory of one device.
type Buffer interface {
	tensor.Buffer
	Device() ID
	// Free gives the memory back; the Buffer and every view of it are invalid
	// afterwards. Work queued on a stream must have finished.
	Free() error
}

// Device is one place that has memory and computes.
type Device interface {
	Info() Info
	// Alloc gets n bytes, aligned to at least 64, contents undefined.
	// Errors: ErrOutOfMemory with the bytes asked for and free.
	Alloc(n int64) (Buffer, error)
	// NewStream makes an independent queue of work. A Stream is used by one
	// goroutine at a time.
	NewStream() (Stream, error)
	// NewEvent makes a mark that orders work between streams.
	NewEvent() (Event, error)
	// Close ends the device's work; its buffers and streams are invalid.
	Close() error
}

// Accountant is a Device that counts the memory it has given out.
type Accountant interface {
	UsedBytes() int64
}

// HostBuffer is host memory that a device reaches by itself (pinned): copies
// from and to it do not hold the caller, and are as fast as the link.
type HostBuffer interface {
	Bytes() []byte
	// Free gives it back; copies that use it must have finished.
	Free() error
}

// HostAllocator is a Device that has pinned host memory.
type HostAllocator interface {
	AllocHost(n int64) (HostBuffer, error)
}

// PeerStream is a Stream whose device can copy to another of its kind without
// the host. It says nothing of whether the bytes arrive.
type PeerStream interface {
	// CopyTo queues a copy of src, on this stream's device, to dst on another,
	// directly between the two. Both have the same size.
	CopyTo(dst, src tensor.Tensor)
}

// Event marks a point in a Stream's work.
type Event interface {
	Close() error
}

// Stream is an ordered queue of work on one device. Errors of queued work are
// sticky: the first one is returned by every later Err and Sync.
type Stream interface {
	// Upload queues host → device; len(src) == dst.Bytes(). src must not
	// change until Sync.
	Upload(dst tensor.Tensor, src []byte)
	// Download queues device → host; len(dst) == src.Bytes(). dst is valid
	// after Sync.
	Download(dst []byte, src tensor.Tensor)
	// Record puts the mark here; Wait holds this stream's later work until
	// the mark, recorded on any stream, has been passed.
	Record(Event)
	Wait(Event)
	// Sync waits for all queued work, at most until ctx ends. A deadline that
	// passes makes the device lost (ErrDeviceLost).
	Sync(ctx context.Context) error
	// Err is the sticky error so far, without waiting.
	Err() error
	Close() error
}

// Timer is a Device that knows how long its work took.
type Timer interface {
	// Time calls f, which queues work on s or makes s wait for other streams',
	// waits for it, and gives how long it took by the device's clock.
	Time(ctx context.Context, s Stream, f func() error) (time.Duration, error)
}
