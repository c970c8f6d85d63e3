package sim

import "fmt"

// Result is a code as the driver's functions return it.
type Result int32

// The results that simulated machines give; names and numbers are the driver's.
const (
	Success               Result = 0
	InvalidValue          Result = 1
	OutOfMemory           Result = 2
	NotInitialized        Result = 3
	Deinitialized         Result = 4
	InvalidDevice         Result = 101
	InvalidContext        Result = 201
	ECCUncorrectable      Result = 214
	PeerAccessUnsupported Result = 217
	InvalidPTX            Result = 218
	UnsupportedPTXVersion Result = 222
	InvalidHandle         Result = 400
	NotFound              Result = 500
	NotReady              Result = 600
	IllegalAddress        Result = 700
	LaunchOutOfResources  Result = 701
	LaunchTimeout         Result = 702
	PeerAlreadyEnabled    Result = 704
	PeerNotEnabled        Result = 705
	HostAlreadyRegistered Result = 712
	HostNotRegistered     Result = 713
	IllegalInstruction    Result = 715
	MisalignedAddress     Result = 716
	LaunchFailed          Result = 719
	NotSupported          Result = 801
	CaptureUnsupported    Result = 900
	CaptureInvalidated    Result = 901
	CaptureUnmatched      Result = 903
	CaptureUnjoined       Result = 904
	CaptureIsolation      Result = 905
	CaptureImplicit       Result = 906
	Unknown               Result = 999
)

var resultNames = map[Result]string{
	Success: "SUCCESS", InvalidValue: "INVALID_VALUE", OutOfMemory: "OUT_OF_MEMORY", NotInitialized: "NOT_INITIALIZED",
	Deinitialized: "DEINITIALIZED", InvalidDevice: "INVALID_DEVICE", InvalidContext: "INVALID_CONTEXT",
	ECCUncorrectable: "ECC_UNCORRECTABLE", PeerAccessUnsupported: "PEER_ACCESS_UNSUPPORTED", InvalidPTX: "INVALID_PTX",
	UnsupportedPTXVersion: "UNSUPPORTED_PTX_VERSION", InvalidHandle: "INVALID_HANDLE", NotFound: "NOT_FOUND",
	NotReady: "NOT_READY", IllegalAddress: "ILLEGAL_ADDRESS", LaunchOutOfResources: "LAUNCH_OUT_OF_RESOURCES",
	LaunchTimeout: "LAUNCH_TIMEOUT", PeerAlreadyEnabled: "PEER_ACCESS_ALREADY_ENABLED", PeerNotEnabled: "PEER_ACCESS_NOT_ENABLED",
	HostAlreadyRegistered: "HOST_MEMORY_ALREADY_REGISTERED", HostNotRegistered: "HOST_MEMORY_NOT_REGISTERED",
	IllegalInstruction: "ILLEGAL_INSTRUCTION", MisalignedAddress: "MISALIGNED_ADDRESS", LaunchFailed: "LAUNCH_FAILED",
	NotSupported: "NOT_SUPPORTED", CaptureUnsupported: "STREAM_CAPTURE_UNSUPPORTED", CaptureInvalidated: "STREAM_CAPTURE_INVALIDATED",
	CaptureUnmatched: "STREAM_CAPTURE_UNMATCHED", CaptureUnjoined: "STREAM_CAPTURE_UNJOINED",
	CaptureIsolation: "STREAM_CAPTURE_ISOLATION", CaptureImplicit: "STREAM_CAPTURE_IMPLICIT", Unknown: "UNKNOWN",
}

func (r Result) String() string {
	if s, ok := resultNames[r]; ok {
		return "CUDA_ERROR_" + s
	}
	return fmt.Sprintf("CUDA_ERROR(%d)", int32(r))
}

// fatal tells the results that end a context: after one of them every call on
// the device returns it again.
func (r Result) fatal() bool {
	switch r {
	case ECCUncorrectable, IllegalAddress, LaunchTimeout, IllegalInstruction, MisalignedAddress, LaunchFailed, Unknown:
		return true
	}
	return false
}
