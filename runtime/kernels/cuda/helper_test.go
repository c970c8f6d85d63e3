package cuda

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"unsafe"

	"infer/runtime/device"
	"infer/runtime/internal/cuda/ptx"
	"infer/runtime/kernels"
	"infer/runtime/kernels/ref"
	"infer/runtime/tensor"
)

// brief keeps one in n of the cases of a test in short runs. Those are for the
// race detector, which finds nothing in what kernels compute: the interpreter
// and the backend have tests of their own for it.
func brief[T any](all []T, n int) []T {
	if !testing.Short() {
		return all
	}
	var some []T
	for i := 0; i < len(all); i += n {
		some = append(some, all[i])
	}
	return some
}

// sweep tells whether the long tests run.
var sweep = os.Getenv("INFER_CUDA_SWEEP") != ""

var modules sync.Map

func kernel(t testing.TB, module, name string) *ptx.Kernel {
	t.Helper()
	m, ok := modules.Load(module)
	if !ok {
		parsed, err := ptx.Parse(Module(module))
		if err != nil {
			t.Fatalf("%s: %v", module, err)
		}
		m, _ = modules.LoadOrStore(module, parsed)
	}
	k := m.(*ptx.Module).Kernel(name)
	if k == nil {
		t.Fatalf("%s has no kernel %s", module, name)
	}
	return k
}

// gpu is the memory of one test. Every byte's first write is tracked.
type gpu struct {
	t       testing.TB
	regions ptx.Regions
	next    uint64
	rng     *rand.Rand
	ref     kernels.Ops
	host    *ref.Device
	stream  device.Stream

	// For mutations: this kernel stands in for the one of its name, and the
	// first error is kept.
	mutant  *ptx.Kernel
	err     error
	workers int // 0: as many as there are processors
}

func newGPU(t testing.TB) *gpu {
	t.Helper()
	b := ref.Open()
	s := must(b.Device().NewStream())
	return &gpu{
		t: t, next: 0x7f0000000000, rng: rand.New(rand.NewPCG(3, 5)),
		ref: must(b.NewOps(s)), host: b.Device().(*ref.Device), stream: s,
	}
}

// alloc gives n unwritten bytes.
func (d *gpu) alloc(name string, n int) (uint64, []byte) {
	words := make([]uint64, n/8+4)
	data := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 8*len(words))
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(words))) & 15)
	data = data[skip : skip+n : skip+n]
	base := d.next
	d.next += uint64(n+4095)&^4095 + 4096
	for i := range data {
		data[i] = 0xff
	}
	d.regions = append(d.regions, ptx.Region{Base: base, Data: data, Name: name, Init: make([]byte, n)})
	return base, data
}

// put gives memory with these bytes, read-only.
func (d *gpu) put(name string, b []byte) uint64 {
	addr, data := d.alloc(name, len(b))
	copy(data, b)
	r := &d.regions[len(d.regions)-1]
	r.Init, r.ReadOnly = nil, true
	return addr
}

// fill gives memory with these bytes that kernels may write.
func (d *gpu) fill(name string, b []byte) uint64 {
	addr := d.put(name, b)
	d.regions[len(d.regions)-1].ReadOnly = false
	return addr
}

// bytes are those of the buffer at addr.
func (d *gpu) bytes(addr uint64) []byte {
	r, ok := d.regions.Region(addr)
	if !ok {
		d.t.Fatalf("no buffer at %#x", addr)
	}
	return r.Data
}

func (d *gpu) floats(addr uint64, t tensor.DType) []float32 {
	b := d.bytes(addr)
	v := make([]float32, len(b)*8/t.Bits())
	if err := tensor.ToF32(v, b, t); err != nil {
		d.t.Fatal(err)
	}
	return v
}

func (d *gpu) ints(name string, v []int32) uint64 {
	b, _ := binary.Append(nil, binary.LittleEndian, v)
	return d.put(name, b)
}

func (d *gpu) random(n int, scale float64) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(d.rng.NormFloat64() * scale)
	}
	return v
}

// launch runs a kernel with all checks on.
func (d *gpu) launch(k *ptx.Kernel, grid [3]int, block int, args ...any) ptx.Stats {
	d.t.Helper()
	if d.mutant != nil && d.mutant.Name() == k.Name() {
		k = d.mutant
	}
	s, err := k.Launch(context.Background(), ptx.Config{Grid: grid, Block: [3]int{block, 1, 1}}, params(args...), d.regions,
		ptx.Options{Workers: d.workers, Checks: ptx.CheckAll | ptx.CheckBlocks, Profile: true})
	if err != nil && d.mutant == nil {
		d.t.Fatal(err)
	}
	if d.err == nil {
		d.err = err
	}
	return s
}

// params lays arguments out at their natural alignment; an int is an i32.
func params(args ...any) []byte {
	var b []byte
	for _, a := range args {
		if n, ok := a.(int); ok {
			a = int32(n)
		}
		for len(b)%binary.Size(a) != 0 {
			b = append(b, 0)
		}
		b, _ = binary.Append(b, binary.LittleEndian, a)
	}
	return b
}

// tensor is one for the reference.
func (d *gpu) tensor(t tensor.DType, shape tensor.Shape, b []byte) tensor.Tensor {
	x := tensor.Tensor{DType: t, Shape: shape}
	x.Buf = must(d.host.Alloc(x.Bytes()))
	if b != nil {
		d.stream.Upload(x, b)
	}
	return x
}

func (d *gpu) refFloats(x tensor.Tensor) []float32 {
	b := make([]byte, x.Bytes())
	d.stream.Download(b, x)
	v := make([]float32, x.Shape.Elems())
	if err := tensor.ToF32(v, b, x.DType); err != nil {
		d.t.Fatal(err)
	}
	return v
}

func encode(d tensor.DType, v []float32) []byte {
	b := make([]byte, 0, 4*len(v))
	le := binary.LittleEndian
	for _, a := range v {
		switch d {
		case tensor.F32:
			b = le.AppendUint32(b, math.Float32bits(a))
		case tensor.BF16:
			b = le.AppendUint16(b, tensor.F32ToBF16(a))
		case tensor.F16:
			b = le.AppendUint16(b, tensor.F32ToF16(a))
		}
	}
	return b
}

func decode(d tensor.DType, b []byte) []float32 {
	v := make([]float32, len(b)*8/d.Bits())
	if err := tensor.ToF32(v, b, d); err != nil {
		panic(err)
	}
	return v
}

// near compares: |difference| ≤ bound of the element and one rounding to the
// result's type.
func near(t testing.TB, what string, got, want []float32, d tensor.DType, bound func(i int) float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i := range want {
		g, w := float64(got[i]), float64(want[i])
		if g == w || g != g && w != w {
			continue
		}
		limit := math.Abs(w) * ulp(d)
		if bound != nil {
			limit += bound(i)
		}
		if diff := math.Abs(g - w); !(diff <= limit) {
			t.Fatalf("%s: element %d is %g, want %g: %.2f times the bound", what, i, g, w, diff/limit)
		}
	}
}

// ulp is the relative distance of neighbours.
func ulp(d tensor.DType) float64 {
	return map[tensor.DType]float64{tensor.BF16: 1.0 / (1 << 7), tensor.F16: 1.0 / (1 << 10), tensor.F32: 1.0 / (1 << 23)}[d]
}

const epsilon = 1.0 / (1 << 24)

// suffix is how kernels name an element type.
func suffix(d tensor.DType) string {
	return map[tensor.DType]string{tensor.BF16: "bf16", tensor.F16: "f16", tensor.F32: "f32"}[d]
}

var actTypes = []tensor.DType{tensor.BF16, tensor.F32}

func sameBytes(t testing.TB, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		i := 0
		for i < len(got) && i < len(want) && got[i] == want[i] {
			i++
		}
		t.Fatalf("%s: %d and %d bytes differ from %d on", what, len(got), len(want), i)
	}
}

// memMatrix is a kernels.Matrix in memory.
type memMatrix struct {
	d          tensor.DType
	rows, cols int
	raw        []byte
}

func (m *memMatrix) DType() tensor.DType { return m.d }
func (m *memMatrix) Rows() int           { return m.rows }
func (m *memMatrix) Cols() int           { return m.cols }

func (m *memMatrix) ReadRows(dst []byte, lo, hi int) error {
	n := m.cols * m.d.Bits() / 8
	if len(dst) != (hi-lo)*n {
		return fmt.Errorf("rows %d..%d into %d bytes", lo, hi, len(dst))
	}
	copy(dst, m.raw[lo*n:hi*n])
	return nil
}

// refWeight is a weight of the reference.
func (d *gpu) refWeight(t tensor.DType, rows, cols int, raw []byte) kernels.Weight {
	return must(ref.Open().Pack(d.stream, &memMatrix{t, rows, cols, raw}, kernels.AsStored))
}
