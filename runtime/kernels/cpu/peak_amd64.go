//go:build !purego

package cpu

var (
	unitsAVX2 = units{read: readAVX2, mul: [3]unit{
		{"AVX2 FMA of float32", 12 * 8, peakFMA256},
		{"AVX2 VPMADDWD of int16", 12 * 16, peakPMADDWD256},
		{"AVX2 VPMADDUBSW of int8", 12 * 32, peakPMADDUBSW256},
	}}
	unitsAVXVNNI = units{read: readAVX2, mul: [3]unit{
		{"AVX2 FMA of float32", 12 * 8, peakFMA256},
		{"AVX-VNNI VPDPWSSD of int16", 12 * 16, peakPDPWSSD256},
		{"AVX-VNNI VPDPBUSD of int8", 12 * 32, peakPDPBUSD256},
	}}
	unitsAVX512 = units{read: readAVX2, mul: [3]unit{
		{"AVX-512 FMA of float32", 12 * 16, peakFMA512},
		{"AVX-512 VPMADDWD of int16", 12 * 32, peakPMADDWD512},
		{"AVX-512 VPMADDUBSW of int8", 12 * 64, peakPMADDUBSW512},
	}}
	unitsAMX = units{read: readAVX2, mul: [3]unit{
		{"AMX TDPBF16PS of bfloat16, two for a product", 4 * amxRows * lanes * groupLen / 2, peakTDPBF16PS},
		unitsAVX512VNNI.mul[1], unitsAVX512VNNI.mul[2],
	}}
	unitsAVX512BF16 = units{read: readAVX2, mul: [3]unit{
		{"AVX-512 VDPBF16PS of bfloat16", 12 * 32, peakDPBF16PS512},
		unitsAVX512VNNI.mul[1], unitsAVX512VNNI.mul[2],
	}}
	unitsAVX512VNNI = units{read: readAVX2, mul: [3]unit{
		{"AVX-512 FMA of float32", 12 * 16, peakFMA512},
		{"AVX-512 VPDPWSSD of int16", 12 * 32, peakPDPWSSD512},
		{"AVX-512 VPDPBUSD of int8", 12 * 64, peakPDPBUSD512},
	}}
)

//go:noescape
func readAVX2(p *uint64, n int)

func peakFMA256(n int)
func peakFMA512(n int)
func peakPMADDWD256(n int)
func peakPMADDUBSW256(n int)
func peakPMADDWD512(n int)
func peakPMADDUBSW512(n int)
func peakPDPWSSD512(n int)
func peakPDPBUSD512(n int)
func peakPDPWSSD256(n int)
func peakPDPBUSD256(n int)
