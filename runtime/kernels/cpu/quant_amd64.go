//go:build !purego

package cpu

var quantAVX2 = quantSet{
	acts16: acts16AVX2, acts8: acts8AVX2, split: splitAVX2, round: roundGo, block: blockAVX2, rangesQ4: rangesQ4AVX2, fit: fitAVX2, whole: wholeAVX2,
	bestQ8: bestQ8AVX2, bestQ4: bestQ4AVX2, putQ8: putQ8AVX2, putQ4: putQ4AVX2,
	block16: block16AVX2, triesQ8: triesQ8AVX2, wholeQ4: wholeQ4AVX2,
}

var quantAVX512BF16 = func() quantSet {
	s := quantAVX2
	s.round = roundAVX512BF16
	return s
}()

//go:noescape
func acts16AVX2(dst *byte, x *float32, groups int)

//go:noescape
func splitAVX2(dst *byte, x *float32, groups int)

//go:noescape
func acts8AVX2(dst *byte, x *float32, groups int)

//go:noescape
func fitAVX2(a *fitArgs)

//go:noescape
func wholeAVX2(a *fitArgs)

//go:noescape
func rangesQ4AVX2(a *fitArgs)

//go:noescape
func bestQ8AVX2(a *fitArgs)

//go:noescape
func bestQ4AVX2(a *fitArgs)

//go:noescape
func blockAVX2(a *fitArgs, src *float32, ld int)

//go:noescape
func block16AVX2(a *fitArgs, src *byte, ld int)

//go:noescape
func triesQ8AVX2(a *fitArgs)

//go:noescape
func wholeQ4AVX2(a *fitArgs)

//go:noescape
func putQ8AVX2(dst *byte, q *[groupLen][8]int32)

//go:noescape
func putQ4AVX2(dst *byte, q *[groupLen][8]int32)
