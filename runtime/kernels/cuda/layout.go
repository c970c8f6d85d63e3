package cuda

import (
	"encoding/binary"
	"math"

	"infer/runtime/kernels"
	"infer/runtime/tensor"
)

// The layout of weights in device memory; see src/weight.h.
const (
	tileRows = 16 // outputs of a tile
	tileCols = 32 // inputs of a tile, and of a scale
	pairCols = 2 * tileCols
	laneCols = 8 // inputs of an output that a lane owns
)

// layout is where the values of a weight lie.
type layout struct {
	format     kernels.Format // F32, F16, BF16, Q8 or Q4
	rows, cols int
}

func (l layout) tilesDown() int   { return (l.rows + tileRows - 1) / tileRows }
func (l layout) tilesAcross() int { return (l.cols + pairCols - 1) / pairCols * 2 }

// bytes is the size of the values.
func (l layout) bytes() int64 {
	tile := map[kernels.Format]int64{kernels.BF16: 1024, kernels.F16: 1024, kernels.F32: 2048, kernels.Q8: 512, kernels.Q4: 256}[l.format]
	return int64(l.tilesDown()) * int64(l.tilesAcross()) * tile
}

// scaleBytes is the size of the scales; 0 where there are none.
func (l layout) scaleBytes() int64 {
	if l.format != kernels.Q8 && l.format != kernels.Q4 {
		return 0
	}
	return int64(l.tilesDown()) * int64(l.tilesAcross()) * tileRows * 2
}

// at is the byte offset of value (n, k); of its 32-bit word for Q4.
func (l layout) at(n, k int) int64 {
	kt := k / tileCols
	tile := int64(n/tileRows)*int64(l.tilesAcross()) + int64(kt)
	half, lane, j := int64(n/8%2), int64(n%8*4+k%tileCols/laneCols), int64(k%laneCols)
	switch l.format {
	case kernels.F32:
		return ((((tile*2+half)*2+j/4)*32+lane)*4 + j%4) * 4
	case kernels.Q8:
		return (tile*32+lane)*16 + half*8 + j
	case kernels.Q4:
		return ((tile/2*32+lane)*4 + int64(kt%2)*2 + half) * 4
	}
	return (((tile*2+half)*32+lane)*8 + j) * 2
}

// scaleAt is the byte offset of the scale of value (n, k).
func (l layout) scaleAt(n, k int) int64 {
	tile := int64(n/tileRows)*int64(l.tilesAcross()) + int64(k/tileCols)
	return (tile*tileRows + int64(n%8*2+n/8%2)) * 2
}

// putRows lays out rows lo.. of a matrix whose values have the layout's own
// type: raw is row-major, little-endian, as long as the rows that it holds.
// dst has bytes() bytes and is zero where nothing was put.
func (l layout) putRows(dst, raw []byte, lo int) {
	size := 2
	if l.format == kernels.F32 {
		size = 4
	}
	row := l.cols * size
	for n := lo; len(raw) > 0; n++ {
		for k := 0; k < l.cols; k += tileCols {
			at, part := l.at(n, k), raw[k*size:min(k+tileCols, l.cols)*size]
			if size == 2 { // the four lanes of a row lie behind one another
				copy(dst[at:at+2*tileCols], part)
				continue
			}
			for lane := dst[at:]; len(part) > 0; lane = lane[16:] { // their first halves, then their second ones
				copy(lane[:16], part)
				if len(part) > 16 {
					copy(lane[512:528], part[16:])
				}
				part = part[min(32, len(part)):]
			}
		}
		raw = raw[row:]
	}
}

// quantize lays out one row of values in Q8 or Q4, in groups with an f16 scale.
// Values are rounded to the nearest multiple of it, −127..127 or −8..7 times.
func (l layout) quantize(dst, scales []byte, v []float32, n int) {
	lowest, highest, fit := float32(-127), float32(127), fitQ8
	if l.format == kernels.Q4 {
		lowest, highest, fit = -8, 7, fitQ4
	}
	le := binary.LittleEndian
	var q [tileCols]int32
	for g := 0; g < l.tilesAcross()*tileCols; g += tileCols {
		group := v[min(g, len(v)):min(g+tileCols, len(v))]
		h := tensor.F32ToF16(fit(group))
		le.PutUint16(scales[l.scaleAt(n, g):], h)
		q = [tileCols]int32{}
		if scale := tensor.F16ToF32(h); scale != 0 {
			inverse := 1 / scale
			for i, x := range group {
				q[i] = int32(min(max(nearest(x*inverse), lowest), highest))
			}
		}
		at := l.at(n, g)
		for lane := 0; lane < tileCols; lane += laneCols { // 16 bytes apart
			if l.format == kernels.Q8 {
				for j, x := range q[lane : lane+laneCols] {
					dst[at+int64(j)] = byte(int8(x))
				}
			} else {
				var word uint32
				for j, x := range q[lane : lane+laneCols] {
					word |= uint32(x+8) << (4*(j/2) + 16*(j%2))
				}
				le.PutUint32(dst[at:], word)
			}
			at += 16
		}
	}
}

// nearest rounds to the nearest integer, even ones from halves: for |x| < 2²²,
// where adding 3·2²² leaves no bits behind the point. Not numbers stay so.
func nearest(x float32) float32 {
	const shift = 3 << 22
	if x > 1<<21 || x < -1<<21 {
		return x
	}
	return float32(x+shift) - shift
}

// fitQ8 is the largest magnitude over 127; not a number if there is one that
// is not.
func fitQ8(group []float32) float32 {
	var top float32
	for _, x := range group {
		top = max(top, float32(math.Abs(float64(x))))
	}
	return top / 127
}

// fitQ4 is the scale of the least squared error, of some: for each that puts
// the largest magnitude at about −8, the best for the multiples that it gives.
func fitQ4(group []float32) float32 {
	var top, largest float32
	for _, x := range group {
		if a := float32(math.Abs(float64(x))); a > top || a != a {
			top, largest = a, x
		}
	}
	if top == 0 || top-top != 0 {
		return top // zero; or nothing that is not finite is hidden
	}
	var best, scale float32
	for _, at := range [...]float32{6.6, 7.3, 8, 8.7, 9.4} {
		inverse := -at / largest
		var xq, qq float32
		for _, x := range group {
			q := min(max(nearest(x*inverse), -8), 7)
			xq += x * q
			qq += q * q
		}
		if qq > 0 && xq/qq*xq > best {
			best, scale = xq/qq*xq, xq/qq
		}
	}
	return scale
}
