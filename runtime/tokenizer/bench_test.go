package tokenizer

import (
	"strings"
	"testing"
)

// english is running text of about n bytes in which few words come often and
// many seldom, as in real text.
func english(n int) string {
	const words = `the of and to in a is that for it was on are as with his they at be this from have or by one had not but what all were
when we there can an your which their said if do will each about how up out them then she many some so these would other into has more two like him see time could
no make than first been its who now people my made over did down only way find use may water long little very after words called just where most know get through back
understanding neighbourhood constitutional photosynthesis international responsibility extraordinary characteristics circumstances enthusiastically misunderstandings`
	list := strings.Fields(words)
	var b strings.Builder
	seed := uint32(1)
	for i := 0; b.Len() < n; i++ {
		seed = seed*1664525 + 1013904223
		r := int(seed >> 8)
		k := r % len(list)
		k = k * (r / len(list) % 64) / 64 // small numbers more often
		if i > 0 {
			b.WriteString([]string{" ", " ", " ", " ", " ", " ", " ", ", ", ". ", "\n"}[r/7%10])
		}
		b.WriteString(list[k])
	}
	return b.String()
}

func BenchmarkEncode(b *testing.B) {
	text := english(1 << 20)
	for _, name := range []string{"gpt2", "llama3", "qwen2_5", "llama2"} {
		b.Run(name, func(b *testing.B) {
			tok := loadFile(b, "testdata/cases/"+name+".tokenizer.json.gz")
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				tok.Encode(text, false)
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, name := range []string{"llama3", "llama2"} {
		b.Run(name, func(b *testing.B) {
			tok := loadFile(b, "testdata/cases/"+name+".tokenizer.json.gz")
			text := english(1 << 16)
			ids := tok.Encode(text, false)
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				tok.Decode(ids, false)
			}
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	data := readFile(b, "testdata/cases/llama3.tokenizer.json.gz")
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := New(data, "x"); err != nil {
			b.Fatal(err)
		}
	}
}
