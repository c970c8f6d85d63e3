package ptx

import (
	"strconv"
	"strings"
)

// scope is one { } of a function: registers, variables and labels declared in
// it hide those outside.
type scope struct {
	up     *scope
	regs   map[string]*register
	ranges map[string]regRange // %r<44> declares %r0 to %r43
	vars   map[string]*variable
	labels map[string]*label
}

type regRange struct {
	typ typ
	n   int
}

func newScope(up *scope) *scope {
	return &scope{
		up: up, regs: map[string]*register{}, ranges: map[string]regRange{},
		vars: map[string]*variable{}, labels: map[string]*label{},
	}
}

// function reads what follows .entry or .func: results, name, parameters,
// performance directives, and the body (or the semicolon of a prototype).
func (p *parser) function(t token, entry bool) error {
	f := &function{line: t.line, entry: entry}
	p.fn, p.scope = f, newScope(nil)
	if !entry && p.accept("(") {
		rets, err := p.params()
		if err != nil {
			return err
		}
		f.rets = rets
	}
	name, err := p.word("a function name")
	if err != nil {
		return err
	}
	f.name = name.text
	if p.accept("(") {
		if f.params, err = p.params(); err != nil {
			return err
		}
	}
	for !p.accept("{") {
		d := p.next()
		switch d.text {
		case ";":
			if p.mod.funcs[f.name] == nil {
				p.mod.funcs[f.name] = nil // declared, not defined
			}
			return nil
		case ".maxntid", ".reqntid":
			dims := [3]int{1, 1, 1}
			for i := range 3 {
				if dims[i], err = p.int("a block size"); err != nil {
					return err
				}
				if !p.accept(",") {
					break
				}
			}
			if d.text == ".maxntid" {
				f.maxTid = dims
			} else {
				f.reqTid = dims
			}
		case ".minnctapersm", ".maxnreg", ".maxnctapersm":
			if _, err := p.int("a number"); err != nil {
				return err
			}
		case ".noreturn":
		case ".pragma":
			if err := p.debug(d); err != nil {
				return err
			}
		default:
			return p.errf(d, "not a directive of a function that is supported")
		}
	}
	if p.mod.funcs[f.name] != nil {
		return p.errf(name, "function is defined twice")
	}
	if err := p.block(); err != nil {
		return err
	}
	if err := p.resolve(); err != nil {
		return err
	}
	p.mod.funcs[f.name] = f
	if entry {
		p.mod.entries = append(p.mod.entries, f.name)
	}
	return nil
}

// params reads a list of .param declarations up to the closing parenthesis
// and lays them out as the driver does, each at its natural alignment.
func (p *parser) params() ([]*variable, error) {
	var out []*variable
	offset := 0
	for !p.accept(")") {
		t := p.next()
		if t.text != ".param" {
			return nil, p.errf(t, "expected .param (parameters in registers are not supported)")
		}
		align, elem, vec, err := p.varType()
		if err != nil {
			return nil, err
		}
		v := &variable{space: spParam, align: align}
		if err := p.declarator(v, elem, vec); err != nil {
			return nil, err
		}
		offset = (offset + align - 1) &^ (align - 1)
		v.offset = offset
		offset += v.size
		out = append(out, v)
		p.scope.vars[v.name] = v
		p.accept(",")
	}
	return out, nil
}

// block reads statements up to the closing brace; the opening one is read.
func (p *parser) block() error {
	if err := p.nest(); err != nil {
		return err
	}
	defer func() { p.depth-- }()
	p.scope = newScope(p.scope)
	defer func() { p.scope = p.scope.up }()
	for {
		t := p.peek()
		switch {
		case t.kind == tokEOF:
			return p.errf(t, "function %s is not closed", p.fn.name)
		case t.kind == tokPunct && t.text == "}":
			p.next()
			return nil
		case t.kind == tokPunct && t.text == "{":
			p.next()
			if err := p.block(); err != nil {
				return err
			}
		case t.kind == tokPunct && t.text == ";":
			p.next()
		case t.text == ".reg":
			p.next()
			if err := p.regs(); err != nil {
				return err
			}
		case t.text == ".local" || t.text == ".shared" || t.text == ".param" || t.text == ".global" || t.text == ".const":
			p.next()
			vs, err := p.variables(t, false)
			if err != nil {
				return err
			}
			for _, v := range vs {
				p.scope.vars[v.name] = v
				if v.space == spGlobal || v.space == spConst {
					p.mod.order = append(p.mod.order, v)
				} else {
					p.fn.vars = append(p.fn.vars, v)
				}
			}
		case t.text == ".loc" || t.text == ".file" || t.text == ".pragma" || t.text == ".section":
			p.next()
			if err := p.debug(t); err != nil {
				return err
			}
		case t.kind == tokWord && p.toks[p.pos+1].text == ":" && p.toks[p.pos+1].kind == tokPunct:
			p.pos += 2
			if err := p.label(t); err != nil {
				return err
			}
		default:
			if len(p.fn.body) >= maxStmts {
				return p.errf(t, "function %s has more than %d instructions", p.fn.name, maxStmts)
			}
			s, err := p.stmt()
			if err != nil {
				return err
			}
			p.fn.body = append(p.fn.body, s)
		}
	}
}

func (p *parser) label(t token) error {
	if p.scope.labels[t.text] != nil {
		return p.errf(t, "label is defined twice")
	}
	l := &label{name: t.text, at: len(p.fn.body)}
	p.scope.labels[t.text] = l
	if p.accept(".branchtargets") {
		// A table for brx.idx: kept as a statement that does nothing.
		s := &stmt{line: t.line, op: ".branchtargets", text: t.text}
		for {
			n, err := p.word("a label")
			if err != nil {
				return err
			}
			s.args = append(s.args, operand{kind: opLabel, name: n.text})
			if !p.accept(",") {
				break
			}
		}
		p.fn.body = append(p.fn.body, s)
		p.note(s)
		return p.expect(";")
	}
	if n := p.peek(); n.text == ".callprototype" || n.text == ".calltargets" {
		return p.errf(n, "indirect calls are not supported")
	}
	return nil
}

func (p *parser) regs() error {
	t := p.next()
	ty := tNone
	if strings.HasPrefix(t.text, ".") {
		ty = typeNames[t.text[1:]]
	}
	if ty == tNone || ty == tB128 {
		return p.errf(t, "not a register type that is supported")
	}
	for {
		name, err := p.word("a register name")
		if err != nil {
			return err
		}
		if p.accept("<") {
			n, err := p.int("a count")
			if err != nil {
				return err
			}
			if n > maxRegs {
				return p.errf(name, "%d registers; at most %d", n, maxRegs)
			}
			if err := p.expect(">"); err != nil {
				return err
			}
			p.scope.ranges[name.text] = regRange{ty, n}
		} else {
			p.scope.regs[name.text] = p.newReg(name.text, ty)
		}
		if !p.accept(",") {
			return p.expect(";")
		}
	}
}

func (p *parser) newReg(name string, t typ) *register {
	r := &register{name: name, typ: t, id: len(p.fn.regs)}
	p.fn.regs = append(p.fn.regs, r)
	return r
}

// lookup finds a register or variable by name, innermost scope first.
func (p *parser) lookup(name string) (*register, *variable) {
	digits := len(name)
	for digits > 0 && name[digits-1] >= '0' && name[digits-1] <= '9' {
		digits--
	}
	n, err := strconv.Atoi(name[digits:])
	for s := p.scope; s != nil; s = s.up {
		if r := s.regs[name]; r != nil {
			return r, nil
		}
		if v := s.vars[name]; v != nil {
			return nil, v
		}
		if err == nil {
			if rr, ok := s.ranges[name[:digits]]; ok && n < rr.n {
				r := p.newReg(name, rr.typ)
				s.regs[name] = r
				return r, nil
			}
		}
	}
	return nil, p.mod.vars[name]
}
