package cpu

import (
	"encoding/binary"
	"unsafe"
)

// packGo is the transposition in Go, in blocks that the first cache holds.
var packGo = packSet{words: wordsGo, halves: halvesGo}

const packBlock = 64 // words of each row

func wordsGo(dst, src *byte, ld, n int) {
	le := binary.LittleEndian
	d, s := unsafe.Slice(dst, 4*lanes*n), unsafe.Slice(src, (lanes-1)*ld+4*n)
	for lo := 0; lo < n; lo += packBlock {
		words := min(packBlock, n-lo)
		for i := range lanes {
			row, to := s[i*ld+4*lo:][:4*words], d[4*(lo*lanes+i):]
			for len(row) >= 16 && len(to) >= 12*lanes+4 {
				a, b := le.Uint64(row), le.Uint64(row[8:])
				le.PutUint32(to, uint32(a))
				le.PutUint32(to[4*lanes:], uint32(a>>32))
				le.PutUint32(to[8*lanes:], uint32(b))
				le.PutUint32(to[12*lanes:], uint32(b>>32))
				row = row[16:]
				to = to[min(16*lanes, len(to)):]
			}
		}
	}
}

func halvesGo(dst, src *byte, ld, n int) {
	le := binary.LittleEndian
	d, s := unsafe.Slice(dst, 4*lanes*n), unsafe.Slice(src, (lanes-1)*ld+4*n)
	for lo := 0; lo < n; lo += packBlock {
		words := min(packBlock, n-lo)
		for i := range lanes {
			row, to := s[i*ld+4*lo:][:4*words], d[4*lo*lanes+2*i:]
			for len(row) >= 8 && len(to) >= 6*lanes+2 {
				a := le.Uint64(row)
				le.PutUint16(to, uint16(a))
				le.PutUint16(to[2*lanes:], uint16(a>>16))
				le.PutUint16(to[4*lanes:], uint16(a>>32))
				le.PutUint16(to[6*lanes:], uint16(a>>48))
				row = row[8:]
				to = to[min(8*lanes, len(to)):]
			}
		}
	}
}
