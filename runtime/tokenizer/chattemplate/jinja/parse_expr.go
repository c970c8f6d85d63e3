package jinja

import "strings"

// tuple reads one expression, or several divided by commas. conditional allows "a if b else c"; inFor ends at "recursive".
func (p *parser) tuple(conditional, inFor bool) expr {
	one := p.or
	if conditional {
		one = p.expression
	}
	var items []expr
	tuple := false
	for {
		if t := p.peek(); t.kind == tVarEnd || t.kind == tBlockEnd || p.isOp(")") || inFor && p.isName("recursive") {
			break
		}
		items = append(items, one())
		if !p.skipOp(",") {
			break
		}
		tuple = true
	}
	if tuple {
		return &listExpr{items, true}
	}
	if len(items) == 0 {
		p.unexpected("an expression")
	}
	return items[0]
}

func (p *parser) expression() expr {
	p.enter()
	defer p.leave()
	e := p.or()
	for {
		line := p.peek().line
		if !p.skipName("if") {
			return e
		}
		c := &condExpr{cond: p.or(), then: e, line: line}
		if p.skipName("else") {
			c.els = p.expression()
		}
		e = c
	}
}

func (p *parser) or() expr {
	l := p.and()
	for p.skipName("or") {
		l = &binaryExpr{"or", l, p.and()}
	}
	return l
}

func (p *parser) and() expr {
	l := p.not()
	for p.skipName("and") {
		l = &binaryExpr{"and", l, p.not()}
	}
	return l
}

func (p *parser) not() expr {
	if p.skipName("not") {
		p.enter()
		defer p.leave()
		return &unaryExpr{"not", p.not()}
	}
	return p.compare()
}

func (p *parser) compare() expr {
	first := p.sum()
	c := &compareExpr{first: first}
	for {
		op := ""
		switch t := p.peek(); {
		case t.kind == tOp:
			switch t.text {
			case "==", "!=", "<", "<=", ">", ">=":
				op = t.text
			}
		case p.isName("in"):
			op = "in"
		case p.isName("not") && p.toks[p.pos+1].kind == tName && p.toks[p.pos+1].text == "in":
			p.next()
			op = "not in"
		}
		if op == "" {
			break
		}
		p.next()
		c.ops = append(c.ops, op)
		c.rest = append(c.rest, p.sum())
	}
	if len(c.ops) == 0 {
		return first
	}
	return c
}

func (p *parser) binary(sub func() expr, ops string) expr {
	l := sub()
	for {
		t := p.peek()
		if t.kind != tOp || !strings.Contains(ops, " "+t.text+" ") {
			return l
		}
		p.next()
		l = &binaryExpr{t.text, l, sub()}
	}
}

func (p *parser) sum() expr     { return p.binary(p.concat, " + - ") }
func (p *parser) product() expr { return p.binary(p.pow, " * / // % ") }
func (p *parser) pow() expr     { return p.binary(func() expr { return p.unary(true) }, " ** ") }

func (p *parser) concat() expr {
	first := p.product()
	if !p.isOp("~") {
		return first
	}
	c := concatExpr{first}
	for p.skipOp("~") {
		c = append(c, p.product())
	}
	return c
}

func (p *parser) unary(filters bool) expr {
	p.enter()
	defer p.leave()
	var e expr
	switch {
	case p.skipOp("-"):
		e = &unaryExpr{"-", p.unary(false)}
	case p.skipOp("+"):
		e = &unaryExpr{"+", p.unary(false)}
	default:
		e = p.primary()
	}
	e = p.postfix(e)
	if !filters {
		return e
	}
	for {
		switch {
		case p.skipOp("|"):
			e = p.filter(e)
		case p.skipName("is"):
			e = p.test(e)
		case p.isOp("("):
			e = p.call(e)
		default:
			return e
		}
	}
}

func (p *parser) primary() expr {
	t := p.peek()
	switch t.kind {
	case tName:
		p.next()
		switch t.text {
		case "true", "True":
			return &constExpr{true}
		case "false", "False":
			return &constExpr{false}
		case "none", "None":
			return &constExpr{nil}
		}
		if p.used != nil {
			p.used[t.text] = true
		}
		return nameExpr(t.text)
	case tString:
		s := ""
		for p.peek().kind == tString { // neighbours are joined
			s += p.next().text
		}
		return &constExpr{s}
	case tNumber:
		p.next()
		return &constExpr{t.num}
	}
	switch {
	case p.skipOp("("):
		if p.skipOp(")") {
			return &listExpr{tuple: true}
		}
		e := p.tuple(true, false)
		p.expectOp(")")
		return e
	case p.skipOp("["):
		l := &listExpr{}
		for !p.skipOp("]") {
			if len(l.items) > 0 {
				p.expectOp(",")
				if p.skipOp("]") {
					break
				}
			}
			l.items = append(l.items, p.expression())
		}
		return l
	case p.skipOp("{"):
		d := &dictExpr{}
		for !p.skipOp("}") {
			if len(d.keys) > 0 {
				p.expectOp(",")
				if p.skipOp("}") {
					break
				}
			}
			d.keys = append(d.keys, p.expression())
			p.expectOp(":")
			d.vals = append(d.vals, p.expression())
		}
		return d
	}
	p.unexpected("an expression")
	return nil
}

func (p *parser) postfix(e expr) expr {
	for {
		switch {
		case p.skipOp("."):
			if t := p.next(); t.kind == tName {
				e = &attrExpr{e, t.text}
			} else if t.kind == tNumber {
				e = &itemExpr{e, &constExpr{t.num}}
			} else {
				fail(Syntax, "expected name or number after '.'")
			}
		case p.skipOp("["):
			e = p.subscript(e)
		case p.isOp("("):
			e = p.call(e)
		default:
			return e
		}
	}
}

func (p *parser) subscript(e expr) expr {
	var start expr
	if !p.isOp(":") {
		start = p.expression()
		if p.isOp(",") {
			l := &listExpr{items: []expr{start}, tuple: true}
			for p.skipOp(",") && !p.isOp("]") {
				l.items = append(l.items, p.expression())
			}
			start = l
		}
		if p.skipOp("]") {
			return &itemExpr{e, start}
		}
	}
	s := &sliceExpr{e: e, start: start}
	p.expectOp(":")
	if !p.isOp(":") && !p.isOp("]") {
		s.stop = p.expression()
	}
	if p.skipOp(":") && !p.isOp("]") {
		s.step = p.expression()
	}
	p.expectOp("]")
	return s
}

func (p *parser) call(fn expr) expr { return &callExpr{fn, p.callArgs()} }

func (p *parser) callArgs() (a callArgs) {
	p.expectOp("(")
	for n := 0; !p.skipOp(")"); n++ {
		if n > 0 {
			p.expectOp(",")
			if p.skipOp(")") {
				break
			}
		}
		switch {
		case p.skipOp("*"):
			a.star = p.once(a.star, a.kw == nil)
		case p.skipOp("**"):
			a.kw = p.once(a.kw, true)
		case p.peek().kind == tName && p.toks[p.pos+1].kind == tOp && p.toks[p.pos+1].text == "=":
			a.names = append(a.names, p.next().text)
			p.next()
			a.vals = append(a.vals, p.expression())
		default:
			if a.star != nil || a.kw != nil || len(a.names) > 0 {
				fail(Syntax, "invalid syntax for function call expression")
			}
			a.pos = append(a.pos, p.expression())
		}
	}
	return a
}

func (p *parser) once(have expr, ok bool) expr {
	if have != nil || !ok {
		fail(Syntax, "invalid syntax for function call expression")
	}
	return p.expression()
}

func (p *parser) dotted() string {
	name := p.name()
	for p.skipOp(".") {
		name += "." + p.name()
	}
	return name
}

func (p *parser) filter(e expr) *filterExpr {
	f := &filterExpr{e: e, name: p.dotted()}
	if p.isOp("(") {
		f.args = p.callArgs()
	}
	return f
}

// filterChain reads upper|trim of a filter or set block; its innermost input is e.
func (p *parser) filterChain(e expr) *filterExpr {
	f := p.filter(e)
	for p.skipOp("|") {
		f = p.filter(f)
	}
	return f
}

func (p *parser) test(e expr) expr {
	t := &testExpr{e: e, not: p.skipName("not")}
	t.name = p.dotted()
	next := p.peek()
	switch {
	case p.isOp("("):
		t.args = p.callArgs()
	case next.kind == tString, next.kind == tNumber, p.isOp("["), p.isOp("{"),
		next.kind == tName && !strings.Contains(" else or and if in not ", " "+next.text+" "):
		if p.isName("is") {
			fail(Syntax, "You cannot chain multiple tests with is")
		}
		t.args.pos = []expr{p.postfix(p.primary())}
	}
	return t
}
