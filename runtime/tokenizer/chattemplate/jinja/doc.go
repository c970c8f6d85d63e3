// Package jinja renders the dialect of Jinja2 that chat templates are written in, with the behaviour of the environment that
// transformers gives them: ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True) with loop controls, the
// "generation" tag, tojson (ensure_ascii=False, key order kept), raise_exception and strftime_now.
//
//	source ─► lex ─► parse ─► Template ──Render(ctx, vars)──► text
//	                                        │
//	                                        └─ every step, byte and level of nesting is paid from Limits
//
// A template comes with a downloaded model, so it is hostile input. Rendering runs in the caller's goroutine and stops by itself:
// each evaluated node costs a step, each operation is charged for the bytes it is about to create before it creates them, and
// recursion has a depth. No template can hang, exhaust memory or overflow the stack.
//
// Where Python raises, Render returns an *Error whose Kind is the Python class name and whose message is Python's: a template that
// adds a list to a string must fail, not print a wrong prompt.
//
// The package must never open a file, read the environment, or start a goroutine.
package jinja
