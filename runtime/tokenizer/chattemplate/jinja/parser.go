package jinja

import (
	"slices"
	"strings"
)

type parser struct {
	toks  []token
	pos   int
	depth int
	line  *int // where the work stands, for error messages
	used  map[string]bool
}

func (p *parser) peek() token { return p.toks[p.pos] }

func (p *parser) next() token {
	t := p.toks[p.pos]
	if t.kind != tEOF {
		p.pos++
	}
	*p.line = t.line
	return t
}

func (p *parser) isOp(op string) bool {
	t := p.peek()
	return t.kind == tOp && t.text == op
}

func (p *parser) isName(name string) bool {
	t := p.peek()
	return t.kind == tName && t.text == name
}

func (p *parser) skipOp(op string) bool {
	if p.isOp(op) {
		p.next()
		return true
	}
	return false
}

func (p *parser) skipName(name string) bool {
	if p.isName(name) {
		p.next()
		return true
	}
	return false
}

func (p *parser) expectOp(op string) {
	if !p.skipOp(op) {
		p.unexpected("'" + op + "'")
	}
}

func (p *parser) name() string {
	if p.peek().kind != tName {
		p.unexpected("a name")
	}
	return p.next().text
}

func (p *parser) unexpected(want string) {
	t := p.next()
	what := "'" + t.text + "'"
	switch t.kind {
	case tEOF:
		what = "end of template"
	case tBlockEnd, tVarEnd:
		what = "end of tag"
	}
	fail(Syntax, "expected %s, got %s", want, what)
}

func (p *parser) blockEnd() {
	if p.peek().kind != tBlockEnd {
		p.unexpected("end of statement block")
	}
	p.next()
}

func (p *parser) enter() {
	p.depth++
	if p.depth > 3*maxNesting {
		fail(LimitErr, "the source is nested deeper than %d", 3*maxNesting)
	}
}

func (p *parser) leave() { p.depth-- }

// body reads statements up to a block whose name is one of ends (none: up to the end of the source), and that name.
func (p *parser) body(ends ...string) ([]stmt, string) {
	p.enter()
	defer p.leave()
	var out []stmt
	for {
		switch t := p.peek(); t.kind {
		case tEOF:
			if len(ends) > 0 {
				fail(Syntax, "Unexpected end of template. Jinja was looking for the following tags: '%s'.", strings.Join(ends, "' or '"))
			}
			return out, ""
		case tData:
			out = append(out, &textStmt{p.next().text})
		case tVarBegin:
			p.next()
			e := p.tuple(true, false)
			if p.peek().kind != tVarEnd {
				p.unexpected("end of print statement")
			}
			p.next()
			out = append(out, &printStmt{e, t.line})
		default: // tBlockBegin: the lexer makes nothing else here
			p.next()
			name := p.name()
			if slices.Contains(ends, name) {
				return out, name
			}
			if s := p.statement(name, t.line); s != nil {
				out = append(out, s)
			}
		}
	}
}

// block reads the rest of a tag and its body up to the end tag.
func (p *parser) block(end string) []stmt {
	p.blockEnd()
	body, _ := p.body(end)
	return body
}

func (p *parser) statement(name string, line int) (s stmt) {
	switch name {
	case "if":
		return p.ifBlock(line) // ends its own tag
	case "for":
		s = p.forBlock(line)
	case "set":
		s = p.set(line)
	case "macro":
		s = p.macro(line)
	case "call":
		s = p.callBlock(line)
	case "filter":
		f := p.filterChain(nil)
		s = &filterStmt{f, p.block("endfilter"), line}
	case "with":
		s = p.with(line)
	case "generation":
		s = &scopeStmt{p.block("endgeneration")}
	case "autoescape":
		p.expression()
		s = &scopeStmt{p.block("endautoescape")}
	case "block":
		p.name()
		for p.skipName("scoped") || p.skipName("required") {
		}
		s = &scopeStmt{p.block("endblock")}
		if p.peek().kind == tName { // {% endblock name %}
			p.next()
		}
	case "break":
		s = breakStmt{}
	case "continue":
		s = continueStmt{}
	case "include", "import", "from", "extends":
		fail(Syntax, "'%s' needs other templates, and a chat template has none", name)
	default:
		fail(Syntax, "Encountered unknown tag '%s'.", name)
	}
	p.blockEnd()
	return s
}

func (p *parser) ifBlock(line int) stmt {
	first := &ifStmt{line: line}
	for cur := first; ; {
		cur.cond = p.tuple(false, false)
		p.blockEnd()
		var end string
		cur.then, end = p.body("elif", "else", "endif")
		switch end {
		case "elif":
			next := &ifStmt{line: p.toks[p.pos-1].line}
			cur.els = []stmt{next}
			cur = next
			continue
		case "else":
			cur.els = p.block("endif")
		}
		p.blockEnd()
		return first
	}
}

func (p *parser) forBlock(line int) stmt {
	f := &forStmt{to: p.targets(false), line: line}
	if !p.skipName("in") {
		p.unexpected("'in'")
	}
	f.iter = p.tuple(false, true)
	if p.skipName("if") {
		f.test = p.expression()
	}
	f.recursive = p.skipName("recursive")
	p.blockEnd()
	var end string
	if f.body, end = p.body("endfor", "else"); end == "else" {
		f.els = p.block("endfor")
	}
	return f
}

func (p *parser) set(line int) stmt {
	to := p.targets(true)
	if p.skipOp("=") {
		return &setStmt{to, p.tuple(true, false), line}
	}
	var f *filterExpr
	if p.skipOp("|") {
		f = p.filterChain(nil)
	}
	return &setBlockStmt{to, f, p.block("endset"), line}
}

// targets reads what is assigned to: a name, ns.attr (where allowed), or several of them.
func (p *parser) targets(withNS bool) target {
	first := p.target(withNS)
	if !p.isOp(",") {
		return first
	}
	list := tupleTarget{first}
	for p.skipOp(",") {
		if t := p.peek(); t.kind == tBlockEnd || p.isName("in") || p.isOp("=") || p.isOp(")") {
			break
		}
		list = append(list, p.target(withNS))
	}
	return list
}

func (p *parser) target(withNS bool) target {
	if p.skipOp("(") {
		p.enter()
		defer p.leave()
		t := p.targets(false)
		p.expectOp(")")
		return t
	}
	name := p.name()
	if withNS && p.skipOp(".") {
		return attrTarget{name, p.name()}
	}
	switch name {
	case "true", "false", "none", "True", "False", "None":
		fail(Syntax, "can't assign to '%s'", name)
	}
	return nameTarget(name)
}

// signature reads (a, b=1) of a macro or call block.
func (p *parser) signature(def *macroDef) {
	p.expectOp("(")
	for !p.isOp(")") {
		if len(def.params) > 0 {
			p.expectOp(",")
		}
		def.params = append(def.params, p.name())
		if p.skipOp("=") {
			def.defaults = append(def.defaults, p.expression())
		} else if len(def.defaults) > 0 {
			fail(Syntax, "non-default argument follows default argument")
		}
	}
	p.expectOp(")")
}

// macroBody reads the body and notes which of the special names it uses.
func (p *parser) macroBody(def *macroDef, end string) {
	outer := p.used
	p.used = map[string]bool{}
	def.body = p.block(end)
	def.varargs, def.kwargs, def.caller = p.used["varargs"], p.used["kwargs"], p.used["caller"]
	for name := range p.used {
		if outer != nil {
			outer[name] = true
		}
	}
	p.used = outer
}

func (p *parser) macro(line int) stmt {
	def := &macroDef{name: p.name(), line: line}
	p.signature(def)
	p.macroBody(def, "endmacro")
	return &macroStmt{def}
}

func (p *parser) callBlock(line int) stmt {
	def := &macroDef{name: "caller", line: line}
	if p.isOp("(") {
		p.signature(def)
	}
	call, ok := p.expression().(*callExpr)
	if !ok {
		fail(Syntax, "expected call")
	}
	p.macroBody(def, "endcall")
	return &callStmt{def, call, line}
}

func (p *parser) with(line int) stmt {
	w := &withStmt{line: line}
	for p.peek().kind != tBlockEnd {
		if len(w.to) > 0 {
			p.expectOp(",")
		}
		w.to = append(w.to, p.target(false))
		p.expectOp("=")
		w.vals = append(w.vals, p.expression())
	}
	w.body = p.block("endwith")
	return w
}
