package engine

import "math"

// expTable[i] is 2^(i/64).
var expTable = func() (t [64]float64) {
	for i := range t {
		t[i] = math.Exp2(float64(i) / 64)
	}
	return t
}()

// expNeg is e^x for x ≤ 0 with a relative error below 1e-10; 0 below −700 and
// for NaN. It is several times faster than math.Exp, which matters over a
// vocabulary: e^x = 2^k · 2^(i/64) · e^r with |r| ≤ ln2/128.
func expNeg(x float64) float64 {
	if !(x >= -700) {
		return 0
	}
	const (
		perLn2 = 64 / math.Ln2
		ln2hi  = 6.93147180369123816490e-01 / 64
		ln2lo  = 1.90821492927058770002e-10 / 64
		magic  = 3 << 51 // adding it rounds to an integer, in the low bits
	)
	t := x*perLn2 + magic
	n, f := math.Float64bits(t), t-magic // n's low bits are the integer's
	r := (x - f*ln2hi) - f*ln2lo
	p := 1 + r*(1+r*(1./2+r*(1./6+r*(1./24))))
	return p * expTable[n&63] * math.Float64frombits((n>>6+1023)<<52)
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
	sum, top := 0.0, float64(m)
	for _, x := range row {
		sum += expNeg(float64(x) - top)
	}
	return top + math.Log(sum)
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
