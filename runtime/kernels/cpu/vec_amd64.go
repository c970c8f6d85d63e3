//go:build !purego

package cpu

var vecAVX2 = vecSet{
	sumSquares: sumSquaresAVX2, scaleMul: scaleMulAVX2, rotate: rotateAVX2, largest: largestAVX2,
	find: findAVX2, expSum: expSumAVX2, blend: blendAVX2, gate: gateAVX2, gateErf: gateErfAVX2,
}

// pause executes n PAUSE instructions.
func pause(n int)

//go:noescape
func sumSquaresAVX2(x *float32, n int) float32

//go:noescape
func scaleMulAVX2(dst, x, w *float32, s float32, n int)

//go:noescape
func rotateAVX2(a, b, cos, sin *float32, n int)

//go:noescape
func largestAVX2(x *float32, n int) float32

//go:noescape
func findAVX2(x *float32, n int, v float32) int

//go:noescape
func expSumAVX2(x *float32, n int, shift float32) float32

//go:noescape
func blendAVX2(acc, part *float32, a, b float32, n int)

//go:noescape
func gateAVX2(dst, x, up *float32, a, b float32, n int)

//go:noescape
func gateErfAVX2(dst, x, up *float32, n int)
