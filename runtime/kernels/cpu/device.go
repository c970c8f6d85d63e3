package cpu

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"

	"infer/runtime/device"
	"infer/runtime/tensor"
)

var id = device.ID{Kind: device.CPU}

// guard is how far a kernel may read behind the last element of a buffer.
const guard = 64

// Device is the machine's memory and the pool that computes.
type Device struct {
	name     string
	features string
	limit    int64 // bytes that may be used
	used     atomic.Int64
	arena    arena
	pool     *pool
}

// Info describes the device; FreeBytes is what Alloc would still give.
func (d *Device) Info() device.Info {
	total, _ := memory()
	return device.Info{
		ID: id, Name: d.name, TotalBytes: total, FreeBytes: max(0, d.limit-d.used.Load()),
		Units: len(d.pool.workers), Features: d.features,
	}
}

// UsedBytes implements device.Accountant.
func (d *Device) UsedBytes() int64 { return d.used.Load() }

// Alloc gets n bytes aligned to 64. Safe for concurrent use.
func (d *Device) Alloc(n int64) (device.Buffer, error) { return d.alloc(n, smallPages) }

func (d *Device) alloc(n int64, kind pageKind) (*buffer, error) {
	if n < 0 {
		return nil, fmt.Errorf("allocate %d bytes on %v: negative size", n, id)
	}
	if used := d.used.Add(n); used > d.limit || n > math.MaxInt-2*slabBytes {
		d.used.Add(-n)
		return nil, fmt.Errorf("allocate %d bytes on %v: %d of %d bytes are free: %w",
			n, id, max(0, d.limit-used+n), d.limit, device.ErrOutOfMemory)
	}
	p, err := d.arena.get(int(n)+guard, kind)
	if err != nil {
		d.used.Add(-n)
		return nil, fmt.Errorf("allocate %d bytes on %v: the system refuses (%v): %w", n, id, err, device.ErrOutOfMemory)
	}
	return &buffer{dev: d, mem: p.mem(), from: p, size: n}, nil
}

// NewStream makes a stream whose work is done when the call returns.
func (d *Device) NewStream() (device.Stream, error) { return stream{}, nil }

// NewEvent makes a mark; all recorded work is done, so it holds nothing.
func (d *Device) NewEvent() (device.Event, error) { return event{}, nil }

// Close ends the pool. Buffers stay until they are freed.
func (d *Device) Close() error {
	d.pool.close()
	return nil
}

type buffer struct {
	dev  *Device
	mem  []byte // size + guard
	size int64
	from piece
}

// used notes that the first n bytes of a view of b are used.
func (b *buffer) used(view tensor.Tensor, n int) {
	b.dev.arena.widen(&b.from, int(view.Offset)+n)
}

func (b *buffer) Size() int64       { return b.size }
func (b *buffer) Device() device.ID { return id }

func (b *buffer) Free() error {
	if b.mem == nil {
		return nil
	}
	b.mem = nil
	b.dev.used.Add(-b.size)
	if err := b.dev.arena.put(b.from.slab); err != nil {
		return fmt.Errorf("free %d bytes on %v: %w", b.size, id, err)
	}
	return nil
}

type event struct{}

func (event) Close() error { return nil }

type stream struct{}

func (stream) Upload(dst tensor.Tensor, src []byte) {
	mustSize("Upload", int64(len(src)), dst.Bytes())
	copy(mem(dst), src)
}

func (stream) Download(dst []byte, src tensor.Tensor) {
	mustSize("Download", int64(len(dst)), src.Bytes())
	copy(dst, mem(src))
}

func (stream) Record(device.Event)        {}
func (stream) Wait(device.Event)          {}
func (stream) Sync(context.Context) error { return nil }
func (stream) Err() error                 { return nil }
func (stream) Close() error               { return nil }

func mustSize(what string, have, want int64) {
	if have != want {
		panic(fmt.Sprintf("cpu: %s of %d bytes where the tensor has %d", what, have, want))
	}
}

// mem is the view's bytes.
func mem(t tensor.Tensor) []byte {
	n := t.Bytes()
	return t.Buf.(*buffer).mem[t.Offset : t.Offset+n : t.Offset+n]
}

// floats is the view's elements; nil for none.
func floats(t tensor.Tensor) []float32 {
	if t.IsNone() || t.Shape.Elems() == 0 {
		return nil
	}
	m := mem(t)
	if t.DType != tensor.F32 || uintptr(unsafe.Pointer(&m[0]))%4 != 0 {
		panic(fmt.Sprintf("cpu: %v%v at offset %d where aligned F32 is needed", t.DType, t.Shape, t.Offset))
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&m[0])), len(m)/4)
}
