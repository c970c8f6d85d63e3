package cpu

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// Rows of every length end up in their panels, whatever transposes them: each
// set against places reckoned one by one.
func TestPackPanels(t *testing.T) {
	sets := map[string]*packSet{}
	for _, p := range paths() {
		sets[p.name] = p.pack
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for name, set := range sets {
		for _, format := range []int{fmtBF16, fmtF16, fmtF32} {
			size := 2
			if format == fmtF32 {
				size = 4
			}
			cols := []int{64, 576, 2048, 2050}
			for n := range 40 {
				cols = append(cols, n+1)
			}
			for _, n := range cols {
				rows := make([]byte, lanes*n*size)
				for i := range rows {
					rows[i] = byte(rng.Uint32())
				}
				const fence = 64
				got, want := make([]byte, panelBytes(format, n)+fence), make([]byte, panelBytes(format, n)+fence)
				for i := range lanes {
					for k := range n {
						at := size * (k*lanes + i)
						if format == fmtBF16 { // pairs
							at = 4*(k/2*lanes+i) + k%2*2
						}
						copy(want[at:][:size], rows[(i*n+k)*size:])
					}
				}
				set.panel(got, rows, format)
				if !bytes.Equal(got, want) {
					t.Errorf("%s: %v of %d columns: panels differ", name, formats[format], n)
				}
			}
		}
	}
}

func BenchmarkPackPanels(b *testing.B) {
	const cols, panels = 2048, 64
	rows, dst := make([]byte, lanes*cols*2), make([]byte, panels*lanes*cols*2)
	for _, p := range paths() {
		for _, format := range []int{fmtBF16, fmtF16} {
			b.Run(p.name+"/"+formats[format].String(), func(b *testing.B) {
				b.SetBytes(int64(len(dst)))
				for b.Loop() {
					for i := range panels {
						p.pack.panel(dst[i*len(rows):][:len(rows)], rows, format)
					}
				}
			})
		}
	}
}

// counted is a BF16 matrix whose rows are all different.
type counted struct{ rows, cols int }

func (m counted) DType() tensor.DType { return tensor.BF16 }
func (m counted) Rows() int           { return m.rows }
func (m counted) Cols() int           { return m.cols }

func (m counted) at(row, col int) float32 { return float32(row%251) + float32(col%127)/128 }

func (m counted) ReadRows(dst []byte, lo, hi int) error {
	for i := range (hi - lo) * m.cols {
		binary.LittleEndian.PutUint16(dst[2*i:], tensor.F32ToBF16(m.at(lo+i/m.cols, i%m.cols)))
	}
	return nil
}

// Rows come back from a weight that is read in several pieces, the last of
// which is not whole.
func TestPackPieces(t *testing.T) {
	b := openFor(t, Options{Threads: 2})
	m := counted{rows: 20*stagingBytes/2/1024 + 5, cols: 1024}
	w, err := b.Pack(nil, m, kernels.AsStored)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Free()
	row := make([]float32, m.cols)
	for i := range m.rows {
		w.(*weight).row(row, i)
		for k, v := range row {
			if want := tensor.BF16ToF32(tensor.F32ToBF16(m.at(i, k))); v != want {
				t.Fatalf("row %d column %d is %v, want %v", i, k, v, want)
			}
		}
	}
}

// broken is a matrix of which some rows cannot be read.
type broken struct{ counted }

var errBroken = errors.New("broken")

func (m broken) ReadRows(dst []byte, lo, hi int) error {
	if hi > 100 {
		return errBroken
	}
	return m.counted.ReadRows(dst, lo, hi)
}

// Matrices of all sizes packed in one go are what each is by itself; an error
// is said to be of the one that it is of, and leaves nothing.
func TestPackAll(t *testing.T) {
	b := openFor(t, Options{Threads: 3})
	var jobs []kernels.PackJob
	for i, rows := range []int{1, 300, 16, 17, 2000, 5, 128} {
		jobs = append(jobs, kernels.PackJob{Matrix: counted{rows, 64 + 32*i}, Format: []kernels.Format{kernels.AsStored, kernels.Q8, kernels.F32}[i%3]})
	}
	all, _, err := b.PackAll(nil, jobs)
	if err != nil {
		t.Fatal(err)
	}
	for i, j := range jobs {
		one, err := b.Pack(nil, j.Matrix, j.Format)
		if err != nil {
			t.Fatal(err)
		}
		got, want := all[i].(*weight), one.(*weight)
		if got.rows != want.rows || !bytes.Equal(got.buf.mem[:got.Bytes()], want.buf.mem[:want.Bytes()]) {
			t.Errorf("job %d is packed otherwise than alone", i)
		}
		_, _ = one.Free(), all[i].Free()
	}
	for _, bad := range []kernels.PackJob{{Matrix: broken{counted{500, 64}}}, {Matrix: counted{3, 64}, Format: 99}, {Matrix: counted{0, 64}}} {
		all, failed, err := b.PackAll(nil, append(jobs[:4:4], bad, jobs[5]))
		if err == nil || failed != 4 || all != nil {
			t.Errorf("%v: job %d, %v", bad, failed, err)
		}
		if _, ok := bad.Matrix.(broken); ok && !errors.Is(err, errBroken) {
			t.Error(err)
		}
	}
	if n := b.dev.used.Load(); n != 0 {
		t.Errorf("%d bytes are left", n)
	}
}
