package cpu

import (
	"encoding/binary"
	"math"
	"unsafe"

	"infer/runtime/tensor"
)

// The kernels of quantised formats in Go; see quant.go for the layouts.

func mmGoQ8(a *mmArgs) {
	for r := range a.rows {
		dst := (*[lanes]float32)(unsafe.Add(a.dst, r*a.ldd))
		if a.add == 0 {
			*dst = [lanes]float32{}
		}
		x, w := unsafe.Add(a.x, r*a.ldx), a.w
		for range a.k {
			act := (*[groupLen]int16)(x)
			var sum [lanes]int32
			for k := 0; k < groupLen; k += 2 {
				x0, x1 := int32(act[k]), int32(act[k+1])
				q := (*[2 * lanes]int8)(unsafe.Add(w, 2*lanes+k*lanes))
				for n := range sum {
					sum[n] += x0*int32(q[2*n]) + x1*int32(q[2*n+1])
				}
			}
			c := *(*float32)(unsafe.Add(x, 2*groupLen))
			for n, d := range (*[lanes]uint16)(w) {
				dst[n] += float32(sum[n]) * (tensor.F16ToF32(d) * c)
			}
			x, w = unsafe.Add(x, actQ8), unsafe.Add(w, groupQ8)
		}
	}
}

func mmGoQ4(a *mmArgs) {
	unit := (*[lanes]float32)(a.unit)
	for r := range a.rows {
		dst := (*[lanes]float32)(unsafe.Add(a.dst, r*a.ldd))
		if a.add == 0 {
			*dst = [lanes]float32{}
		}
		x, w := unsafe.Add(a.x, r*a.ldx), a.w
		for range a.k {
			act := (*[groupLen]int8)(x)
			var sum [lanes]int32
			for k := 0; k < groupLen; k += 8 {
				q := (*[4 * lanes]uint8)(unsafe.Add(w, 2*lanes+k/2*lanes))
				for n := range sum {
					for i := range 4 {
						b := q[4*n+i]
						sum[n] += int32(act[k+i])*int32(b&topQ4) + int32(act[k+4+i])*int32(b>>4)
					}
				}
			}
			c := *(*[2]float32)(unsafe.Add(x, groupLen))
			for n, v := range (*[lanes]uint16)(w) {
				dst[n] += float32(sum[n]) * (float32(v&maxScale) * unit[n] * c[0])
				dst[n] += float32(v>>scaleBits) * unit[n] * c[1]
			}
			x, w = unsafe.Add(x, actQ4), unsafe.Add(w, groupQ4)
		}
	}
}

// blockGo is quantSet.block in Go.
func blockGo(a *fitArgs, src *float32, ld int) {
	a.lowest, a.highest, a.sum = [8]float32{}, [8]float32{}, [8]float32{}
	rows := slice(src, 7*ld+groupLen)
	for i := range 8 {
		for k, v := range rows[i*ld:][:groupLen] {
			a.w[k][i] = v
			a.lowest[i], a.highest[i] = min(a.lowest[i], v), max(a.highest[i], v)
			a.sum[i] += v
		}
	}
}

// putQ8Go is quantSet.putQ8 in Go.
func putQ8Go(dst *byte, q *[groupLen][8]int32) {
	d := unsafe.Slice(dst, lanes*(groupLen-1))
	for k := range q {
		for i, v := range q[k] {
			d[k/2*2*lanes+2*i+k%2] = byte(v)
		}
	}
}

// putQ4Go is quantSet.putQ4 in Go.
func putQ4Go(dst *byte, q *[groupLen][8]int32) {
	d := unsafe.Slice(dst, lanes*(groupLen/2-2))
	for k := range q {
		for i, v := range q[k] {
			b := &d[k/8*4*lanes+4*i+k%4]
			if k%8 < 4 {
				*b = byte(v)
			} else {
				*b |= byte(v) << 4
			}
		}
	}
}

// candidate is the integer of a weight.
func (a *fitArgs) candidate(c, i int, w float32) float32 {
	q := float32(math.RoundToEven(float64(w*a.inverse[c][i] + a.offset[c][i])))
	return min(max(q, a.low), a.high)
}

// fitGo is quantSet.fit in Go.
func fitGo(a *fitArgs) {
	for c := range a.n {
		var sq, sqq, swq [8]float32
		for k := range a.w {
			for i, w := range a.w[k] {
				q := a.candidate(c, i, w)
				sq[i] += q
				sqq[i] += q * q
				swq[i] += w * q
			}
		}
		a.sq[c], a.sqq[c], a.swq[c] = sq, sqq, swq
	}
}

// wholeGo is quantSet.whole in Go.
func wholeGo(a *fitArgs) {
	for k := range a.w {
		for i, w := range a.w[k] {
			a.q[k][i] = int32(a.candidate(0, i, w))
		}
	}
}

// rangesQ4Go is quantSet.rangesQ4 in Go.
func rangesQ4Go(a *fitArgs) {
	for c, cut := range cutsQ4 {
		for i := range 8 {
			low := a.lowest[i] * cut[0]
			inverse := reciprocal((a.highest[i]*cut[1] - low) / topQ4)
			a.inverse[c][i], a.offset[c][i] = inverse, -low*inverse
		}
	}
}

// bestQ8Go is quantSet.bestQ8 in Go.
func bestQ8Go(a *fitArgs) {
	for i := range 8 {
		var d, best float32
		for c := range a.n {
			// With the scale swq/sqq the error is Σw² less e.
			s := a.swq[c][i] / a.sqq[c][i]
			if e := a.swq[c][i] * s; e > best {
				best, d = e, s
			}
		}
		if a.sum[i]-a.sum[i] != 0 {
			d = float32(math.NaN())
		}
		a.put[i] = tensor.F32ToF16(d)
		a.inverse[0][i], a.offset[0][i] = reciprocal(tensor.F16ToF32(a.put[i])), 0
	}
}

// bestQ4Go is quantSet.bestQ4 in Go.
func bestQ4Go(a *fitArgs) {
	for i := range 8 {
		var best float32
		step, low, sum := (a.highest[i]-a.lowest[i])/topQ4, a.lowest[i], a.sum[i]
		for c := range a.n {
			sq, sqq, swq := a.sq[c][i], a.sqq[c][i], a.swq[c][i]
			// The error is Σw² less e: with 0 as the lowest value, or with the
			// one of least squares if that is below.
			d, l, e := swq/sqq, float32(0), swq*(swq/sqq)
			num := groupLen*swq - sq*sum
			free := num / (groupLen*sqq - sq*sq)
			if m := (sum - free*sq) / groupLen; m < 0 {
				d, l, e = free, m, (num*free+sum*sum)/groupLen
			}
			if e > best && d > 0 {
				best, step, low = e, d, l
			}
		}
		a.step[i], a.low8[i] = step+(sum-sum), low
	}
}

// block16Go is quantSet.block16 in Go.
func block16Go(a *fitArgs, src *byte, ld int) {
	a.lowest, a.highest, a.sum = [8]float32{}, [8]float32{}, [8]float32{}
	rows := unsafe.Slice(src, 7*ld+2*groupLen)
	for i := range 8 {
		row := rows[i*ld:][:2*groupLen]
		for k := range groupLen {
			v := tensor.BF16ToF32(binary.LittleEndian.Uint16(row[2*k:]))
			a.w[k][i] = v
			a.lowest[i], a.highest[i] = min(a.lowest[i], v), max(a.highest[i], v)
			a.sum[i] += v
		}
	}
}

// triesQ8Go is quantSet.triesQ8 in Go. The candidates make 127 of the largest
// weight, or something less.
func triesQ8Go(a *fitArgs) {
	a.offset = [maxFits][8]float32{}
	for i := range 8 {
		r := reciprocal(max(a.highest[i], -a.lowest[i]))
		for c := range triesQ8 {
			a.inverse[c][i] = min(r*(topQ8-float32(c)), math.MaxFloat32)
		}
	}
	fitGo(a)
}

// clampTo is the nearest whole number to v within bounds.
func clampTo(v float32, low, high int) int {
	return int(min(max(math.RoundToEven(float64(v)), float64(low)), float64(high)))
}

// wholeQ4Go is quantSet.wholeQ4 in Go.
func wholeQ4Go(a *fitArgs) {
	for i, u := range a.unit {
		a.put[i], a.inverse[0][i], a.offset[0][i] = 0, 0, 0
		inv := reciprocal(u)
		if inv == 0 || a.step[i] == 0 {
			continue
		}
		s := float32(clampTo(a.step[i]*inv, 1, maxScale))
		// What the rounded step adds to the group's mean, the offset takes away.
		mean := a.sum[i] * (1.0 / groupLen)
		z := float32(clampTo(float32((mean-a.low8[i])/a.step[i]*s)-float32(mean*inv), 0, maxOffset))
		a.put[i] = uint16(z)<<scaleBits | uint16(s)
		a.inverse[0][i], a.offset[0][i] = inv/s, z/s
	}
}
