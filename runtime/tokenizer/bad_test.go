package tokenizer

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

type badCase struct {
	Path, Kind, Verdict, What, Text, When string
	UseText                               string  `json:"use_text"`
	IDs                                   []int32 `json:"ids"`
}

// TestBadFiles loads hostile, broken and merely odd tokenizers.
func TestBadFiles(t *testing.T) {
	dirs := []string{filepath.Join("testdata", "bad-checkpoints")}
	if d := os.Getenv("INFER_CASES"); d != "" {
		if d = filepath.Join(d, "bad-checkpoints"); fileExists(d) {
			dirs = append(dirs, d)
		}
	}
	for _, dir := range dirs {
		var file struct{ Cases []badCase }
		if err := json.Unmarshal(readFile(t, filepath.Join(dir, "cases.json")), &file); err != nil {
			t.Fatal(err)
		}
		tried := 0
		for _, c := range file.Cases {
			if c.Kind == "tokenizer" {
				tried++
				t.Run(c.Path, func(t *testing.T) { checkBad(t, filepath.Join(dir, c.Path), c) })
			}
		}
		if tried == 0 {
			t.Errorf("%s has no tokenizers", dir)
		}
	}
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func checkBad(t *testing.T, dir string, c badCase) {
	path := filepath.Join(dir, "tokenizer.json")
	if !fileExists(path) {
		data := readFile(t, path+".gz")
		path = filepath.Join(t.TempDir(), "tokenizer.json")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tok, err := loadWithin(t, path)
	switch {
	case c.Verdict == "accept" && err != nil:
		t.Fatal(err)
	case c.Verdict == "accept":
		if got := tok.Encode(c.Text, false); !slices.Equal(got, c.IDs) {
			t.Errorf("Encode(%q) = %v, want %v", c.Text, got, c.IDs)
		}
	case c.When != "":
		// Whoever uses the ids compares VocabSize to the model's.
		if ids := tok.Encode(c.UseText, false); tok.VocabSize() <= int(slices.Max(ids)) {
			t.Errorf("VocabSize %d, but the ids are %v", tok.VocabSize(), ids)
		}
	case err == nil:
		t.Errorf("%s: was loaded", c.What)
	case !strings.Contains(err.Error(), path):
		t.Errorf("error does not name the file: %v", err)
	case len(err.Error()) > len(path)+400:
		t.Errorf("error of %d bytes", len(err.Error()))
	}
}

// loadWithin loads a tokenizer in less than a second and 64 MB.
func loadWithin(t *testing.T, path string) (*Tokenizer, error) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := cpuTime(t)
	tok, err := Load(path)
	took := cpuTime(t) - start
	runtime.ReadMemStats(&after)
	if took > time.Second {
		t.Errorf("took %v", took)
	}
	if mem := after.TotalAlloc - before.TotalAlloc; mem > 64<<20 {
		t.Errorf("took %d bytes of memory", mem)
	}
	return tok, err
}

// TestErrors checks that what is wrong or not known is an error that names the
// place.
func TestErrors(t *testing.T) {
	file := func(part string) string {
		return `{"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]},` + part + `}`
	}
	for _, c := range []struct{ file, want string }{
		{``, `not valid JSON`},
		{`[]`, `want a JSON object, got an array`},
		{`{"model":`, `not valid JSON: the file ends`},
		{`{"version":"1.0"}`, `model: missing`},
		{`{"model":null}`, `model: want an object, got null`},
		{`{} {}`, `more data behind the JSON object`},
		{`{"version":"2.0"}`, `version: "\"2.0\"" is not supported`},
		{`{"model":{"type":"Bar","vocab":{}}}`, `model: model "Bar" is not supported`},
		{`{"model":{"type":"BPE","vocab":{"a":-1},"merges":[]}}`, `model.vocab["a"]: id -1 is not between 0 and 2147483646`},
		{`{"model":{"type":"BPE","vocab":{"a":1.5},"merges":[]}}`, `model.vocab["a"]: want an id, got "1.5"`},
		{`{"model":{"type":"BPE","vocab":{"a":"0"},"merges":[]}}`, `model.vocab["a"]: want an id`},
		{`{"model":{"type":"BPE","vocab":{"a":4294967296},"merges":[]}}`, `model.vocab["a"]: id 4294967296`},
		{`{"model":{"type":"BPE","vocab":{"a":0,"a":1},"merges":[]}}`, `model.vocab["a"]: given twice, with the ids 0 and 1`},
		{`{"model":{"type":"BPE","vocab":{"a":0,"b":0},"merges":[]}}`, `model.vocab: "a" and "b" have the same id 0`},
		{`{"model":{"type":"BPE","vocab":{"a":0}}}`, `model.merges: missing`},
		{`{"model":{"type":"BPE","merges":[]}}`, `model.vocab: BPE wants an object`},
		{`{"model":{"type":"BPE","vocab":{"a":0},"merges":["a"]}}`, `model.merges[0]: "a" is not two pieces`},
		{`{"model":{"type":"BPE","vocab":{"a":0},"merges":["a b c"]}}`, `model.merges[0]: "a b c" is not two pieces`},
		{`{"model":{"type":"BPE","vocab":{"a":0},"merges":[["a","b","c"]]}}`, `model.merges[0]: want two pieces`},
		{`{"model":{"type":"BPE","vocab":{"a":0},"merges":["a b"]}}`, `model.merges[0]: "b" is not in the vocabulary`},
		{`{"model":{"type":"BPE","vocab":{"a":0},"merges":["a a"]}}`, `model.merges[0]: the result "aa" is not in the vocabulary`},
		{`{"model":{"type":"BPE","vocab":{"a":0},"merges":["a a"],"continuing_subword_prefix":"##"}}`, `shorter than continuing_subword_prefix`},
		{`{"model":{"type":"BPE","vocab":{"a":0},"merges":[],"dropout":0.1}}`, `model.dropout: 0.1`},
		{`{"model":{"type":"BPE","vocab":{"a":0},"merges":[],"fuse_unk":"yes"}}`, `model.fuse_unk: want true or false, got a string`},
		{`{"model":{"type":"WordPiece","vocab":{"a":0}}}`, `model.unk_token: "[UNK]" is not in the vocabulary`},
		{`{"model":{"type":"WordLevel","vocab":{"a":0},"unk_token":"<unk>"}}`, `model.unk_token: "<unk>" is not in the vocabulary`},
		{`{"model":{"type":"Unigram","vocab":[["a",0]]}}`, `model.unk_id: missing`},
		{`{"model":{"type":"Unigram","vocab":[["a",0]],"unk_id":1}}`, `model.unk_id: 1 is past the vocabulary of 1`},
		{`{"model":{"type":"Unigram","vocab":[["a"]],"unk_id":0}}`, `model.vocab[0]: want [piece, score]`},
		{file(`"normalizer":{"type":"Foo"}`), `normalizer: normalizer "Foo" is not supported`},
		{file(`"normalizer":{"form":"x"}`), `normalizer.type: missing`},
		{file(`"normalizer":[]`), `normalizer: want an object, got an array`},
		{file(`"normalizer":{"type":"Sequence"}`), `normalizer.normalizers: missing`},
		{file(`"normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"X"}]}`), `normalizer.normalizers[1]: normalizer "X" is not supported`},
		{file(`"normalizer":{"type":"Replace","pattern":{"Regex":"("},"content":""}`), `normalizer.pattern: regular expression "(": parenthesis at byte 0 is not closed`},
		{file(`"normalizer":{"type":"Replace","pattern":{},"content":""}`), `normalizer.pattern: want {"String": …} or {"Regex": …}`},
		{file(`"normalizer":{"type":"Precompiled","precompiled_charsmap":"!"}`), `normalizer.precompiled_charsmap: not base64`},
		{file(`"normalizer":{"type":"Precompiled","precompiled_charsmap":"/////w=="}`), `normalizer.precompiled_charsmap: a trie of 4294967295 bytes`},
		{file(`"normalizer":{"type":"Sequence","normalizers":[` + strings.Repeat(`{"type":"Replace","pattern":{"String":"."},"content":"xx"},`, 40) + `{"type":"NFC"}]}`), `normalizer.type: Sequence would make a text more than 1024 times as long`},
		{file(`"normalizer":{"type":"Replace","pattern":{"Regex":"a*"},"content":"` + strings.Repeat("x", 2000) + `"}`), `normalizer.type: Replace would make a text more than 1024 times as long`},
		{file(`"normalizer":{"type":"Prepend","prepend":"` + strings.Repeat("x", 70000) + `"}`), `or 65536 bytes longer`},
		{file(`"pre_tokenizer":{"type":"Split","pattern":{"String":"x"},"behavior":"Maybe"}`), `pre_tokenizer.behavior: unknown split behavior "Maybe"`},
		{file(`"pre_tokenizer":{"type":"Metaspace","replacement":"__"}`), `pre_tokenizer.replacement: want one character, got "__"`},
		{file(`"pre_tokenizer":{"type":"Metaspace","replacement":"_","prepend_scheme":"often"}`), `pre_tokenizer.prepend_scheme: unknown scheme "often"`},
		{file(`"pre_tokenizer":{"type":"FixedLength","length":0}`), `pre_tokenizer.length: 0 is not a length`},
		{file(`"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}}],"special_tokens":{}}`), `post_processor.single[0]: "<s>" is not among special_tokens`},
		{file(`"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>"}}],"special_tokens":{"<s>":{"ids":[-1]}}}`), `post_processor.special_tokens: "<s>": -1 is not an id`},
		{file(`"post_processor":{"type":"BertProcessing","sep":["x"],"cls":["x",1]}`), `post_processor.sep: want [token, id]`},
		{file(`"decoder":{"type":"Foo"}`), `decoder: decoder "Foo" is not supported`},
		{file(`"decoder":{"type":"Strip","content":" ","start":-1}`), `decoder.start: -1 is negative`},
		{file(`"added_tokens":{}`), `added_tokens: want an array, got an object`},
		{file(`"added_tokens":[{"id":-5,"content":"x"}]`), `added_tokens[0].id: -5 is negative`},
		{file(`"added_tokens":[{"id":5}]`), `added_tokens[0].content: missing`},
		{file(`"added_tokens":[{"id":5,"content":"` + strings.Repeat("x", 5000) + `"}]`), `added_tokens[0].content: 5000 bytes`},
	} {
		_, err := New([]byte(c.file), "t.json")
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "tokenizer t.json: ") {
			t.Errorf("New(%.200s)\n got %v\nwant %s", c.file, err, c.want)
		}
	}
}

// TestDeep gives parsers more nesting than their stack should bear.
func TestDeep(t *testing.T) {
	model := `"model":{"type":"BPE","vocab":{"a":0},"merges":[]}`
	nest := func(n int, open, shut string) string { return strings.Repeat(open, n) + strings.Repeat(shut, n) }
	for _, f := range []string{
		fmt.Sprintf(`{%s,"normalizer":%s}`, model, nest(4000, `{"type":"Sequence","normalizers":[`, `]}`)),
		fmt.Sprintf(`{%s,"pre_tokenizer":%s}`, model, nest(4000, `{"type":"Sequence","pretokenizers":[`, `]}`)),
		fmt.Sprintf(`{%s,"decoder":%s}`, model, nest(4000, `{"type":"Sequence","decoders":[`, `]}`)),
		fmt.Sprintf(`{%s,"post_processor":%s}`, model, nest(4000, `{"type":"Sequence","processors":[`, `]}`)),
		fmt.Sprintf(`{%s,"x":%s}`, model, nest(100000, `[`, `]`)),
		fmt.Sprintf(`{%s,"pre_tokenizer":{"type":"Split","behavior":"Isolated","invert":false,"pattern":{"Regex":"%s"}}}`, model, nest(30000, `(`, `)`)),
		fmt.Sprintf(`{%s,"pre_tokenizer":{"type":"Split","behavior":"Isolated","invert":false,"pattern":{"Regex":"%s"}}}`, model, nest(30000, `[a`, `]`)),
	} {
		path := filepath.Join(t.TempDir(), "tokenizer.json")
		if err := os.WriteFile(path, []byte(f), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := loadWithin(t, path); err == nil {
			t.Errorf("%.120s… was loaded", f)
		}
	}
}

// TestSlowPattern has a pattern that backtracks without end: encoding must come
// to an end all the same.
func TestSlowPattern(t *testing.T) {
	tok, err := New([]byte(`{"model":{"type":"BPE","vocab":{"a":0},"merges":[]},"pre_tokenizer":
		{"type":"Split","behavior":"Isolated","invert":false,"pattern":{"Regex":"(a+)+b"}}}`), "t")
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if ids := tok.Encode(strings.Repeat("a", 50_000), false); len(ids) != 50_000 {
		t.Errorf("%d ids", len(ids))
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
}
