//go:build !purego

package cpu

import "github.com/klauspost/cpuid/v2"

// paths lists what this processor and system can do, the best first.
func paths() []path {
	var ps []path
	if cpuid.CPU.Supports(cpuid.AVX2, cpuid.FMA3, cpuid.F16C) {
		if cpuid.CPU.Supports(cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL) {
			if cpuid.CPU.Supports(cpuid.AVX512VNNI) {
				vnni := path{name: "avx512vnni", features: "avx512f+vnni+fma+f16c", mm: mmAVX512VNNI(), vec: &vecAVX2, quant: &quantAVX2, pack: &packAVX2, units: &unitsAVX512VNNI}
				if cpuid.CPU.Supports(cpuid.AMXTILE, cpuid.AMXBF16) && allowTiles() == nil {
					amx := vnni
					amx.name, amx.features, amx.mm, amx.units, amx.exact = "amx", "amx+"+vnni.features, mmAMX(), &unitsAMX, &vnni
					ps = append(ps, amx)
				}
				if cpuid.CPU.Supports(cpuid.AVX512BF16) {
					bf16 := vnni
					bf16.name, bf16.features, bf16.mm, bf16.quant, bf16.dense, bf16.units, bf16.exact = "avx512bf16", "avx512f+bf16+vnni+fma+f16c", mmAVX512BF16(), &quantAVX512BF16, &denseAVX512BF16, &unitsAVX512BF16, &vnni
					ps = append(ps, bf16)
				}
				ps = append(ps, vnni)
			}
			ps = append(ps, path{name: "avx512", features: "avx512f+fma+f16c", mm: mmAVX512(), vec: &vecAVX2, quant: &quantAVX2, pack: &packAVX2, units: &unitsAVX512})
		}
		if cpuid.CPU.Supports(cpuid.AVXVNNI) {
			ps = append(ps, path{name: "avxvnni", features: "avx2+vnni+fma+f16c", mm: mmAVXVNNI(), vec: &vecAVX2, quant: &quantAVX2, pack: &packAVX2, units: &unitsAVXVNNI})
		}
		ps = append(ps, path{name: "avx2", features: "avx2+fma+f16c", mm: mmAVX2(), vec: &vecAVX2, quant: &quantAVX2, pack: &packAVX2, units: &unitsAVX2})
	}
	return append(ps, purego)
}
