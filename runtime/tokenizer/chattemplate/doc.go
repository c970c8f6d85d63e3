// Package chattemplate turns a conversation into the text a chat model was trained to see.
//
//	model folder ─Load─► Set ─Pick(tools?)─► Template ─Render(ctx, vars)─► prompt
//	                      │                      └─ Caps: what it can do, found by rendering probes
//	                      └─ Special: bos_token, eos_token, …
//
//	request messages ─Caps.Adapt─► messages as this template wants them
//
// The dialect and its limits are those of package jinja below this one. Everything that is no rendering is pure: Adapt copies what it
// changes. Templates come from a model folder only; nothing here takes one from a request.
//
// The package must never change the caller's values, and never turn a template's error into a prompt.
package chattemplate
