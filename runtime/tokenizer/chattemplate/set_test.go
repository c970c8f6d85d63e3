package chattemplate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

func folder(files map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

func TestLoadFindsTemplates(t *testing.T) {
	const config = `{"bos_token": {"content": "<B>", "lstrip": false}, "eos_token": "<E>", "add_bos_token": true, "pad_token": null, "chat_template": "config"}`
	for name, c := range map[string]struct {
		files map[string]string
		tools bool
		want  string
	}{
		"config":              {map[string]string{"tokenizer_config.json": config}, false, "config"},
		"file wins":           {map[string]string{"tokenizer_config.json": config, "chat_template.jinja": "file", "chat_template.json": `{"chat_template":"json"}`}, false, "file"},
		"json before config":  {map[string]string{"tokenizer_config.json": config, "chat_template.json": `{"chat_template":"json"}`}, false, "json"},
		"json without it":     {map[string]string{"tokenizer_config.json": config, "chat_template.json": `{}`}, false, "config"},
		"list, default":       {map[string]string{"tokenizer_config.json": `{"chat_template":[{"name":"tool_use","template":"T"},{"name":"default","template":"D"}]}`}, false, "D"},
		"list, tools":         {map[string]string{"tokenizer_config.json": `{"chat_template":[{"name":"default","template":"D"},{"name":"tool_use","template":"T"}]}`}, true, "T"},
		"list, no tool_use":   {map[string]string{"tokenizer_config.json": `{"chat_template":[{"name":"default","template":"D"},{"name":"rag","template":"R"}]}`}, true, "D"},
		"list, no default":    {map[string]string{"tokenizer_config.json": `{"chat_template":[{"name":"rag","template":"R"}]}`}, false, "R"},
		"mapping":             {map[string]string{"tokenizer_config.json": `{"chat_template":{"default":"D"}}`}, false, "D"},
		"additional, tools":   {map[string]string{"chat_template.jinja": "D", "additional_chat_templates/tool_use.jinja": "T"}, true, "T"},
		"additional, without": {map[string]string{"chat_template.jinja": "D", "additional_chat_templates/tool_use.jinja": "T"}, false, "D"},
		"special tokens":      {map[string]string{"chat_template.jinja": "{{ bos_token }}{{ eos_token }}{{ unk_token }}{{ pad_token is defined }}{{ add_bos_token is defined }}", "tokenizer_config.json": config, "special_tokens_map.json": `{"eos_token":"other","unk_token":{"content":"<U>"}}`}, false, "<B><E><U>FalseFalse"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := LoadFS(folder(c.files))
			if err != nil {
				t.Fatal(err)
			}
			vars := NewDict()
			if c.tools {
				vars.Set("tools", NewList(NewDict()))
			}
			if got, err := s.Render(context.Background(), vars); err != nil || got != c.want {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestLoadWithoutTemplate(t *testing.T) {
	s, err := LoadFS(folder(map[string]string{"tokenizer_config.json": `{"bos_token":"<B>","additional_special_tokens":["<X>",{"content":"<Y>"}]}`}))
	if !errors.Is(err, ErrNone) {
		t.Fatalf("error %v", err)
	}
	if v, _ := s.Special.Get("bos_token"); v != "<B>" {
		t.Errorf("bos_token %v", v)
	}
	if v, _ := s.Special.Get("additional_special_tokens"); len(v.(*List).Items) != 2 {
		t.Errorf("additional_special_tokens %v", v)
	}
	if _, err := s.Render(context.Background(), NewDict()); !errors.Is(err, ErrNone) {
		t.Errorf("render: %v", err)
	}
	if s.Pick(true) != nil {
		t.Error("picked a template from none")
	}
	if _, err := LoadFS(folder(nil)); !errors.Is(err, ErrNone) {
		t.Errorf("empty folder: %v", err)
	}
}

func TestLoadNamesWhatIsBroken(t *testing.T) {
	for want, files := range map[string]map[string]string{
		"tokenizer_config.json":      {"tokenizer_config.json": `{"chat_template": 5}`},
		"chat_template[0]":           {"tokenizer_config.json": `{"chat_template": [5]}`},
		"has no name":                {"tokenizer_config.json": `{"chat_template": [{"template":"x"}]}`},
		`"x" is no string`:           {"tokenizer_config.json": `{"chat_template": [{"name":"x"}]}`},
		"line 2":                     {"chat_template.jinja": "a\n{% if %}"},
		"chat_template.jinja":        {"chat_template.jinja": "{{"},
		"no object":                  {"tokenizer_config.json": `[]`},
		"decoding JSON":              {"special_tokens_map.json": `{`},
		"chat_template.jinja is lar": {"chat_template.jinja": strings.Repeat("x", maxTemplateFile+1)},
		"additional_chat_templates/": {"chat_template.jinja": "x", "additional_chat_templates/rag.jinja": "{{"},
	} {
		if _, err := LoadFS(folder(files)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestLoadFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "chat_template.jinja"), []byte("{{ x }}"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Names(); len(got) != 1 || got[0] != "default" {
		t.Errorf("names %v", got)
	}
	if _, err := Load(filepath.Join(dir, "nothing")); !errors.Is(err, ErrNone) {
		t.Errorf("missing folder: %v", err)
	}
}

func TestRaisedMessage(t *testing.T) {
	tmpl, err := Parse("x", "\n{{ raise_exception('Only ' ~ n ~ ' turns') }}")
	if err != nil {
		t.Fatal(err)
	}
	vars := NewDict()
	vars.Set("n", int64(3))
	_, err = tmpl.Render(context.Background(), vars)
	if m, ok := RaisedMessage(err); !ok || m != "Only 3 turns" {
		t.Errorf("%q %v", m, ok)
	}
	if err == nil || !strings.Contains(err.Error(), `"x"`) || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("error %v", err)
	}
	if _, ok := RaisedMessage(errors.New("x")); ok {
		t.Error("another error counts as raised")
	}
}
