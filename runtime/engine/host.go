package engine

import "unsafe"

// bytesOf views floats as the bytes that a device writes: little-endian, as
// every platform with a backend is.
func bytesOf(f []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(f))), 4*len(f))
}
