package ptx

import "fmt"

// flat is a kernel's body with every call replaced by the callee's body: one
// list of statements, one set of registers.
type flat struct {
	mod   *Module
	stmts []*stmt
	nregs int
	regs  []*register
	vars  []*variable
	used  map[*variable]bool
	stack []string
	calls int
}

// inliner maps one copy of a function into the flat body.
type inliner struct {
	*flat
	fn     *function
	regs   map[*register]*register
	vars   map[*variable]*variable
	labels map[*label]*label
	pos    []int
}

// flatten copies the entry's body, calls expanded. PTX has no stack that we
// model, so recursion is an error.
func (m *Module) flatten(f *function) (*flat, error) {
	fl := &flat{mod: m, used: map[*variable]bool{}}
	if err := fl.add(f, nil, nil); err != nil {
		return nil, err
	}
	fl.stmts = append(fl.stmts, &stmt{line: f.line, op: "exit", text: "end of " + f.name})
	return fl, nil
}

func (fl *flat) add(f *function, bound map[*variable]*variable, end *label) error {
	for _, name := range fl.stack {
		if name == f.name {
			return &SyntaxError{Line: f.line, Text: f.name, Msg: "recursive calls are not supported"}
		}
	}
	if fl.calls++; fl.calls > maxCalls || len(fl.stack) > maxNesting {
		return &SyntaxError{Line: f.line, Text: f.name, Msg: fmt.Sprintf("more than %d calls, or calls nested more than %d deep", maxCalls, maxNesting)}
	}
	fl.stack = append(fl.stack, f.name)
	defer func() { fl.stack = fl.stack[:len(fl.stack)-1] }()

	in := &inliner{flat: fl, fn: f, regs: map[*register]*register{}, vars: bound, labels: map[*label]*label{}}
	if in.vars == nil {
		in.vars = map[*variable]*variable{}
	}
	for _, v := range f.vars {
		if v.space == spShared {
			if !fl.used[v] {
				fl.used[v] = true
				fl.vars = append(fl.vars, v)
			}
			continue
		}
		c := *v // .local, and the .param blocks of calls, which are local too
		c.space = spLocal
		in.vars[v] = &c
		fl.vars = append(fl.vars, &c)
	}
	for _, s := range f.body {
		in.pos = append(in.pos, len(fl.stmts))
		if len(fl.stmts) > maxStmts {
			return &SyntaxError{Line: s.line, Text: f.name, Msg: fmt.Sprintf("more than %d instructions after inlining", maxStmts)}
		}
		if err := in.stmt(s, end); err != nil {
			return err
		}
	}
	in.pos = append(in.pos, len(fl.stmts))
	for old, l := range in.labels {
		l.at = in.pos[old.at]
	}
	return nil
}

func (in *inliner) stmt(s *stmt, end *label) error {
	switch {
	case s.op == ".branchtargets":
		return nil
	case s.op == "call":
		return in.call(s)
	case s.op == "ret" && end != nil:
		c := *s
		c.op, c.mods = "bra", nil
		c.guard = in.reg(s.guard)
		c.args = []operand{{kind: opLabel, tgt: end}}
		in.stmts = append(in.stmts, &c)
		return nil
	}
	c := *s
	c.guard = in.reg(s.guard)
	c.args = in.operands(s.args)
	c.tgts = nil
	for _, l := range s.tgts {
		c.tgts = append(c.tgts, in.label(l))
	}
	in.stmts = append(in.stmts, &c)
	return nil
}

func (in *inliner) reg(r *register) *register {
	if r == nil {
		return nil
	}
	c := in.regs[r]
	if c == nil {
		c = &register{name: r.name, typ: r.typ, id: in.nregs}
		in.nregs++
		in.flat.regs = append(in.flat.regs, c)
		in.regs[r] = c
	}
	return c
}

func (in *inliner) label(l *label) *label {
	if l == nil {
		return nil
	}
	c := in.labels[l]
	if c == nil {
		c = &label{name: l.name}
		in.labels[l] = c
	}
	return c
}

func (in *inliner) variable(v *variable) *variable {
	if c := in.vars[v]; c != nil {
		return c
	}
	if v != nil && v.space == spShared && !in.used[v] {
		in.used[v] = true
		in.flat.vars = append(in.flat.vars, v)
	}
	return v
}

func (in *inliner) operands(ops []operand) []operand {
	out := make([]operand, len(ops))
	for i, o := range ops {
		o.reg = in.reg(o.reg)
		o.vr = in.variable(o.vr)
		o.tgt = in.label(o.tgt)
		if o.list != nil {
			o.list = in.operands(o.list)
		}
		out[i] = o
	}
	return out
}

// call expands a direct call: the callee's formal parameters become the
// caller's .param blocks.
func (in *inliner) call(s *stmt) error {
	bad := func(format string, args ...any) error {
		return &SyntaxError{Line: s.line, Text: s.text, Msg: fmt.Sprintf(format, args...)}
	}
	var rets, actual []operand
	args := s.args
	if len(args) > 0 && args[0].kind == opList {
		rets, args = args[0].list, args[1:]
	}
	if len(args) == 0 || args[0].kind != opFunc {
		return bad("only direct calls of functions are supported")
	}
	callee, known := in.mod.funcs[args[0].name]
	if callee == nil {
		if known {
			return bad("function %s is declared but has no body in this module", args[0].name)
		}
		return bad("function %s is not declared", args[0].name)
	}
	if len(args) > 1 && args[1].kind == opList {
		actual = args[1].list
	}
	if len(rets) != len(callee.rets) || len(actual) != len(callee.params) {
		return bad("%s takes %d parameters and gives %d results; the call has %d and %d",
			callee.name, len(callee.params), len(callee.rets), len(actual), len(rets))
	}
	bound := map[*variable]*variable{}
	bind := func(formal *variable, a operand) error {
		if a.kind != opVar || in.variable(a.vr).space != spLocal {
			return bad("arguments must be .param variables of the caller")
		}
		if a.vr.size < formal.size {
			return bad("argument %s of %d bytes for a parameter of %d", a.vr.name, a.vr.size, formal.size)
		}
		bound[formal] = in.variable(a.vr)
		return nil
	}
	for i, a := range rets {
		if err := bind(callee.rets[i], a); err != nil {
			return err
		}
	}
	for i, a := range actual {
		if err := bind(callee.params[i], a); err != nil {
			return err
		}
	}
	end := &label{name: "return of " + callee.name}
	var skip *label
	if s.guard != nil {
		skip = end
		in.stmts = append(in.stmts, &stmt{
			line: s.line, loc: s.loc, guard: in.reg(s.guard), neg: !s.neg, op: "bra", text: s.text,
			args: []operand{{kind: opLabel, tgt: skip}},
		})
	}
	if err := in.add(callee, bound, end); err != nil {
		return err
	}
	end.at = len(in.stmts)
	return nil
}
