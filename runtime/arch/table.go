package arch

// Short words of the table.
const (
	baseline   = Baseline
	none       = NoImage
	documented = Documented
	unproven   = Unproven
)

var (
	yes  = Claim{Has: true, Evidence: Assembled}                 // in plain PTX
	slow = Claim{Has: true, Emulated: true, Evidence: Assembled} // in plain PTX, made of other instructions
	own  = Claim{Has: true, OwnImage: true, Evidence: Assembled} // only in an image for exactly this part or its family
	no   = Claim{Evidence: Assembled}
)

func of(s string) ComputeCapability {
	c, err := Parse(s)
	if err != nil {
		panic(err) // a typing mistake below
	}
	return c
}

// table has one row for each capability about which something is known. To add
// a part, add its row, and its line in table_test.go. Features are what ptxas
// 13.5 (12.9 for parts it no longer knows) made of each instruction; limits are
// those of the toolkit's headers. Copies are event-ordered, and peers may be
// probed, where a public part has been seen to do so; a part that is integrated
// has no peer.
var table = []Row{
	{
		Capability: of("5.0"), Name: "Maxwell", Products: "Tesla M10, Quadro K2200, GeForce GTX 750 Ti",
		Image: none, SharedBytes: 49152, Integrated: false,
		Copies: Synchronous, CopiesEvidence: unproven, Peers: false, PeersEvidence: unproven,
		Features: Features{
			FP16MMA: no, BF16MMA: no, TF32MMA: no, INT8MMA: no, FP8MMA: no, FP4MMA: no, WGMMA: no,
			TCGen05: no, DP4A: no, CpAsync: no, LdMatrix: no, TMA: no, Clusters: no, PDL: no,
		},
	},
	{
		Capability: of("5.2"), Name: "Maxwell", Products: "Tesla M40, Tesla M60, Quadro M6000, GeForce GTX 980",
		Image: none, SharedBytes: 49152, Integrated: false,
		Copies: Synchronous, CopiesEvidence: unproven, Peers: false, PeersEvidence: unproven,
		Features: Features{
			FP16MMA: no, BF16MMA: no, TF32MMA: no, INT8MMA: no, FP8MMA: no, FP4MMA: no, WGMMA: no,
			TCGen05: no, DP4A: no, CpAsync: no, LdMatrix: no, TMA: no, Clusters: no, PDL: no,
		},
	},
	{
		Capability: of("5.3"), Name: "Maxwell", Products: "Jetson Nano, Jetson TX1",
		Image: none, SharedBytes: 49152, Integrated: true,
		Copies: Synchronous, CopiesEvidence: unproven, Peers: false, PeersEvidence: unproven,
		Features: Features{
			FP16MMA: no, BF16MMA: no, TF32MMA: no, INT8MMA: no, FP8MMA: no, FP4MMA: no, WGMMA: no,
			TCGen05: no, DP4A: no, CpAsync: no, LdMatrix: no, TMA: no, Clusters: no, PDL: no,
		},
	},
	{
		Capability: of("6.0"), Name: "Pascal", Products: "Tesla P100, Quadro GP100",
		Image: none, SharedBytes: 49152, Integrated: false,
		Copies: Synchronous, CopiesEvidence: unproven, Peers: false, PeersEvidence: unproven,
		Features: Features{
			FP16MMA: no, BF16MMA: no, TF32MMA: no, INT8MMA: no, FP8MMA: no, FP4MMA: no, WGMMA: no,
			TCGen05: no, DP4A: no, CpAsync: no, LdMatrix: no, TMA: no, Clusters: no, PDL: no,
		},
	},
	{
		Capability: of("6.1"), Name: "Pascal", Products: "Tesla P40, Tesla P4, Quadro P6000, GeForce GTX 1080 Ti",
		Image: none, SharedBytes: 49152, Integrated: false,
		Copies: Synchronous, CopiesEvidence: unproven, Peers: false, PeersEvidence: unproven,
		Features: Features{
			FP16MMA: no, BF16MMA: no, TF32MMA: no, INT8MMA: no, FP8MMA: no, FP4MMA: no, WGMMA: no,
			TCGen05: no, DP4A: yes, CpAsync: no, LdMatrix: no, TMA: no, Clusters: no, PDL: no,
		},
	},
	{
		Capability: of("6.2"), Name: "Pascal", Products: "Jetson TX2",
		Image: none, SharedBytes: 49152, Integrated: true,
		Copies: Synchronous, CopiesEvidence: unproven, Peers: false, PeersEvidence: unproven,
		Features: Features{
			FP16MMA: no, BF16MMA: no, TF32MMA: no, INT8MMA: no, FP8MMA: no, FP4MMA: no, WGMMA: no,
			TCGen05: no, DP4A: yes, CpAsync: no, LdMatrix: no, TMA: no, Clusters: no, PDL: no,
		},
	},
	{
		Capability: of("7.0"), Name: "Volta", Products: "Tesla V100, Quadro GV100, TITAN V",
		Image: none, SharedBytes: 98304, Integrated: false,
		Copies: Synchronous, CopiesEvidence: unproven, Peers: false, PeersEvidence: unproven,
		Features: Features{
			FP16MMA: no, BF16MMA: no, TF32MMA: no, INT8MMA: no, FP8MMA: no, FP4MMA: no, WGMMA: no,
			TCGen05: no, DP4A: yes, CpAsync: no, LdMatrix: no, TMA: no, Clusters: no, PDL: no,
		},
	},
	{
		Capability: of("7.2"), Name: "Volta", Products: "Jetson AGX Xavier, Jetson Xavier NX",
		Image: none, SharedBytes: 98304, Integrated: true,
		Copies: Synchronous, CopiesEvidence: unproven, Peers: false, PeersEvidence: unproven,
		Features: Features{
			FP16MMA: no, BF16MMA: no, TF32MMA: no, INT8MMA: no, FP8MMA: no, FP4MMA: no, WGMMA: no,
			TCGen05: no, DP4A: yes, CpAsync: no, LdMatrix: no, TMA: no, Clusters: no, PDL: no,
		},
	},
	{
		Capability: of("7.5"), Name: "Turing", Products: "Tesla T4, Quadro RTX 6000, Quadro RTX 8000, GeForce RTX 2080 Ti",
		Image: none, SharedBytes: 65536, Integrated: false,
		Copies: Synchronous, CopiesEvidence: unproven, Peers: false, PeersEvidence: unproven,
		Features: Features{
			FP16MMA: no, BF16MMA: no, TF32MMA: no, INT8MMA: no, FP8MMA: no, FP4MMA: no, WGMMA: no,
			TCGen05: no, DP4A: yes, CpAsync: no, LdMatrix: yes, TMA: no, Clusters: no, PDL: no,
		},
	},
	{
		Capability: of("8.0"), Name: "Ampere", Products: "A100, A30",
		Image: baseline, SharedBytes: 166912, Integrated: false,
		Copies: EventOrdered, CopiesEvidence: documented, Peers: true, PeersEvidence: documented,
		Features: Features{
			FP16MMA: yes, BF16MMA: yes, TF32MMA: yes, INT8MMA: yes, FP8MMA: no, FP4MMA: no, WGMMA: no,
			TCGen05: no, DP4A: yes, CpAsync: yes, LdMatrix: yes, TMA: no, Clusters: no, PDL: no,
		},
	},
	{
		Capability: of("8.6"), Name: "Ampere", Products: "A40, A10, RTX A6000, RTX A5000",
		Image: baseline, SharedBytes: 101376, Integrated: false,
		Copies: EventOrdered, CopiesEvidence: documented, Peers: true, PeersEvidence: documented,
		Features: Features{
			FP16MMA: yes, BF16MMA: yes, TF32MMA: yes, INT8MMA: yes, FP8MMA: no, FP4MMA: no, WGMMA: no,
			TCGen05: no, DP4A: yes, CpAsync: yes, LdMatrix: yes, TMA: no, Clusters: no, PDL: no,
		},
	},
	{
		Capability: of("8.7"), Name: "Ampere", Products: "Jetson AGX Orin, Jetson Orin NX",
		Image: baseline, SharedBytes: 166912, Integrated: true,
		Copies: EventOrdered, CopiesEvidence: documented, Peers: false, PeersEvidence: documented,
		Features: Features{
			FP16MMA: yes, BF16MMA: yes, TF32MMA: yes, INT8MMA: yes, FP8MMA: no, FP4MMA: no, WGMMA: no,
			TCGen05: no, DP4A: yes, CpAsync: yes, LdMatrix: yes, TMA: no, Clusters: no, PDL: no,
		},
	},
	{
		Capability: of("8.8"), Name: "unnamed", Products: "",
		Image: baseline, SharedBytes: 101376, Integrated: false,
		Copies: Synchronous, CopiesEvidence: unproven, Peers: false, PeersEvidence: unproven,
		Features: Features{
			FP16MMA: yes, BF16MMA: yes, TF32MMA: yes, INT8MMA: yes, FP8MMA: no, FP4MMA: no, WGMMA: no,
			TCGen05: no, DP4A: yes, CpAsync: yes, LdMatrix: yes, TMA: no, Clusters: no, PDL: no,
		},
	},
	{
		Capability: of("8.9"), Name: "Ada Lovelace", Products: "L4, L40, RTX 6000 Ada Generation, RTX 4000 Ada Generation",
		Image: baseline, SharedBytes: 101376, Integrated: false,
		Copies: EventOrdered, CopiesEvidence: documented, Peers: true, PeersEvidence: documented,
		Features: Features{
			FP16MMA: yes, BF16MMA: yes, TF32MMA: yes, INT8MMA: yes, FP8MMA: yes, FP4MMA: no, WGMMA: no,
			TCGen05: no, DP4A: yes, CpAsync: yes, LdMatrix: yes, TMA: no, Clusters: no, PDL: no,
		},
	},
	{
		Capability: of("9.0"), Name: "Hopper", Products: "H100, H200",
		Image: baseline, SharedBytes: 232448, Integrated: false,
		Copies: EventOrdered, CopiesEvidence: documented, Peers: true, PeersEvidence: documented,
		Features: Features{
			FP16MMA: yes, BF16MMA: yes, TF32MMA: yes, INT8MMA: yes, FP8MMA: slow, FP4MMA: no, WGMMA: own,
			TCGen05: no, DP4A: yes, CpAsync: yes, LdMatrix: yes, TMA: yes, Clusters: yes, PDL: yes,
		},
	},
	{
		Capability: of("10.0"), Name: "Blackwell", Products: "B200, GB200",
		Image: baseline, SharedBytes: 232448, Integrated: false,
		Copies: EventOrdered, CopiesEvidence: documented, Peers: true, PeersEvidence: documented,
		Features: Features{
			FP16MMA: yes, BF16MMA: yes, TF32MMA: yes, INT8MMA: yes, FP8MMA: slow, FP4MMA: no, WGMMA: no,
			TCGen05: own, DP4A: yes, CpAsync: yes, LdMatrix: yes, TMA: yes, Clusters: yes, PDL: yes,
		},
	},
	{
		Capability: of("10.1"), Name: "Blackwell (Thor)", Products: "Thor before CUDA 13, which calls it 11.0",
		Image: baseline, SharedBytes: 232448, Integrated: true,
		Copies: Synchronous, CopiesEvidence: unproven, Peers: false, PeersEvidence: unproven,
		Features: Features{
			FP16MMA: slow, BF16MMA: yes, TF32MMA: slow, INT8MMA: slow, FP8MMA: slow, FP4MMA: no, WGMMA: no,
			TCGen05: own, DP4A: yes, CpAsync: yes, LdMatrix: yes, TMA: yes, Clusters: yes, PDL: yes,
		},
	},
	{
		Capability: of("10.3"), Name: "Blackwell Ultra", Products: "B300, GB300",
		Image: baseline, SharedBytes: 232448, Integrated: false,
		Copies: EventOrdered, CopiesEvidence: documented, Peers: true, PeersEvidence: documented,
		Features: Features{
			FP16MMA: yes, BF16MMA: yes, TF32MMA: yes, INT8MMA: yes, FP8MMA: slow, FP4MMA: no, WGMMA: no,
			TCGen05: own, DP4A: yes, CpAsync: yes, LdMatrix: yes, TMA: yes, Clusters: yes, PDL: yes,
		},
	},
	{
		Capability: of("10.7"), Name: "Rubin", Products: "Rubin (Vera Rubin NVL72)",
		Image: baseline, SharedBytes: 232448, Integrated: false,
		Copies: Synchronous, CopiesEvidence: unproven, Peers: false, PeersEvidence: unproven,
		Features: Features{
			FP16MMA: yes, BF16MMA: yes, TF32MMA: yes, INT8MMA: yes, FP8MMA: slow, FP4MMA: no, WGMMA: no,
			TCGen05: own, DP4A: yes, CpAsync: yes, LdMatrix: yes, TMA: yes, Clusters: yes, PDL: yes,
		},
	},
	{
		Capability: of("11.0"), Name: "Blackwell (Thor)", Products: "Jetson T5000, Jetson T4000",
		Image: baseline, SharedBytes: 232448, Integrated: true,
		Copies: EventOrdered, CopiesEvidence: documented, Peers: false, PeersEvidence: documented,
		Features: Features{
			FP16MMA: yes, BF16MMA: yes, TF32MMA: yes, INT8MMA: yes, FP8MMA: slow, FP4MMA: no, WGMMA: no,
			TCGen05: own, DP4A: yes, CpAsync: yes, LdMatrix: yes, TMA: yes, Clusters: yes, PDL: yes,
		},
	},
	{
		Capability: of("12.0"), Name: "Blackwell", Products: "RTX PRO 6000 Blackwell, GeForce RTX 5090, GeForce RTX 5050",
		Image: baseline, SharedBytes: 101376, Integrated: false,
		Copies: EventOrdered, CopiesEvidence: documented, Peers: true, PeersEvidence: documented,
		Features: Features{
			FP16MMA: yes, BF16MMA: yes, TF32MMA: yes, INT8MMA: yes, FP8MMA: yes, FP4MMA: own, WGMMA: no,
			TCGen05: no, DP4A: yes, CpAsync: yes, LdMatrix: yes, TMA: yes, Clusters: yes, PDL: yes,
		},
	},
	{
		Capability: of("12.1"), Name: "Blackwell", Products: "GB10 (DGX Spark)",
		Image: baseline, SharedBytes: 101376, Integrated: true,
		Copies: EventOrdered, CopiesEvidence: documented, Peers: false, PeersEvidence: documented,
		Features: Features{
			FP16MMA: yes, BF16MMA: yes, TF32MMA: yes, INT8MMA: yes, FP8MMA: yes, FP4MMA: own, WGMMA: no,
			TCGen05: no, DP4A: yes, CpAsync: yes, LdMatrix: yes, TMA: yes, Clusters: yes, PDL: yes,
		},
	},
}
