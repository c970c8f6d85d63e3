package cuda

import "strconv"

// builtinName is the driver's name and a text for a code that the driver
// itself does not explain: it could not be opened, or is older than the code.
func builtinName(code int) (name, text string) {
	if n, ok := errorNames[code]; ok {
		return "CUDA_ERROR_" + n.name, n.text
	}
	return "CUDA_ERROR_" + strconv.Itoa(code), "unknown to this program and to the driver"
}

var errorNames = map[int]struct{ name, text string }{
	1:   {"INVALID_VALUE", "an argument is out of range"},
	2:   {"OUT_OF_MEMORY", "not enough memory"},
	3:   {"NOT_INITIALIZED", "the driver has not been initialised"},
	4:   {"DEINITIALIZED", "the driver is shutting down"},
	34:  {"STUB_LIBRARY", "the library is the toolkit's stub, not a driver"},
	46:  {"DEVICE_UNAVAILABLE", "the device is in use exclusively, or being reset"},
	100: {"NO_DEVICE", "no GPU that CUDA can use"},
	101: {"INVALID_DEVICE", "no such device"},
	200: {"INVALID_IMAGE", "the kernel image is not valid"},
	201: {"INVALID_CONTEXT", "no context is current on this thread, or it is not valid"},
	205: {"MAP_FAILED", "mapping failed"},
	206: {"UNMAP_FAILED", "unmapping failed"},
	209: {"NO_BINARY_FOR_GPU", "no code in the image fits this GPU"},
	214: {"ECC_UNCORRECTABLE", "an ECC error that cannot be corrected"},
	217: {"PEER_ACCESS_UNSUPPORTED", "these devices cannot reach each other's memory"},
	218: {"INVALID_PTX", "the PTX did not compile"},
	220: {"NVLINK_UNCORRECTABLE", "an NVLink error that cannot be corrected"},
	221: {"JIT_COMPILER_NOT_FOUND", "the driver's PTX compiler library is missing"},
	222: {"UNSUPPORTED_PTX_VERSION", "the PTX is newer than the driver"},
	226: {"CONTAINED", "a memory error on the device, contained to this process"},
	300: {"INVALID_SOURCE", "the kernel source is not valid"},
	301: {"FILE_NOT_FOUND", "file not found"},
	302: {"SHARED_OBJECT_SYMBOL_NOT_FOUND", "a symbol of a shared library is missing"},
	303: {"SHARED_OBJECT_INIT_FAILED", "a shared library did not start"},
	304: {"OPERATING_SYSTEM", "a call of the operating system failed"},
	400: {"INVALID_HANDLE", "a handle is not valid, or of another context"},
	401: {"ILLEGAL_STATE", "the object is not in a state for this"},
	500: {"NOT_FOUND", "not found: a kernel of that name, or a function of this driver"},
	600: {"NOT_READY", "work is still running"},
	700: {"ILLEGAL_ADDRESS", "a kernel or copy used an address that is not its own"},
	701: {"LAUNCH_OUT_OF_RESOURCES", "the launch asks for more registers or threads than there are"},
	702: {"LAUNCH_TIMEOUT", "the kernel ran longer than the display allows"},
	704: {"PEER_ACCESS_ALREADY_ENABLED", "peer access is enabled already"},
	705: {"PEER_ACCESS_NOT_ENABLED", "peer access is not enabled"},
	708: {"PRIMARY_CONTEXT_ACTIVE", "the primary context is in use"},
	709: {"CONTEXT_IS_DESTROYED", "the context is gone"},
	710: {"ASSERT", "an assertion failed in a kernel"},
	711: {"TOO_MANY_PEERS", "no room for another peer"},
	712: {"HOST_MEMORY_ALREADY_REGISTERED", "the host memory is registered already"},
	713: {"HOST_MEMORY_NOT_REGISTERED", "the host memory is not registered"},
	714: {"HARDWARE_STACK_ERROR", "a kernel's call stack is broken"},
	715: {"ILLEGAL_INSTRUCTION", "a kernel met an illegal instruction"},
	716: {"MISALIGNED_ADDRESS", "a kernel used an address that is not aligned"},
	717: {"INVALID_ADDRESS_SPACE", "a kernel used an address of the wrong space"},
	718: {"INVALID_PC", "a kernel left its code"},
	719: {"LAUNCH_FAILED", "a kernel failed on the device"},
	720: {"COOPERATIVE_LAUNCH_TOO_LARGE", "more blocks than can run together"},
	800: {"NOT_PERMITTED", "not permitted"},
	801: {"NOT_SUPPORTED", "not supported by this driver or device"},
	802: {"SYSTEM_NOT_READY", "the system is not ready: is the fabric manager running?"},
	803: {"SYSTEM_DRIVER_MISMATCH", "the library and the kernel module are of different drivers: reboot, or reload the module"},
	804: {"COMPAT_NOT_SUPPORTED_ON_DEVICE", "this GPU does not take the compatibility library"},
	900: {"STREAM_CAPTURE_UNSUPPORTED", "not permitted while a stream is captured"},
	901: {"STREAM_CAPTURE_INVALIDATED", "an earlier error spoiled the capture"},
	902: {"STREAM_CAPTURE_MERGE", "two captures would become one"},
	903: {"STREAM_CAPTURE_UNMATCHED", "the capture began elsewhere"},
	904: {"STREAM_CAPTURE_UNJOINED", "a stream was drawn into the capture and not joined again"},
	905: {"STREAM_CAPTURE_ISOLATION", "the capture would depend on work outside of it"},
	906: {"STREAM_CAPTURE_IMPLICIT", "the capture would wait for the default stream"},
	907: {"CAPTURED_EVENT", "the event was recorded in a capture"},
	908: {"STREAM_CAPTURE_WRONG_THREAD", "the capture began on another thread"},
	909: {"TIMEOUT", "a wait took too long"},
	910: {"GRAPH_EXEC_UPDATE_FAILURE", "the graph changed too much to be updated"},
	999: {"UNKNOWN", "the driver does not know what happened"},
}
