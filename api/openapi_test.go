package api

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/gin-gonic/gin"
)

func loadOpenAPI(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(openAPI)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return doc
}

// Every route is described, and nothing that is none.
func TestOpenAPIRoutes(t *testing.T) {
	doc := loadOpenAPI(t)
	described := map[string]bool{}
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			described[method+" "+path] = true
		}
	}
	catchAll := regexp.MustCompile(`\*(\w+)`)
	for _, r := range New(Config{}).handler.(*gin.Engine).Routes() {
		route := r.Method + " " + catchAll.ReplaceAllString(r.Path, "{$1}")
		if !described[route] && r.Method != "HEAD" {
			t.Errorf("%s is not described", route)
		}
		delete(described, route)
	}
	for route := range described {
		t.Errorf("%s is described and not served", route)
	}
}

// Every field of a request that is described is read, and the other way round
// but for those that are refused or have no effect.
func TestOpenAPIFields(t *testing.T) {
	doc := loadOpenAPI(t)
	m := newFixture(caseModel{}, script{}).model.Load()
	for schema, read := range map[string]func(*fields){
		"ChatRequest":       func(f *fields) { _, _, _ = decodeChat(f, m) },
		"CompletionRequest": func(f *fields) { _, _ = decodeCompletion(f, m) },
	} {
		f := mustRead(t, `{"prompt":"x","messages":[{"role":"user","content":"x"}]}`)
		read(f)
		properties := doc.Components.Schemas[schema].Value.Properties
		for name := range properties {
			if !f.used[name] {
				t.Errorf("%s: %s is described and not read", schema, name)
			}
		}
		silent := strings.Join(append(append([]string{}, constraintFields...), noEffect...), " ") +
			" functions function_call modalities audio background suffix chat_template n_predict prompt_embeds max_completion_tokens response_format"
		for name := range f.used {
			if properties[name] == nil && !strings.Contains(" "+silent+" ", " "+name+" ") {
				t.Errorf("%s: %s is read and not described", schema, name)
			}
		}
	}
}

// Requests of the cases fit the description, and so do the answers to them.
func TestOpenAPIDescribesTheCases(t *testing.T) {
	doc := loadOpenAPI(t)
	data, err := os.ReadFile("testdata/http/http.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Cases []httpCase }
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	visit := func(id, what string, schema *openapi3.SchemaRef, body string) {
		var v any
		if err := json.Unmarshal([]byte(body), &v); err != nil {
			t.Errorf("%s: %s is not JSON: %v", id, what, err)
			return
		}
		if err := schema.Value.VisitJSON(v, openapi3.EnableJSONSchema2020()); err != nil {
			t.Errorf("%s: %s: %v\n%s", id, what, err, body)
		}
	}
	chunk := map[string]string{"/v1/chat/completions": "ChatChunk", "/v1/completions": "CompletionAnswer"}
	requests, answers, chunks := 0, 0, 0
	for _, c := range all.Cases {
		path, _, _ := strings.Cut(c.Req.Path, "?")
		item := doc.Paths.Value(path)
		if item == nil || item.GetOperation(c.Req.Method) == nil || c.Req.Raw != nil {
			continue
		}
		op := item.GetOperation(c.Req.Method)
		f := newFixture(c.Model, c.Gen)
		f.engine.lists = batch(f.engine.tok, c.Req.Body)
		w := ask(f, c.Req.Method, c.Req.Path, string(c.Req.Body))
		if w.Code != 200 {
			visit(c.ID, "error", doc.Components.Schemas["Error"], w.Body.String())
			answers++
			continue
		}
		if op.RequestBody != nil {
			visit(c.ID, "request", op.RequestBody.Value.Content["application/json"].Schema, string(c.Req.Body))
			requests++
		}
		if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
			if media := op.Responses.Value("200").Value.Content["application/json"]; media != nil {
				visit(c.ID, "answer", media.Schema, w.Body.String())
				answers++
			}
			continue
		}
		list, _ := events(t, w.Body.String())
		for _, v := range list {
			schema := doc.Components.Schemas[chunk[path]]
			if _, isError := follow(v, "error").(map[string]any); isError {
				schema = doc.Components.Schemas["Error"]
			}
			visit(c.ID, "chunk", schema, show(v))
			chunks++
		}
	}
	t.Logf("%d requests, %d answers and %d chunks were held to the description", requests, answers, chunks)
	if requests == 0 || answers == 0 || chunks == 0 {
		t.Error("some kind was never checked")
	}
}
