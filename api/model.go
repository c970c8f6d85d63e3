package api

import (
	"context"
	"slices"
	"strings"
	"time"

	"infer/runtime/engine"
	"infer/runtime/tokenizer/chattemplate"
)

// Generator makes one sequence; the engine is one.
//
// It calls emit for every Event, in order, from the goroutine that called it,
// and waits for it: a slow emit delays this sequence only. When emit returns
// an error or ctx ends, the sequence ends within one step and Generate returns
// an error that wraps it; Result then holds what was known.
type Generator interface {
	Generate(ctx context.Context, r engine.Request, emit func(engine.Event) error) (engine.Result, error)
}

// Tokenizer is what the routes need of a tokenizer. It is safe for concurrent use.
type Tokenizer interface {
	Encode(text string, addSpecial bool) []int32      // special tokens in text are recognised
	EncodePlain(text string, addSpecial bool) []int32 // special tokens in text are plain text
	Decode(ids []int32, skipSpecial bool) string
	VocabSize() int // highest id + 1
	Token(id int32) (string, bool)
	TokenBytes(id int32) []byte // in the middle of a text
}

// Template renders a conversation; a chattemplate.Set is one. It is safe for
// concurrent use.
type Template interface {
	// Caps says what the template takes; messages are adapted to it before.
	Caps(hasTools bool) chattemplate.Caps
	// Render makes the prompt from the variables: messages, tools,
	// add_generation_prompt and what the request adds. Special tokens are the
	// template's own affair.
	Render(ctx context.Context, vars *chattemplate.Dict) (string, error)
	// RenderContinue makes a prompt that ends with the last message's text.
	RenderContinue(ctx context.Context, vars *chattemplate.Dict) (string, error)
}

// Defaults are sampling values for requests that name none, from the model's
// generation_config.json; nil is OpenAI's default.
type Defaults struct {
	Temperature *float64 // 1
	TopP        *float64 // 1
	TopK        *int     // off
	MinP        *float64 // off
	Repetition  *float64 // off
	MaxTokens   *int     // the rest of the context
}

// Model is one served model. All fields but the optional ones must be set.
type Model struct {
	Name    string   // as clients ask for it; may hold slashes
	Aliases []string // other names; "*" is any
	Created time.Time
	Context int    // longest prompt and answer together, in tokens
	Root    string // optional: where it was loaded from, a folder's name or a repo id
	// Meta is optional: facts for /v1/models (n_params, n_ctx_train, ...).
	Meta map[string]any
	// Fingerprint is a hash of build, weights and plan: equal fingerprints give
	// equal tokens for equal seeds. Optional.
	Fingerprint string

	Defaults  Defaults
	Vocab     int       // token ids are below it; 0: the tokenizer's size
	Tokenizer Tokenizer // nil: the model has none, prompts are token ids only
	Template  Template  // nil: the model has none, chat routes answer 400
	Generator Generator
	Stats     func() Stats // optional: for /metrics
	DeviceMap func() any   // optional: where the model runs, for /health

	metrics *metrics // made by SetModel
}

// idsOnly stands in for the tokenizer of a model that has none.
type idsOnly struct{ vocab int }

func (idsOnly) Encode(string, bool) []int32      { return nil }
func (idsOnly) EncodePlain(string, bool) []int32 { return nil }
func (idsOnly) Decode([]int32, bool) string      { return "" }
func (t idsOnly) VocabSize() int                 { return t.vocab }
func (idsOnly) Token(int32) (string, bool)       { return "", false }
func (idsOnly) TokenBytes(int32) []byte          { return nil }

// needText refuses a field that holds text where there is no tokenizer.
func (m *Model) needText(f *fields, name string) {
	if _, none := m.Tokenizer.(idsOnly); none {
		f.bad(name, "the model \"%s\" has no tokenizer; send token ids to /v1/completions", m.Name)
	}
}

// named tells whether a client's name means this model.
func (m *Model) named(name string) bool {
	return name == "" || name == m.Name || slices.Contains(m.Aliases, name) || slices.Contains(m.Aliases, "*")
}

// names lists what can be asked for.
func (m *Model) names() []string {
	names := []string{m.Name}
	for _, alias := range m.Aliases {
		if alias != "*" {
			names = append(names, alias)
		}
	}
	return names
}

// checkName returns the name to echo, or a 404 that lists the names.
func (m *Model) checkName(f *fields) (string, error) {
	name, _ := f.str("model")
	if err := f.err(); err != nil {
		return "", err
	}
	if !m.named(name) {
		return "", errModelNotFound(name, m.names())
	}
	if name == "" {
		name = m.Name
	}
	return name, nil
}

func errModelNotFound(name string, served []string) *apiError {
	return &apiError{
		Status: 404, Type: typeInvalid, Code: codeModelNotFound, Param: "model",
		Message: "the model \"" + clip(name) + "\" is not served here; served: " + strings.Join(served, ", "),
	}
}

// Stats is a snapshot of the engine for /metrics.
type Stats struct {
	Running, Waiting        int
	BlocksUsed, BlocksTotal int
	BlockSize               int // tokens

	PrefixQueries int64 // prompt tokens looked up in the prefix cache
	PrefixHits    int64 // of them, found
	Drafted       int64 // guessed tokens that were computed
	Accepted      int64 // of them, kept
	Preemptions   int64

	Steps, FailedSteps int64
	StepTime           time.Duration // sum over all steps
	Failed             error         // nothing can be computed any more

	Devices Devices
	Memory  []DeviceMemory
}

// DeviceMemory is what was planned for one device and what is allocated there,
// in bytes.
type DeviceMemory struct {
	Device        string
	Planned, Used int64 // Used is −1 where nobody counts
}
