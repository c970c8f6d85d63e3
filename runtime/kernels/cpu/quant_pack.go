package cpu

import (
	"encoding/binary"
	"math"

	"infer/runtime/tensor"
)

// maxFits is the most that is tried for a group.
const maxFits = 4

// fitArgs are a block of weights, 32 k of 8 outputs, and what is tried on it:
// for each candidate and output, over the block's k,
//
//	q = round(w · inverse + offset), within low..high
//	sq, sqq, swq = Σq, Σq², Σw·q
//
// The assembly knows the offsets.
type fitArgs struct {
	w         [groupLen][8]float32 // 0
	q         [groupLen][8]int32   // 1024: of the first candidate
	low, high float32              // 2048
	n         int                  // 2056: candidates, 1..maxFits
	inverse   [maxFits][8]float32  // 2064
	offset    [maxFits][8]float32  // 2192
	sq        [maxFits][8]float32  // 2320
	sqq       [maxFits][8]float32  // 2448
	swq       [maxFits][8]float32  // 2576
	lowest    [8]float32           // 2704
	highest   [8]float32           // 2736
	sum       [8]float32           // 2768; not finite when some weight is not
	// Q4: the best candidate, refined: its step and its lowest value; NaN where
	// some weight is not finite. And the unit of whole steps and offsets.
	step [8]float32 // 2800
	low8 [8]float32 // 2832
	unit [8]float32 // 2864
	// Each output's scale, or step and offset, as a group has it; inverse[0] and
	// offset[0] are of it.
	put [8]uint16 // 2896
}

// triesQ8 is how many scales of Q8 are tried, triesQ4 how many ranges of Q4.
// Where weights are normally distributed the largest weight of a group is best
// near 127 in Q8: four scales have an error of 0.49 %, 57 from 127 to 85 have
// 0.48 %. The three ranges of cutsQ4 have 7.07 %, a fourth would make it 7.04 %,
// and the best of 81 has 6.94 %.
const (
	triesQ8 = 4
	triesQ4 = 3
)

// cutsQ4 are the shares of a range's two ends that are tried.
var cutsQ4 = [triesQ4][2]float32{{1, 1}, {1, 0.94}, {0.94, 1}}

// quantizer makes panels of Q8 or Q4 out of 16 rows.
type quantizer struct {
	fitArgs
	set  *quantSet
	raw  []byte    // the rows as they are stored
	vals []float32 // [16][ld]; from column wide on
	wide int       // columns before it are taken from raw, as BF16
	cols int
	ld   int // cols and zeros up to whole groups
	// Q4: each group's step and lowest value before they are rounded.
	steps, lows []float32 // [groups][16]
}

// reset makes q fit for the rows of a matrix.
func (q *quantizer) reset(set *quantSet, format, cols int) {
	q.set, q.cols, q.ld = set, cols, groupsOf(cols)*groupLen
	q.vals = grow(&q.vals, lanes*q.ld)
	if format == fmtQ4 {
		q.steps = grow(&q.steps, lanes*q.ld/groupLen)
		q.lows = grow(&q.lows, lanes*q.ld/groupLen)
	}
}

// panel fills a panel from 16 rows as they are stored.
func (q *quantizer) panel(panel, raw []byte, d tensor.DType, format int) error {
	size := d.Bits() / 8
	row := q.cols * size
	q.raw, q.wide = raw, 0
	if d == tensor.BF16 {
		q.wide = q.cols / groupLen * groupLen
	}
	for n := range lanes {
		vals := q.vals[n*q.ld:][:q.ld]
		if err := tensor.ToF32(vals[q.wide:q.cols], raw[n*row+q.wide*size:(n+1)*row], d); err != nil {
			return err
		}
		clear(vals[q.cols:])
	}
	if format == fmtQ4 {
		q.panelQ4(panel)
	} else {
		q.panelQ8(panel)
	}
	return nil
}

// load puts group g of outputs n..n+8 into the block.
func (q *quantizer) load(g, n int) {
	if g*groupLen < q.wide {
		q.set.block16(&q.fitArgs, &q.raw[2*(n*q.cols+g*groupLen)], 2*q.cols)
		return
	}
	q.set.block(&q.fitArgs, &q.vals[n*q.ld+g*groupLen], q.ld)
}

// panelQ8 fills a panel from vals. Of each group's scale the one with the
// least squared error is taken, among those that make 127 of the largest
// weight, or a little less, refined by least squares.
func (q *quantizer) panelQ8(panel []byte) {
	for g := range q.ld / groupLen {
		group := panel[g*groupQ8:][:groupQ8]
		for n := 0; n < lanes; n += 8 {
			q.load(g, n)
			q.low, q.high, q.n = -topQ8, topQ8, triesQ8
			q.set.triesQ8(&q.fitArgs)
			q.set.bestQ8(&q.fitArgs)
			q.set.whole(&q.fitArgs)
			for i, d := range q.put {
				binary.LittleEndian.PutUint16(group[2*(n+i):], d)
			}
			q.set.putQ8(&group[2*lanes+2*n], &q.q)
		}
	}
}

// reciprocal of a scale; 0 where there is none, which makes all integers 0.
func reciprocal(d float32) float32 {
	if r := 1 / d; r > 0 && r <= math.MaxFloat32 {
		return r
	}
	return 0
}

// panelQ4 fills a panel from vals: a step and a lowest value (at most 0) are
// fitted to each group; each output's unit is such that its largest step is 63
// units; then steps and lowest values become whole units.
func (q *quantizer) panelQ4(panel []byte) {
	le := binary.LittleEndian
	groups := q.ld / groupLen
	q.low, q.high = 0, topQ4
	for g := range groups {
		for n := 0; n < lanes; n += 8 {
			q.load(g, n)
			q.fitQ4(q.steps[g*lanes+n:][:8], q.lows[g*lanes+n:][:8])
		}
	}
	var unit [lanes]float32
	for i, d := range q.steps {
		unit[i%lanes] = max(unit[i%lanes], d/maxScale)
	}
	for n, u := range unit {
		le.PutUint32(panel[4*n:], math.Float32bits(u))
	}
	for g := range groups {
		group := panel[unitBytes+g*groupQ4:][:groupQ4]
		for n := 0; n < lanes; n += 8 {
			q.load(g, n)
			at := g*lanes + n
			copy(q.unit[:], unit[n:])
			copy(q.step[:], q.steps[at:])
			copy(q.low8[:], q.lows[at:])
			q.set.wholeQ4(&q.fitArgs)
			q.set.whole(&q.fitArgs)
			for i, v := range q.put {
				le.PutUint16(group[2*(n+i):], v)
			}
			q.set.putQ4(&group[2*lanes+4*n], &q.q)
		}
	}
}

// fitQ4 finds the steps and lowest values of least squared error for a block,
// among some that clip a part of the range, refined by least squares.
func (q *quantizer) fitQ4(steps, lows []float32) {
	q.n = triesQ4
	q.set.rangesQ4(&q.fitArgs)
	q.set.fit(&q.fitArgs)
	q.set.bestQ4(&q.fitArgs)
	copy(steps, q.step[:])
	copy(lows, q.low8[:])
}
