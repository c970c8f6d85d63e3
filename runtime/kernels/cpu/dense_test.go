package cpu

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"infer/runtime/device"
	"infer/runtime/kernels"
	"infer/runtime/kernels/kerneltest"
	"infer/runtime/tensor"
)

// denseSets are Go's and those of this processor.
func denseSets() map[string]*denseSet {
	sets := map[string]*denseSet{"go": &denseGo}
	for _, p := range paths() {
		if p.dense != nil {
			sets[p.name] = p.dense
		}
	}
	return sets
}

// bf16Panel has normally distributed weights, and some of any bits.
func bf16Panel(rng *rand.Rand, groups, any int) []byte {
	panel := make([]byte, groups*densePanel)
	le := binary.LittleEndian
	for i := 0; i < len(panel); i += 2 {
		le.PutUint16(panel[i:], tensor.F32ToBF16(float32(0.02*rng.NormFloat64())))
	}
	for range any {
		at := 2 * rng.IntN(len(panel)/2)
		le.PutUint16(panel[at:], []uint16{uint16(rng.Uint32()), 0, 0x8000, 1, 0x807f, 0x0080, 0x0100, 0x7f80, 0xffc1}[rng.IntN(9)])
	}
	return panel
}

// A dense panel and what is listed are the weights, bit for bit.
func TestDensePanels(t *testing.T) {
	for name, s := range denseSets() {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(3, 4))
			listed, tooMuch := 0, 0
			for i := range 300 {
				groups := 1 + rng.IntN(20)
				panel := bf16Panel(rng, groups, i%6*groups)
				if i%10 == 0 { // mostly zeros
					for at := 0; at < len(panel); at += 2 * (1 + rng.IntN(2)) {
						panel[at], panel[at+1] = 0, byte(rng.IntN(2))<<7
					}
				}
				if got, want := s.top(&panel[0], groups), denseTopGo(&panel[0], groups); got != want {
					t.Fatalf("largest high byte %#x, want %#x", got, want)
				}
				dense, missed := make([]byte, denseHead+groups*denseGroup), make([]uint32, 16*groups)
				list, ok := s.panel(dense, panel, missed)
				other := make([]byte, len(dense))
				if l, k := denseGo.panel(other, panel, missed); !slices.Equal(l, list) || k != ok || !bytes.Equal(dense, other) {
					t.Fatal("packed otherwise than by Go")
				}
				if !ok {
					tooMuch++
					continue
				}
				listed += len(list)
				from := rng.IntN(groups)
				n := 1 + rng.IntN(groups-from)
				got := bytes.Repeat([]byte{0xa5}, n*densePanel+64)
				s.unpack(&denseArgs{panel: unsafe.Pointer(&got[0]), dense: unsafe.Pointer(&dense[denseHead+from*denseGroup]), head: unsafe.Pointer(&dense[0]), ldd: uintptr(len(dense)), groups: uintptr(n), panels: 1})
				for _, r := range list {
					if at := 2*int(r.at) - from*densePanel; at >= 0 && at < n*densePanel {
						binary.LittleEndian.PutUint16(got[at:], binary.LittleEndian.Uint16(got[at:])^r.flip)
					}
				}
				if !bytes.Equal(got[:n*densePanel], panel[from*densePanel:][:n*densePanel]) || !bytes.Equal(got[n*densePanel:], bytes.Repeat([]byte{0xa5}, 64)) {
					t.Fatalf("groups %d..%d of %d differ", from, from+n, groups)
				}
			}
			if listed == 0 || tooMuch == 0 {
				t.Errorf("%d weights listed, %d panels not dense: not all cases were met", listed, tooMuch)
			}
		})
	}
}

// mmGoDense is what the kernels for dense panels do, in Go.
func mmGoDense(a *mmArgs) {
	panel := make([]byte, a.k*densePanel)
	denseUnpackGo(&denseArgs{panel: unsafe.Pointer(&panel[0]), dense: a.w, head: a.unit, groups: a.k, panels: 1})
	w := a.w
	a.w = unsafe.Pointer(&panel[0])
	mmGoDots(a)
	a.w = w
}

// mmGoFlip is what those for a group with listed weights do.
func mmGoFlip(a *mmArgs) {
	var panel [lanes * groupLen]uint16
	denseUnpackGo(&denseArgs{panel: unsafe.Pointer(&panel), dense: a.w, head: a.unit, groups: 1, panels: 1})
	for i, f := range *(*[lanes * groupLen]uint16)(a.flip) {
		panel[i] ^= f
	}
	w := a.w
	a.w = unsafe.Pointer(&panel)
	mmGoDots(a)
	a.w = w
}

func twoPanels(one func(*mmArgs)) func(*mmArgs) {
	return func(a *mmArgs) {
		was := *a
		for p := range 2 {
			a.w, a.unit, a.dst = unsafe.Add(was.w, uintptr(p)*a.ldw), unsafe.Add(was.unit, uintptr(p)*a.ldw), unsafe.Add(was.dst, p*lanes*4)
			if was.flip != nil {
				a.flip = unsafe.Add(was.flip, p*densePanel)
			}
			one(a)
		}
		*a = was
	}
}

// openDense is a backend with kernels for dense panels in Go.
func openDense(t testing.TB) *Backend {
	b := openWith(t, fmtDots, [4]func(*mmArgs){mmGoDots})
	b.path.dense = &denseGo
	for r := 1; r <= amxRows; r++ {
		b.path.mm.kernels[fmtDense][r] = [4]func(*mmArgs){mmGoDense, twoPanels(mmGoDense)}
		b.path.mm.kernels[fmtFlip][r] = [4]func(*mmArgs){mmGoFlip, twoPanels(mmGoFlip)}
	}
	return b
}

// Everything around the kernels for dense panels, with kernels in Go, also where
// the processor has none.
func TestDense(t *testing.T) {
	every := 5
	if testing.Short() { // slow, and with no races of its own
		every = 60
	}
	kerneltest.Run(t, func(t testing.TB) kernels.Backend { return kerneltest.Sample(openDense(t), every) })
}

// randomBF16 is a matrix of so many rows and columns with weights of which some
// have no code in dense panels.
type randomBF16 struct {
	rows, cols int
	wild       bool // all bits occur
}

func (m randomBF16) Rows() int           { return m.rows }
func (m randomBF16) Cols() int           { return m.cols }
func (m randomBF16) DType() tensor.DType { return tensor.BF16 }
func (m randomBF16) ReadRows(dst []byte, lo, hi int) error {
	for r := lo; r < hi; r++ {
		rng := rand.New(rand.NewPCG(uint64(r), uint64(m.cols)))
		for k := range m.cols {
			v := tensor.F32ToBF16(float32(rng.NormFloat64()))
			switch {
			case m.wild:
				v = uint16(rng.Uint32()) & 0xbfff
			case rng.IntN(100) == 0:
				v = tensor.F32ToBF16(float32(rng.NormFloat64()) * 1e-6)
			}
			binary.LittleEndian.PutUint16(dst[2*((r-lo)*m.cols+k):], v)
		}
	}
	return nil
}

// With dense panels products have the very bits of those with BF16, for every
// number of rows, and rows are read back; what has too many weights without a code
// stays BF16.
func TestDenseIsBF16(t *testing.T) {
	dense := map[string]*Backend{"go": openDense(t)}
	for _, p := range paths() {
		if p.dense != nil {
			dense[p.name] = openWith(t, fmtDots, [4]func(*mmArgs){})
			dense[p.name].path = &p
		}
	}
	for name, d := range dense {
		plain := openWith(t, fmtDots, [4]func(*mmArgs){})
		p := *d.path
		p.dense, plain.path = nil, &p
		for _, size := range []randomBF16{{16, 32, false}, {50, 2080, false}, {100, 2112, false}, {83, 64, true}} {
			packed := [2]*weight{}
			for i, b := range []*Backend{d, plain} {
				w, err := b.Pack(nil, size, kernels.AsStored)
				if err != nil {
					t.Fatal(err)
				}
				packed[i] = w.(*weight)
			}
			if is := packed[0].format == fmtDense; is == size.wild || packed[1].format != fmtBF16 || is && len(packed[0].rare) == 0 {
				t.Errorf("%s: %v: format %d, %d listed", name, size, packed[0].format, len(packed[0].rare))
			}
			// To the byte: 12 bits and a head, or what plans count.
			planned, err := d.Layout().WeightBytes(size.rows, size.cols, tensor.BF16, kernels.AsStored)
			if err != nil {
				t.Fatal(err)
			}
			want := int64((size.rows+lanes-1)/lanes) * int64(64+size.cols*lanes*3/2)
			if size.wild {
				want = planned
			}
			if packed[0].Bytes() != want || packed[1].Bytes() != planned || want > planned {
				t.Errorf("%s: %v: %d bytes, want %d; %d as bf16, planned %d", name, size, packed[0].Bytes(), want, packed[1].Bytes(), planned)
			}
			got, stored := make([]float32, size.cols), make([]float32, size.cols)
			for n := range size.rows {
				packed[0].row(got, n)
				packed[1].row(stored, n)
				if !slices.Equal(bitsOf(got), bitsOf(stored)) {
					t.Fatalf("%s: %v: row %d differs", name, size, n)
				}
			}
			x := make([]float32, 100*size.cols)
			for i := range x {
				x[i] = float32(rand.New(rand.NewPCG(9, uint64(i))).NormFloat64())
			}
			for _, rows := range []int{1, 2, 5, 11, 12, 13, 40, 100} {
				var out [2][]float32
				for i, b := range []*Backend{d, plain} {
					out[i] = make([]float32, rows*size.rows)
					o := &ops{pool: b.dev.pool, path: b.path}
					o.multiply(out[i], packed[i], x[:rows*size.cols], nil, false, rows)
				}
				if !slices.Equal(bitsOf(out[0]), bitsOf(out[1])) {
					t.Fatalf("%s: %v: products of %d rows differ", name, size, rows)
				}
			}
		}
	}
}

// What is packed again as BF16 may find no room, which ends the packing.
func TestDenseNoRoom(t *testing.T) {
	b := openDense(t)
	m := randomBF16{64, 64, true}
	jobs := []kernels.PackJob{{Matrix: randomBF16{16, 32, false}, Format: kernels.AsStored}, {Matrix: m, Format: kernels.AsStored}}
	used := b.dev.used.Load()
	b.dev.limit = used + 8000 // 832 and 6,400 as dense panels, 8,192 as BF16
	_, failed, err := b.PackAll(nil, jobs)
	if !errors.Is(err, device.ErrOutOfMemory) || failed != 1 {
		t.Errorf("%d: %v", failed, err)
	}
	if now := b.dev.used.Load(); now != used {
		t.Errorf("%d bytes stay", now-used)
	}
}

func bitsOf(x []float32) []uint32 {
	b := make([]uint32, len(x))
	for i, v := range x {
		b[i] = math.Float32bits(v)
	}
	return b
}

func BenchmarkDense(b *testing.B) {
	rng := rand.New(rand.NewPCG(3, 4))
	const groups, panels, few = 64, 8, 2
	size := denseHead + groups*denseGroup
	panel := bf16Panel(rng, groups, 0)
	dense, missed := make([]byte, panels*size), make([]uint32, 16*groups)
	for name, s := range denseSets() {
		for p := range panels {
			s.panel(dense[p*size:], panel, missed)
		}
		b.Run("pack/"+name, func(b *testing.B) {
			b.SetBytes(int64(len(panel)))
			for b.Loop() {
				s.panel(dense, panel, missed)
			}
		})
		b.Run("unpack/"+name, func(b *testing.B) {
			b.SetBytes(panels * few * densePanel)
			dst := make([]byte, panels*few*densePanel)
			from := 0
			for b.Loop() {
				s.unpack(&denseArgs{
					panel: unsafe.Pointer(&dst[0]), ldp: few * densePanel,
					dense: unsafe.Pointer(&dense[denseHead+from*denseGroup]), head: unsafe.Pointer(&dense[0]), ldd: uintptr(size), groups: few, panels: panels,
				})
				from = (from + few) % groups
			}
		})
	}
}
