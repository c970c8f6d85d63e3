package jinja

// Statements.
type (
	stmt interface{}

	textStmt  struct{ text string }
	printStmt struct {
		e    expr
		line int
	}
	ifStmt struct {
		cond      expr
		then, els []stmt
		line      int
	}
	forStmt struct {
		to        target
		iter      expr
		test      expr // nil without "if"
		recursive bool
		body, els []stmt
		line      int
	}
	setStmt struct {
		to   target
		e    expr
		line int
	}
	setBlockStmt struct {
		to     target
		filter *filterExpr // nil without one
		body   []stmt
		line   int
	}
	macroStmt struct{ def *macroDef }
	callStmt  struct {
		def  *macroDef // the caller
		call *callExpr
		line int
	}
	filterStmt struct {
		filter *filterExpr
		body   []stmt
		line   int
	}
	withStmt struct {
		to   []target
		vals []expr
		body []stmt
		line int
	}
	scopeStmt    struct{ body []stmt } // block, generation, autoescape
	breakStmt    struct{}
	continueStmt struct{}
)

// macroDef is a macro, or the body of a call block.
type macroDef struct {
	name                    string
	params                  []string
	defaults                []expr // of the last parameters
	body                    []stmt
	varargs, kwargs, caller bool // the body uses these names
	line                    int
}

// Targets of an assignment.
type (
	target      interface{}
	nameTarget  string
	attrTarget  struct{ ns, attr string }
	tupleTarget []target
)

// Expressions.
type (
	expr interface{}

	constExpr struct{ v Value }
	nameExpr  string
	listExpr  struct {
		items []expr
		tuple bool
	}
	dictExpr struct{ keys, vals []expr }
	attrExpr struct {
		e    expr
		name string
	}
	itemExpr  struct{ e, key expr }
	sliceExpr struct{ e, start, stop, step expr } // nil where left out
	callExpr  struct {
		fn   expr
		args callArgs
	}
	filterExpr struct {
		e    expr // nil: the body of a block
		name string
		args callArgs
	}
	testExpr struct {
		e    expr
		name string
		args callArgs
		not  bool
	}
	unaryExpr struct {
		op string // not - +
		e  expr
	}
	binaryExpr struct {
		op   string
		l, r expr
	}
	concatExpr  []expr
	compareExpr struct {
		first expr
		ops   []string
		rest  []expr
	}
	condExpr struct {
		cond, then, els expr // els nil without "else"
		line            int
	}
)

type callArgs struct {
	pos      []expr
	names    []string // keywords
	vals     []expr
	star, kw expr // *args, **kwargs
}
