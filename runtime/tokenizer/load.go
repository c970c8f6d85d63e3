package tokenizer

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
)

const (
	// maxFile bounds the size of a tokenizer.json; the largest known has 35 MB.
	maxFile = 256 << 20
	maxID   = math.MaxInt32 - 1
)

// Load reads a tokenizer.json, or the one in a folder.
func Load(path string) (*Tokenizer, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading tokenizer: %w", err)
	}
	if info.IsDir() {
		path = filepath.Join(path, "tokenizer.json")
	}
	return LoadFS(os.DirFS(filepath.Dir(path)), filepath.Base(path), path)
}

// LoadFS reads the tokenizer.json that fsys has under name; path stands for it
// in errors. What is not a regular file is refused before it is opened, as
// opening a pipe would wait.
func LoadFS(fsys fs.FS, name, path string) (*Tokenizer, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, fmt.Errorf("reading tokenizer %s: %w", path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("reading tokenizer: %s is not a regular file", path)
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("reading tokenizer: %s has %d bytes; at most %d are supported", path, info.Size(), maxFile)
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, fmt.Errorf("reading tokenizer %s: %w", path, err)
	}
	defer f.Close()
	var data bytes.Buffer
	data.Grow(int(info.Size()) + bytes.MinRead)
	if _, err := data.ReadFrom(io.LimitReader(f, maxFile)); err != nil {
		return nil, fmt.Errorf("reading tokenizer %s: %w", path, err)
	}
	return New(data.Bytes(), path)
}

// New reads the content of a tokenizer.json; name is the file's in errors.
func New(data []byte, name string) (*Tokenizer, error) {
	t, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("tokenizer %s: %w", name, err)
	}
	return t, nil
}

// file is a tokenizer.json cut into its parts.
type file struct {
	added []addedToken
	parts map[string]jsontext.Value // normalizer, pre_tokenizer, post_processor, decoder
	model *modelConfig
}

func parse(data []byte) (*Tokenizer, error) {
	f := &file{parts: map[string]jsontext.Value{}}
	dec := jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true))
	if k := dec.PeekKind(); k != '{' && k != 0 {
		return nil, fmt.Errorf("want a JSON object, got %s", kindName(jsontext.Value(bytes.TrimSpace(data))))
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, jsonError(err)
	}
	for dec.PeekKind() != '}' {
		key, err := dec.ReadToken()
		if err != nil {
			return nil, jsonError(err)
		}
		if err := f.section(dec, key.String()); err != nil {
			return nil, err
		}
	}
	dec.ReadToken()
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("more data behind the JSON object, at byte %d", dec.InputOffset())
	}
	return f.build()
}

func jsonError(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fmt.Errorf("not valid JSON: the file ends within the object: %w", io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("not valid JSON: %w", err)
}

// section reads the value of one key of the file.
func (f *file) section(dec *jsontext.Decoder, key string) error {
	if key == "model" {
		if f.model != nil {
			return fmt.Errorf("model: given twice")
		}
		m, err := readModel(dec)
		f.model = m
		return err
	}
	v, err := dec.ReadValue()
	if err != nil {
		return jsonError(err)
	}
	switch key {
	case "version":
		if string(v) != `"1.0"` {
			return fmt.Errorf("version: %s is not supported, only \"1.0\"", quote(string(v)))
		}
	case "added_tokens":
		f.added, err = readAdded(v)
		return err
	case "normalizer", "pre_tokenizer", "post_processor", "decoder":
		if _, ok := f.parts[key]; ok {
			return fmt.Errorf("%s: given twice", key)
		}
		f.parts[key] = v.Clone()
	}
	return nil
}

func readAdded(v jsontext.Value) ([]addedToken, error) {
	if v.Kind() == 'n' {
		return nil, nil
	}
	var list []jsontext.Value
	if err := json.Unmarshal(v, &list); err != nil {
		return nil, fmt.Errorf("added_tokens: want an array, got %s", kindName(v))
	}
	out := make([]addedToken, 0, len(list))
	for i, raw := range list {
		o, err := newObject(raw, fmt.Sprintf("added_tokens[%d]", i), 0)
		if err != nil {
			return nil, err
		}
		id := o.int("id", 0)
		if id > maxID {
			o.fail("id", "%d is not an id", id)
		}
		tok := addedToken{
			ID:      int32(min(id, maxID)),
			Content: o.need("content"), SingleWord: o.bool("single_word", false),
			LStrip: o.bool("lstrip", false), RStrip: o.bool("rstrip", false), Special: o.bool("special", false),
		}
		tok.Normalized = o.bool("normalized", !tok.Special)
		if len(tok.Content) > maxAddedToken {
			o.fail("content", "%d bytes; at most %d are supported", len(tok.Content), maxAddedToken)
		}
		if o.err != nil {
			return nil, o.err
		}
		out = append(out, tok)
	}
	return out, nil
}

// part reads one of the optional parts; nil where the file has none.
func (f *file) part(key string) (*object, error) {
	raw, ok := f.parts[key]
	if !ok || raw.Kind() == 'n' {
		return nil, nil
	}
	return newObject(raw, key, 0)
}

func (f *file) build() (*Tokenizer, error) {
	if f.model == nil {
		return nil, fmt.Errorf("model: missing")
	}
	t := &Tokenizer{decoder: joinDecoder()}
	o, err := f.part("normalizer")
	if o != nil {
		t.normalizer, err = parseNormalizer(o)
	}
	if err != nil {
		return nil, err
	}
	if o, err = f.part("pre_tokenizer"); o != nil {
		t.pre, err = parsePreTokenizer(nil, o)
	}
	if err != nil {
		return nil, err
	}
	if o, err = f.part("post_processor"); o != nil {
		t.post, err = parsePostProcessor(o)
	}
	if err != nil {
		return nil, err
	}
	if o, err = f.part("decoder"); o != nil {
		t.decoder, err = parseDecoder(o)
	}
	if err != nil {
		return nil, err
	}
	if t.model, err = f.model.build(); err != nil {
		return nil, err
	}
	t.added = newAddedVocab(f.added, t.model, t.normalizer)
	t.model.setSpecial(t.added.special)
	t.useBytes()
	t.vocabSize = int(t.model.maxID()) + 1
	for id := range t.added.byID {
		t.vocabSize = max(t.vocabSize, int(id)+1)
	}
	return t, nil
}

// useBytes spares byte-level BPE the writing of bytes as characters, where
// nothing looks at them between pre-tokenizer and model.
func (t *Tokenizer) useBytes() {
	m, ok := t.model.(*bpe)
	if !ok {
		return
	}
	if last := len(t.pre) - 1; last >= 0 {
		if b, ok := t.pre[last].(byteLevelPre); ok && m.useBytes() {
			b.raw = true
			t.pre[last] = b
			return
		}
	}
	m.useCharacters()
}
