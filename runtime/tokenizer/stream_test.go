package tokenizer

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

// lossy is what a text of bytes becomes, after the Unicode standard's table of
// maximal subparts (section 3.9, table 3-8 and others).
var lossy = []struct{ in, want string }{
	{"", ""},
	{"plain", "plain"},
	{"é€😀", "é€😀"},
	{"\xE2\x82", "�"},
	{"a\xF0\x9F\x98", "a�"},
	{"\xF1\x80\x80\xE1\x80\xC2b\x80c\x80\xBFd", "���b�c��d"},
	{"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82A", "��������A"},
	{"\xED\xA0\x80\xED\xBF\xBF\xED\xAFA", "��������A"},
	{"\xF4\x91\x92\x93\xFFA\x80\xBFB", "�����A��B"},
	{"\xE1\x80\xE2\xF0\x91\x92\xF1\xBFA", "����A"},
	{"�\xFF", "��"},
}

func TestValidText(t *testing.T) {
	for _, c := range lossy {
		if got := validText(c.in); got != c.want {
			t.Errorf("validText(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

// TestUTF8Holder cuts texts at every pair of places.
func TestUTF8Holder(t *testing.T) {
	for _, c := range append(lossy, struct{ in, want string }{"😀é\xF0\x9F€", "😀é�€"}) {
		for i := range len(c.in) + 1 {
			for j := i; j <= len(c.in); j++ {
				var h UTF8Holder
				got := ""
				for _, part := range []string{c.in[:i], c.in[i:j], c.in[j:]} {
					chunk := h.Push([]byte(part))
					if !utf8.ValidString(chunk) {
						t.Errorf("%q cut at %d and %d: chunk %q", c.in, i, j, chunk)
					}
					got += chunk
				}
				if got += h.Flush(); got != c.want {
					t.Errorf("%q cut at %d and %d: %q, want %q", c.in, i, j, got, c.want)
				}
			}
		}
	}
	// Nothing is held longer than it must be.
	var h UTF8Holder
	if got := h.Push([]byte("ab\xE2\x82")); got != "ab" {
		t.Errorf("got %q", got)
	}
	if got := h.Push([]byte("x")); got != "�x" {
		t.Errorf("got %q", got)
	}
}

func TestStopFilter(t *testing.T) {
	for _, c := range []struct {
		text    string
		stops   []string
		want    string // output without the stop string
		matched string
	}{
		{"hello world", nil, "hello world", ""},
		{"hello world", []string{""}, "hello world", ""},
		{"hello world", []string{"xyz"}, "hello world", ""},
		{"hello world", []string{"o w"}, "hell", "o w"},
		{"hello world", []string{"hello"}, "", "hello"},
		{"hello world", []string{"world"}, "hello ", "world"},
		{"hello worl", []string{"world"}, "hello worl", ""},
		{"aaab", []string{"aab"}, "a", "aab"},
		{"ababac", []string{"abac"}, "ab", "abac"},
		{"abcd", []string{"bcd", "c"}, "ab", "c"},        // c ends first
		{"abcd", []string{"cd", "bcd"}, "a", "bcd"},      // both end here, bcd starts first
		{"abcabd", []string{"abx", "abd"}, "abc", "abd"}, // the first is given up
		{"das größte Ende. Mehr", []string{"Ende."}, "das größte ", "Ende."},
		{"日本語です", []string{"語"}, "日本", "語"},
		{"日木本", []string{"本"}, "日木", "本"}, // 木 and 本 share two bytes
		{"x\n\nUser: y", []string{"\n\nUser:", "</s>"}, "x", "\n\nUser:"},
	} {
		for i := range len(c.text) + 1 {
			for j := i; j <= len(c.text); j++ {
				for _, include := range []bool{false, true} {
					f := NewStopFilter(c.stops, include)
					got, stopped := "", false
					for _, part := range []string{c.text[:i], c.text[i:j], c.text[j:]} {
						var s string
						s, stopped = f.Push(part)
						got += s
					}
					got += f.Flush()
					want := c.want
					if include {
						want += c.matched
					}
					m, ok := f.Matched()
					if got != want || stopped != (c.matched != "") || ok != stopped || m != c.matched {
						t.Errorf("%q with %q cut at %d and %d: %q, stopped %v by %q", c.text, c.stops, i, j, got, stopped, m)
					}
				}
			}
		}
	}
}

// TestStopFilterHolds checks that text goes out as soon as it is no part of a
// stop string, and no sooner.
func TestStopFilterHolds(t *testing.T) {
	f := NewStopFilter([]string{"END", "ENOUGH"}, false)
	for _, c := range []struct{ in, out string }{{"abc", "abc"}, {"E", ""}, {"N", ""}, {"x", "ENx"}, {"yEN", "y"}, {"O", ""}, {"E", "ENO"}, {"ND", ""}} {
		if got, _ := f.Push(c.in); got != c.out {
			t.Errorf("Push(%q) = %q, want %q", c.in, got, c.out)
		}
	}
	if m, ok := f.Matched(); !ok || m != "END" {
		t.Errorf("matched %q, %v", m, ok)
	}
	if got, stopped := f.Push("more"); got != "" || !stopped || f.Flush() != "" {
		t.Error("text behind the stop string goes out")
	}
}

// TestStreamAtOnce checks that a stream does not keep back what is certain.
func TestStreamAtOnce(t *testing.T) {
	tok := loadFile(t, "testdata/cases/llama2.tokenizer.json.gz")
	s := tok.NewStream(false)
	got := []string{}
	for _, piece := range []string{"▁Hello", "▁world", "<0xE2>", "<0x82>", "<0xAC>", "!", "<0xE2>", "a"} {
		id, ok := tok.TokenID(piece)
		if !ok {
			t.Fatalf("no token %q", piece)
		}
		got = append(got, string(s.Next(id)))
	}
	want := []string{"Hello", " world", "", "", "", "€!", "", "�a"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := s.Next(1 << 30); len(got) != 0 {
		t.Errorf("an id without token gives %q", got)
	}
}

func TestTokenBytes(t *testing.T) {
	for _, c := range []struct {
		file  string
		bytes map[string]string
	}{
		{"cases/llama2", map[string]string{"▁Hello": " Hello", "<0xE2>": "\xE2", "a": "a", "<s>": "<s>", "▁▁": "  "}},
		{"cases/gpt2", map[string]string{"Ġworld": " world", "Ċ": "\n", "â": "\xE2", "<|endoftext|>": "<|endoftext|>"}},
		{"kinds/bert", map[string]string{"##e": "e", "the": " the", "[SEP]": "[SEP]"}},
		{"kinds/t5", map[string]string{"▁the": " the", "▁": " "}},
		{"kinds/gpt1", map[string]string{"the</w>": "the ", "t": "t"}},
	} {
		tok := loadFile(t, "testdata/"+c.file+".tokenizer.json.gz")
		for piece, want := range c.bytes {
			id, ok := tok.TokenID(piece)
			if !ok {
				t.Errorf("%s: no token %q", c.file, piece)
				continue
			}
			if got := tok.TokenBytes(id); !bytes.Equal(got, []byte(want)) {
				t.Errorf("%s: TokenBytes(%q) = %q, want %q", c.file, piece, got, want)
			}
			if back, _ := tok.Token(id); back != piece {
				t.Errorf("%s: Token(TokenID(%q)) = %q", c.file, piece, back)
			}
		}
		if tok.TokenBytes(-1) != nil || tok.TokenBytes(int32(tok.VocabSize())) != nil {
			t.Errorf("%s: bytes for ids that are none", c.file)
		}
		if _, ok := tok.Token(int32(tok.VocabSize()) - 1); !ok {
			t.Errorf("%s: the highest id has no token", c.file)
		}
	}
}
