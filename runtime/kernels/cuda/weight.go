package cuda

import (
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"infer/runtime/device"
	driver "infer/runtime/internal/cuda"
	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// weight is a matrix in the kernels' layout: values, then scales.
type weight struct {
	layout
	buf    *buffer
	scales driver.Ptr // 0: none
	sent   kernels.Digest
}

func (w *weight) Format() kernels.Format { return w.format }
func (w *weight) Rows() int              { return w.rows }
func (w *weight) Cols() int              { return w.cols }
func (w *weight) Bytes() int64           { return w.buf.taken }
func (w *weight) Free() error            { return w.buf.Free() }

// Sent implements kernels.VerifiableWeight.
func (w *weight) Sent() kernels.Digest { return w.sent }

// Memory implements kernels.VerifiableWeight.
func (w *weight) Memory() tensor.Tensor {
	return tensor.Tensor{Buf: w.buf, DType: tensor.U8, Shape: tensor.Of(int(w.bytes() + w.scaleBytes()))}
}

var _ kernels.VerifiableWeight = (*weight)(nil)

// formatOf a checkpoint's type; AsStored when there are no kernels for it.
func formatOf(d tensor.DType) kernels.Format {
	switch d {
	case tensor.F32:
		return kernels.F32
	case tensor.F16:
		return kernels.F16
	case tensor.BF16:
		return kernels.BF16
	}
	return kernels.AsStored
}

// resident is the format that a matrix of type d asked for in f is held in.
func resident(d tensor.DType, f kernels.Format) kernels.Format {
	if f == kernels.AsStored {
		return formatOf(d)
	}
	return f
}

// packBytes of the layout are made at a time, or one row of tiles where that
// is more.
const packBytes = 4 << 20

// Pack lays a matrix out in the host's memory, a bounded piece at a time, and
// sends it to the device. Formats are all that there are.
func (b *Backend) Pack(s device.Stream, m kernels.Matrix, f kernels.Format) (kernels.Weight, error) {
	what := func() string {
		return fmt.Sprintf("pack a %d×%d matrix of %v as %v on %v", m.Rows(), m.Cols(), m.DType(), f, b.dev.id)
	}
	l, err := newLayout(m.Rows(), m.Cols(), m.DType(), f)
	if err != nil {
		return nil, fmt.Errorf("pack on %v: %w", b.dev.id, err)
	}
	w := &weight{layout: l}
	if w.buf, err = b.dev.alloc(w.bytes() + w.scaleBytes()); err != nil {
		return nil, fmt.Errorf("%s: %w", what(), err)
	}
	if w.scaleBytes() > 0 {
		w.scales = w.buf.ptr + driver.Ptr(w.bytes())
	}
	if err := w.pack(s.(*stream), m); err != nil {
		_ = w.Free()
		return nil, fmt.Errorf("%s: %w", what(), err)
	}
	return w, nil
}

func (w *weight) pack(s *stream, m kernels.Matrix) error {
	down := w.tilesDown()
	strip := layout{w.format, tileRows, w.cols} // one row of tiles
	size, scaleSize := int(strip.bytes()), int(strip.scaleBytes())
	many := min(max(1, packBytes/size), down)
	values, scales := make([]byte, many*size), make([]byte, many*scaleSize)
	w.sent = kernels.NewDigest(w.bytes() + w.scaleBytes())
	for first := 0; first < down; first += many {
		n := min(many, down-first)
		values, scales := values[:n*size], scales[:n*scaleSize]
		clear(values)
		clear(scales)
		if err := w.packStrips(values, scales, m, first, n); err != nil {
			return err
		}
		at, scaleAt := int64(first)*int64(size), int64(first)*int64(scaleSize)
		w.sent.Add(values, at)
		w.sent.Add(scales, w.bytes()+scaleAt)
		s.upload("Pack", w.buf.ptr+driver.Ptr(at), values)
		s.upload("Pack", w.scales+driver.Ptr(scaleAt), scales)
		s.flush()
		if err := s.Err(); err != nil {
			return err
		}
	}
	return nil
}

// packStrips lays out n rows of tiles from first on, several at once.
func (w *weight) packStrips(values, scales []byte, m kernels.Matrix, first, n int) error {
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			p := packer{m: m, l: w.layout, raw: make([]byte, tileRows*w.cols*m.DType().Bits()/8)}
			for failed.Load() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				lo := (first + i) * tileRows
				v, s := len(values)/n, len(scales)/n
				if err := p.strip(values[i*v:(i+1)*v], scales[i*s:(i+1)*s], lo, min(lo+tileRows, w.rows)); err != nil {
					err = fmt.Errorf("rows %d..%d: %w", lo, min(lo+tileRows, w.rows), err)
					failed.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	all.Wait()
	if e := failed.Load(); e != nil {
		return *e
	}
	return nil
}

// packer is one goroutine's memory for one row of tiles.
type packer struct {
	m    kernels.Matrix
	l    layout
	raw  []byte    // as stored
	vals []float32 // where the format is another
}

// strip lays out rows lo..hi, at most tileRows, into zeroed memory.
func (p *packer) strip(values, scales []byte, lo, hi int) error {
	stored := p.m.DType()
	row := p.l.cols * stored.Bits() / 8
	raw := p.raw[:(hi-lo)*row]
	if err := p.m.ReadRows(raw, lo, hi); err != nil {
		return err
	}
	strip := layout{p.l.format, tileRows, p.l.cols}
	if formatOf(stored) == p.l.format {
		strip.putRows(values, raw, 0)
		return nil
	}
	if p.vals == nil {
		p.vals = make([]float32, tileRows*p.l.cols)
	}
	vals := p.vals[:(hi-lo)*p.l.cols]
	if err := tensor.ToF32(vals, raw, stored); err != nil {
		return err
	}
	switch p.l.format {
	case kernels.Q8, kernels.Q4:
		for n := range tileRows { // also the rows of the padding: a Q4 of zero is not a zero byte
			var v []float32
			if n < hi-lo {
				v = vals[n*p.l.cols : (n+1)*p.l.cols]
			}
			strip.quantize(values, scales, v, n)
		}
		return nil
	}
	strip.putRows(values, encodeAs(vals, p.l.format), 0)
	return nil
}

// encodeAs rounds values to a format of plain numbers.
func encodeAs(vals []float32, f kernels.Format) []byte {
	out := make([]byte, 0, 4*len(vals))
	le := binary.LittleEndian
	for _, v := range vals {
		switch f {
		case kernels.BF16:
			out = le.AppendUint16(out, tensor.F32ToBF16(v))
		case kernels.F16:
			out = le.AppendUint16(out, tensor.F32ToF16(v))
		default:
			out = le.AppendUint32(out, math.Float32bits(v))
		}
	}
	return out
}
