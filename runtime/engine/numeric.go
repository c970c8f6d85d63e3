package engine

import (
	"math"
	"slices"
)

// expTable[i] is 2^(i/64).
var expTable = func() (t [64]float64) {
	for i := range t {
		t[i] = math.Exp2(float64(i) / 64)
	}
	return t
}()

// weights sets dst[i] = e^((row[i] − top)·scale), for elements that are not
// above top, and returns the sum; len(dst) ≥ len(row). The relative error is
// below 1e-10; below e^−700 it is 0, and at top exactly 1, whatever the scale.
// It is several times faster than math.Exp, which matters over a vocabulary:
// e^x = 2^k · 2^(i/64) · e^r with |r| ≤ ln2/128.
func weights(dst []float64, row []float32, top float32, scale float64) (sum float64) {
	const (
		perLn2 = 64 / math.Ln2
		ln2hi  = 6.93147180369123816490e-01 / 64
		ln2lo  = 1.90821492927058770002e-10 / 64
		magic  = 3 << 51 // adding it rounds to an integer, in the low bits
	)
	dst = dst[:len(row)]
	for i, v := range row {
		w := 1.0
		if v != top {
			x := (float64(v) - float64(top)) * scale
			if !(x >= -700) {
				dst[i] = 0
				continue
			}
			t := x*perLn2 + magic
			n, f := math.Float64bits(t), t-magic // n's low bits are the integer's
			r := (x - f*ln2hi) - f*ln2lo
			w = (1 + r*(1+r*(1./2+r*(1./6+r*(1./24))))) * expTable[n&63] * math.Float64frombits((n>>6+1023)<<52)
		}
		dst[i] = w
		sum += w
	}
	return sum
}

// maximum is the largest element and its lowest index. ok is false when some
// element is NaN or +Inf, or the row is empty.
func maximum(row []float32) (m float32, at int, ok bool) {
	m, at = float32(math.Inf(-1)), -1
	sane := true
	for i, x := range row {
		if x > m {
			m, at = x, i
		}
		if x != x {
			sane = false
		}
	}
	return m, at, sane && !math.IsInf(float64(m), 1)
}

// logSumExp of a row whose maximum is m, finite.
func logSumExp(row []float32, m float32) float64 {
	var w [256]float64
	sum := 0.0
	for part := range slices.Chunk(row, len(w)) {
		sum += weights(w[:], part, m, 1)
	}
	return float64(m) + math.Log(sum)
}

// orderKey maps floats to integers of the same order (no NaN).
func orderKey(f float32) uint32 {
	b := math.Float32bits(f)
	if b == 1<<31 {
		b = 0 // −0 equals 0
	}
	return b ^ (uint32(int32(b)>>31) | 1<<31)
}

// keyFloat is the float of a key.
func keyFloat(k uint32) float32 {
	if k>>31 != 0 {
		return math.Float32frombits(k ^ 1<<31)
	}
	return math.Float32frombits(^k)
}
