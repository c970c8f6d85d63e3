//go:build cuda && cgo && linux

package cuda

// #include "shim.h"
import "C"

import (
	"fmt"
	"strings"
	"time"
	"unsafe"

	"gorgonia.org/cu"
)

// contextHandle is a device's primary context.
type contextHandle = cu.CUContext

type threadState struct{ device cu.Device }

// begin makes the primary context current on the calling thread.
func (t *Thread) begin(ordinal int) (err error) {
	if t.device, err = cu.GetDevice(ordinal); err != nil {
		return t.wrap(err, "cuDeviceGet", fmt.Sprint(ordinal))
	}
	if t.dev.context, err = t.device.RetainPrimaryCtx(); err != nil {
		return t.wrap(err, "cuDevicePrimaryCtxRetain", "")
	}
	if err := cu.SetCurrentContext(t.dev.context); err != nil {
		return t.wrap(err, "cuCtxSetCurrent", "")
	}
	return nil
}

// end gives the context back. A context that is gone is given back too, and is
// no error here: it was one where it broke.
func (t *Thread) end() error {
	err := t.wrap(t.device.ReleasePrimaryCtx(), "cuDevicePrimaryCtxRelease", "")
	if e, ok := err.(*Error); ok && e.Sticky() {
		return nil
	}
	return err
}

func (t *Thread) wrap(err error, call, detail string) error {
	if err == nil {
		return nil
	}
	return wrap(err, call, detail, t.dev.index)
}

func (t *Thread) check(code C.CUresult, call, detail string) error {
	if code == 0 {
		return nil
	}
	return newError(int(code), call, detail, t.dev.index)
}

// The handles of gorgonia.org/cu are structs of one pointer; ours are numbers.
func cuStream(s Stream) cu.Stream       { return *(*cu.Stream)(unsafe.Pointer(&s)) }
func cuEvent(e Event) cu.Event          { return *(*cu.Event)(unsafe.Pointer(&e)) }
func cuModule(m Module) cu.Module       { return *(*cu.Module)(unsafe.Pointer(&m)) }
func cuFunction(f Function) cu.Function { return *(*cu.Function)(unsafe.Pointer(&f)) }
func cStream(s Stream) C.CUstream       { return *(*C.CUstream)(unsafe.Pointer(&s)) }

func bytesDetail(n int64) string { return fmt.Sprintf("%d bytes", n) }

// Alloc gets n > 0 bytes of device memory, aligned to at least 256, contents
// undefined. Code 2 when there is not as much.
func (t *Thread) Alloc(n int64) (Ptr, error) {
	p, err := cu.MemAlloc(n)
	if err != nil {
		return 0, t.wrap(err, "cuMemAlloc", bytesDetail(n))
	}
	return Ptr(p), nil
}

// Free gives memory of Alloc back. The driver waits for work that is queued on
// the device.
func (t *Thread) Free(p Ptr) error {
	return t.wrap(cu.MemFree(cu.DevicePtr(p)), "cuMemFree", "")
}

// MemInfo is the device's free and total memory in bytes.
func (t *Thread) MemInfo() (free, total int64, err error) {
	free, total, err = cu.MemInfo()
	return free, total, t.wrap(err, "cuMemGetInfo", "")
}

// AllocHost gets n > 0 bytes of pinned host memory, for all devices.
func (t *Thread) AllocHost(n int64) ([]byte, error) {
	var p unsafe.Pointer
	if err := t.check(C.cuMemHostAlloc(&p, C.size_t(n), C.CU_MEMHOSTALLOC_PORTABLE), "cuMemHostAlloc", bytesDetail(n)); err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), n), nil
}

// FreeHost gives memory of AllocHost back; b is the very slice it returned.
func (t *Thread) FreeHost(b []byte) error {
	return t.wrap(cu.MemFreeHost(unsafe.Pointer(unsafe.SliceData(b))), "cuMemFreeHost", "")
}

// RegisterHost pins memory that is there already, for all devices: mapped
// memory, not Go's own, and it must stay mapped until UnregisterHost.
func (t *Thread) RegisterHost(b []byte) error {
	return t.check(C.cuMemHostRegister(unsafe.Pointer(unsafe.SliceData(b)), C.size_t(len(b)), C.CU_MEMHOSTREGISTER_PORTABLE),
		"cuMemHostRegister", bytesDetail(int64(len(b))))
}

// UnregisterHost undoes RegisterHost.
func (t *Thread) UnregisterHost(b []byte) error {
	return t.check(C.cuMemHostUnregister(unsafe.Pointer(unsafe.SliceData(b))), "cuMemHostUnregister", "")
}

// NewStream makes a queue that does not wait for the default stream.
func (t *Thread) NewStream() (Stream, error) {
	s, err := cu.MakeStream(cu.NonBlocking)
	if err != nil {
		return 0, t.wrap(err, "cuStreamCreate", "")
	}
	return *(*Stream)(unsafe.Pointer(&s)), nil
}

// DestroyStream gives a stream back once its work is done; it does not wait.
func (t *Thread) DestroyStream(s Stream) error {
	c := cuStream(s)
	return t.wrap(c.Destroy(), "cuStreamDestroy", "")
}

// Query says whether all work queued on s is done. It does not wait.
func (t *Thread) Query(s Stream) (done bool, err error) {
	switch code := C.cuStreamQuery(cStream(s)); code {
	case C.CUDA_SUCCESS:
		return true, nil
	case C.CUDA_ERROR_NOT_READY:
		return false, nil
	default:
		return false, t.check(code, "cuStreamQuery", "")
	}
}

// Synchronize waits in the driver, for as long as it takes: Query is for those
// who have a deadline.
func (t *Thread) Synchronize(s Stream) error {
	return t.wrap(cuStream(s).Synchronize(), "cuStreamSynchronize", "")
}

// NewEvent makes a mark; only one with timing can be asked by Elapsed.
func (t *Thread) NewEvent(timing bool) (Event, error) {
	flags := cu.DisableTiming
	if timing {
		flags = cu.DefaultEvent
	}
	e, err := cu.MakeEvent(flags)
	if err != nil {
		return 0, t.wrap(err, "cuEventCreate", "")
	}
	return *(*Event)(unsafe.Pointer(&e)), nil
}

// DestroyEvent gives an event back.
func (t *Thread) DestroyEvent(e Event) error {
	c := cuEvent(e)
	return t.wrap(cu.DestroyEvent(&c), "cuEventDestroy", "")
}

// Record puts the mark behind the work queued on s, a stream of this device.
func (t *Thread) Record(e Event, s Stream) error {
	return t.wrap(cuEvent(e).Record(cuStream(s)), "cuEventRecord", "")
}

// QueryEvent says whether the last Record has been passed; true when there was
// none.
func (t *Thread) QueryEvent(e Event) (done bool, err error) {
	switch code := C.cuEventQuery(*(*C.CUevent)(unsafe.Pointer(&e))); code {
	case C.CUDA_SUCCESS:
		return true, nil
	case C.CUDA_ERROR_NOT_READY:
		return false, nil
	default:
		return false, t.check(code, "cuEventQuery", "")
	}
}

// WaitEvent holds later work of s until the mark, as recorded last at this
// moment on any device, has been passed. A mark never recorded holds nothing.
func (t *Thread) WaitEvent(s Stream, e Event) error {
	return t.wrap(cuStream(s).Wait(cuEvent(e), 0), "cuStreamWaitEvent", "")
}

// Elapsed is the device's time between two marks that have been passed.
func (t *Thread) Elapsed(a, b Event) (time.Duration, error) {
	ms, err := cuEvent(a).Elapsed(cuEvent(b))
	if err != nil {
		return 0, t.wrap(err, "cuEventElapsedTime", "")
	}
	return time.Duration(ms * float64(time.Millisecond)), nil
}

// CopyToDevice queues host → device. Pinned src is read when the copy runs;
// other memory has been read when this returns.
func (t *Thread) CopyToDevice(dst Ptr, src []byte, s Stream) error {
	if len(src) == 0 {
		return nil
	}
	if err := cu.MemcpyHtoDAsync(cu.DevicePtr(dst), unsafe.Pointer(&src[0]), int64(len(src)), cuStream(s)); err != nil {
		return t.wrap(err, "cuMemcpyHtoDAsync", bytesDetail(int64(len(src))))
	}
	return nil
}

// CopyToHost queues device → host. Pinned dst is written when the copy runs;
// other memory has been written when this returns.
func (t *Thread) CopyToHost(dst []byte, src Ptr, s Stream) error {
	if len(dst) == 0 {
		return nil
	}
	if err := cu.MemcpyDtoHAsync(unsafe.Pointer(&dst[0]), cu.DevicePtr(src), int64(len(dst)), cuStream(s)); err != nil {
		return t.wrap(err, "cuMemcpyDtoHAsync", bytesDetail(int64(len(dst))))
	}
	return nil
}

// Copy queues a copy within the device.
func (t *Thread) Copy(dst, src Ptr, n int64, s Stream) error {
	if n == 0 {
		return nil
	}
	if err := cu.MemcpyDtoDAsync(cu.DevicePtr(dst), cu.DevicePtr(src), n, cuStream(s)); err != nil {
		return t.wrap(err, "cuMemcpyDtoDAsync", bytesDetail(n))
	}
	return nil
}

// CopyPeer queues a copy from this device to another, on a stream of this one:
// directly after EnablePeer, else by the driver's own way through the host. It
// does not prove that the bytes arrive.
func (t *Thread) CopyPeer(dst Ptr, dstDev *Device, src Ptr, n int64, s Stream) error {
	if n == 0 {
		return nil
	}
	if err := cu.MemcpyPeerAsync(cu.DevicePtr(dst), dstDev.context, cu.DevicePtr(src), t.dev.context, n, cuStream(s)); err != nil {
		return t.wrap(err, "cuMemcpyPeerAsync", fmt.Sprintf("%d bytes to cuda:%d", n, dstDev.index))
	}
	return nil
}

// EnablePeer lets this device reach the memory of another. Enabling it again
// is no error.
func (t *Thread) EnablePeer(to *Device) error {
	err := t.wrap(to.context.EnablePeerAccess(0), "cuCtxEnablePeerAccess", fmt.Sprintf("to cuda:%d", to.index))
	if Code(err) == C.CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED {
		return nil
	}
	return err
}

// Set8 queues n bytes of v at p.
func (t *Thread) Set8(p Ptr, v byte, n int64, s Stream) error {
	if n == 0 {
		return nil
	}
	if err := cu.MemsetD8Async(cu.DevicePtr(p), v, n, cuStream(s)); err != nil {
		return t.wrap(err, "cuMemsetD8Async", bytesDetail(n))
	}
	return nil
}

// LoadModule compiles PTX text for the device; what the compiler has to say is
// in the error.
func (t *Thread) LoadModule(ptx []byte) (Module, error) {
	const logSize = 16 << 10
	text := C.malloc(C.size_t(len(ptx) + 1))
	defer C.free(text)
	copy(unsafe.Slice((*byte)(text), len(ptx)+1), ptx)
	unsafe.Slice((*byte)(text), len(ptx)+1)[len(ptx)] = 0
	log := (*C.char)(C.malloc(logSize))
	defer C.free(unsafe.Pointer(log))
	var m C.CUmodule
	code := C.doorLoadModule(&m, text, log, logSize)
	if code != 0 {
		said := strings.Join(strings.Fields(C.GoString(log)), " ")
		return 0, t.check(code, "cuModuleLoadDataEx", said)
	}
	return *(*Module)(unsafe.Pointer(&m)), nil
}

// UnloadModule gives a module and its functions back.
func (t *Thread) UnloadModule(m Module) error {
	return t.wrap(cuModule(m).Unload(), "cuModuleUnload", "")
}

// Function finds a kernel by the name it has in the PTX.
func (t *Thread) Function(m Module, name string) (Function, error) {
	f, err := cuModule(m).Function(name)
	if err != nil {
		return 0, t.wrap(err, "cuModuleGetFunction", name)
	}
	return *(*Function)(unsafe.Pointer(&f)), nil
}

// SetMaxDynamicShared allows launches of f up to n bytes of dynamic shared
// memory; without it the limit is 48 KiB.
func (t *Thread) SetMaxDynamicShared(f Function, n int) error {
	return t.check(C.cuFuncSetAttribute(*(*C.CUfunction)(unsafe.Pointer(&f)), C.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, C.int(n)),
		"cuFuncSetAttribute", bytesDetail(int64(n)))
}

// FunctionInfo is what a kernel takes: registers a thread, bytes of local
// memory a thread (more than 0: spills), bytes of static shared memory a block.
func (t *Thread) FunctionInfo(f Function) (regs, localBytes, sharedBytes int, err error) {
	for _, a := range []struct {
		at cu.FunctionAttribute
		to *int
	}{
		{C.CU_FUNC_ATTRIBUTE_NUM_REGS, &regs},
		{C.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &localBytes},
		{C.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &sharedBytes},
	} {
		if *a.to, err = cuFunction(f).Attribute(a.at); err != nil {
			return 0, 0, 0, t.wrap(err, "cuFuncGetAttribute", fmt.Sprintf("attribute %d", a.at))
		}
	}
	return regs, localBytes, sharedBytes, nil
}

// Launch queues a kernel: grid in blocks, block in threads, dynamic shared
// memory in bytes, and the parameters packed as the kernel declares them, each
// at a multiple of its size. params has been read when this returns.
func (t *Thread) Launch(f Function, grid, block [3]uint32, shared uint32, s Stream, params []byte) error {
	code := C.doorLaunch(*(*C.CUfunction)(unsafe.Pointer(&f)),
		C.uint(grid[0]), C.uint(grid[1]), C.uint(grid[2]),
		C.uint(block[0]), C.uint(block[1]), C.uint(block[2]),
		C.uint(shared), cStream(s), unsafe.Pointer(unsafe.SliceData(params)), C.size_t(len(params)))
	if code != 0 {
		return t.check(code, "cuLaunchKernel", fmt.Sprintf("grid %v, block %v, shared %d, parameters %d bytes", grid, block, shared, len(params)))
	}
	return nil
}
