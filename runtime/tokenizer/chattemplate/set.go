package chattemplate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// ErrNone says that a model folder has no chat template: the model takes plain text.
var ErrNone = errors.New("the model has no chat template")

// Set is the templates of one model, and its special tokens.
type Set struct {
	// Special has the tokens by their names in templates (bos_token, eos_token, …), in the order of tokenizer_config.json. It may be
	// empty, never nil.
	Special *Dict

	templates []*Template
}

// Load reads the templates of a model folder. Where there is none the error is ErrNone, and the Set still has the special tokens.
func Load(dir string) (*Set, error) {
	s, err := LoadFS(os.DirFS(dir))
	if err != nil && !errors.Is(err, ErrNone) {
		return nil, fmt.Errorf("chat templates of %s: %w", dir, err)
	}
	return s, err
}

// LoadFS is Load for a file system whose root is the model folder.
//
// Templates are looked for as transformers does, the first place that has one wins: chat_template.jinja (with
// additional_chat_templates/NAME.jinja beside it), chat_template.json, then chat_template in tokenizer_config.json, a string or a
// list of {name, template}. Special tokens are in tokenizer_config.json; special_tokens_map.json fills in what is missing there.
func LoadFS(fsys fs.FS) (*Set, error) {
	config, err := readObject(fsys, "tokenizer_config.json")
	if err != nil {
		return nil, err
	}
	legacy, err := readObject(fsys, "special_tokens_map.json")
	if err != nil {
		return nil, err
	}
	s := &Set{Special: NewDict()}
	addSpecial(s.Special, config)
	addSpecial(s.Special, legacy)

	if err := s.addFiles(fsys); err != nil {
		return nil, err
	}
	if len(s.templates) == 0 {
		processor, err := readObject(fsys, "chat_template.json")
		if err != nil {
			return nil, err
		}
		if err := s.addValue("chat_template.json", get(processor, "chat_template")); err != nil {
			return nil, err
		}
	}
	if len(s.templates) == 0 {
		if err := s.addValue("tokenizer_config.json", get(config, "chat_template")); err != nil {
			return nil, err
		}
	}
	if len(s.templates) == 0 {
		return s, ErrNone
	}
	return s, nil
}

const (
	maxTemplateFile = 1 << 20
	maxConfigFile   = 64 << 20
	extraDir        = "additional_chat_templates"
)

// read gives a file's text, or ok false where there is no such file.
func read(fsys fs.FS, name string, limit int64) (text []byte, ok bool, err error) {
	info, err := fs.Stat(fsys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("opening %s: %w", name, err)
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait
		return nil, false, fmt.Errorf("%s is not a regular file", name)
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, false, fmt.Errorf("opening %s: %w", name, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, false, fmt.Errorf("reading %s: %w", name, err)
	}
	if int64(len(b)) > limit {
		return nil, false, fmt.Errorf("%s is larger than %d bytes", name, limit)
	}
	return b, true, nil
}

// readObject decodes a JSON object; a missing file is an empty one.
func readObject(fsys fs.FS, name string) (*Dict, error) {
	b, ok, err := read(fsys, name, maxConfigFile)
	if err != nil || !ok {
		return NewDict(), err
	}
	v, err := ParseJSON(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	d, ok := v.(*Dict)
	if !ok {
		return nil, fmt.Errorf("%s: the top level is no object", name)
	}
	return d, nil
}

// addSpecial takes over what has the form of a special token and is not there yet.
func addSpecial(to, from *Dict) {
	for _, key := range from.Keys() {
		if _, have := to.Get(key); have {
			continue
		}
		v := get(from, key)
		switch {
		case strings.HasSuffix(key, "_token"):
			if s, ok := tokenText(v); ok {
				to.Set(key, s)
			}
		case key == "additional_special_tokens":
			l, _ := v.(*List)
			if l == nil {
				continue
			}
			out := NewList()
			for _, e := range l.Items {
				if s, ok := tokenText(e); ok {
					out.Items = append(out.Items, s)
				}
			}
			to.Set(key, out)
		}
	}
}

// tokenText reads a token given as a string or as {"content": …}.
func tokenText(v Value) (string, bool) {
	if d, ok := v.(*Dict); ok {
		v = get(d, "content")
	}
	s, ok := v.(string)
	return s, ok
}

func (s *Set) add(name, source string) error {
	t, err := Parse(name, source)
	if err != nil {
		return err
	}
	s.templates = append(s.templates, t)
	return nil
}

func (s *Set) addFiles(fsys fs.FS) error {
	b, ok, err := read(fsys, "chat_template.jinja", maxTemplateFile)
	if err != nil || !ok {
		return err
	}
	if err := s.add("default", string(b)); err != nil {
		return fmt.Errorf("chat_template.jinja: %w", err)
	}
	extra, err := fs.ReadDir(fsys, extraDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing %s: %w", extraDir, err)
	}
	for _, e := range extra {
		name, isTemplate := strings.CutSuffix(e.Name(), ".jinja")
		if !isTemplate || name == "default" {
			continue
		}
		file := path.Join(extraDir, e.Name())
		b, _, err := read(fsys, file, maxTemplateFile)
		if err != nil {
			return err
		}
		if err := s.add(name, string(b)); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

// addValue takes the templates of a chat_template field.
func (s *Set) addValue(file string, v Value) error {
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		if err := s.add("default", v); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		return nil
	case *Dict: // {name: template}
		for _, name := range v.Keys() {
			if err := s.addNamed(file, name, get(v, name)); err != nil {
				return err
			}
		}
		return nil
	case *List:
		for i, e := range v.Items {
			d, ok := e.(*Dict)
			if !ok {
				return fmt.Errorf("%s: chat_template[%d] is no object", file, i)
			}
			name, ok := get(d, "name").(string)
			if !ok {
				return fmt.Errorf("%s: chat_template[%d] has no name", file, i)
			}
			if err := s.addNamed(file, name, get(d, "template")); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("%s: chat_template is neither a string nor a list of {name, template}", file)
}

func (s *Set) addNamed(file, name string, source Value) error {
	text, ok := source.(string)
	if !ok {
		return fmt.Errorf("%s: chat template %q is no string", file, name)
	}
	if err := s.add(name, text); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// Names gives the templates' names.
func (s *Set) Names() []string {
	var out []string
	for _, t := range s.templates {
		out = append(out, t.Name)
	}
	return out
}

// Named gives the template of a name, or nil.
func (s *Set) Named(name string) *Template {
	if i := slices.Index(s.Names(), name); i >= 0 {
		return s.templates[i]
	}
	return nil
}

// Pick gives the template for a request: "tool_use" if there are tools and it exists, else "default", else the first. It is nil only
// for a set without templates.
func (s *Set) Pick(hasTools bool) *Template {
	if t := s.Named("tool_use"); hasTools && t != nil {
		return t
	}
	if t := s.Named("default"); t != nil {
		return t
	}
	if len(s.templates) > 0 {
		return s.templates[0]
	}
	return nil
}

// Caps says what the template for a request can do. The zero Caps is given for a set without templates.
func (s *Set) Caps(hasTools bool) Caps {
	if t := s.Pick(hasTools); t != nil {
		return t.Caps()
	}
	return Caps{}
}

// Render picks a template by whether vars has tools, adds the special tokens that vars lacks, and renders.
func (s *Set) Render(ctx context.Context, vars *Dict) (string, error) {
	t, vars, err := s.ready(vars)
	if err != nil {
		return "", err
	}
	return t.Render(ctx, vars)
}

// RenderContinue is Render for a conversation whose last message the model is to continue.
func (s *Set) RenderContinue(ctx context.Context, vars *Dict) (string, error) {
	t, vars, err := s.ready(vars)
	if err != nil {
		return "", err
	}
	return t.RenderContinue(ctx, vars)
}

func (s *Set) ready(vars *Dict) (*Template, *Dict, error) {
	tools, _ := get(vars, "tools").(*List)
	t := s.Pick(tools != nil && len(tools.Items) > 0)
	if t == nil {
		return nil, nil, ErrNone
	}
	all := vars.Clone()
	for _, key := range s.Special.Keys() {
		if _, have := all.Get(key); !have {
			all.Set(key, get(s.Special, key))
		}
	}
	return t, all, nil
}
