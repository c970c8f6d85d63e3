package api

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"
)

// Cases of reasoning.json for models with think tags: whole, cut at every
// byte, and one rune at a time all give the same.
func TestSplitterCases(t *testing.T) {
	files := []string{"testdata/http/reasoning.json"}
	if dir := os.Getenv("INFER_CASES"); dir != "" {
		files = append(files, filepath.Join(dir, "http", "reasoning.json"))
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var all struct {
			Cases []struct {
				ID, Family, Text, Start string
				Want                    struct {
					Content, Reasoning *string
				}
			}
		}
		if err := json.Unmarshal(data, &all); err != nil {
			t.Fatal(err)
		}
		ran := 0
		for _, c := range all.Cases {
			if c.Family != "think_tags" {
				continue
			}
			ran++
			t.Run(c.ID, func(t *testing.T) {
				check := func(how string, pieces ...string) {
					s := newSplitter(c.Start == "reasoning")
					var reasoning, content string
					for _, p := range pieces {
						r, x := s.push(p)
						reasoning, content = reasoning+r, content+x
					}
					r, x := s.flush()
					reasoning, content = reasoning+r, content+x
					if reasoning != orEmpty(c.Want.Reasoning) || content != orEmpty(c.Want.Content) {
						t.Errorf("%s: reasoning %q, content %q; want %q, %q", how, reasoning, content, orEmpty(c.Want.Reasoning), orEmpty(c.Want.Content))
					}
				}
				check("whole", c.Text)
				for i := 1; i < len(c.Text); i++ {
					if utf8.RuneStart(c.Text[i]) {
						check("cut at "+c.Text[:i]+"|", c.Text[:i], c.Text[i:])
					}
				}
				var runes []string
				for _, r := range c.Text {
					runes = append(runes, string(r))
				}
				check("by runes", runes...)
			})
		}
		if ran == 0 {
			t.Fatalf("%s has no case with think tags", file)
		}
		t.Logf("%s: %d of %d cases are of the family think_tags", file, ran, len(all.Cases))
	}
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
