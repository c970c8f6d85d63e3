package ptx

import "fmt"

// exec runs one instruction for the lanes of m, which is never empty.
type exec func(w *warp, m uint32)

type instKind uint8

const (
	kPlain instKind = iota // registers only: cannot fail
	kMem                   // may fault
	kSync                  // a warp-wide operation: waits for the lanes it names
	kBar                   // a block barrier
	kBra
	kBrx
	kExit
)

// inst is a statement ready to run.
type inst struct {
	exec   exec
	need   func(w *warp, m uint32) uint32 // kSync: lanes that must arrive with those of m; nil: all live
	kind   instKind
	guard  int32  // predicate number; -1: none
	inv    uint32 // xor of the guard: all ones for @!p
	next   int32
	to     int32 // kBra
	table  []int32
	index  uintptr // kBrx: slot of the index
	bar    *barrierOp
	member uintptr // kSync with need: slot of the member mask
	src    *stmt

	class  Class
	space  space
	access accessKind
	bytes  int // a lane moves to or from memory
	macs   int // multiply-adds of a matrix operation, for the whole warp
	mem    int // number among the memory instructions; -1: none
}

type buildError struct{ err error }

// builder turns statements into instructions. Its methods report what is wrong
// with a statement by panicking with a buildError, which compile recovers.
type builder struct {
	k      *Kernel
	s      *stmt
	in     *inst
	alloc  allocation
	consts map[constant]uintptr
	syms   map[symbolConst]uintptr
	specs  map[string]specialConst
	file   int
	sink   [3]uintptr
	never  int // the predicate that is false in every lane
}

func (b *builder) fail(format string, args ...any) {
	panic(buildError{&SyntaxError{Line: b.s.line, Text: b.s.text, Msg: fmt.Sprintf(format, args...)}})
}

// compile prepares an entry function.
func (m *Module) compile(f *function) (k *Kernel, err error) {
	defer func() {
		if r := recover(); r != nil {
			be, ok := r.(buildError)
			if !ok {
				panic(r)
			}
			k, err = nil, be.err
		}
	}()
	fl, err := m.flatten(f)
	if err != nil {
		return nil, err
	}
	k = &Kernel{name: f.name, mod: m, fn: f, gran: 16, ggran: 16}
	for _, p := range f.params {
		k.params = append(k.params, Param{p.name, p.offset, p.size, p.align})
		k.bytes = p.offset + p.size
	}
	k.place(fl)
	bs := blocks(fl.stmts)
	if len(bs) > maxBlocks || len(bs)*len(fl.regs) > maxLiveness {
		return nil, &SyntaxError{Line: f.line, Text: f.name, Msg: fmt.Sprintf("kernel of %d basic blocks and %d registers is too large", len(bs), len(fl.regs))}
	}
	order := layout(bs)
	alloc := allocate(fl.stmts, bs, order, fl.regs)
	b := &builder{
		k: k, alloc: alloc, consts: map[constant]uintptr{}, syms: map[symbolConst]uintptr{},
		specs: map[string]specialConst{}, file: alloc.bytes,
	}
	b.sink = [3]uintptr{b.reserve(256), b.reserve(256), uintptr(alloc.npred)}
	b.never = alloc.npred + 1
	k.npred, k.zero = alloc.npred+2, alloc.zero

	at := make([]int32, len(bs))
	n := int32(0)
	for _, bi := range order {
		at[bi] = n
		n += int32(bs[bi].end - bs[bi].start)
	}
	k.code = make([]inst, 0, n)
	start := map[int]int32{} // statement to position, for branch targets
	for _, bi := range order {
		start[bs[bi].start] = at[bi]
	}
	for _, bi := range order {
		blk := bs[bi]
		for i := blk.start; i < blk.end; i++ {
			k.code = append(k.code, inst{src: fl.stmts[i], next: int32(len(k.code)) + 1, guard: -1, mem: -1})
			b.in = &k.code[len(k.code)-1]
			b.inst(fl.stmts[i], start)
		}
		if blk.fall >= 0 {
			k.code[len(k.code)-1].next = at[blk.fall]
		}
	}
	if k.file = b.file; k.file > maxFile {
		return nil, &SyntaxError{Line: f.line, Text: f.name, Msg: fmt.Sprintf("a warp's registers and constants need %d bytes; at most %d", k.file, maxFile)}
	}
	for c, off := range b.consts {
		c.off = off
		k.consts = append(k.consts, c)
	}
	for c, off := range b.syms {
		c.off = off
		k.syms = append(k.syms, c)
	}
	for _, c := range b.specs {
		k.specs = append(k.specs, c)
	}
	return k, nil
}

// place lays out the function's shared and local variables.
func (k *Kernel) place(fl *flat) {
	for _, v := range fl.vars {
		end := &k.local
		if v.space == spShared {
			if v.extern && v.size == 0 {
				k.dyn = max(k.dyn, v.align, 1)
				continue
			}
			end = &k.shared
		}
		*end = (*end + v.align - 1) &^ (v.align - 1)
		v.offset = *end
		*end += v.size
	}
	k.local = (k.local + 15) &^ 15
	if k.dyn > 0 { // dynamic shared memory begins behind the static
		k.shared = (k.shared + k.dyn - 1) &^ (k.dyn - 1)
		for _, v := range fl.vars {
			if v.space == spShared && v.extern && v.size == 0 {
				v.offset = k.shared
			}
		}
	}
}

func (b *builder) inst(s *stmt, start map[int]int32) {
	b.s = s
	in := b.in
	if s.guard != nil {
		in.guard = int32(b.alloc.slots[s.guard.id].off)
		if s.neg {
			in.inv = allLanes
		}
	}
	switch s.op {
	case "bra":
		in.kind, in.to, in.class = kBra, start[s.args[0].tgt.at], ClassControl
		return
	case "brx":
		in.kind, in.class = kBrx, ClassControl
		in.index = b.src(0, tU32)
		for _, t := range s.tgts {
			in.table = append(in.table, start[t.at])
		}
		return
	case "ret", "exit":
		in.kind, in.class = kExit, ClassControl
		return
	}
	build, ok := builders[s.op]
	if !ok {
		b.fail("instruction %s is not supported", s.op)
	}
	in.class = classOf(s)
	in.exec = build(b)
	if in.exec == nil {
		b.fail("this form of %s is not supported", s.op)
	}
	if in.need != nil {
		in.exec = bySet(in.member, in.exec)
	}
}

func (b *builder) reserve(bytes int) uintptr {
	off := b.file
	b.file += bytes
	return uintptr(off)
}

// arg is operand i; it must be there.
func (b *builder) arg(i int) *operand {
	if i >= len(b.s.args) {
		b.fail("has %d operands; one more is needed", len(b.s.args))
	}
	return &b.s.args[i]
}

// args checks the number of operands.
func (b *builder) args(n int) {
	if len(b.s.args) != n {
		b.fail("has %d operands, not %d", len(b.s.args), n)
	}
}

// src is the slot of operand i read as type t, which must have the width of the
// register.
func (b *builder) src(i int, t typ) uintptr { return b.srcOp(b.arg(i), t) }

func (b *builder) srcOp(o *operand, t typ) uintptr {
	off, wide := b.anySrc(o, t)
	if wide != t.wide() {
		b.fail("operand is not %d bits wide", t.size()*8)
	}
	return off
}

// anySrc is srcOp for instructions that accept wider registers than their type;
// it says whether the lanes are 64-bit.
func (b *builder) anySrc(o *operand, t typ) (off uintptr, wide bool) {
	switch o.kind {
	case opReg:
		s := b.alloc.slots[o.reg.id]
		if s.kind == slotPred {
			b.fail("%s is a predicate", o.reg.name)
		}
		return s.off, s.kind == slot64
	case opImm:
		return b.constant(immBits(*o, t), t.wide()), t.wide()
	case opVar:
		return b.symbol(o), true
	case opSpecial:
		sp := b.special(o.name)
		return sp.off, sp.wide
	}
	b.fail("operand is not a value")
	return 0, false
}

func (b *builder) constant(bits uint64, wide bool) uintptr {
	key := constant{bits: bits, wide: wide}
	off, ok := b.consts[key]
	if !ok {
		off = b.reserve(128 << btoi(wide))
		b.consts[key] = off
	}
	return off
}

// symbol is the address of a variable within its own space; always 64 bits.
func (b *builder) symbol(o *operand) uintptr {
	v := o.vr
	switch v.space {
	case spShared, spLocal, spParam:
		return b.constant(uint64(v.offset)+uint64(o.off), true)
	}
	key := symbolConst{vr: v, add: o.off}
	off, ok := b.syms[key]
	if !ok {
		off = b.reserve(256)
		b.syms[key] = off
	}
	return off
}

func (b *builder) special(name string) specialConst {
	sp, ok := b.specs[name]
	if !ok {
		sp = specialConst{off: b.reserve(256), wide: specialWide(name), name: name}
		b.specs[name] = sp
	}
	return sp
}

// dst is the slot operand i is written to as type t.
func (b *builder) dst(i int, t typ) uintptr { return b.dstOp(b.arg(i), t) }

func (b *builder) dstOp(o *operand, t typ) uintptr {
	off, wide := b.anyDst(o, t)
	if wide != t.wide() {
		b.fail("destination is not %d bits wide", t.size()*8)
	}
	return off
}

func (b *builder) anyDst(o *operand, t typ) (off uintptr, wide bool) {
	switch o.kind {
	case opSink:
		if t.wide() {
			return b.sink[slot64], true
		}
		return b.sink[slot32], false
	case opReg:
		s := b.alloc.slots[o.reg.id]
		if s.kind != slotPred {
			return s.off, s.kind == slot64
		}
	}
	b.fail("destination is not a register of the right kind")
	return 0, false
}

// pred is a predicate operand: its number, and what to xor it with.
func (b *builder) pred(o *operand) (int, uint32) {
	if o.kind == opSink {
		return int(b.sink[slotPred]), 0
	}
	if o.kind != opReg || o.reg.typ != tPred {
		b.fail("operand is not a predicate")
	}
	inv := uint32(0)
	if o.neg {
		inv = allLanes
	}
	return int(b.alloc.slots[o.reg.id].off), inv
}

// srcPred is pred for an operand that is only read, which may be a number.
func (b *builder) srcPred(o *operand) (int, uint32) {
	if o.kind == opImm && o.imk == immInt {
		return b.never, -bit(o.imm != 0)
	}
	return b.pred(o)
}

// rounding reads the rounding modifier, nearest if there is none.
func (b *builder) rounding() rounding {
	for _, m := range b.s.mods {
		switch m {
		case "rn":
			return rndNearest
		case "rz":
			return rndZero
		case "rm":
			return rndDown
		case "rp":
			return rndUp
		case "rna":
			return rndAway
		}
	}
	return rndNearest
}

func btoi(v bool) int {
	if v {
		return 1
	}
	return 0
}
