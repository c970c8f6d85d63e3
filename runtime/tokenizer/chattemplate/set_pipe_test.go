package chattemplate

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// Opening a pipe would wait for somebody to write into it.
func TestLoadOnlyRegularFiles(t *testing.T) {
	for _, name := range []string{"tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja", "chat_template.json"} {
		_, err := LoadFS(fstest.MapFS{name: {Data: []byte("{}"), Mode: fs.ModeNamedPipe}})
		if err == nil || !strings.Contains(err.Error(), name+" is not a regular file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
