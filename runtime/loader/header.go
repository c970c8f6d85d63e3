package loader

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strconv"

	"infer/runtime/tensor"
)

// Limits on headers. The first is the format's own.
const (
	maxHeader   = 100_000_000 // bytes
	maxTensors  = 1 << 17     // in one file; the largest published models have 100,000 in all
	maxToken    = 8 << 20     // bytes of one JSON string: a name or a metadata value
	maxRank     = 64
	maxKeys     = 1 << 14 // of metadata
	maxMetadata = 1 << 20 // bytes of metadata kept; the rest is checked and dropped
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
	var shape, offsets []int64
	err := d.object(func(key string) (err error) {
		switch key {
		case "dtype":
			dtype, err = d.str()
		case "shape":
			shape, err = d.ints(maxRank)
		case "data_offsets":
			offsets, err = d.ints(2)
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
			return nil, fmt.Errorf("shape %v of %v has more bits than 64-bit arithmetic holds", shape, t.DType)
		}
		total = lo
	}
	t.Offset, t.Bytes = offsets[0], offsets[1]-offsets[0]
	if total%8 != 0 {
		return nil, fmt.Errorf("shape %v of %v has %d bits, not a whole number of bytes", shape, t.DType, total)
	}
	if total/8 != uint64(t.Bytes) {
		return nil, fmt.Errorf("shape %v of %v needs %d bytes, but data_offsets %v hold %d", shape, t.DType, total/8, offsets, t.Bytes)
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
	last := "the header"
	for _, t := range h.tensors {
		end := t.Offset + t.Bytes // no overflow: both come from offsets ≤ 2^63-1
		switch {
		case end > data:
			return fmt.Errorf("tensor %s: data_offsets [%d %d] run past the end of the data, which has %d bytes: truncated download?", quote(t.Name), t.Offset, end, data)
		case t.Offset < at:
			return fmt.Errorf("tensor %s: data_offsets [%d %d] overlap tensor %s, which ends at %d", quote(t.Name), t.Offset, end, last, at)
		case t.Offset > at:
			return fmt.Errorf("tensor %s: data_offsets [%d %d] leave a hole: bytes %d to %d, after %s, belong to no tensor", quote(t.Name), t.Offset, end, at, t.Offset, last)
		}
		at, last = end, quote(t.Name)
		t.Offset += start
	}
	if at != data {
		return fmt.Errorf("%d bytes of data after the last tensor (%s) belong to no tensor: the data has %d bytes, the tensors %d", data-at, last, data, at)
	}
	return nil
}

// decoder reads strict JSON: names are unique, text is valid UTF-8, nesting is
// bounded (by jsontext), and so is the length of a token.
type decoder struct {
	*jsontext.Decoder
	base int64 // of the JSON in its file, for messages
}

func newDecoder(r io.Reader, base int64) *decoder {
	lim := &tokenLimit{r: bufio.NewReaderSize(r, 64<<10)}
	lim.d = jsontext.NewDecoder(lim)
	return &decoder{lim.d, base}
}

var errLongToken = fmt.Errorf("%d bytes without the end of a JSON token", maxToken)

// tokenLimit ends the input when a token has grown beyond maxToken, so that no
// buffer does.
type tokenLimit struct {
	r    io.Reader
	d    *jsontext.Decoder
	read int64
}

func (l *tokenLimit) Read(p []byte) (int, error) {
	if l.read-l.d.InputOffset() > maxToken {
		return 0, errLongToken
	}
	n, err := l.r.Read(p)
	l.read += int64(n)
	return n, err
}

// wrap turns jsontext's errors into ones with the place in the file.
func (d *decoder) wrap(err error) error {
	var se *jsontext.SyntacticError
	if errors.As(err, &se) {
		in := ""
		if se.JSONPointer != "" {
			in = " in " + quote(string(se.JSONPointer))
		}
		return fmt.Errorf("invalid JSON at byte %d%s: %w", d.base+se.ByteOffset, in, se.Err)
	}
	at := d.base + d.InputOffset()
	if errors.Is(err, errLongToken) {
		return fmt.Errorf("after byte %d: %w", at, errLongToken)
	}
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("invalid JSON at byte %d: %w", at, io.ErrUnexpectedEOF)
	}
	return err
}

var kinds = map[jsontext.Kind]string{
	'n': "null", 't': "true", 'f': "false", '"': "a string", '0': "a number", '{': "an object", '[': "an array",
}

// expect reads a token of kind k, '0' and '"' included.
func (d *decoder) expect(k jsontext.Kind) (jsontext.Token, error) {
	if got := d.PeekKind(); got != k && kinds[got] != "" {
		return jsontext.Token{}, fmt.Errorf("is %s, want %s", kinds[got], kinds[k])
	}
	tok, err := d.ReadToken()
	if err != nil {
		return tok, d.wrap(err)
	}
	return tok, nil
}

// object reads an object; member must read the value that follows the name.
func (d *decoder) object(member func(name string) error) error {
	if _, err := d.expect('{'); err != nil {
		return err
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return d.wrap(err)
		}
		if err := member(name.String()); err != nil {
			return err
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return d.wrap(err)
	}
	return nil
}

func (d *decoder) str() (string, error) {
	tok, err := d.expect('"')
	if err != nil {
		return "", err
	}
	return tok.String(), nil
}

// ints reads an array of at most most integers in 0..2^63-1, never nil.
func (d *decoder) ints(most int) ([]int64, error) {
	if _, err := d.expect('['); err != nil {
		return nil, err
	}
	v := make([]int64, 0, min(most, 4))
	for d.PeekKind() != ']' {
		tok, err := d.expect('0')
		if err != nil {
			return nil, err
		}
		text := tok.String()
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 || text[0] == '-' {
			return nil, fmt.Errorf("%s is not an integer from 0 to 2^63-1", clip(text))
		}
		if len(v) == most {
			return nil, fmt.Errorf("more than %d numbers", most)
		}
		v = append(v, n)
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, d.wrap(err)
	}
	return v, nil
}

func (d *decoder) skip() error {
	if err := d.SkipValue(); err != nil {
		return d.wrap(err)
	}
	return nil
}

// end makes sure that only white space follows.
func (d *decoder) end() error {
	_, err := d.ReadToken()
	if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	if err != nil {
		return d.wrap(err)
	}
	return fmt.Errorf("invalid JSON at byte %d: more text after the object", d.base+d.InputOffset())
}

// quote makes a name from a file fit for a message: quoted, and not too long.
func quote(s string) string {
	if len(s) > 120 {
		return strconv.Quote(s[:120]) + "…"
	}
	return strconv.Quote(s)
}

func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}
