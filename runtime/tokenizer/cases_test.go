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
)

// A goldenCase is what the reference makes of one text.
type goldenCase struct {
	Text               string
	Group              string
	IDs                []int32 `json:"ids"`
	IDsWithSpecial     []int32 `json:"ids_with_special"`
	Decoded            string
	DecodedSkipSpecial string `json:"decoded_skip_special"`
}

// caseFolders are where tokenizers with their cases lie: NAME.json.gz beside
// NAME.tokenizer.json (or .json.gz).
func caseFolders() []string {
	dirs := []string{filepath.Join("testdata", "cases")}
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
	if got := tok.Encode(c.Text, false); !slices.Equal(got, c.IDs) {
		t.Errorf("%s: Encode(%q)\n got %v\nwant %v", c.Group, c.Text, got, c.IDs)
	}
	if got := tok.Encode(c.Text, true); !slices.Equal(got, c.IDsWithSpecial) {
		t.Errorf("%s: Encode(%q, special)\n got %v\nwant %v", c.Group, c.Text, got, c.IDsWithSpecial)
	}
	if got := tok.Decode(c.IDs, false); got != c.Decoded {
		t.Errorf("%s: Decode(%v)\n got %q\nwant %q", c.Group, c.IDs, got, c.Decoded)
	}
	if got := tok.Decode(c.IDsWithSpecial, true); got != c.DecodedSkipSpecial {
		t.Errorf("%s: Decode(%v, skip)\n got %q\nwant %q", c.Group, c.IDsWithSpecial, got, c.DecodedSkipSpecial)
	}
}
