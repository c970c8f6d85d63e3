//go:build !purego

package cpu

var denseAVX512BF16 = denseSet{top: denseTopAVX2, pack: densePackAVX2, unpack: denseUnpackAVX512BF16}

//go:noescape
func denseTopAVX2(panel *byte, groups int) int

//go:noescape
func densePackAVX2(a *denseArgs)
