package ptx

import "strings"

// labelUse is a statement whose label operands wait for the end of the
// function, with the scope they were written in.
type labelUse struct {
	s     *stmt
	scope *scope
}

// note remembers a statement that names labels.
func (p *parser) note(s *stmt) {
	p.mod.uses = append(p.mod.uses, labelUse{s, p.scope})
}

// resolve binds the function's label operands.
func (p *parser) resolve() error {
	for _, u := range p.mod.uses {
		for i := range u.s.args {
			a := &u.s.args[i]
			if a.kind != opLabel {
				continue
			}
			for s := u.scope; s != nil && a.tgt == nil; s = s.up {
				a.tgt = s.labels[a.name]
			}
			if a.tgt == nil {
				return &SyntaxError{Line: u.s.line, Text: u.s.text, Msg: "label " + a.name + " is not defined"}
			}
		}
	}
	for _, u := range p.mod.uses {
		if u.s.op != "brx" {
			continue
		}
		at := u.s.args[1].tgt.at
		if at >= len(p.fn.body) || p.fn.body[at].op != ".branchtargets" {
			return &SyntaxError{Line: u.s.line, Text: u.s.text, Msg: "no .branchtargets list of that name"}
		}
		for _, a := range p.fn.body[at].args {
			u.s.tgts = append(u.s.tgts, a.tgt)
		}
	}
	p.mod.uses = p.mod.uses[:0]
	return nil
}

// stmt reads one instruction with its guard.
func (p *parser) stmt() (*stmt, error) {
	first := p.peek()
	s := &stmt{line: first.line, loc: p.loc}
	if p.accept("@") {
		s.neg = p.accept("!")
		t, err := p.word("a predicate")
		if err != nil {
			return nil, err
		}
		r, _ := p.lookup(t.text)
		if r == nil || r.typ != tPred {
			return nil, p.errf(t, "not a predicate register")
		}
		s.guard = r
	}
	op, err := p.word("an instruction")
	if err != nil {
		return nil, err
	}
	parts := strings.Split(op.text, ".")
	s.op, s.mods = parts[0], parts[1:]
	if s.op == "" {
		return nil, p.errf(op, "not a directive that is supported here")
	}
	for !p.accept(";") {
		if p.peek().kind == tokEOF {
			return nil, p.errf(op, "instruction is not ended")
		}
		a, err := p.operand(s)
		if err != nil {
			return nil, err
		}
		s.args = append(s.args, a)
		if !p.accept(",") && p.peek().text != ";" {
			return nil, p.errf(p.peek(), "expected a comma or a semicolon in %s", op.text)
		}
	}
	s.text = strings.Join(strings.Fields(p.src[first.start:p.toks[p.pos-1].start]), " ")
	switch s.op {
	case "bra":
		p.note(s)
		if len(s.args) != 1 || s.args[0].kind != opLabel {
			return nil, p.errf(op, "needs a label")
		}
	case "brx":
		p.note(s)
		if len(s.args) != 2 || s.args[1].kind != opLabel {
			return nil, p.errf(op, "needs an index and a list of labels")
		}
	}
	return s, nil
}

func (p *parser) operand(s *stmt) (operand, error) {
	if err := p.nest(); err != nil {
		return operand{}, err
	}
	defer func() { p.depth-- }()
	t := p.peek()
	switch {
	case p.accept("{"):
		op := operand{kind: opVec}
		for !p.accept("}") {
			a, err := p.operand(s)
			if err != nil {
				return op, err
			}
			op.list = append(op.list, a)
			if !p.accept(",") && p.peek().text != "}" {
				return op, p.errf(p.peek(), "expected a comma or a closing brace")
			}
		}
		return op, nil
	case p.accept("("):
		op := operand{kind: opList}
		for !p.accept(")") {
			a, err := p.operand(s)
			if err != nil {
				return op, err
			}
			op.list = append(op.list, a)
			if !p.accept(",") && p.peek().text != ")" {
				return op, p.errf(p.peek(), "expected a comma or a closing parenthesis")
			}
		}
		return op, nil
	case p.accept("["):
		return p.address()
	case p.accept("!"):
		a, err := p.operand(s)
		a.neg = true
		return a, err
	case p.accept("-"):
		n := p.next()
		if a, ok := immediate(n.text, true); ok {
			return a, nil
		}
		return operand{}, p.errf(n, "expected a number after the minus")
	case t.kind != tokWord:
		return operand{}, p.errf(t, "not an operand")
	}
	p.next()
	a, err := p.name(t, s)
	if err != nil {
		return a, err
	}
	switch {
	case p.accept("|"):
		b, err := p.operand(s)
		return operand{kind: opPair, list: []operand{a, b}}, err
	case a.kind == opVar && p.accept("+"):
		n, err := p.int("an offset")
		a.off = int64(n)
		return a, err
	}
	return a, nil
}

// name classifies a word operand.
func (p *parser) name(t token, s *stmt) (operand, error) {
	if t.text == "_" {
		return operand{kind: opSink}, nil
	}
	if a, ok := immediate(t.text, false); ok {
		return a, nil
	}
	if s.op == "bra" || s.op == "brx" && len(s.args) == 1 {
		return operand{kind: opLabel, name: t.text}, nil
	}
	r, v := p.lookup(t.text)
	switch {
	case r != nil:
		return operand{kind: opReg, reg: r}, nil
	case v != nil:
		return operand{kind: opVar, vr: v, name: t.text}, nil
	case specialRegister(t.text):
		return operand{kind: opSpecial, name: t.text}, nil
	}
	if s.op == "call" {
		return operand{kind: opFunc, name: t.text}, nil
	}
	return operand{}, p.errf(t, "not declared")
}

// address reads what is inside [ ].
func (p *parser) address() (operand, error) {
	op := operand{kind: opAddr}
	t, err := p.word("an address")
	if err != nil {
		return op, err
	}
	if a, ok := immediate(t.text, false); ok {
		op.off = int64(a.imm)
		return op, p.expect("]")
	}
	r, v := p.lookup(t.text)
	if r == nil && v == nil {
		return op, p.errf(t, "not declared")
	}
	op.reg, op.vr = r, v
	for !p.accept("]") {
		neg := p.accept("-")
		if !neg {
			if err := p.expect("+"); err != nil {
				return op, err
			}
			neg = p.accept("-")
		}
		n := p.next()
		a, ok := immediate(n.text, neg)
		if !ok || a.imk != immInt {
			return op, p.errf(n, "expected an offset")
		}
		op.off += int64(a.imm)
	}
	return op, nil
}
