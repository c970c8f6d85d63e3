package arch

// Evidence is why a claim of the table is believed.
type Evidence string

// The kinds of evidence. None of them is a measurement of transfers: those are
// made on the machine itself, at every start.
const (
	Unproven   Evidence = "unknown"    // nothing is known: the safe answer stands
	Documented Evidence = "documented" // by the maker
	Assembled  Evidence = "assembled"  // the maker's assembler accepts, or refuses, it for exactly this part
)

// Image is a set of kernels that is shipped.
type Image string

// The images. Baseline is plain PTX for sm_80, which the driver compiles for
// each later part.
const (
	NoImage  Image = ""
	Baseline Image = "sm_80"
)

// CopyMode is how copies between devices are ordered with other work.
type CopyMode string

// The modes. Synchronous waits for both ends around each copy.
const (
	Synchronous  CopyMode = "synchronous"
	EventOrdered CopyMode = "event-ordered"
)

// Claim about a feature.
type Claim struct {
	Has      bool
	Emulated bool // it works, made of slower instructions
	OwnImage bool // only from an image made for exactly this part or its family
	Evidence Evidence
}

// String is "yes", "slow", "own", "no" or "?".
func (c Claim) String() string {
	switch {
	case c.Evidence == Unproven:
		return "?"
	case !c.Has:
		return "no"
	case c.OwnImage:
		return "own"
	case c.Emulated:
		return "slow"
	}
	return "yes"
}

// Features that kernels choose by, each on its own.
type Features struct {
	FP16MMA, BF16MMA, TF32MMA, INT8MMA Claim // mma.sync with 16 rows
	FP8MMA, FP4MMA                     Claim // mma.sync
	WGMMA, TCGen05                     Claim // the matrix units of Hopper, and of data-centre Blackwell
	DP4A                               Claim // dot product of four bytes
	CpAsync, LdMatrix                  Claim
	TMA, Clusters                      Claim
	PDL                                Claim // a kernel that starts before the one ahead has ended
}

// Feature is one entry of Features under its name.
type Feature struct {
	Name string
	Claim
}

// List has all features in a fixed order.
func (f Features) List() []Feature {
	return []Feature{
		{"fp16 mma", f.FP16MMA},
		{"bf16 mma", f.BF16MMA},
		{"tf32 mma", f.TF32MMA},
		{"int8 mma", f.INT8MMA},
		{"fp8 mma", f.FP8MMA},
		{"fp4 mma", f.FP4MMA},
		{"wgmma", f.WGMMA},
		{"tcgen05", f.TCGen05},
		{"dp4a", f.DP4A},
		{"cp.async", f.CpAsync},
		{"ldmatrix", f.LdMatrix},
		{"tma", f.TMA},
		{"clusters", f.Clusters},
		{"pdl", f.PDL},
	}
}

// Row is what one exact capability may do.
type Row struct {
	Capability ComputeCapability
	Known      bool   // false: the unknown row
	Name       string // of the architecture
	Products   string // some of them
	Image      Image  // the kernels to load; NoImage: none runs there
	// SharedBytes is the shared memory that one block may ask for.
	SharedBytes int
	// Integrated: the GPU is part of a system on a chip and shares its memory.
	Integrated     bool
	Copies         CopyMode
	CopiesEvidence Evidence
	// Peers: copies from and to another GPU may be probed. It never means that
	// they work.
	Peers         bool
	PeersEvidence Evidence
	Features      Features
}

// Lookup gives the row of exactly c, or the unknown row with c in it: kernels
// in baseline PTX, copies one after the other and through the host.
func Lookup(c ComputeCapability) Row {
	for _, r := range table {
		if r.Capability == c {
			r.Known = true
			return r
		}
	}
	u := Claim{Evidence: Unproven}
	return Row{
		Capability: c, Name: "unknown", Image: Baseline, SharedBytes: 48 << 10,
		Copies: Synchronous, CopiesEvidence: Unproven, PeersEvidence: Unproven,
		Features: Features{
			FP16MMA: u, BF16MMA: u, TF32MMA: u, INT8MMA: u, FP8MMA: u, FP4MMA: u, WGMMA: u, TCGen05: u,
			DP4A: u, CpAsync: u, LdMatrix: u, TMA: u, Clusters: u, PDL: u,
		},
	}
}

// Rows of the table, oldest first, without the unknown row.
func Rows() []Row {
	all := make([]Row, len(table))
	for i, r := range table {
		r.Known = true
		all[i] = r
	}
	return all
}

// PeersPossible tells whether copies between two parts may be probed at all.
// Addresses of a peer are promised to be visible only within one generation.
func PeersPossible(a, b Row) (ok bool, why string) {
	for _, r := range []Row{a, b} {
		switch {
		case !r.Known:
			return false, "compute capability " + r.Capability.String() + " is not in the table"
		case !r.Peers:
			return false, "the table does not allow peer copies for compute capability " + r.Capability.String()
		}
	}
	if a.Capability.generation() != b.Capability.generation() {
		return false, "compute capabilities " + a.Capability.String() + " and " + b.Capability.String() + " are of two generations"
	}
	return true, ""
}

// Notice is the one line to log for a part without a row; "" for others.
func (r Row) Notice() string {
	switch {
	case !r.Known:
		return "compute capability " + r.Capability.String() + " is not in the table: it runs the baseline kernels, " +
			"with synchronous copies through the host. Please report how it goes, with the output of: infer doctor --json"
	case r.Image == NoImage:
		return "compute capability " + r.Capability.String() + " (" + r.Name + ") cannot run the kernels, which need 8.0: it is left out"
	}
	return ""
}
