package chattemplate

import (
	"context"
	"strings"
	"testing"
)

const (
	// chatml prints any role as it stands.
	chatml = "{% for m in messages %}{{ '<|' + m.role + '|>' + m.content }}{% endfor %}"
	// systemFirst refuses a system message anywhere but in front.
	systemFirst = "{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ raise_exception('system first') }}{% endif %}{{ m.role + ':' + m.content }};{% endfor %}"
	noSystem    = "{% for m in messages %}{% if m.role not in ['user', 'assistant'] %}{{ raise_exception('no') }}{% endif %}{{ m.role + ':' + m.content }};{% endfor %}"
	onlyParts   = "{% for m in messages %}{% for p in m.content %}{{ m.role ~ ':' ~ p.text }};{% endfor %}{% endfor %}"
)

func mustParse(t *testing.T, source string) *Template {
	t.Helper()
	tmpl, err := Parse("test", source)
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

// TestCapsOfKnownFamilies pins what the probes find in published templates.
func TestCapsOfKnownFamilies(t *testing.T) {
	dir := caseDir(t)
	full := Caps{System: true, SystemLater: true, Tools: true, ToolCalls: true, Parallel: true, NullContent: true}
	with := func(c Caps, change func(*Caps)) Caps {
		change(&c)
		return c
	}
	for file, want := range map[string]Caps{
		"Qwen-Qwen2.5-7B-Instruct": full,
		"Qwen-Qwen3-0.6B":          with(full, func(c *Caps) { c.NullContent, c.Thinking, c.ThinkTags = false, true, true }),
		"google-gemma-2-2b-it":     {},
		"mistralai-Mistral-Nemo-Instruct-2407": with(full, func(c *Caps) {
			c.SystemLater, c.ShortIDs = false, true
		}),
		"meta-llama-Llama-3.1-8B-Instruct":              with(full, func(c *Caps) { c.Parallel = false }),
		"meetkai-functionary-medium-v3.2":               with(full, func(c *Caps) { c.StringArgs = true }),
		"microsoft-Phi-3.5-mini-instruct":               {System: true, SystemLater: true},
		"deepseek-ai-DeepSeek-V4":                       with(full, func(c *Caps) { c.Developer, c.Thinking, c.ThinkTags = true, true, true }),
		"openai-gpt-oss-120b":                           with(full, func(c *Caps) { c.SystemLater, c.NullContent, c.Developer, c.Effort = false, false, true, true }),
		"ollama-qwen38_chat_template":                   with(full, func(c *Caps) { c.SystemLater, c.Thinking, c.ThinkTags = false, true, true }),
		"CohereForAI-c4ai-command-r7b-12-2024-tool_use": with(full, func(c *Caps) { c.Thinking = true }),
	} {
		tmpl := mustParse(t, string(readFile(t, dir, "templates/"+file+".jinja")))
		if got := tmpl.Caps(); got != want {
			t.Errorf("%s\n got %+v\nwant %+v", file, got, want)
		}
	}
	if got := mustParse(t, onlyParts).Caps(); !got.Parts || !got.System {
		t.Errorf("a template of parts: %+v", got)
	}
	if got := mustParse(t, systemFirst).Caps(); !got.System || got.SystemLater {
		t.Errorf("system in front only: %+v", got)
	}
}

// A hostile template must not hold up the probes.
func TestCapsOfRunaway(t *testing.T) {
	c := mustParse(t, "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}").Caps()
	if c != (Caps{}) {
		t.Errorf("%+v", c)
	}
}

// TestAdapt renders adapted messages, so that each rule is seen in the prompt.
func TestAdapt(t *testing.T) {
	for name, c := range map[string]struct{ template, messages, want string }{
		"parts joined":       {chatml, `[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]`, "<|user|>a\nb"},
		"developer":          {chatml, `[{"role":"developer","content":"d"},{"role":"user","content":"u"}]`, "<|system|>d<|user|>u"},
		"system later stays": {chatml, `[{"role":"user","content":"u"},{"role":"system","content":"s"}]`, "<|user|>u<|system|>s"},
		"system merged":      {systemFirst, `[{"role":"system","content":"A"},{"role":"user","content":"u"},{"role":"developer","content":"B"}]`, "system:A\n\nB;user:u;"},
		"system moved":       {systemFirst, `[{"role":"user","content":"u"},{"role":"system","content":"B"}]`, "system:B;user:u;"},
		"system folded":      {noSystem, `[{"role":"system","content":"A"},{"role":"user","content":"u"},{"role":"assistant","content":"x"},{"role":"system","content":"B"},{"role":"user","content":"v"}]`, "user:A\n\nB\n\nu;assistant:x;user:v;"},
		"to parts":           {onlyParts, `[{"role":"user","content":"u"},{"role":"system","content":[{"type":"text","text":"s"}]}]`, "user:u;system:s;"},
		"no content":         {chatml, `[{"role":"user"},{"role":"assistant","content":null}]`, "<|user|><|assistant|>"},
	} {
		t.Run(name, func(t *testing.T) {
			tmpl := mustParse(t, c.template)
			v, err := ParseJSON([]byte(c.messages))
			if err != nil {
				t.Fatal(err)
			}
			before, _ := toJSON(v)
			got, err := tmpl.Render(context.Background(), dict("messages", tmpl.Caps().Adapt(v.(*List))))
			if err != nil || got != c.want {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
			if after, _ := toJSON(v); after != before {
				t.Errorf("the messages were changed to %s", after)
			}
		})
	}
}

func TestAdaptCalls(t *testing.T) {
	const in = `[{"role":"assistant","tool_calls":[{"id":"call_abc-123456789","type":"function","function":{"name":"f","arguments":%}}]},{"role":"tool","tool_call_id":"call_abc-123456789","content":"ok"}]`
	for name, c := range map[string]struct {
		caps            Caps
		arguments, want string
	}{
		"mapping":       {Caps{}, `"{\"b\": 1, \"a\": 2.0}"`, `{"b": 1, "a": 2.0}`},
		"no JSON":       {Caps{}, `"{oops"`, `"{oops"`},
		"no mapping":    {Caps{}, `"[1]"`, `"[1]"`},
		"empty":         {Caps{}, `""`, `{}`},
		"kept":          {Caps{}, `{"a": 1}`, `{"a": 1}`},
		"text kept":     {Caps{StringArgs: true}, `"{\"a\":1}"`, `"{\"a\":1}"`},
		"mapping wrote": {Caps{StringArgs: true}, `{"a": 1}`, `"{\"a\": 1}"`},
	} {
		v, err := ParseJSON([]byte(strings.Replace(in, "%", c.arguments, 1)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := toJSON(c.caps.Adapt(v.(*List)))
		if err != nil || !strings.Contains(got, `"arguments": `+c.want+`}`) {
			t.Errorf("%s: got %s, want arguments %s", name, got, c.want)
		}
	}
	v, _ := ParseJSON([]byte(strings.Replace(in, "%", "{}", 1)))
	id := ShortID("call_abc-123456789")
	got, _ := toJSON(Caps{ShortIDs: true}.Adapt(v.(*List)))
	if len(id) != 9 || strings.Count(got, `"`+id+`"`) != 2 {
		t.Errorf("short id %q in %s", id, got)
	}
	if ShortID("abcDEF123") != "abcDEF123" {
		t.Error("a short id was changed")
	}
}

func TestRenderContinue(t *testing.T) {
	for name, c := range map[string]struct{ template, messages, want string }{
		"plain":   {chatml + "{% if add_generation_prompt %}<|assistant|>{% endif %}", `[{"role":"user","content":"hi"},{"role":"assistant","content":"He "}]`, "<|user|>hi<|assistant|>He "},
		"trimmed": {"{% for m in messages %}[{{ m.content | trim }}]{% endfor %}", `[{"role":"assistant","content":" He "}]`, "[He"},
		"parts":   {onlyParts, `[{"role":"assistant","content":[{"type":"text","text":"He"}]}]`, "assistant:He"},
	} {
		v, err := ParseJSON([]byte(c.messages))
		if err != nil {
			t.Fatal(err)
		}
		got, err := mustParse(t, c.template).RenderContinue(context.Background(), dict("messages", v, "add_generation_prompt", true))
		if err != nil || got != c.want {
			t.Errorf("%s: got %q, %v; want %q", name, got, err, c.want)
		}
	}
	for name, messages := range map[string]string{"empty": `[]`, "no text": `[{"role":"assistant","content":null}]`, "no object": `[1]`} {
		v, _ := ParseJSON([]byte(messages))
		if _, err := mustParse(t, chatml).RenderContinue(context.Background(), dict("messages", v)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	v, _ := ParseJSON([]byte(`[{"role":"assistant","content":"x"}]`))
	if _, err := mustParse(t, "fixed").RenderContinue(context.Background(), dict("messages", v)); err == nil {
		t.Error("a dropped message was continued")
	}
}

func FuzzAdapt(f *testing.F) {
	f.Add(`[{"role":"system","content":[{"type":"text","text":"a"}]},{"role":"assistant","tool_calls":[{"id":"x","function":{"arguments":"{}"}}]}]`, uint16(0xffff))
	f.Fuzz(func(t *testing.T, messages string, bits uint16) {
		v, err := ParseJSON([]byte(messages))
		l, ok := v.(*List)
		if err != nil || !ok {
			return
		}
		has := func(i int) bool { return bits>>i&1 == 1 }
		c := Caps{System: has(0), SystemLater: has(1), Developer: has(2), ShortIDs: has(3), Parts: has(4), StringArgs: has(5), NullContent: has(6)}
		before, _ := toJSON(l)
		c.Adapt(l)
		if after, _ := toJSON(l); after != before {
			t.Fatalf("changed its input: %s", after)
		}
	})
}

func BenchmarkRender(b *testing.B) {
	tmpl, err := Parse("x", string(readFile(b, caseDir(b), "templates/meta-llama-Llama-3.1-8B-Instruct.jinja")))
	if err != nil {
		b.Fatal(err)
	}
	l := NewList()
	for range 100 {
		l.Items = append(l.Items, message("user", strings.Repeat("word ", 50)), message("assistant", strings.Repeat("word ", 50)))
	}
	vars := dict("messages", l, "add_generation_prompt", true, "bos_token", "<s>")
	for b.Loop() {
		if _, err := tmpl.Render(context.Background(), vars); err != nil {
			b.Fatal(err)
		}
	}
}
