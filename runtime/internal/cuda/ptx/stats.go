package ptx

// Class groups instructions by the unit of the GPU that executes them.
type Class uint8

// The classes of instructions.
const (
	ClassInteger Class = iota // integer arithmetic, logic, shifts
	ClassFloat                // f32 and f64 arithmetic
	ClassHalf                 // f16 and bf16 arithmetic
	ClassSpecial              // approximate functions: ex2, rsqrt, sin ...
	ClassConvert              // cvt
	ClassMove                 // mov, selp, setp, cvta
	ClassMatrix               // mma, ldmatrix
	ClassLoad                 // ld
	ClassStore                // st
	ClassAtomic               // atom, red
	ClassAsync                // cp.async and its groups
	ClassWarp                 // shuffles, votes, matches, reductions in a warp
	ClassBarrier              // barriers and fences
	ClassControl              // branches and exits
	numClasses
)

func (c Class) String() string {
	return [...]string{
		"integer", "float", "half", "special", "convert", "move", "matrix", "load", "store", "atomic",
		"async", "warp", "barrier", "control",
	}[c]
}

// Stats says what a launch did. Instructions and bytes are those of threads
// whose guard was true, whether or not they hit a cache.
type Stats struct {
	Blocks, Threads    int64
	WarpInstructions   int64
	ThreadInstructions int64
	ByClass            [numClasses]int64 // of ThreadInstructions

	GlobalRead, GlobalWritten int64 // bytes; atomics count as both
	SharedRead, SharedWritten int64
	LocalRead, LocalWritten   int64
	Barriers                  int64 // executed by warps
	MatrixOps                 int64 // mma instructions, by warps
	MatrixMACs                int64 // multiply-adds of them

	// With Options.Profile only:
	GlobalRequests  int64 // warp-wide accesses to global memory
	GlobalSectors   int64 // 32-byte sectors they touched
	SharedRequests  int64
	SharedConflicts int64 // further passes a request needed because of bank conflicts
	Lines           []Line
}

// Add accumulates the counts of another launch; Lines are not merged.
func (s *Stats) Add(o Stats) {
	s.Blocks += o.Blocks
	s.Threads += o.Threads
	s.WarpInstructions += o.WarpInstructions
	s.ThreadInstructions += o.ThreadInstructions
	for i := range s.ByClass {
		s.ByClass[i] += o.ByClass[i]
	}
	s.GlobalRead += o.GlobalRead
	s.GlobalWritten += o.GlobalWritten
	s.SharedRead += o.SharedRead
	s.SharedWritten += o.SharedWritten
	s.LocalRead += o.LocalRead
	s.LocalWritten += o.LocalWritten
	s.Barriers += o.Barriers
	s.MatrixOps += o.MatrixOps
	s.MatrixMACs += o.MatrixMACs
	s.GlobalRequests += o.GlobalRequests
	s.GlobalSectors += o.GlobalSectors
	s.SharedRequests += o.SharedRequests
	s.SharedConflicts += o.SharedConflicts
}

// Line is one instruction of a profile.
type Line struct {
	Line      int    // in the PTX text
	Source    string // file:line of the CUDA source, if known
	Inst      string
	Issued    int64 // by warps
	Threads   int64
	Requests  int64 // memory accesses, by warps
	Sectors   int64
	Conflicts int64
}

// SectorsPerRequest is the coalescing of global accesses: 4 is ideal for 4-byte
// elements, 32 the worst. Zero without Options.Profile.
func (s Stats) SectorsPerRequest() float64 {
	if s.GlobalRequests == 0 {
		return 0
	}
	return float64(s.GlobalSectors) / float64(s.GlobalRequests)
}

// collect sums the workers' counters.
func (l *launch) collect(runs []*blockRun) Stats {
	var s Stats
	for pc := range l.k.code {
		in := &l.k.code[pc]
		var c count
		var mc memCount
		for _, b := range runs {
			c.issued += b.counts[pc].issued
			c.lanes += b.counts[pc].lanes
			if in.mem >= 0 {
				mc.requests += b.mem[in.mem].requests
				mc.sectors += b.mem[in.mem].sectors
				mc.conflicts += b.mem[in.mem].conflicts
			}
		}
		s.WarpInstructions += int64(c.issued)
		s.ThreadInstructions += int64(c.lanes)
		s.ByClass[in.class] += int64(c.lanes)
		s.addBytes(in, int64(c.lanes)*int64(in.bytes))
		if in.macs > 0 {
			s.MatrixOps += int64(c.issued)
			s.MatrixMACs += int64(c.issued) * int64(in.macs)
		}
		if in.kind == kBar {
			s.Barriers += int64(c.issued)
		}
		if in.space == spShared && in.class != ClassAsync {
			s.SharedRequests += int64(mc.requests)
			s.SharedConflicts += int64(mc.conflicts)
		} else {
			s.GlobalRequests += int64(mc.requests)
			s.GlobalSectors += int64(mc.sectors)
		}
		if l.opts.Profile && c.issued > 0 {
			s.Lines = append(s.Lines, Line{
				Line: in.src.line, Source: l.k.mod.source(in.src.loc), Inst: in.src.text,
				Issued: int64(c.issued), Threads: int64(c.lanes),
				Requests: int64(mc.requests), Sectors: int64(mc.sectors), Conflicts: int64(mc.conflicts),
			})
		}
	}
	return s
}

// addBytes books the traffic of an instruction. A generic access is booked as
// global: that is where the addresses of a kernel's arguments point.
func (s *Stats) addBytes(in *inst, n int64) {
	var read, written *int64
	switch in.space {
	case spShared:
		read, written = &s.SharedRead, &s.SharedWritten
	case spLocal:
		read, written = &s.LocalRead, &s.LocalWritten
	case spGlobal, spGeneric:
		read, written = &s.GlobalRead, &s.GlobalWritten
	default:
		return
	}
	if in.class == ClassAsync {
		s.GlobalRead += n
		s.SharedWritten += n
		return
	}
	switch in.access {
	case accessLoad:
		*read += n
	case accessStore:
		*written += n
	case accessAtomic:
		*read += n
		*written += n
	}
}

// classOf puts an instruction into its class by opcode and type.
func classOf(s *stmt) Class {
	switch s.op {
	case "ld", "ldu":
		return ClassLoad
	case "st", "stmatrix":
		return ClassStore
	case "atom", "red":
		return ClassAtomic
	case "cp":
		return ClassAsync
	case "mma", "ldmatrix", "movmatrix":
		return ClassMatrix
	case "cvt":
		return ClassConvert
	case "mov", "selp", "slct", "setp", "set", "cvta", "isspacep":
		return ClassMove
	case "shfl", "vote", "match", "redux", "activemask", "elect":
		return ClassWarp
	case "bar", "barrier", "membar", "fence":
		return ClassBarrier
	case "ex2", "lg2", "sin", "cos", "tanh", "rsqrt", "sqrt", "rcp":
		return ClassSpecial
	}
	switch t := s.typ(); {
	case t.half():
		return ClassHalf
	case t.float():
		return ClassFloat
	}
	return ClassInteger
}
