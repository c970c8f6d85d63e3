package ref

import (
	"context"
	"fmt"
	"unsafe"

	"infer/runtime/device"
	"infer/runtime/tensor"
)

// maxBytes bounds what a Device hands out, so that a wrong size is an error
// and not the end of the process.
const maxBytes = 64 << 30

// id is that of the CPU: the memory is the host's.
var id = device.ID{Kind: device.CPU}

// Device is host memory. It is for one goroutine at a time.
type Device struct {
	used int64
}

// Info describes the device.
func (d *Device) Info() device.Info {
	return device.Info{
		ID: id, Name: "reference", TotalBytes: maxBytes, FreeBytes: maxBytes - d.used,
		Units: 1, Features: "plain Go, float64",
	}
}

// Alloc gets n bytes aligned to 64; contents are zero.
func (d *Device) Alloc(n int64) (device.Buffer, error) {
	if n < 0 {
		return nil, fmt.Errorf("allocate %d bytes on %v: negative size", n, id)
	}
	if n > maxBytes-d.used {
		return nil, fmt.Errorf("allocate %d bytes on %v, where %d are free: %w", n, id, maxBytes-d.used, device.ErrOutOfMemory)
	}
	d.used += n
	m := make([]byte, n+64)
	skip := -uintptr(unsafe.Pointer(&m[0])) & 63
	return &buffer{dev: d, mem: m[skip : skip+uintptr(n)]}, nil
}

// NewStream makes a stream whose work is done when the call returns.
func (d *Device) NewStream() (device.Stream, error) { return &stream{}, nil }

// NewEvent makes a mark; all recorded work is done, so it holds nothing.
func (d *Device) NewEvent() (device.Event, error) { return event{}, nil }

// Close does nothing: the memory is the garbage collector's.
func (d *Device) Close() error { return nil }

type buffer struct {
	dev *Device
	mem []byte
}

func (b *buffer) Size() int64       { return int64(len(b.mem)) }
func (b *buffer) Device() device.ID { return id }

func (b *buffer) Free() error {
	b.dev.used -= int64(len(b.mem))
	b.mem = nil
	return nil
}

type event struct{}

func (event) Close() error { return nil }

type stream struct{}

func (*stream) Upload(dst tensor.Tensor, src []byte) {
	mustSize("Upload", int64(len(src)), dst.Bytes())
	copy(mem(dst), src)
}

func (*stream) Download(dst []byte, src tensor.Tensor) {
	mustSize("Download", int64(len(dst)), src.Bytes())
	copy(dst, mem(src))
}

func (*stream) Record(device.Event)            {}
func (*stream) Wait(device.Event)              {}
func (*stream) Sync(ctx context.Context) error { return nil }
func (*stream) Err() error                     { return nil }
func (*stream) Close() error                   { return nil }

func mustSize(what string, have, want int64) {
	if have != want {
		panic(fmt.Sprintf("ref: %s of %d bytes where the tensor has %d", what, have, want))
	}
}

// mem is the view's bytes.
func mem(t tensor.Tensor) []byte {
	b := t.Buf.(*buffer).mem
	n := t.Bytes()
	return b[t.Offset : t.Offset+n : t.Offset+n]
}
