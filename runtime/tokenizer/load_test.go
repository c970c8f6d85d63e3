package tokenizer

import "testing"

// TestUnsupported checks that what is not known is an error that names it.
func TestUnsupported(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{`{"model":{"type":"BPE","vocab":{},"merges":[]},"normalizer":{"type":"Foo"}}`, `tokenizer t.json: normalizer: normalizer "Foo" is not supported`},
		{`{"model":{"type":"Bar","vocab":{}}}`, `tokenizer t.json: model: model "Bar" is not supported`},
		{`{"model":{"type":"BPE","vocab":{"a":-1},"merges":[]}}`, `tokenizer t.json: model.vocab["a"]: id -1 is not between 0 and 2147483646`},
	} {
		if _, err := New([]byte(c.file), "t.json"); err == nil || err.Error() != c.want {
			t.Errorf("New(%s)\n got %v\nwant %s", c.file, err, c.want)
		}
	}
}
