//go:build !purego

package cpu

var packAVX2 = packSet{words: wordsAVX2, halves: halvesAVX2}

//go:noescape
func wordsAVX2(dst, src *byte, ld, n int)

//go:noescape
func halvesAVX2(dst, src *byte, ld, n int)
