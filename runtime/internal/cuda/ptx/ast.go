package ptx

// variable is a declared .global, .const, .shared, .local or .param object.
type variable struct {
	name   string
	space  space
	align  int
	size   int // bytes; 0 for an extern array (dynamic shared memory)
	extern bool
	init   []byte // nil: zero
	refs   []initRef
	offset int // inside its window, given when the function is laid out
}

// initRef is the address of another variable inside an initialiser.
type initRef struct {
	at  int // byte offset in init
	sym string
	add int64
}

// register is a virtual register of one function.
type register struct {
	name string
	typ  typ
	id   int // dense within its function
}

type operandKind uint8

const (
	opReg operandKind = iota
	opImm
	opAddr    // [base + off]
	opVec     // {a, b, ...}
	opSpecial // %tid.x ...
	opVar     // a variable's address
	opFunc    // a function, as the target of a call
	opLabel
	opSink // _
	opPair // p|q
	opList // (a, b) of a call
)

type immKind uint8

const (
	immInt immKind = iota
	immF32         // 0f literal: bits in imm
	immF64         // 0d literal or decimal fraction: bits in imm
)

type operand struct {
	kind operandKind
	imk  immKind
	neg  bool // !p, or a minus before a register
	imm  uint64
	off  int64
	reg  *register
	vr   *variable
	name string // special register, label or function
	list []operand
	tgt  *label
}

// label is a position in a function's statement list.
type label struct {
	name string
	at   int // index of the statement that follows it; -1: not defined
}

// loc is a line of the CUDA source, from .loc.
type loc struct{ file, line int }

// stmt is one parsed instruction.
type stmt struct {
	line  int // in the PTX text
	loc   loc
	guard *register
	neg   bool
	op    string   // base opcode: "ld", "mma" ...
	mods  []string // what followed it: "global", "v4", "f32"
	args  []operand
	text  string // as written, for error reports
	tgts  []*label
}

// has says whether the opcode carries a modifier.
func (s *stmt) has(mod string) bool {
	for _, m := range s.mods {
		if m == mod {
			return true
		}
	}
	return false
}

// typs lists the type modifiers in order.
func (s *stmt) typs() []typ {
	var out []typ
	for _, m := range s.mods {
		if t, ok := typeNames[m]; ok {
			out = append(out, t)
		}
	}
	return out
}

// typ is the last type modifier: the one that says how an ordinary
// instruction reads its operands.
func (s *stmt) typ() typ {
	ts := s.typs()
	if len(ts) == 0 {
		return tNone
	}
	return ts[len(ts)-1]
}

// function is a parsed .entry or .func.
type function struct {
	name   string
	line   int
	entry  bool
	params []*variable
	rets   []*variable
	vars   []*variable // .shared, .local and .param declared in the body
	regs   []*register
	body   []*stmt
	maxTid [3]int // .maxntid; zero: not given
	reqTid [3]int // .reqntid
}
