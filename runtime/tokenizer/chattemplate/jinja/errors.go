package jinja

import (
	"context"
	"fmt"
)

// Kind is the class of an Error, named as in Python and Jinja2.
type Kind string

// Kinds of Error.
const (
	Raised        Kind = "TemplateError"        // the template called raise_exception; Message is its text
	Syntax        Kind = "TemplateSyntaxError"  // the source does not parse
	UndefinedUse  Kind = "UndefinedError"       // an undefined value was used
	Runtime       Kind = "TemplateRuntimeError" // unknown filter or test, assignment to what is no namespace
	Security      Kind = "SecurityError"        // the sandbox forbids the attribute
	AttributeErr  Kind = "AttributeError"
	FilterArgErr  Kind = "FilterArgumentError"
	TypeErr       Kind = "TypeError"
	ValueErr      Kind = "ValueError"
	OverflowErr   Kind = "OverflowError"
	ZeroDivideErr Kind = "ZeroDivisionError"
	LimitErr      Kind = "LimitError"    // steps, bytes, nesting or time ran out; Err has the context's error if it was time
	Internal      Kind = "InternalError" // a fault of this package, caught
)

// Error is what Compile and Render return.
type Error struct {
	Kind    Kind
	Message string
	Line    int   // 1-based line of the template, 0 if unknown
	Err     error // cause, or nil
}

func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("line %d: %s: %s", e.Line, e.Kind, e.Message)
	}
	return fmt.Sprintf("%s: %s", e.Kind, e.Message)
}

// Unwrap gives the cause, so that errors.Is finds context.DeadlineExceeded.
func (e *Error) Unwrap() error { return e.Err }

// fail leaves the current Compile or Render with an error; caught turns it into a return value at the package's edge.
func fail(k Kind, format string, a ...any) {
	panic(&Error{Kind: k, Message: fmt.Sprintf(format, a...)})
}

// caught is deferred by every exported function that evaluates or parses. line is where the work stood.
func caught(err *error, line *int) {
	switch r := recover().(type) {
	case nil:
	case *Error:
		if r.Line == 0 {
			r.Line = *line
		}
		*err = r
	default:
		*err = &Error{Kind: Internal, Message: fmt.Sprint(r), Line: *line}
	}
}

// Limits bound one rendering. A zero field takes its default.
type Limits struct {
	Steps  int64 // evaluated nodes plus work done in operations, in units of 64 bytes or one element; default 20 million
	Bytes  int64 // bytes created over the whole rendering, garbage included; default 1 GiB
	Output int   // length of any one string, the result included, in bytes; default 64 MiB
	Depth  int   // nesting of evaluation, macro calls included; default 2000
}

func (l Limits) withDefaults() Limits {
	if l.Steps == 0 {
		l.Steps = 20_000_000
	}
	if l.Bytes == 0 {
		l.Bytes = 1 << 30
	}
	if l.Output == 0 {
		l.Output = 64 << 20
	}
	if l.Depth == 0 {
		l.Depth = 2000
	}
	return l
}

const (
	maxSource    = 1 << 20 // bytes of template source; real ones are below 64 KiB
	maxNesting   = 200     // nested brackets or blocks in the source
	maxElements  = 4 << 20 // elements of one list
	maxRange     = 100_000 // as in Jinja2's sandbox
	checkContext = 4096    // steps between two looks at the context
)

// spend pays for n units of work and stops the rendering when steps or time have run out.
func (it *interp) spend(n int) {
	it.steps += int64(n)
	if it.steps < it.nextCheck {
		return
	}
	it.nextCheck = it.steps + checkContext
	if it.steps > it.lim.Steps {
		fail(LimitErr, "rendering took more than %d steps", it.lim.Steps)
	}
	if err := it.ctx.Err(); err != nil {
		what := "was cancelled"
		if err == context.DeadlineExceeded {
			what = "did not end before its deadline"
		}
		panic(&Error{Kind: LimitErr, Message: "rendering " + what, Err: err})
	}
}

// alloc pays for a string of n bytes that is about to be created.
func (it *interp) alloc(n int) {
	if n < 0 || n > it.lim.Output {
		fail(LimitErr, "a string of %d bytes exceeds the limit of %d", n, it.lim.Output)
	}
	it.charge(n)
}

// allocList pays for a list of n elements that is about to be created.
func (it *interp) allocList(n int) {
	if n < 0 || n > maxElements {
		fail(LimitErr, "a list of %d elements exceeds the limit of %d", n, maxElements)
	}
	it.charge(n * 16)
	it.spend(n)
}

func (it *interp) charge(n int) {
	it.bytes += int64(n) + 16
	if it.bytes > it.lim.Bytes {
		fail(LimitErr, "rendering created more than %d bytes", it.lim.Bytes)
	}
	it.spend(1 + n/64)
}

func (it *interp) enter() {
	it.depth++
	if it.depth > it.lim.Depth {
		fail(LimitErr, "nested deeper than %d (does a macro call itself?)", it.lim.Depth)
	}
}

func (it *interp) leave() { it.depth-- }
