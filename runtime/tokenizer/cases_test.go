package tokenizer

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// A goldenCase is what the reference makes of one text. Without a text it is a
// case for the decoder only; without a decoded text, one for the encoder only.
type goldenCase struct {
	Text               *string
	Group              string
	IDs                []int32  `json:"ids"`
	IDsWithSpecial     []int32  `json:"ids_with_special"`
	IDsPlain           *[]int32 `json:"ids_plain"`
	Decoded            *string
	DecodedSkipSpecial *string `json:"decoded_skip_special"`
}

// caseFolders are where tokenizers with their cases lie: NAME.json.gz beside
// NAME.tokenizer.json (or .json.gz).
func caseFolders() []string {
	dirs := []string{filepath.Join("testdata", "cases"), filepath.Join("testdata", "kinds")}
	if d := os.Getenv("INFER_CASES"); d != "" {
		dirs = append(dirs, filepath.Join(d, "tokenizers"))
	}
	return dirs
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func loadFile(t testing.TB, path string) *Tokenizer {
	t.Helper()
	tok, err := New(readFile(t, path), path)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestCases(t *testing.T) {
	tried := 0
	for _, dir := range caseFolders() {
		files, err := filepath.Glob(filepath.Join(dir, "*.tokenizer.json*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			name, _, _ := strings.Cut(filepath.Base(path), ".tokenizer.json")
			tried++
			t.Run(name, func(t *testing.T) {
				tok := loadFile(t, path)
				var cases []goldenCase
				if err := json.Unmarshal(readFile(t, filepath.Join(dir, name+".json.gz")), &cases); err != nil {
					t.Fatal(err)
				}
				if len(cases) == 0 {
					t.Fatal("no cases")
				}
				for _, c := range cases {
					checkCase(t, tok, c)
				}
			})
		}
	}
	if tried == 0 {
		t.Fatal("no tokenizers found")
	}
}

func checkCase(t *testing.T, tok *Tokenizer, c goldenCase) {
	t.Helper()
	if c.Text != nil {
		if got := tok.Encode(*c.Text, false); !slices.Equal(got, c.IDs) {
			t.Errorf("%s: Encode(%q)\n got %v\nwant %v", c.Group, *c.Text, got, c.IDs)
		}
		if got := tok.Encode(*c.Text, true); !slices.Equal(got, c.IDsWithSpecial) {
			t.Errorf("%s: Encode(%q, special)\n got %v\nwant %v", c.Group, *c.Text, got, c.IDsWithSpecial)
		}
		if c.IDsPlain != nil {
			// The reference lets special tokens through that the model itself
			// has as pieces.
			got := tok.EncodePlain(*c.Text, false)
			if slices.ContainsFunc(*c.IDsPlain, tok.isReservedID) {
				if slices.ContainsFunc(got, tok.isReservedID) {
					t.Errorf("%s: EncodePlain(%q) has a special token: %v", c.Group, *c.Text, got)
				}
			} else if !slices.Equal(got, *c.IDsPlain) {
				t.Errorf("%s: EncodePlain(%q)\n got %v\nwant %v", c.Group, *c.Text, got, *c.IDsPlain)
			}
		}
	}
	if c.Decoded != nil {
		if got := tok.Decode(c.IDs, false); got != *c.Decoded {
			t.Errorf("%s: Decode(%v)\n got %q\nwant %q", c.Group, c.IDs, got, *c.Decoded)
		}
		checkStream(t, tok, c.IDs, false, *c.Decoded)
	}
	if c.DecodedSkipSpecial != nil {
		if got := tok.Decode(c.IDsWithSpecial, true); got != *c.DecodedSkipSpecial {
			t.Errorf("%s: Decode(%v, skip)\n got %q\nwant %q", c.Group, c.IDsWithSpecial, got, *c.DecodedSkipSpecial)
		}
		checkStream(t, tok, c.IDsWithSpecial, true, *c.DecodedSkipSpecial)
	}
}

// checkStream decodes ids one by one, as an answer is sent out.
func checkStream(t *testing.T, tok *Tokenizer, ids []int32, skip bool, want string) {
	t.Helper()
	s := tok.NewStream(skip)
	var h UTF8Holder
	got := ""
	add := func(chunk string) {
		if !utf8.ValidString(chunk) {
			t.Errorf("Stream(%v): chunk %q is not valid UTF-8", ids, chunk)
		}
		got += chunk
	}
	for _, id := range ids {
		add(h.Push(s.Next(id)))
	}
	add(h.Push(s.Flush()))
	add(h.Flush())
	if got != want {
		t.Errorf("Stream(%v)\n got %q\nwant %q", ids, got, want)
	}
}

// isReservedID reports whether id is a special token other than the model's
// unknown token.
func (t *Tokenizer) isReservedID(id int32) bool {
	unk := int32(-1)
	switch m := t.model.(type) {
	case *unigram:
		unk = m.unk
	case *wordPiece:
		unk = m.unk
	case *wordLevel:
		unk = m.unk
	case *bpe:
		unk = m.unk
	}
	return id != unk && t.IsSpecial(id)
}
