package ptx

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"
)

// device is the memory of a test: buffers at addresses of its own.
type device struct {
	regions Regions
	next    uint64
}

func newDevice() *device { return &device{next: 0x7f0000000000} }

// alloc gives n bytes and their device address. Buffers do not touch.
func (d *device) alloc(name string, n int) (uint64, []byte) {
	words := make([]uint64, (n+15)/8+1)
	data := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), n)
	base := d.next + uint64(uintptr(unsafe.Pointer(unsafe.SliceData(words)))&8)
	d.next += uint64(n+4095)&^4095 + 4096
	d.regions = append(d.regions, Region{Base: base, Data: data, Name: name})
	return base, data
}

func put[T any](d *device, name string, v []T) uint64 {
	var z T
	size := int(unsafe.Sizeof(z))
	addr, data := d.alloc(name, len(v)*size)
	copy(data, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*size))
	return addr
}

// get reads n values back.
func get[T any](t testing.TB, d *device, addr uint64, n int) []T {
	t.Helper()
	r, ok := d.regions.Region(addr)
	if !ok {
		t.Fatalf("no buffer at %#x", addr)
	}
	out := make([]T, n)
	var z T
	size := int(unsafe.Sizeof(z))
	copy(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(out))), n*size), r.Data[addr-r.Base:])
	return out
}

// pack lays kernel arguments out at their natural alignment.
func pack(args ...any) []byte {
	var b []byte
	for _, a := range args {
		size := binary.Size(a)
		for len(b)%size != 0 {
			b = append(b, 0)
		}
		b, _ = binary.Append(b, binary.LittleEndian, a)
	}
	return b
}

// source reads a file of testdata, gzipped or not.
func source(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(name, ".gz") {
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if data, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
	}
	return string(data)
}

func parse(t testing.TB, src string) *Module {
	t.Helper()
	m, err := Parse(src)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// run launches with all checks on.
func run(t testing.TB, k *Kernel, d *device, cfg Config, params []byte) Stats {
	t.Helper()
	s, err := k.Launch(context.Background(), cfg, params, d.regions, Options{Checks: CheckShared | CheckGlobalRaces | CheckLocal, Profile: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// rng is a small generator of test values.
type rng uint64

func (r *rng) next() uint64 {
	*r ^= *r << 13
	*r ^= *r >> 7
	*r ^= *r << 17
	return uint64(*r)
}

// float gives values around zero.
func (r *rng) float() float32 { return float32(int64(r.next()>>40)-1<<23) / (1 << 23) }

func (r *rng) floats(n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = r.float()
	}
	return out
}

func toBF16(v []float32) []uint16 {
	out := make([]uint16, len(v))
	for i, f := range v {
		b := math.Float32bits(f)
		out[i] = uint16((b + 0x7fff + b>>16&1) >> 16)
	}
	return out
}

func fromBF16(h uint16) float64 { return float64(math.Float32frombits(uint32(h) << 16)) }

func near(t testing.TB, what string, got, want []float64, rel, abs float64) {
	t.Helper()
	for i := range want {
		if diff := math.Abs(got[i] - want[i]); !(diff <= abs+rel*math.Abs(want[i])) {
			t.Fatalf("%s: element %d is %g, want %g", what, i, got[i], want[i])
		}
	}
}
