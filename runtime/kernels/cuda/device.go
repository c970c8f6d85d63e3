package cuda

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"infer/runtime/arch"
	"infer/runtime/device"
	driver "infer/runtime/internal/cuda"
	"infer/runtime/tensor"
)

// granule is what the driver rounds allocations up to.
const granule = 512

// Device is one GPU. All its driver calls are made by its owner, one goroutine
// on one thread.
type Device struct {
	sys   *System
	id    device.ID
	owner *driver.Device
	fn    *functions
	limit int64 // bytes that may be used
	used  atomic.Int64
	lost  atomic.Pointer[error] // once set, nothing works

	peersMu sync.Mutex
	peers   map[int]error // by index: what enabling access to it gave
}

func openDevice(s *System, i int) (*Device, error) {
	if c := arch.Of(s.props[i].Major, s.props[i].Minor); arch.Lookup(c).Image == arch.NoImage {
		return nil, fmt.Errorf("no kernels run on compute capability %v: %w", c, device.ErrNotSupported)
	}
	owner, err := s.driver.Device(i)
	if err != nil {
		return nil, err
	}
	d := &Device{
		sys: s, id: device.ID{Kind: device.CUDA, Index: i}, owner: owner, fn: newFunctions(), limit: s.room(i),
		peers: map[int]error{},
	}
	if d.limit == 0 {
		d.limit = 1 << 62 // unknown: the driver says when it is enough
	}
	return d, nil
}

// Info describes the device; FreeBytes is what Alloc would still give.
func (d *Device) Info() device.Info {
	info := d.sys.info(d.id.Index)
	if info.FreeBytes > 0 {
		info.FreeBytes = max(0, d.limit-d.used.Load())
	}
	return info
}

// do runs f on the owner and waits, at most for the system's timeout.
func (d *Device) do(what string, f func(t *driver.Thread) error) error {
	if err := d.lostErr(); err != nil {
		return fmt.Errorf("%s on %v: %w", what, d.id, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), d.sys.options.Timeout)
	defer cancel()
	if err := d.owner.Run(ctx, f); err != nil {
		return fmt.Errorf("%s on %v: %w", what, d.id, d.classify(err))
	}
	return nil
}

func (d *Device) lostErr() error {
	if e := d.lost.Load(); e != nil {
		return *e
	}
	return nil
}

// classify adds what callers act upon to a driver's error, and remembers that
// the device is lost.
func (d *Device) classify(err error) error {
	var e *driver.Error
	var late *driver.DeadlineError
	switch {
	case errors.Is(err, device.ErrDeviceLost) || errors.Is(err, device.ErrOutOfMemory):
		return err
	case errors.As(err, &late):
		err = fmt.Errorf("%w: %w", device.ErrDeviceLost, err)
	case errors.As(err, &e) && e.Sticky():
		err = fmt.Errorf("%w: %w", device.ErrDeviceLost, err)
	case errors.As(err, &e) && e.Name == "CUDA_ERROR_OUT_OF_MEMORY":
		return fmt.Errorf("%w: %w", device.ErrOutOfMemory, err)
	default:
		return err
	}
	d.lose(err)
	return err
}

func (d *Device) lose(err error) {
	d.lost.CompareAndSwap(nil, &err)
	d.sys.someLost.Store(true)
}

// UsedBytes implements device.Accountant.
func (d *Device) UsedBytes() int64 { return d.used.Load() }

// Alloc gets n bytes. Safe for concurrent use.
func (d *Device) Alloc(n int64) (device.Buffer, error) {
	b, err := d.alloc(n)
	if err != nil {
		return nil, err
	}
	return b, nil
}

func (d *Device) alloc(n int64) (*buffer, error) {
	if n < 0 {
		return nil, fmt.Errorf("allocate %d bytes on %v: negative size", n, d.id)
	}
	if n > d.limit {
		return nil, d.outOfMemory(n, d.limit-d.used.Load())
	}
	size := roundUp(n) // the driver refuses 0
	if used := d.used.Add(size); used > d.limit {
		d.used.Add(-size)
		return nil, d.outOfMemory(n, d.limit-used+size)
	}
	b := &buffer{dev: d, size: n, taken: size}
	var free int64
	err := d.do(fmt.Sprintf("allocate %d bytes", n), func(t *driver.Thread) (err error) {
		if b.ptr, err = t.Alloc(size); err != nil {
			free, _, _ = t.MemInfo()
		}
		return err
	})
	if err != nil {
		d.used.Add(-size)
		if errors.Is(err, device.ErrOutOfMemory) {
			return nil, fmt.Errorf("%w; the driver has %d bytes free", err, free)
		}
		return nil, err
	}
	return b, nil
}

func (d *Device) outOfMemory(n, free int64) error {
	return fmt.Errorf("allocate %d bytes on %v: %d of %d bytes are free: %w", n, d.id, max(0, free), d.limit, device.ErrOutOfMemory)
}

// NewStream makes an independent queue of work.
func (d *Device) NewStream() (device.Stream, error) {
	s, err := newStream(d)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// NewEvent makes a mark for ordering work between streams of any devices.
func (d *Device) NewEvent() (device.Event, error) {
	e := &event{dev: d}
	err := d.do("make an event", func(t *driver.Thread) (err error) {
		e.handle, err = t.NewEvent(false)
		return err
	})
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Close ends the owner.
func (d *Device) Close() error {
	if err := d.owner.Close(); err != nil && d.lostErr() == nil {
		return fmt.Errorf("close %v: %w", d.id, err)
	}
	return nil
}

// enablePeer lets this device reach the memory of another, once. Both ways of
// a pair are separate.
func (d *Device) enablePeer(t *driver.Thread, to *Device) error {
	d.peersMu.Lock()
	defer d.peersMu.Unlock()
	err, known := d.peers[to.id.Index]
	if !known {
		if err = t.EnablePeer(to.owner); err != nil {
			err = fmt.Errorf("give %v access to the memory of %v: %w: %w", d.id, to.id, device.ErrNotSupported, err)
		}
		d.peers[to.id.Index] = err
	}
	return err
}

// buffer is memory of one GPU.
type buffer struct {
	dev   *Device
	ptr   driver.Ptr
	size  int64
	taken int64
}

func (b *buffer) Size() int64       { return b.size }
func (b *buffer) Device() device.ID { return b.dev.id }

// Free gives the memory back. On a lost device there is nothing to give.
func (b *buffer) Free() error {
	if b.ptr == 0 {
		return nil
	}
	ptr := b.ptr
	b.ptr = 0
	b.dev.used.Add(-b.taken)
	if b.dev.lostErr() != nil {
		return nil
	}
	return b.dev.do(fmt.Sprintf("free %d bytes", b.size), func(t *driver.Thread) error { return t.Free(ptr) })
}

// at is where a view's bytes begin.
func at(t tensor.Tensor) driver.Ptr {
	if t.IsNone() {
		return 0
	}
	return t.Buf.(*buffer).ptr + driver.Ptr(t.Offset)
}

// event is a device.Event. A wait reaches the driver only after the record that
// it is for, which another owner may be making: cuStreamWaitEvent on an event
// that has not been recorded waits for nothing.
type event struct {
	dev    *Device
	handle driver.Event

	recorded atomic.Uint64 // records asked for
	issued   atomic.Uint64 // records the driver has been given, or that never will be
	failed   atomic.Pointer[error]
}

func (e *event) Close() error {
	if e.dev.lostErr() != nil {
		return nil
	}
	return e.dev.do("close an event", func(t *driver.Thread) error { return t.DestroyEvent(e.handle) })
}

// await blocks the owner of another device until record n has been issued.
func (e *event) await(n uint64, limit time.Duration) error {
	start := time.Now()
	for spins := 0; e.issued.Load() < n; spins++ {
		if spins < 200 {
			continue
		}
		if waited := time.Since(start); waited > limit {
			return fmt.Errorf("wait for an event of %v: not recorded after %v, the limit is %v: %w",
				e.dev.id, waited.Round(time.Millisecond), limit, device.ErrDeviceLost)
		}
		time.Sleep(10 * time.Microsecond)
	}
	err := e.dev.lostErr()
	if failed := e.failed.Load(); failed != nil {
		err = *failed
	}
	if err != nil {
		return fmt.Errorf("wait for an event of %v: %w", e.dev.id, err)
	}
	return nil
}
