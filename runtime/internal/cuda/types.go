package cuda

// Ptr is an address in the driver's unified address space.
type Ptr uint64

// Handles of the driver. Zero is none; for a Stream it is the default stream.
type (
	Stream    uintptr
	Event     uintptr
	Module    uintptr
	Function  uintptr
	Graph     uintptr
	GraphExec uintptr
)

// Properties is what is known of a GPU without computing on it.
type Properties struct {
	Name string
	UUID string // "GPU-…", as the driver's tools print it
	PCI  string // domain:bus:device.function, lower case

	Major, Minor int // compute capability

	TotalBytes int64
	FreeBytes  int64 // 0: unknown

	SMs                 int
	ClockKHz            int // 0: unknown
	MemoryClockKHz      int // 0: unknown
	BusWidthBits        int
	L2Bytes             int
	SharedPerBlockOptin int // bytes of shared memory a block may ask for after SetMaxDynamicShared
	CopyEngines         int

	NUMANode   int     // −1: unknown
	PCIeGen    int     // the best that card and slot agree on; 0: unknown
	PCIeWidth  int     // lanes now; 0: unknown
	BAR1Bytes  int64   // 0: unknown
	MemoryGBps float64 // from clock and width, or given by a simulated machine; 10⁹ bytes a second; 0: unknown
	Simulated  bool
}

// LinkProperties is what is said of one directed pair of GPUs. None of it
// proves that bytes arrive.
type LinkProperties struct {
	Kind       string  // as topology tools print it: NV4, PIX, PXB, PHB, NODE, SYS; "" unknown
	PeerAccess bool    // cuDeviceCanAccessPeer: from can reach the memory of to
	P2PStatus  string  // NVML's: OK, GNS, CNS, TNS …; "" unknown
	PeerGBps   float64 // one way; 0: unknown
	StagedGBps float64 // through host memory; 0: unknown
	PeerUS     float64 // latency in microseconds; 0: unknown
	StagedUS   float64
}

// Facts is what the management library (NVML) knows beside the driver, by the
// devices' UUIDs: unlike the driver it sees every GPU, whatever
// CUDA_VISIBLE_DEVICES says.
type Facts interface {
	DriverVersion() string // "550.54.14"; "" unknown
	Device(uuid string) DeviceFacts
	Link(from, to string) LinkFacts
}

// DeviceFacts of one GPU. Zero values (−1 for NUMANode) say unknown.
type DeviceFacts struct {
	FreeBytes  int64
	NUMANode   int
	PCIeGen    int
	PCIeWidth  int
	BAR1Bytes  int64
	MemoryGBps float64 // 0: computed from clock and width
}

// LinkFacts of one directed pair; see LinkProperties.
type LinkFacts struct {
	Kind       string
	P2PStatus  string
	PeerGBps   float64
	StagedGBps float64
	PeerUS     float64
	StagedUS   float64
}

type noFacts struct{}

func (noFacts) DriverVersion() string         { return "" }
func (noFacts) Device(string) DeviceFacts     { return DeviceFacts{NUMANode: -1} }
func (noFacts) Link(string, string) LinkFacts { return LinkFacts{} }
