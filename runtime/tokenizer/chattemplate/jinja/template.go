package jinja

import (
	"context"
	"time"
)

// Template is a parsed source. It is safe for concurrent use.
type Template struct {
	body []stmt
}

// Compile parses a source of at most 1 MiB. The error is an *Error of kind Syntax or LimitErr.
func Compile(source string) (t *Template, err error) {
	line := 0
	defer caught(&err, &line)
	if len(source) > maxSource {
		fail(LimitErr, "a template of %d bytes exceeds the limit of %d", len(source), maxSource)
	}
	p := &parser{toks: lex(source, &line), line: &line}
	body, _ := p.body()
	return &Template{body}, nil
}

// Options of one rendering; the zero value is the usual one.
type Options struct {
	Limits Limits
	Now    func() time.Time // for strftime_now; default time.Now
}

// Render runs the template with the given variables, which it only reads. The error is an *Error.
func (t *Template) Render(ctx context.Context, vars *Dict, opt Options) (out string, err error) {
	it := &interp{ctx: ctx, lim: opt.Limits.withDefaults(), now: opt.Now, nextCheck: checkContext}
	if it.now == nil {
		it.now = time.Now
	}
	defer caught(&err, &it.line)
	if err := ctx.Err(); err != nil {
		return "", &Error{Kind: LimitErr, Message: "rendering was not started", Err: err}
	}
	sc := newScope(globals)
	for i, k := range vars.keys {
		if name, ok := k.(string); ok {
			sc.vars[name] = vars.vals[i]
		}
	}
	w := it.writer()
	it.exec(w, t.body, sc)
	return w.String(), nil
}
