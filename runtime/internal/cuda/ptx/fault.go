package ptx

import (
	"fmt"
	"strings"
)

// FaultKind says what a kernel did wrong.
type FaultKind uint8

// The faults a launch can end with.
const (
	FaultIllegal        FaultKind = iota + 1 // an address outside every allocation, or a jump outside its table
	FaultMisaligned                          // an address that is not a multiple of the access's size
	FaultReadOnly                            // a write to memory that must not be written
	FaultUninitialised                       // a read of memory nothing was written to
	FaultInFlight                            // a cp.async destination touched before its wait_group
	FaultRace                                // two threads, one of them writing, with nothing that orders them
	FaultDivergence                          // a warp-wide instruction some of its lanes do not reach
	FaultBarrier                             // a barrier reached from different places, or in a way that cannot work
	FaultDeadlock                            // every warp of a block waits
	FaultBudget                              // more instructions than the launch allows
	FaultTrap                                // the kernel executed trap
	FaultIllegalOperand                      // an operand value the instruction does not take
)

func (k FaultKind) String() string {
	return [...]string{
		"", "illegal address", "misaligned address", "write to read-only memory", "read of uninitialised memory",
		"cp.async destination used before its wait", "data race", "divergent warp", "divergent barrier",
		"deadlock", "runaway kernel", "trap", "illegal operand",
	}[k]
}

// Fault is the error of a launch whose kernel did something wrong. It stops at
// the first one found (with several workers: of those found, the one in the
// lowest block).
type Fault struct {
	Kind   FaultKind
	Kernel string
	Block  [3]int // blockIdx
	Thread [3]int // threadIdx
	Line   int    // in the PTX text
	Source string // file:line of the CUDA source, if the PTX has .loc
	Inst   string // the instruction as written
	Space  string // state space of the address; empty if none is involved
	Addr   uint64
	Detail string
	// The other side of a race, or the copy that is in flight.
	OtherBlock  [3]int
	OtherThread [3]int
	OtherLine   int
	OtherSource string
	OtherInst   string

	order int   // block number, to choose among workers
	cause error // the context's, if the launch was cancelled
}

func (f *Fault) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "ptx: kernel %s: %s", f.Kernel, f.Kind)
	if f.Space != "" {
		fmt.Fprintf(&b, " %s:%#x", f.Space, f.Addr)
	}
	if f.Detail != "" {
		fmt.Fprintf(&b, ": %s", f.Detail)
	}
	fmt.Fprintf(&b, "; block (%d,%d,%d) thread (%d,%d,%d), %s",
		f.Block[0], f.Block[1], f.Block[2], f.Thread[0], f.Thread[1], f.Thread[2], place(f.Line, f.Source, f.Inst))
	if f.OtherInst != "" {
		b.WriteString("; against ")
		if f.OtherBlock != f.Block {
			fmt.Fprintf(&b, "block (%d,%d,%d) ", f.OtherBlock[0], f.OtherBlock[1], f.OtherBlock[2])
		}
		fmt.Fprintf(&b, "thread (%d,%d,%d), %s",
			f.OtherThread[0], f.OtherThread[1], f.OtherThread[2], place(f.OtherLine, f.OtherSource, f.OtherInst))
	}
	return b.String()
}

func place(line int, source, inst string) string {
	if source != "" {
		source = " (" + source + ")"
	}
	return fmt.Sprintf("PTX line %d%s: %s", line, source, inst)
}

// describe names an instruction for a report.
func (k *Kernel) describe(pc int32) string {
	s := k.code[pc].src
	return place(s.line, k.mod.source(s.loc), s.text)
}

// fail records a fault of lane l at the current instruction.
func (w *warp) fail(kind FaultKind, l int, format string, args ...any) *Fault {
	s := w.k.code[w.pc].src
	f := &Fault{
		Kind: kind, Kernel: w.k.name, Block: w.blk.idx, Thread: w.blk.thread(w.num*lanesPerWarp + l),
		Line: s.line, Source: w.k.mod.source(s.loc), Inst: s.text,
		Detail: fmt.Sprintf(format, args...), order: w.blk.num,
	}
	if w.fault == nil {
		w.fault = f
	}
	return f
}

// failAt is fail with an address.
func (w *warp) failAt(kind FaultKind, l int, sp space, addr uint64, format string, args ...any) *Fault {
	f := w.fail(kind, l, format, args...)
	f.Space, f.Addr = sp.String(), addr
	return f
}

// against names the other side of a fault.
func (f *Fault) against(k *Kernel, thread [3]int, pc int32) {
	s := k.code[pc].src
	f.OtherBlock = f.Block
	f.OtherThread, f.OtherLine, f.OtherSource, f.OtherInst = thread, s.line, k.mod.source(s.loc), s.text
}
