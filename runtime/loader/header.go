package loader

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"

	"infer/runtime/tensor"
)

// Limits on headers. The first is the format's own.
const (
	maxHeader   = 100_000_000 // bytes
	maxTensors  = 1 << 17     // in one file; the largest published models have 100,000 in all
	maxToken    = 8 << 20     // bytes of one JSON string: a name or a metadata value
	maxDims     = 1 << 20     // of all shapes in one file
	maxKeys     = 1 << 17     // of metadata
	maxMetadata = 1 << 20     // bytes of metadata kept; the rest is checked and dropped
)

// header is what the first bytes of a safetensors file say.
type header struct {
	tensors  []*Tensor // in the order of their data
	metadata map[string]string
}

// parseHeader reads and checks the header of a safetensors file of size bytes.
// It reads r from the start up to the end of the header only.
// The format: https://github.com/huggingface/safetensors#format.
func parseHeader(r io.ReaderAt, size int64) (*header, error) {
	if size < 8 {
		return nil, fmt.Errorf("file has %d bytes, too short for the 8-byte header length of the safetensors format", size)
	}
	var first [9]byte
	n, err := r.ReadAt(first[:], 0)
	if n < 8 {
		return nil, fmt.Errorf("read header length: %w", err)
	}
	length := binary.LittleEndian.Uint64(first[:8])
	switch {
	case string(first[:n]) == "version h": // "version https://git-lfs.github.com/spec/v1"
		return nil, errors.New("this is a Git LFS pointer, not the file itself: get that with git lfs pull")
	case length > maxHeader:
		return nil, fmt.Errorf("header length %d is above the format's limit of %d bytes: not a safetensors file, or damaged", length, maxHeader)
	case length > uint64(size-8):
		return nil, fmt.Errorf("header length %d runs past the end of the file, which has %d bytes: truncated or damaged", length, size)
	case length < 2:
		return nil, fmt.Errorf("header length %d is too short to hold a JSON object", length)
	case n == 9 && first[8] != '{':
		return nil, fmt.Errorf("header starts with %q, want '{'", first[8])
	}
	h := &header{}
	d := newDecoder(io.NewSectionReader(r, 8, int64(length)), 8)
	if err := h.decode(d); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	if err := h.checkRanges(8+int64(length), size); err != nil {
		return nil, err
	}
	return h, nil
}

func (h *header) decode(d *decoder) error {
	kept, keys := 0, 0
	err := d.object(func(name string) error {
		if name == "__metadata__" {
			if d.PeekKind() == 'n' {
				return d.skip()
			}
			h.metadata = map[string]string{}
			return d.object(func(key string) error {
				v, err := d.str()
				if err != nil {
					return fmt.Errorf("__metadata__ %s: %w", quote(key), err)
				}
				if keys++; keys > maxKeys {
					return fmt.Errorf("__metadata__ has more than %d keys", maxKeys)
				}
				if kept += len(key) + len(v); kept <= maxMetadata {
					h.metadata[key] = v
				}
				return nil
			})
		}
		t, err := d.tensor(name)
		if err != nil {
			return fmt.Errorf("tensor %s: %w", quote(name), err)
		}
		if len(h.tensors) == maxTensors {
			return fmt.Errorf("more than %d tensors", maxTensors)
		}
		h.tensors = append(h.tensors, t)
		return nil
	})
	if err != nil {
		return err
	}
	return d.end()
}

// tensor decodes one entry. Offsets are relative to the data here; checkRanges
// makes them absolute.
func (d *decoder) tensor(name string) (*Tensor, error) {
	t := &Tensor{Name: name}
	var dtype string
	d.shape, d.offsets = nil, nil
	err := d.object(func(key string) (err error) {
		switch key {
		case "dtype":
			dtype, err = d.str()
		case "shape":
			d.shape, err = d.ints(d.shapeBuf[:0], maxDims-d.dims)
		case "data_offsets":
			d.offsets, err = d.ints(d.offsetBuf[:0], 2)
		default:
			err = d.skip() // the format's readers ignore further keys
		}
		if err != nil {
			return fmt.Errorf("%s: %w", quote(key), err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	shape, offsets := d.shape, d.offsets
	d.dims += len(shape)
	d.shapeBuf = shape
	switch {
	case dtype == "":
		return nil, errors.New("dtype is missing")
	case shape == nil:
		return nil, errors.New("shape is missing")
	case len(offsets) != 2:
		return nil, fmt.Errorf("data_offsets has %d numbers, want 2", len(offsets))
	case offsets[0] > offsets[1]:
		return nil, fmt.Errorf("data_offsets %v end before they begin", offsets)
	}
	var ok bool
	if t.DType, ok = tensor.ParseDType(dtype); !ok {
		return nil, fmt.Errorf("unknown dtype %s", quote(dtype))
	}
	t.Shape = make([]int, len(shape))
	total := uint64(t.DType.Bits())
	for i, n := range shape {
		t.Shape[i] = int(n)
		hi, lo := bits.Mul64(total, uint64(n))
		if hi != 0 {
			return nil, fmt.Errorf("shape %s of %v has more bits than 64-bit arithmetic holds", clip(fmt.Sprint(shape)), t.DType)
		}
		total = lo
	}
	t.Offset, t.Bytes = offsets[0], offsets[1]-offsets[0]
	if total%8 != 0 {
		return nil, fmt.Errorf("shape %s of %v has %d bits, not a whole number of bytes", clip(fmt.Sprint(shape)), t.DType, total)
	}
	if total/8 != uint64(t.Bytes) {
		return nil, fmt.Errorf("shape %s of %v needs %d bytes, but data_offsets %v hold %d", clip(fmt.Sprint(shape)), t.DType, total/8, offsets, t.Bytes)
	}
	return t, nil
}

// checkRanges sorts the tensors by their data, makes offsets absolute, and
// makes sure that they cover the data from start to size exactly once.
func (h *header) checkRanges(start, size int64) error {
	slices.SortFunc(h.tensors, func(a, b *Tensor) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Bytes, b.Bytes), cmp.Compare(a.Name, b.Name))
	})
	data, at := size-start, int64(0)
	name := func(t *Tensor) string {
		if t == nil {
			return "the header"
		}
		return "tensor " + quote(t.Name)
	}
	var last *Tensor
	for _, t := range h.tensors {
		end := t.Offset + t.Bytes // no overflow: both come from offsets ≤ 2^63-1
		switch {
		case end > data:
			return fmt.Errorf("tensor %s: data_offsets [%d %d] run past the end of the data, which has %d bytes: truncated download?", quote(t.Name), t.Offset, end, data)
		case t.Offset < at:
			return fmt.Errorf("tensor %s: data_offsets [%d %d] overlap %s, which ends at %d", quote(t.Name), t.Offset, end, name(last), at)
		case t.Offset > at:
			return fmt.Errorf("tensor %s: data_offsets [%d %d] leave a hole: bytes %d to %d, after %s, belong to no tensor", quote(t.Name), t.Offset, end, at, t.Offset, name(last))
		}
		at, last = end, t
		t.Offset += start
	}
	if at != data {
		return fmt.Errorf("%d bytes of data after %s belong to no tensor: the data has %d bytes, the tensors %d", data-at, name(last), data, at)
	}
	return nil
}
