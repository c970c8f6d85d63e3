package api

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// FuzzBody: whatever a body holds, the answer is a success or a 4xx that is an
// OpenAI error.
func FuzzBody(f *testing.F) {
	data, err := os.ReadFile("testdata/http/http.json")
	if err != nil {
		f.Fatal(err)
	}
	var all struct{ Cases []httpCase }
	if err := json.Unmarshal(data, &all); err != nil {
		f.Fatal(err)
	}
	for _, c := range all.Cases {
		if len(c.Req.Body) > 0 {
			f.Add(c.Req.Path, []byte(c.Req.Body))
		}
	}
	f.Add("/v1/completions", []byte(`{"prompt":[1,"a",[2]],"logit_bias":{"9":1e999},"max_tokens":1e300,"seed":9223372036854775808}`))
	f.Add("/v1/chat/completions", []byte(`{"messages":[{"role":"user","content":[{"type":"text"}]}],"n":1,"n":2}`))
	f.Add("/tokenize", []byte("\xef\xbb\xbf{\"content\":\"\\ud800\"}"))
	routes := []string{"/v1/chat/completions", "/v1/completions", "/tokenize", "/detokenize"}
	s := newFixture(caseModel{}, script{Pieces: []string{"a", "b"}, End: "eos"})
	f.Fuzz(func(t *testing.T, path string, body []byte) {
		route := routes[len(path)%len(routes)]
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, route, strings.NewReader(string(body))))
		if w.Code == http.StatusOK {
			return
		}
		if w.Code < 400 || w.Code >= 500 {
			t.Fatalf("status %d: %s", w.Code, w.Body)
		}
		var e struct {
			Error *struct{ Message, Type *string }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Error == nil || e.Error.Message == nil || *e.Error.Message == "" {
			t.Fatalf("status %d with a body that is no error: %s", w.Code, w.Body)
		}
	})
}
