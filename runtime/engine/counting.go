package engine

import (
	"context"
	"fmt"
	"sync/atomic"

	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// counting is a backend without memory: it counts what would be allocated.
// Measuring loads models on it, so that the planner's sizes are loading's own.
type counting struct {
	info   device.Info
	layout kernels.Layout
	used   atomic.Int64
	limit  int64 // bytes; 0: none
}

func (c *counting) Device() device.Device                     { return countingDevice{c} }
func (c *counting) ActType() tensor.DType                     { return c.layout.ActType() }
func (c *counting) KVType() tensor.DType                      { return c.layout.KVType() }
func (c *counting) Layout() kernels.Layout                    { return c.layout }
func (c *counting) NewOps(device.Stream) (kernels.Ops, error) { return countingOps{}, nil }

func (c *counting) Pack(_ device.Stream, m kernels.Matrix, f kernels.Format) (kernels.Weight, error) {
	n, err := c.layout.WeightBytes(m.Rows(), m.Cols(), m.DType(), f)
	if err != nil {
		return nil, err
	}
	b, err := c.take(n)
	if err != nil {
		return nil, err
	}
	b.rows, b.cols, b.format = m.Rows(), m.Cols(), f
	return b, nil
}

func (c *counting) take(n int64) (*countedBytes, error) {
	n = c.layout.AllocBytes(n)
	if used := c.used.Add(n); c.limit > 0 && used > c.limit {
		c.used.Add(-n)
		return nil, fmt.Errorf("allocate %d bytes on %v: %d of %d are free: %w", n, c.info.ID, c.limit-used+n, c.limit, device.ErrOutOfMemory)
	}
	return &countedBytes{c: c, n: n}, nil
}

// countingDevice is its device.
type countingDevice struct{ c *counting }

func (d countingDevice) Info() device.Info                    { return d.c.info }
func (d countingDevice) Alloc(n int64) (device.Buffer, error) { return d.c.take(n) }
func (d countingDevice) NewStream() (device.Stream, error)    { return countingStream{}, nil }
func (d countingDevice) NewEvent() (device.Event, error)      { return countingEvent{}, nil }
func (d countingDevice) Close() error                         { return nil }

// countedBytes is a buffer or a weight.
type countedBytes struct {
	c          *counting
	n          int64
	rows, cols int
	format     kernels.Format
}

func (b *countedBytes) Size() int64            { return b.n }
func (b *countedBytes) Device() device.ID      { return b.c.info.ID }
func (b *countedBytes) Format() kernels.Format { return b.format }
func (b *countedBytes) Rows() int              { return b.rows }
func (b *countedBytes) Cols() int              { return b.cols }
func (b *countedBytes) Bytes() int64           { return b.n }

func (b *countedBytes) Free() error {
	b.c.used.Add(-b.n)
	b.n = 0
	return nil
}

type countingEvent struct{}

func (countingEvent) Close() error { return nil }

// countingStream does nothing at once.
type countingStream struct{}

func (countingStream) Upload(tensor.Tensor, []byte)   {}
func (countingStream) Download([]byte, tensor.Tensor) {}
func (countingStream) Record(device.Event)            {}
func (countingStream) Wait(device.Event)              {}
func (countingStream) Sync(context.Context) error     { return nil }
func (countingStream) Err() error                     { return nil }
func (countingStream) Close() error                   { return nil }

// countingOps are of every kind, and never called: nothing is computed.
type countingOps struct{ kernels.MoEOps }
