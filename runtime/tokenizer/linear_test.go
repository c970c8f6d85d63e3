package tokenizer

import (
	"strings"
	"testing"
	"time"
)

// TestLinear encodes texts that make a careless tokenizer quadratic: 100 kB of
// each must stay within some twenty times what 10 kB take.
func TestLinear(t *testing.T) {
	units := []string{
		"a", "A", " ", "\n", "1", "!", "'", "é", "日", "😀", "\u0301", "a\u0301", "aB", "ab1", " \n", "▁", "<", "<|", "\r\n\t ", "x'", "ſ", "\x00", "\xff", ".a",
	}
	for i, name := range []string{
		"cases/gpt2", "cases/llama3", "cases/qwen2_5", "cases/llama2", "kinds/bert", "kinds/t5", "kinds/albert", "kinds/gpt4", "kinds/gpt4o",
		"kinds/deepseek", "kinds/clip", "kinds/bloom", "kinds/wordlevel", "kinds/unigram-scripts", "kinds/gpt-neox", "kinds/gemma",
	} {
		if testing.Short() && i > 1 { // long under the race detector, and one goroutine
			continue
		}
		tok := loadFile(t, "testdata/"+name+".tokenizer.json.gz")
		for _, u := range units {
			took := func(size int) time.Duration {
				text := strings.Repeat(u, size/len(u))
				start := cpuTime(t)
				tok.Encode(text, true)
				return cpuTime(t) - start
			}
			small := took(10_000)
			if large := took(100_000); large > 20*small+150*time.Millisecond {
				t.Errorf("%s: 100 kB of %q took %v, 10 kB %v", name, u, large, small)
			}
		}
	}
}
