package ptx

import (
	"fmt"
	"sort"
	"strings"
	"sync"
)

// Module is parsed PTX: immutable, safe for any number of launches at once.
type Module struct {
	Version string // of the PTX language, as "7.8"
	Target  string // as "sm_80"

	files   map[int]string
	vars    map[string]*variable
	order   []*variable
	funcs   map[string]*function
	entries []string
	kernels map[string]*Kernel
	uses    []labelUse
	static  []byte // initial contents of .const and .global variables
}

// Variable is a .global or .const variable of the module.
type Variable struct {
	Name  string
	Const bool
	Size  int // bytes
	Align int
	Init  []byte // initial contents, zero-extended to Size; nil: all zero
}

// Param is one kernel parameter and its place in the launch's parameter bytes.
type Param struct {
	Name                string
	Offset, Size, Align int // bytes
}

// Kernels lists the names of the module's .entry functions in text order.
func (m *Module) Kernels() []string { return append([]string(nil), m.entries...) }

// Kernel finds an .entry function by name; nil if there is none.
func (m *Module) Kernel(name string) *Kernel { return m.kernels[name] }

// Variables lists the module's .global and .const variables in text order.
func (m *Module) Variables() []Variable {
	var out []Variable
	for _, v := range m.order {
		if v.space == spShared {
			continue
		}
		out = append(out, Variable{Name: v.name, Const: v.space == spConst, Size: v.size, Align: v.align, Init: v.init})
	}
	return out
}

// link gives the module's variables their places and prepares its kernels.
func (m *Module) link() error {
	at := 0
	for _, v := range m.order {
		if v.space == spShared || v.extern && v.size == 0 {
			continue
		}
		at = (at + v.align - 1) &^ (v.align - 1)
		v.offset = at
		at += v.size
		if at > maxVariable {
			return &SyntaxError{Line: 1, Msg: fmt.Sprintf("module variables of more than %d bytes", maxVariable)}
		}
	}
	m.static = make([]byte, at)
	for _, v := range m.order {
		if v.space == spShared {
			continue
		}
		for _, r := range v.refs {
			if o := m.vars[r.sym]; o != nil {
				for i := range 8 {
					v.init[r.at+i] = byte((staticWindow + uint64(o.offset) + uint64(r.add)) >> (8 * i))
				}
				continue
			}
			return &SyntaxError{Line: 1, Text: v.name, Msg: "initialised with the address of " + r.sym + ", which is not a variable of the module"}
		}
		copy(m.static[v.offset:], v.init)
	}
	for _, name := range m.entries {
		k, err := m.compile(m.funcs[name])
		if err != nil {
			return err
		}
		m.kernels[name] = k
	}
	return nil
}

// source names the CUDA source line of a statement, if the module says.
func (m *Module) source(l loc) string {
	if l.line == 0 {
		return ""
	}
	name, ok := m.files[l.file]
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s:%d", name[strings.LastIndexByte(name, '/')+1:], l.line)
}

// Kernel is an .entry function, ready to be launched.
type Kernel struct {
	name   string
	mod    *Module
	fn     *function
	params []Param
	bytes  int  // of all parameters
	shared int  // static shared memory, bytes
	dyn    int  // alignment of dynamic shared memory; 0: none declared
	local  int  // bytes per thread
	gran   int  // smallest shared access, bytes: what races are tracked by
	ggran  int  // the same for global memory
	talks  bool // it has atomic or other strong accesses to global memory, by which blocks may meet

	code   []inst
	file   int            // bytes of a warp's register file
	npred  int            // predicate registers
	zero   []slot         // registers that may be read before they are written
	consts []constant     // values known now
	syms   []symbolConst  // values known at launch
	specs  []specialConst // special registers
	refs   int            // memory instructions
	idle   sync.Pool      // of *blockRun, for the next launch
}

type constant struct {
	off  uintptr
	wide bool
	bits uint64
}

type symbolConst struct {
	off uintptr
	vr  *variable
	add int64
}

type specialConst struct {
	off  uintptr
	wide bool
	name string
}

// Name is the kernel's name.
func (k *Kernel) Name() string { return k.name }

// Params describes the kernel's parameters in order.
func (k *Kernel) Params() []Param { return append([]Param(nil), k.params...) }

// ParamBytes is the size of the parameter block a launch needs.
func (k *Kernel) ParamBytes() int { return k.bytes }

// SharedBytes is the kernel's static shared memory.
func (k *Kernel) SharedBytes() int { return k.shared }

// LocalBytes is the local memory of one thread.
func (k *Kernel) LocalBytes() int { return k.local }

// MaxThreads is the block size the kernel was compiled for (.maxntid or
// .reqntid, multiplied out); 0 if it does not say.
func (k *Kernel) MaxThreads() int {
	d := k.fn.maxTid
	if d[0] == 0 {
		d = k.fn.reqTid
	}
	return d[0] * d[1] * d[2]
}

// Opcodes lists the distinct full opcodes the kernel uses, sorted.
func (k *Kernel) Opcodes() []string {
	seen := map[string]bool{}
	for i := range k.code {
		s := k.code[i].src
		seen[strings.Join(append([]string{s.op}, s.mods...), ".")] = true
	}
	out := make([]string, 0, len(seen))
	for op := range seen {
		out = append(out, op)
	}
	sort.Strings(out)
	return out
}
