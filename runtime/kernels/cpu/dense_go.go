package cpu

import (
	"encoding/binary"
	"unsafe"
)

// denseGo packs and unpacks in Go.
var denseGo = denseSet{top: denseTopGo, pack: densePackGo, unpack: denseUnpackGo}

func denseTopGo(panel *byte, groups int) (top int) {
	for p := unsafe.Slice(panel, groups*densePanel); len(p) > 0; p = p[2:] {
		top = max(top, int(p[1]&0x7f))
	}
	return top
}

func densePackGo(a *denseArgs) {
	le := binary.LittleEndian
	panel := unsafe.Slice((*byte)(a.panel), a.groups*densePanel)
	dense := unsafe.Slice((*byte)(a.dense), a.groups*denseGroup)
	missed := unsafe.Slice((*uint32)(a.missed), a.groups*16)
	clear(missed)
	for ; len(panel) > 0; panel, dense, missed = panel[256:], dense[denseQuarter:], missed[4:] {
		clear(dense[:denseQuarter])
		for j := range 4 {
			for b := range 32 {
				v, at := le.Uint16(panel[2*denseWord(j, b):]), j%2*32+b
				high := int(v >> 8 & 0x7f)
				code := max(0, high-int(a.base))
				if code == 0 && high != int(a.zero) {
					missed[j] |= 1 << b
				}
				dense[64+j/2*64+at] = byte(v)
				dense[at] |= byte(code|int(v>>15)<<3) << (j / 2 * 4)
			}
		}
	}
}

func denseUnpackGo(a *denseArgs) {
	for p := range a.panels {
		head := unsafe.Slice((*byte)(unsafe.Add(a.head, p*a.ldd)), 16)
		dense := unsafe.Slice((*byte)(unsafe.Add(a.dense, p*a.ldd)), a.groups*denseGroup)
		panel := unsafe.Slice((*byte)(unsafe.Add(a.panel, p*a.ldp)), a.groups*densePanel)
		for ; len(panel) > 0; panel, dense = panel[256:], dense[denseQuarter:] {
			for j := range 4 {
				for b := range 32 {
					at := j%2*32 + b
					word := panel[2*denseWord(j, b):]
					word[0], word[1] = dense[64+j/2*64+at], head[dense[at]>>(j/2*4)&15]
				}
			}
		}
	}
}
