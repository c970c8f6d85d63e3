//go:build cuda && cgo && linux

package sim

// #include <stddef.h>
// #include <stdint.h>
import "C"

import (
	"unsafe"

	"infer/runtime/internal/cuda/ptx"
)

// What queues work: copies, launches, streams, events, graphs.

//export simUpload
func simUpload(c C.uintptr_t, dst C.ulonglong, src unsafe.Pointer, n C.size_t, q C.uintptr_t, now C.int) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	return C.int(g.copy(place{addr: uint64(dst)}, place{host: bytesAt(src, n)}, int64(n), uint64(q), now != 0))
}

//export simDownload
func simDownload(c C.uintptr_t, dst unsafe.Pointer, src C.ulonglong, n C.size_t, q C.uintptr_t, now C.int) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	return C.int(g.copy(place{host: bytesAt(dst, n)}, place{addr: uint64(src)}, int64(n), uint64(q), now != 0))
}

//export simCopy
func simCopy(c C.uintptr_t, dst, src C.ulonglong, n C.size_t, q C.uintptr_t, now C.int) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	return C.int(g.copy(place{addr: uint64(dst)}, place{addr: uint64(src)}, int64(n), uint64(q), now != 0))
}

//export simCopyPeer
func simCopyPeer(c C.uintptr_t, dst C.ulonglong, to C.uintptr_t, src C.ulonglong, from C.uintptr_t, n C.size_t, q C.uintptr_t, now C.int) C.int {
	g, r := at(c)
	d, r2 := at(to)
	s, r3 := at(from)
	if r = max(r, r2, r3); r != Success {
		return C.int(r)
	}
	a, b := place{addr: uint64(dst)}, place{addr: uint64(src)}
	if a.device() != d.index || b.device() != s.index {
		return C.int(InvalidValue)
	}
	return C.int(g.copy(a, b, int64(n), uint64(q), now != 0))
}

//export simSet
func simSet(c C.uintptr_t, dst C.ulonglong, v C.uint, width C.int, n C.size_t, q C.uintptr_t) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	return C.int(g.Set(uint64(dst), uint32(v), int(width), int64(n), uint64(q), false))
}

// Flags of streams and events, by the driver's numbers.
const (
	streamNonBlocking  = 1
	eventDisableTiming = 2
)

//export simStreamCreate
func simStreamCreate(c C.uintptr_t, q *C.uintptr_t, flags C.uint) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	h, r := g.StreamCreate(flags&streamNonBlocking == 0)
	*q = C.uintptr_t(h)
	return C.int(r)
}

//export simStreamDestroy
func simStreamDestroy(c, q C.uintptr_t) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	return C.int(g.StreamDestroy(uint64(q)))
}

//export simStreamQuery
func simStreamQuery(c, q C.uintptr_t) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	return C.int(g.StreamQuery(uint64(q)))
}

//export simStreamSynchronize
func simStreamSynchronize(c, q C.uintptr_t) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	return C.int(g.StreamSynchronize(uint64(q)))
}

//export simStreamWaitEvent
func simStreamWaitEvent(c, q, e C.uintptr_t) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	return C.int(g.StreamWaitEvent(uint64(q), uint64(e)))
}

//export simEventCreate
func simEventCreate(c C.uintptr_t, e *C.uintptr_t, flags C.uint) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	h, r := g.EventCreate(flags&eventDisableTiming == 0)
	*e = C.uintptr_t(h)
	return C.int(r)
}

//export simEventDestroy
func simEventDestroy(c, e C.uintptr_t) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	return C.int(g.EventDestroy(uint64(e)))
}

//export simEventRecord
func simEventRecord(c, e, q C.uintptr_t) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	return C.int(g.EventRecord(uint64(e), uint64(q)))
}

//export simEventQuery
func simEventQuery(c, e C.uintptr_t) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	return C.int(g.EventQuery(uint64(e)))
}

//export simEventSynchronize
func simEventSynchronize(c, e C.uintptr_t) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	return C.int(g.EventSynchronize(uint64(e)))
}

//export simEventElapsed
func simEventElapsed(c C.uintptr_t, ms *C.float, a, b C.uintptr_t) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	d, r := g.EventElapsed(uint64(a), uint64(b))
	*ms = C.float(d.Seconds() * 1e3)
	return C.int(r)
}

//export simModuleLoad
func simModuleLoad(c C.uintptr_t, m *C.uintptr_t, text, log *C.char, size C.size_t) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	h, said, r := g.ModuleLoad([]byte(C.GoString(text)))
	*m = C.uintptr_t(h)
	if size > 0 {
		writeString(log, int(size), said)
	}
	return C.int(r)
}

//export simModuleUnload
func simModuleUnload(c, m C.uintptr_t) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	return C.int(g.ModuleUnload(uint64(m)))
}

//export simModuleFunction
func simModuleFunction(c C.uintptr_t, f *C.uintptr_t, m C.uintptr_t, name *C.char) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	h, r := g.ModuleFunction(uint64(m), C.GoString(name))
	*f = C.uintptr_t(h)
	return C.int(r)
}

//export simModuleVariable
func simModuleVariable(c C.uintptr_t, p *C.ulonglong, n *C.size_t, m C.uintptr_t, name *C.char) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	a, size, r := g.ModuleVariable(uint64(m), C.GoString(name))
	if p != nil {
		*p = C.ulonglong(a)
	}
	if n != nil {
		*n = C.size_t(size)
	}
	return C.int(r)
}

//export simFuncGetAttribute
func simFuncGetAttribute(c C.uintptr_t, v *C.int, a C.int, f C.uintptr_t) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	x, r := g.FuncAttribute(uint64(f), int(a))
	*v = C.int(x)
	return C.int(r)
}

//export simFuncSetAttribute
func simFuncSetAttribute(c, f C.uintptr_t, a, v C.int) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	return C.int(g.FuncSetAttribute(uint64(f), int(a), int(v)))
}

// simLaunch takes the parameters as a list of pointers to each, or packed.
//
//export simLaunch
func simLaunch(c, f C.uintptr_t, gx, gy, gz, bx, by, bz, shared C.uint, q C.uintptr_t, list *unsafe.Pointer, block unsafe.Pointer, n C.size_t) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	packed := bytesAt(block, n)
	if list != nil {
		params, r := g.Params(uint64(f))
		if r != Success {
			return C.int(r)
		}
		packed = gather(params, unsafe.Slice(list, len(params)))
	}
	return C.int(g.Launch(uint64(f), [3]uint32{uint32(gx), uint32(gy), uint32(gz)}, [3]uint32{uint32(bx), uint32(by), uint32(bz)},
		uint32(shared), uint64(q), packed))
}

// gather packs parameters that lie apart.
func gather(params []ptx.Param, list []unsafe.Pointer) []byte {
	var out []byte
	for i, p := range params {
		for len(out) < p.Offset {
			out = append(out, 0)
		}
		out = append(out, unsafe.Slice((*byte)(list[i]), p.Size)...)
	}
	return out
}

//export simBeginCapture
func simBeginCapture(c, q C.uintptr_t, mode C.int) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	return C.int(g.StreamBeginCapture(uint64(q), int(mode)))
}

//export simEndCapture
func simEndCapture(c, q C.uintptr_t, x *C.uintptr_t) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	h, r := g.StreamEndCapture(uint64(q))
	*x = C.uintptr_t(h)
	return C.int(r)
}

//export simInstantiate
func simInstantiate(c C.uintptr_t, x *C.uintptr_t, graph C.uintptr_t) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	h, r := g.GraphInstantiate(uint64(graph))
	*x = C.uintptr_t(h)
	return C.int(r)
}

//export simGraphLaunch
func simGraphLaunch(c, x, q C.uintptr_t) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	return C.int(g.GraphLaunch(uint64(x), uint64(q)))
}

//export simGraphDestroy
func simGraphDestroy(c, x C.uintptr_t) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	return C.int(g.GraphDestroy(uint64(x)))
}

//export simGraphExecDestroy
func simGraphExecDestroy(c, x C.uintptr_t) C.int {
	g, r := at(c)
	if r != Success {
		return C.int(r)
	}
	return C.int(g.GraphExecDestroy(uint64(x)))
}
