package tokenizer

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// TestConcurrent encodes with one tokenizer from many goroutines.
func TestConcurrent(t *testing.T) {
	for _, name := range []string{"cases/llama3", "cases/llama2", "kinds/t5", "kinds/bert", "kinds/kimi"} {
		tok := loadFile(t, "testdata/"+name+".tokenizer.json.gz")
		text := english(5_000) + " 😀 naïve 日本語 <|endoftext|> 12345"
		want := tok.Encode(text, true)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for j := range 10 {
					if got := tok.Encode(text, true); !slices.Equal(got, want) {
						t.Errorf("%s: goroutine %d, round %d differs", name, i, j)
					}
					tok.EncodePlain(text[j*i:], false)
					tok.Decode(want, true)
					tok.TokenBytes(int32(i))
				}
			})
		}
		wg.Wait()
	}
}

// FuzzRoundTrip checks on byte-level tokenizers that no text is lost, and on all
// that no text does harm.
func FuzzRoundTrip(f *testing.F) {
	for _, s := range []string{"", " ", "hello world", "it's\r\n 12345 \u00a0é\u0301 日本 😀 <|endoftext|> \xff\xf0\x9f", "AAAAAa''s'S \u2028\x00"} {
		f.Add(s)
	}
	exact := map[string]*Tokenizer{}
	for _, n := range []string{"gpt2", "llama3", "gpt4o", "deepseek", "bloom", "tekken"} {
		exact[n] = loadFile(f, "testdata/kinds/"+n+".tokenizer.json.gz")
	}
	others := map[string]*Tokenizer{}
	for _, n := range []string{"bert", "t5", "albert", "llama2-first", "nothing", "split-anchors", "unigram-scripts", "norm-replace"} {
		others[n] = loadFile(f, "testdata/kinds/"+n+".tokenizer.json.gz")
	}
	f.Fuzz(func(t *testing.T, s string) {
		for n, tok := range exact {
			for _, ids := range [][]int32{tok.Encode(s, true), tok.EncodePlain(s, true)} {
				if got := tok.Decode(ids, false); got != validText(s) {
					t.Errorf("%s: %q becomes %v becomes %q", n, s, ids, got)
				}
			}
			if slices.ContainsFunc(tok.EncodePlain(s, false), tok.IsSpecial) {
				t.Errorf("%s: EncodePlain(%q) has a special token", n, s)
			}
		}
		for _, tok := range others {
			for _, id := range tok.Encode(s, true) {
				if id < 0 || int(id) >= tok.VocabSize() {
					t.Errorf("Encode(%q) has the id %d", s, id)
				}
			}
		}
	})
}

// FuzzNew feeds broken files: an error is fine, anything worse is not.
func FuzzNew(f *testing.F) {
	for _, c := range []string{"114-tokenizer-merges-as-pairs", "120-tokenizer-ids-with-holes"} {
		b, err := os.ReadFile(filepath.Join("testdata", "bad-checkpoints", c, "tokenizer.json"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"model":{"type":"Unigram","vocab":[["a",-1],["<unk>",0]],"unk_id":1},"normalizer":{"type":"Precompiled","precompiled_charsmap":"BAAAAAAAAABhAGIA"},"pre_tokenizer":{"type":"Metaspace","replacement":"_"},"decoder":{"type":"Sequence","decoders":[{"type":"Fuse"},{"type":"Strip","content":"a","start":1,"stop":2}]}}`))
	f.Add([]byte(`{"model":{"type":"WordPiece","vocab":{"[UNK]":0,"a":1,"##b":2}},"normalizer":{"type":"Replace","pattern":{"Regex":"[a&&[^b]]++|\\p{L}{1,2}+"},"content":"x"},"added_tokens":[{"id":7,"content":"<x>","lstrip":true,"rstrip":true}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		tok, err := New(b, "f")
		if err != nil {
			return
		}
		ids := tok.Encode("abc aab <x> deaé 12\n", true)
		tok.Decode(ids, false)
		tok.Decode([]int32{0, 1, 2, 3, 7, -1}, true)
		tok.TokenBytes(1)
	})
}
