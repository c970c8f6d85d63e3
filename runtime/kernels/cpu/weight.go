package cpu

import (
	"encoding/binary"
	"math"
	"unsafe"

	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// weight is a matrix in panels of 16 outputs, see mmArgs and quant.go. Missing
// outputs of the last panel, and the missing half of an odd last pair, are
// zero.
type weight struct {
	buf        *buffer
	format     int // fmtBF16 …
	rows, cols int
	first      int // panel of buf that this weight begins with: not 0 for an expert of a stack

	// Of a dense weight: those that are listed, and where each panel's begin.
	rare   []rare
	rareAt []uint32
}

// panelStep is the bytes from one k, pair of k, or group of k, to the next in
// a panel, stepLen how many k that is, and headBytes what lies before them.
var (
	panelStep = [numFormats]int{fmtBF16: lanes * 4, fmtF16: lanes * 2, fmtF32: lanes * 4, fmtI8: lanes, fmtQ8: groupQ8, fmtQ4: groupQ4, fmtTile: tileBytes, fmtDots: tileBytes, fmtDense: denseGroup}
	stepLen   = [numFormats]int{fmtBF16: 2, fmtF16: 1, fmtF32: 1, fmtI8: 1, fmtQ8: groupLen, fmtQ4: groupLen, fmtDense: groupLen}
	headBytes = [numFormats]int{fmtQ4: unitBytes, fmtDense: denseHead}
)

// formatOf gives the kernels' index of a format; formats is the other way.
var (
	formats  = [numFormats]kernels.Format{fmtBF16: kernels.BF16, fmtF16: kernels.F16, fmtF32: kernels.F32, fmtQ8: kernels.Q8, fmtQ4: kernels.Q4, fmtDense: kernels.BF16}
	formatOf = map[kernels.Format]int{kernels.BF16: fmtBF16, kernels.F16: fmtF16, kernels.F32: fmtF32, kernels.Q8: fmtQ8, kernels.Q4: fmtQ4}
)

func (w *weight) Format() kernels.Format { return formats[w.format] }

func (w *weight) Rows() int    { return w.rows }
func (w *weight) Cols() int    { return w.cols }
func (w *weight) Bytes() int64 { return w.buf.Size() }
func (w *weight) Free() error  { return w.buf.Free() }

func (w *weight) panels() int { return (w.rows + lanes - 1) / lanes }

// panelBytes is the size of a panel.
func (w *weight) panelBytes() int { return panelBytes(w.format, w.cols) }

func panelBytes(format, cols int) int {
	return headBytes[format] + (cols+stepLen[format]-1)/stepLen[format]*panelStep[format]
}

// integers tells whether the format is one that needs activations of integers.
func (w *weight) integers() bool { return w.format == fmtQ8 || w.format == fmtQ4 }

// at points to a panel.
func (w *weight) at(panel int) unsafe.Pointer {
	return unsafe.Pointer(&w.buf.mem[(w.first+panel)*w.panelBytes()])
}

// row reads output n back, widened.
func (w *weight) row(dst []float32, n int) {
	p := unsafe.Slice((*byte)(w.at(n/lanes)), w.panelBytes())
	if w.format == fmtDense {
		w.denseRow(dst, p, n)
		return
	}
	n %= lanes
	if w.integers() {
		w.quantRow(dst, p, n)
		return
	}
	le := binary.LittleEndian
	switch w.format {
	case fmtBF16:
		at := 4 * n
		for ; len(dst) >= 2; dst = dst[2:] {
			v := le.Uint32(p[at:])
			dst[0], dst[1] = math.Float32frombits(v<<16), math.Float32frombits(v&0xffff0000)
			at += 4 * lanes
		}
		if len(dst) > 0 {
			dst[0] = math.Float32frombits(le.Uint32(p[at:]) << 16)
		}
	case fmtF16:
		for k := range dst {
			dst[k] = tensor.F16ToF32(le.Uint16(p[2*(k*lanes+n):]))
		}
	case fmtF32:
		for k := range dst {
			dst[k] = math.Float32frombits(le.Uint32(p[4*(k*lanes+n):]))
		}
	}
}
