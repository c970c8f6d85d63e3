package chattemplate

import (
	"context"

	"infer/runtime/tokenizer/chattemplate/jinja"
)

var jsonTemplate = func() *jinja.Template {
	t, err := jinja.Compile("{{ v | tojson }}")
	if err != nil {
		panic(err) // a constant source
	}
	return t
}()

// toJSON writes a value as templates' tojson does.
func toJSON(v Value) (string, error) {
	return jsonTemplate.Render(context.Background(), dict("v", v), jinja.Options{})
}
