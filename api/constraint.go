package api

import (
	"encoding/json/jsontext"
	"slices"
	"strconv"
)

// What limits the output is honoured or refused, never ignored: a client that
// asked for JSON must not get prose with status 200.

// constraintFields limit the output in ways that are not served.
var constraintFields = []string{
	"structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar", "guided_json_object",
	"guided_whitespace_pattern", "structural_tag", "grammar", "json_schema", "web_search_options", "moderation",
}

func refuseConstraints(f *fields) {
	for _, name := range constraintFields {
		if f.has(name) {
			f.bad(name, "this server does not support it; leave it out")
		}
	}
	readResponseFormat(f)
	for i, v := range arrayOrNone(f, "modalities") {
		if v.kind != jsontext.KindString || v.text != "text" {
			f.bad("modalities", "entry %d: only \"text\" is served", i)
		}
	}
	if f.has("audio") {
		f.bad("audio", "this model makes text only")
	}
	if f.boolean("background", false) {
		f.bad("background", "this server does not support it; leave it out")
	}
}

func arrayOrNone(f *fields, name string) []value {
	list, _ := f.array(name)
	return list
}

func readResponseFormat(f *fields) {
	o, ok := f.object("response_format")
	if !ok {
		return
	}
	switch kind, ok := o.str("type"); {
	case !ok:
		o.bad("type", "it is required: \"text\", \"json_object\" or \"json_schema\"")
	case kind == "text":
	case kind == "json_schema" && !o.has("json_schema"):
		o.bad("json_schema", "it is required with type \"json_schema\"")
	case kind == "json_object" || kind == "json_schema":
		o.bad("type", "this server cannot hold the answer to \"%s\"; only \"text\" is served", kind)
	default:
		o.bad("type", "unknown kind \"%s\"", clip(kind))
	}
}

// readTools refuses tools unless the request itself turns them off; the
// history may hold calls and their results all the same.
func readTools(f *fields) {
	tools, _ := f.array("tools")
	names := readToolNames(f, "tools", tools, "function")
	off := readToolChoice(f, names)
	if len(tools) > 0 && !off {
		f.bad("tools", "this server does not make tool calls; leave it out, or set tool_choice to \"none\"")
	}
	f.boolean("parallel_tool_calls", true)

	functions, _ := f.array("functions")
	readToolNames(f, "functions", functions, "")
	off = false
	switch v := f.get("function_call"); {
	case v.absent():
	case v.kind == jsontext.KindString && v.text == "none":
		off = true
	case v.kind == jsontext.KindString && v.text == "auto":
	default:
		f.bad("function_call", "this server does not make function calls; only \"none\" is served")
	}
	if len(functions) > 0 && !off {
		f.bad("functions", "this server does not make function calls; leave it out, or set function_call to \"none\"")
	}
}

// readToolNames checks the list's shape: each entry a function with a name of
// its own, inside the member inner where there is one.
func readToolNames(f *fields, list string, tools []value, inner string) []string {
	var names []string
	for i, v := range tools {
		o, ok := f.element(list, i, v)
		if !ok {
			return nil
		}
		if inner != "" {
			if kind, _ := o.str("type"); kind != "" && kind != "function" {
				o.bad("type", "unknown type of tool \"%s\"", clip(kind))
				return nil
			}
			if o, ok = o.object(inner); !ok {
				f.bad(list, "entry %d: \"%s\" is required", i, inner)
				return nil
			}
		}
		name, _ := o.str("name")
		if name == "" {
			o.bad("name", "it is required")
			return nil
		}
		if slices.Contains(names, name) {
			o.bad("name", "two tools are called \"%s\"", clip(name))
			return nil
		}
		names = append(names, name)
	}
	return names
}

// readToolChoice tells whether the choice turns tools off.
func readToolChoice(f *fields, names []string) (off bool) {
	const field = "tool_choice"
	v := f.get(field)
	if v.absent() {
		return false
	}
	if v.kind == jsontext.KindBeginObject {
		if len(names) == 0 {
			f.bad(field, "a choice among tools needs tools")
		}
		o, _ := f.object(field)
		if fn, ok := o.object("function"); ok {
			if name, _ := fn.str("name"); !slices.Contains(names, name) {
				f.bad(field, "no tool is called \"%s\"", clip(name))
			}
		}
		f.bad(field, "this server does not make tool calls; only \"none\" and \"auto\" are served")
		return false
	}
	if v.kind != jsontext.KindString {
		f.wrongType(field, v, "a string or an object")
		return false
	}
	switch v.text {
	case "none":
		return true
	case "auto":
	case "required":
		if len(names) == 0 {
			f.bad(field, "\"required\" needs tools")
		}
		f.bad(field, "this server does not make tool calls; only \"none\" and \"auto\" are served")
	default:
		f.bad(field, "unknown choice %s", strconv.Quote(clip(v.text)))
	}
	return false
}
