//go:build cuda && cgo && linux

package sim

// #include <stddef.h>
// #include <stdint.h>
import "C"

import "unsafe"

// What entries.c calls: the driver's functions with C's types taken apart. The
// first argument of most is the thread's current context.

// Contexts are numbers that nothing else is likely to be.
const contextBase = 0x51300000

func contextOf(device int) C.uintptr_t { return C.uintptr_t(contextBase + (device+1)<<4) }

// at finds the device of a context.
func at(context C.uintptr_t) (*GPU, Result) {
	m := installed.Load()
	if m == nil {
		return nil, Deinitialized
	}
	d := int(context)>>4 - contextBase>>4 - 1
	if context == 0 || d < 0 || d >= len(m.gpus) {
		return nil, InvalidContext
	}
	return m.gpus[d], Success
}

func device(d C.int) (*GPU, Result) {
	m := installed.Load()
	switch {
	case m == nil:
		return nil, Deinitialized
	case d < 0 || int(d) >= len(m.gpus):
		return nil, InvalidDevice
	}
	return m.gpus[d], Success
}

//export simInit
func simInit(C.uint) C.int {
	if installed.Load() == nil {
		return C.int(Deinitialized)
	}
	return C.int(Success)
}

//export simDriverGetVersion
func simDriverGetVersion(v *C.int) C.int {
	m := installed.Load()
	if m == nil {
		return C.int(Deinitialized)
	}
	*v = C.int(m.DriverAPI())
	return C.int(Success)
}

//export simDeviceGetCount
func simDeviceGetCount(n *C.int) C.int {
	m := installed.Load()
	if m == nil {
		return C.int(Deinitialized)
	}
	*n = C.int(len(m.gpus))
	return C.int(Success)
}

//export simDeviceGet
func simDeviceGet(d *C.int, i C.int) C.int {
	_, r := device(i)
	*d = i
	return C.int(r)
}

//export simDeviceGetName
func simDeviceGetName(s *C.char, n, d C.int) C.int {
	g, r := device(d)
	if r == Success && n > 0 {
		writeString(s, int(n), g.Name())
	}
	return C.int(r)
}

// writeString puts a zero-terminated string into n bytes.
func writeString(s *C.char, n int, text string) {
	b := unsafe.Slice((*byte)(unsafe.Pointer(s)), n)
	b[copy(b[:n-1], text)] = 0
}

//export simDeviceGetUuid
func simDeviceGetUuid(u unsafe.Pointer, d C.int) C.int {
	g, r := device(d)
	if r == Success {
		id, _ := parseUUID(g.UUID())
		copy(unsafe.Slice((*byte)(u), len(id)), id[:])
	}
	return C.int(r)
}

//export simDeviceTotalMem
func simDeviceTotalMem(n *C.size_t, d C.int) C.int {
	g, r := device(d)
	if r == Success {
		*n = C.size_t(g.total)
	}
	return C.int(r)
}

//export simDeviceGetAttribute
func simDeviceGetAttribute(v *C.int, a, d C.int) C.int {
	g, r := device(d)
	if r != Success {
		return C.int(r)
	}
	x, r := g.Attribute(int(a))
	*v = C.int(x)
	return C.int(r)
}

//export simDeviceCanAccessPeer
func simDeviceCanAccessPeer(can *C.int, d, peer C.int) C.int {
	g, r := device(d)
	if r != Success {
		return C.int(r)
	}
	if _, r := device(peer); r != Success {
		return C.int(r)
	}
	*can = 0
	if g.m.CanAccessPeer(int(d), int(peer)) {
		*can = 1
	}
	return C.int(Success)
}

//export simDeviceGetP2PAttribute
func simDeviceGetP2PAttribute(v *C.int, a, from, to C.int) C.int {
	g, r := device(from)
	if r != Success {
		return C.int(r)
	}
	x, r := g.m.P2PAttribute(int(a), int(from), int(to))
	*v = C.int(x)
	return C.int(r)
}

//export simPrimaryRetain
func simPrimaryRetain(c *C.uintptr_t, d C.int) C.int {
	g, r := device(d)
	if r != Success {
		return C.int(r)
	}
	*c = contextOf(int(d))
	return C.int(g.Retain())
}

//export simPrimaryRelease
func simPrimaryRelease(d C.int) C.int {
	g, r := device(d)
	if r != Success {
		return C.int(r)
	}
	return C.int(g.Release())
}

//export simPrimaryReset
func simPrimaryReset(d C.int) C.int {
	g, r := device(d)
	if r != Success {
		return C.int(r)
	}
	return C.int(g.Reset())
}

//export simContextCheck
func simContextCheck(c C.uintptr_t) C.int {
	if c == 0 {
		return C.int(Success)
	}
	_, r := at(c)
	return C.int(r)
}

//export simCtxSynchronize
func simCtxSynchronize(c C.uintptr_t) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	return C.int(g.Synchronize())
}

//export simEnablePeer
func simEnablePeer(c, peer C.uintptr_t) C.int {
	g, r := at(c)
	p, r2 := at(peer)
	if r != Success || r2 != Success {
		return C.int(max(r, r2))
	}
	return C.int(g.EnablePeer(p.index))
}

//export simDisablePeer
func simDisablePeer(c, peer C.uintptr_t) C.int {
	g, r := at(c)
	p, r2 := at(peer)
	if r != Success || r2 != Success {
		return C.int(max(r, r2))
	}
	return C.int(g.DisablePeer(p.index))
}

//export simMemGetInfo
func simMemGetInfo(c C.uintptr_t, free, total *C.size_t) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	f, t, r := g.MemInfo()
	*free, *total = C.size_t(f), C.size_t(t)
	return C.int(r)
}

//export simMemAlloc
func simMemAlloc(c C.uintptr_t, p *C.ulonglong, n C.size_t) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	a, r := g.MemAlloc(int64(n))
	*p = C.ulonglong(a)
	return C.int(r)
}

//export simMemFree
func simMemFree(c C.uintptr_t, p C.ulonglong) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	return C.int(g.MemFree(uint64(p)))
}

//export simHostAlloc
func simHostAlloc(c C.uintptr_t, p *unsafe.Pointer, n C.size_t) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	b, r := g.HostAlloc(int64(n))
	*p = unsafe.Pointer(unsafe.SliceData(b)) // p is a Go variable: see package cuda
	return C.int(r)
}

//export simHostFree
func simHostFree(c C.uintptr_t, p unsafe.Pointer) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	return C.int(g.HostFree(uint64(uintptr(p))))
}

//export simHostRegister
func simHostRegister(c C.uintptr_t, p unsafe.Pointer, n C.size_t) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	return C.int(g.HostRegister(bytesAt(p, n)))
}

//export simHostUnregister
func simHostUnregister(c C.uintptr_t, p unsafe.Pointer) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	return C.int(g.HostUnregister(uint64(uintptr(p))))
}

func bytesAt(p unsafe.Pointer, n C.size_t) []byte { return unsafe.Slice((*byte)(p), n) }
