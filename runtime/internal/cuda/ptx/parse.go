package ptx

import (
	"fmt"
	"strconv"
	"strings"
)

type parser struct {
	src   string
	toks  []token
	pos   int
	mod   *Module
	loc   loc
	fn    *function
	scope *scope
	depth int // of nesting
}

// nest counts a level of nesting, which the text decides, and the stack pays.
func (p *parser) nest() error {
	if p.depth++; p.depth > maxNesting {
		return p.errf(p.peek(), "nested more than %d deep", maxNesting)
	}
	return nil
}

// Parse reads PTX text (any .version; sm_80's instructions and what later
// plain targets share with it) and prepares its kernels to be launched. The
// error is a *SyntaxError that names line and statement.
func Parse(src string) (*Module, error) {
	if len(src) > maxSource {
		return nil, &SyntaxError{Line: 1, Msg: fmt.Sprintf("module of %d bytes; at most %d are read", len(src), maxSource)}
	}
	// A module as cuModuleLoadData takes it may end in NUL bytes.
	src = strings.TrimRight(src, "\x00")
	toks, err := lex(src)
	if err != nil {
		return nil, err
	}
	p := &parser{src: src, toks: toks, mod: &Module{
		files: map[int]string{}, vars: map[string]*variable{}, funcs: map[string]*function{}, kernels: map[string]*Kernel{},
	}}
	if err := p.module(); err != nil {
		return nil, err
	}
	if err := p.mod.link(); err != nil {
		return nil, err
	}
	return p.mod, nil
}

func (p *parser) peek() token { return p.toks[p.pos] }

func (p *parser) next() token {
	t := p.toks[p.pos]
	if t.kind != tokEOF {
		p.pos++
	}
	return t
}

func (p *parser) errf(t token, format string, args ...any) error {
	return &SyntaxError{Line: t.line, Text: t.text, Msg: fmt.Sprintf(format, args...)}
}

// accept consumes the punctuation or word s if it is next.
func (p *parser) accept(s string) bool {
	if t := p.peek(); t.kind != tokString && t.kind != tokEOF && t.text == s {
		p.pos++
		return true
	}
	return false
}

func (p *parser) expect(s string) error {
	if !p.accept(s) {
		return p.errf(p.peek(), "expected %q", s)
	}
	return nil
}

func (p *parser) word(what string) (token, error) {
	t := p.next()
	if t.kind != tokWord {
		return t, p.errf(t, "expected %s", what)
	}
	return t, nil
}

func (p *parser) int(what string) (int, error) {
	t, err := p.word(what)
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseInt(strings.TrimSuffix(t.text, "U"), 0, 64)
	if err != nil || v < 0 || v > 1<<40 {
		return 0, p.errf(t, "expected %s, a whole number", what)
	}
	return int(v), nil
}

func (p *parser) module() error {
	linkage := ""
	for {
		t := p.next()
		if t.kind == tokEOF {
			break
		}
		var err error
		switch t.text {
		case ".version":
			v, e := p.word("a version")
			p.mod.Version, err = v.text, e
		case ".target":
			v, e := p.word("a target")
			p.mod.Target, err = v.text, e
			for err == nil && p.accept(",") {
				_, err = p.word("a target option")
			}
		case ".address_size":
			var bits int
			if bits, err = p.int("32 or 64"); err == nil && bits != 64 {
				err = p.errf(t, "only 64-bit addresses are supported, not %d", bits)
			}
		case ".visible", ".extern", ".weak", ".common":
			linkage = t.text
			continue
		case ".file", ".loc", ".section", ".pragma":
			err = p.debug(t)
		case ".entry", ".func":
			err = p.function(t, t.text == ".entry")
		case ".global", ".const", ".shared":
			var vs []*variable
			if vs, err = p.variables(t, linkage == ".extern"); err == nil {
				for _, v := range vs {
					if old := p.mod.vars[v.name]; old != nil && !old.extern {
						return p.errf(t, "variable %s is declared twice", v.name)
					}
					p.mod.vars[v.name] = v
					p.mod.order = append(p.mod.order, v)
				}
			}
		case ";":
		default:
			err = p.errf(t, "not a module-level directive")
		}
		if err != nil {
			return err
		}
		linkage = ""
	}
	if p.mod.Version == "" || p.mod.Target == "" {
		return p.errf(p.peek(), "not a PTX module: .version and .target are missing")
	}
	return nil
}

// debug reads the directives that carry source positions, and skips the rest.
func (p *parser) debug(t token) error {
	switch t.text {
	case ".pragma":
		for !p.accept(";") {
			if p.next().kind == tokEOF {
				return p.errf(t, "not ended")
			}
		}
	case ".file":
		n, err := p.int("a file number")
		if err != nil {
			return err
		}
		name := p.next()
		if name.kind != tokString {
			return p.errf(name, "expected a file name")
		}
		p.mod.files[n] = name.text
		for p.accept(",") {
			p.next()
		}
	case ".loc":
		var v [3]int
		for i := range v {
			n, err := p.int("a source position")
			if err != nil {
				return err
			}
			v[i] = n
		}
		p.loc = loc{v[0], v[1]}
		for p.peek().kind != tokEOF && p.peek().line == t.line {
			p.next() // function_name ..., inlined_at ...
		}
	case ".section":
		if _, err := p.word("a section name"); err != nil {
			return err
		}
		if err := p.expect("{"); err != nil {
			return err
		}
		for depth := 1; depth > 0; {
			switch n := p.next(); {
			case n.kind == tokEOF:
				return p.errf(t, "section is not closed")
			case n.kind == tokPunct && n.text == "{":
				depth++
			case n.kind == tokPunct && n.text == "}":
				depth--
			}
		}
	}
	return nil
}

// variables reads what follows a state-space word up to the semicolon.
func (p *parser) variables(t token, extern bool) ([]*variable, error) {
	var out []*variable
	align, elem, vec, err := p.varType()
	if err != nil {
		return nil, err
	}
	for {
		v := &variable{space: spaceNames[t.text[1:]], align: align, extern: extern}
		if err := p.declarator(v, elem, vec); err != nil {
			return nil, err
		}
		out = append(out, v)
		if !p.accept(",") {
			return out, p.expect(";")
		}
	}
}

// varType reads .align, vector and type words.
func (p *parser) varType() (align int, elem typ, vec int, err error) {
	vec = 1
	for {
		t := p.peek()
		switch {
		case t.text == ".align":
			p.next()
			if align, err = p.int("an alignment"); err != nil {
				return
			}
			if align == 0 || align&(align-1) != 0 || align > 4096 {
				return 0, 0, 0, p.errf(t, "alignment %d is not a power of two up to 4096", align)
			}
		case t.text == ".v2" || t.text == ".v4":
			p.next()
			vec = int(t.text[2] - '0')
		case t.text == ".ptr" || t.text == ".global" || t.text == ".shared" || t.text == ".const" || t.text == ".local":
			p.next() // what a pointer parameter points to
		case t.text == ".attribute":
			p.next()
			for !p.accept(")") {
				if p.next().kind == tokEOF {
					return 0, 0, 0, p.errf(t, "not closed")
				}
			}
		case strings.HasPrefix(t.text, ".") && typeNames[t.text[1:]] != tNone:
			p.next()
			elem = typeNames[t.text[1:]]
		default:
			if elem == tNone {
				return 0, 0, 0, p.errf(t, "expected a type")
			}
			if align == 0 {
				align = elem.size() * vec
			}
			return
		}
	}
}

// declarator reads a name, its array bounds and its initialiser.
func (p *parser) declarator(v *variable, elem typ, vec int) error {
	name, err := p.word("a variable name")
	if err != nil {
		return err
	}
	v.name = name.text
	n, sized := vec, true
	for p.accept("[") {
		if p.accept("]") {
			sized = false
			continue
		}
		d, err := p.int("an array bound")
		if err != nil {
			return err
		}
		if d > maxVariable || n*d > maxVariable {
			return p.errf(name, "variable of more than %d bytes", maxVariable)
		}
		n *= d
		if err := p.expect("]"); err != nil {
			return err
		}
	}
	if p.accept("=") {
		if err := p.initialiser(v, elem); err != nil {
			return err
		}
		if !sized {
			n = len(v.init) / elem.size()
		}
	} else if !sized && !v.extern {
		return p.errf(name, "an array without a bound needs .extern")
	} else if !sized {
		n = 0
	}
	v.size = n * elem.size()
	if v.size > maxVariable {
		return p.errf(name, "variable of %d bytes; at most %d", v.size, maxVariable)
	}
	if len(v.init) > v.size {
		return p.errf(name, "%d bytes of initial values for %d bytes", len(v.init), v.size)
	}
	return nil
}

func (p *parser) initialiser(v *variable, elem typ) error {
	if err := p.nest(); err != nil {
		return err
	}
	defer func() { p.depth-- }()
	if p.accept("{") {
		for !p.accept("}") {
			if err := p.initialiser(v, elem); err != nil {
				return err
			}
			p.accept(",")
		}
		return nil
	}
	if len(v.init) > maxVariable {
		return p.errf(p.peek(), "initialiser of more than %d bytes", maxVariable)
	}
	op, err := p.constant()
	if err != nil {
		return err
	}
	size := elem.size()
	if op.name != "" {
		v.refs = append(v.refs, initRef{at: len(v.init), sym: op.name, add: op.off})
	}
	bits := immBits(op, elem)
	for i := range size {
		if i < 8 {
			v.init = append(v.init, byte(bits>>(8*i)))
		} else {
			v.init = append(v.init, 0)
		}
	}
	return nil
}

// constant reads an immediate, or a symbol with an offset.
func (p *parser) constant() (operand, error) {
	if err := p.nest(); err != nil {
		return operand{}, err
	}
	defer func() { p.depth-- }()
	neg := p.accept("-")
	t, err := p.word("a constant")
	if err != nil {
		return operand{}, err
	}
	if t.text == "generic" && p.accept("(") {
		op, err := p.constant()
		if err != nil {
			return op, err
		}
		if err := p.expect(")"); err != nil {
			return op, err
		}
		return p.plus(op)
	}
	if op, ok := immediate(t.text, neg); ok {
		return op, nil
	}
	return p.plus(operand{kind: opVar, name: t.text})
}

// plus reads the offset that may follow a symbol.
func (p *parser) plus(op operand) (operand, error) {
	if !p.accept("+") {
		return op, nil
	}
	n, err := p.int("an offset")
	op.off += int64(n)
	return op, err
}
