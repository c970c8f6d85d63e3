package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"infer/runtime/kernels/cpu"
	"infer/runtime/tensor"
)

// The reference implementation's greedy answers of the embedded model, in
// float32 from the same weights.
type tinyCase struct {
	Kind     string `json:"kind"`
	Messages []struct {
		Role, Content string
	} `json:"messages"`
	PromptIDs     []int32 `json:"prompt_ids"`
	IDs           []int32 `json:"ids"`
	IDsBeforeStop int     `json:"ids_before_stop"`
	Text          string  `json:"text"`
	// How close the best two logits come, in all ids and in those before the stop.
	Margin           float64 `json:"smallest_margin"`
	MarginBeforeStop float64 `json:"smallest_margin_before_stop"`
}

func tinyCases(t testing.TB) []tinyCase {
	t.Helper()
	data, err := os.ReadFile("../../models/tiny/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []tinyCase }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) < 10 {
		t.Fatalf("%d cases", len(file.Cases))
	}
	return file.Cases
}

// infer runs a command line in this process and gives what it printed.
func infer(t testing.TB, args ...string) string {
	t.Helper()
	var out, errOut bytes.Buffer
	if code := execute(t.Context(), args, strings.NewReader(""), &out, &errOut); code != 0 {
		t.Fatalf("infer %s: exit code %d: %s", strings.Join(args, " "), code, errOut.String())
	}
	return out.String()
}

func TestTinyMatchesReference(t *testing.T) {
	// Where the best two logits are this close, a processor that rounds activations
	// does not decide.
	undecided := map[string]float64{"f32": 0, "auto": 0}
	b, err := cpu.Open(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if b.OperandType(tensor.BF16) == tensor.BF16 {
		undecided["auto"] = 0.02
	}
	_ = b.Device().Close()
	for precision, tie := range undecided {
		compared := 0
		for _, c := range tinyCases(t) {
			n := len(c.IDs)
			switch {
			case c.MarginBeforeStop < tie:
				continue
			case c.Margin < tie:
				n = c.IDsBeforeStop
			}
			compared += n
			ids, err := json.Marshal(c.PromptIDs)
			if err != nil {
				t.Fatal(err)
			}
			args := []string{"run", "--json", "--temperature", "0", "--precision", precision, "--max-tokens", "48"}
			got := runOutput{}
			decode(t, infer(t, append(args, "--ignore-eos", "--ids", strings.Trim(string(ids), "[]"))...), &got)
			if !slices.Equal(got.IDs[:n], c.IDs[:n]) {
				t.Errorf("%s, prompt %v: ids\n%v, want\n%v", precision, c.PromptIDs, got.IDs, c.IDs)
			}
			// With its end, the text is what a user sees; a single user turn
			// also goes through the chat template.
			if c.Kind == "chat" && len(c.Messages) == 1 {
				args = append(args, c.Messages[0].Content)
			} else {
				args = append(args, "--ids", strings.Trim(string(ids), "[]"))
			}
			decode(t, infer(t, args...), &got)
			if !slices.Equal(got.PromptIDs, c.PromptIDs) || got.Text != c.Text {
				t.Errorf("%s: prompt %v, text %q; want %v, %q", precision, got.PromptIDs, got.Text, c.PromptIDs, c.Text)
			}
		}
		if compared < 100 {
			t.Errorf("%s: only %d ids are decided", precision, compared)
		}
	}
}

func decode(t testing.TB, text string, into any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	if err := d.Decode(into); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	if _, err := d.Token(); err != io.EOF {
		t.Fatalf("more than one object in %q", text)
	}
}
