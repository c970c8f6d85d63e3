package cpu

import (
	"encoding/binary"
	"math"
	"unsafe"

	"infer/runtime/tensor"
)

// Weights of integers have scales for groups of 32 along k, and so have the
// activations that they are multiplied with. A panel holds 16 outputs, group
// after group; missing k of the last group are 0:
//
//	Q8   w = d · q             d float16, q −127..127
//	     group: [16] d, [16 pairs of k][16 outputs][2] q
//	Q4   w = u · (s·q − z)     u float32 for each output, s 0..63, z 0..1023, q 0..15
//	     panel: [16] u, then the groups
//	     group: [16] s | z<<6, [4 eights of k][16 outputs][4] q of k | q of k+4 <<4
//
// Activations, row after row, group after group:
//
//	for Q8   [32] int16 a, float32 c                  x = c · a
//	for Q4   [32] int8 a, float32 c, float32 −c · Σa
//
// 16 bits keep what an activation says; with 8 bits two products fit into one
// instruction, which suits weights of 4.
//
// The sums over a group are of integers, so exact; then the output gets one
// multiply-add a group, k ascending (two in Q4). The generated kernels know
// all this.
const (
	groupLen   = 32
	groupQ8    = lanes*2 + lanes*groupLen
	groupQ4    = lanes*2 + lanes*groupLen/2
	actQ8      = groupLen*2 + 4
	actQ4      = groupLen + 2*4
	unitBytes  = lanes * 4
	scaleBits  = 6
	maxScale   = 1<<scaleBits - 1
	maxOffset  = 1<<(16-scaleBits) - 1
	topQ8      = 127
	topQ4      = 15
	topAct16   = math.MaxInt16
	topAct8    = math.MaxInt8
	tinyToZero = 1e-30 // activations of a group below this are taken as 0
)

// quantSet is what quantises with one instruction set.
type quantSet struct {
	// acts16 and acts8 quantise whole groups of a row for Q8 and Q4. A group
	// with a NaN or an infinity gets the scale NaN.
	acts16, acts8 func(dst *byte, x *float32, groups int)
	// split and round make whole groups of a row of bfloat16, in two parts and
	// in one, see tiles.go and dots.go.
	split, round func(dst *byte, x *float32, groups int)
	// block loads 32 k of 8 outputs, which are ld elements apart, and finds
	// their lowest (at most 0), highest (at least 0) and sum.
	block func(a *fitArgs, src *float32, ld int)
	// block16 does the same with BF16, ld bytes apart.
	block16 func(a *fitArgs, src *byte, ld int)
	// triesQ8 makes and tries the candidates of Q8 (without sq), rangesQ4 makes
	// those of Q4, fit tries candidates on the block, bestQ8 and bestQ4 choose:
	// bestQ8 a scale, in put and as the first candidate.
	triesQ8, rangesQ4, fit, bestQ8, bestQ4 func(a *fitArgs)
	// whole makes the integers of the first candidate.
	whole func(a *fitArgs)
	// wholeQ4 makes whole units of step and low8, such that the mean stays (sum);
	// they are in put, and as the first candidate.
	wholeQ4 func(a *fitArgs)
	// putQ8 and putQ4 write the block's integers to their place in a group.
	putQ8, putQ4 func(dst *byte, q *[groupLen][8]int32)
}

var quantGo = quantSet{
	acts16: acts16Go, acts8: acts8Go, split: splitGo, round: roundGo, block: blockGo, rangesQ4: rangesQ4Go, fit: fitGo, whole: wholeGo,
	bestQ8: bestQ8Go, bestQ4: bestQ4Go, putQ8: putQ8Go, putQ4: putQ4Go,
	block16: block16Go, triesQ8: triesQ8Go, wholeQ4: wholeQ4Go,
}

func groupsOf(cols int) int { return (cols + groupLen - 1) / groupLen }

// quantRows makes groups of a product's activations, a task over rows.
type quantRows struct {
	set    *quantSet
	format int
	x      []float32
	cols   int
	dst    []byte
}

// actGroup is the bytes of a group of activations, of the formats that have
// groups.
var actGroup = [numFormats]int{fmtQ8: actQ8, fmtQ4: actQ4, fmtTile: actTile, fmtDots: actDots, fmtPairs: actPair, fmtDense: actDots}

// grouped tells whether a format's kernels take k in groups of 32.
func grouped(format int) bool { return actGroup[format] > 0 }

// actBytes is what rows of activations are apart.
func actBytes(format, cols int) int {
	n := groupsOf(cols) * actGroup[format]
	if (format == fmtTile || actGroup[format] == actDots) && n%badStride == 0 {
		n += actGroup[format]
	}
	return n
}

func (t *quantRows) run(w *worker, lo, hi int) {
	row := actBytes(t.format, t.cols)
	full := t.cols / groupLen
	do, size := t.set.acts16, actGroup[t.format]
	switch t.format {
	case fmtQ4:
		do = t.set.acts8
	case fmtTile:
		do = t.set.split
	case fmtDots, fmtDense:
		do = t.set.round
	}
	for r := lo; r < hi; r++ {
		x, dst := t.x[r*t.cols:][:t.cols], t.dst[r*row:][:row]
		if full > 0 {
			do(&dst[0], &x[0], full)
		}
		if rest := x[full*groupLen:]; len(rest) > 0 {
			w.group = [groupLen]float32{}
			copy(w.group[:], rest)
			do(&dst[full*size], &w.group[0], 1)
		}
	}
}

// actScale is the scale of a group of activations, and what makes integers of
// them.
func actScale(x []float32, top float32) (scale, inverse float32) {
	var bits uint32 // of the largest magnitude; those of a NaN are above all others
	for _, v := range x {
		bits = max(bits, math.Float32bits(v)&0x7fffffff)
	}
	largest := math.Float32frombits(bits)
	scale = largest * (1 / top)
	scale += scale - scale // an infinity becomes NaN
	if !(largest < tinyToZero) {
		inverse = top / largest
	}
	return scale, inverse
}

func acts16Go(dst *byte, x *float32, groups int) {
	d := unsafe.Slice(dst, groups*actQ8)
	for g := range groups {
		v, d := slice(x, groups*groupLen)[g*groupLen:][:groupLen], d[g*actQ8:][:actQ8]
		scale, inverse := actScale(v, topAct16)
		for i, f := range v {
			binary.LittleEndian.PutUint16(d[2*i:], uint16(int16(math.RoundToEven(float64(f*inverse)))))
		}
		binary.LittleEndian.PutUint32(d[2*groupLen:], math.Float32bits(scale))
	}
}

func acts8Go(dst *byte, x *float32, groups int) {
	d := unsafe.Slice(dst, groups*actQ4)
	for g := range groups {
		v, d := slice(x, groups*groupLen)[g*groupLen:][:groupLen], d[g*actQ4:][:actQ4]
		scale, inverse := actScale(v, topAct8)
		sum := 0
		for i, f := range v {
			q := int8(math.RoundToEven(float64(f * inverse)))
			sum += int(q)
			d[i] = byte(q)
		}
		binary.LittleEndian.PutUint32(d[groupLen:], math.Float32bits(scale))
		binary.LittleEndian.PutUint32(d[groupLen+4:], math.Float32bits(-scale*float32(sum)))
	}
}

// quantRow reads output n of a panel of integers back.
func (w *weight) quantRow(dst []float32, p []byte, n int) {
	le := binary.LittleEndian
	if w.format == fmtQ8 {
		for len(dst) > 0 {
			d := tensor.F16ToF32(le.Uint16(p[2*n:]))
			for k := range min(groupLen, len(dst)) {
				dst[k] = d * float32(int8(p[2*lanes+k/2*2*lanes+2*n+k%2]))
			}
			p, dst = p[groupQ8:], dst[min(groupLen, len(dst)):]
		}
		return
	}
	u := math.Float32frombits(le.Uint32(p[4*n:]))
	p = p[unitBytes:]
	for len(dst) > 0 {
		v := le.Uint16(p[2*n:])
		s, z := float32(v&maxScale), float32(v>>scaleBits)
		for k := range min(groupLen, len(dst)) {
			q := p[2*lanes+k/8*4*lanes+4*n+k%4] >> (k / 4 % 2 * 4) & topQ4
			dst[k] = u * (s*float32(q) - z)
		}
		p, dst = p[groupQ4:], dst[min(groupLen, len(dst)):]
	}
}
