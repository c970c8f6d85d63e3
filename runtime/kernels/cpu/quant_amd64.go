//go:build !purego

package cpu

var quantAVX2 = quantSet{acts16: acts16AVX2, acts8: acts8AVX2, fit: fitAVX2}

//go:noescape
func acts16AVX2(dst *byte, x *float32, groups int)

//go:noescape
func acts8AVX2(dst *byte, x *float32, groups int)

//go:noescape
func fitAVX2(a *fitArgs)
