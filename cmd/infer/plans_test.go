package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the plans of testdata/plans anew")

// Each file in testdata/plans is a command, and what it prints: plans of
// published models on machines, to be read in review. Those that do not fit
// name ways to make them fit, and each of these, when followed, does.
func TestPlans(t *testing.T) {
	files, err := filepath.Glob("testdata/plans/*.txt")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d plans, %v", len(files), err)
	}
	unfit := 0
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			line, _, _ := strings.Cut(string(want), "\n")
			command, ok := strings.CutPrefix(line, "$ infer ")
			if !ok {
				t.Fatalf("the first line is %q, want $ infer plan …", line)
			}
			args := strings.Fields(command)
			var out bytes.Buffer
			fmt.Fprintln(&out, line)
			code := execute(t.Context(), args, nil, &out, &out)
			if code != 0 {
				fmt.Fprintf(&out, "exit %d\n", code)
			}
			if *rewrite {
				if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if out.String() != string(want) {
				t.Errorf("another plan (go test ./cmd/infer -run TestPlans -rewrite writes it):\n%s", out.String())
			}
			if code == exitDoesNotFit {
				unfit++
				followSuggestions(t, args)
			}
		})
	}
	if unfit < 4 {
		t.Errorf("only %d plans that do not fit", unfit)
	}
}

// The pictures of the documentation are what infer plan prints.
func TestPlansInDocs(t *testing.T) {
	const page = "../../docs/device-map.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)<!-- plan (\\S+) -->\n(?:\n```\n.*?```\n)?")
	pictures := 0
	want := block.ReplaceAllStringFunc(string(text), func(found string) string {
		name := block.FindStringSubmatch(found)[1]
		plan, err := os.ReadFile("testdata/plans/" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		pictures++
		return "<!-- plan " + name + " -->\n\n```\n" + strings.ReplaceAll(string(plan), "testdata/models/", "") + "```\n"
	})
	if *rewrite {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) || pictures < 3 {
		t.Errorf("%s has other plans than testdata/plans (go test ./cmd/infer -run TestPlans -rewrite writes them)", page)
	}
}

func followSuggestions(t *testing.T, args []string) {
	var out bytes.Buffer
	if code := execute(t.Context(), append(args, "--json"), nil, &out, io.Discard); code != exitDoesNotFit {
		t.Fatalf("with --json: exit %d", code)
	}
	var answer struct {
		Fits        bool         `json:"fits"`
		Error       string       `json:"error"`
		Suggestions []suggestion `json:"suggestions"`
	}
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil || answer.Fits || answer.Error == "" || len(answer.Suggestions) != 3 {
		t.Fatalf("%s: %v", out.Bytes(), err)
	}
	for _, s := range answer.Suggestions {
		var errs bytes.Buffer
		// The last of a flag counts.
		if code := execute(t.Context(), append(args, strings.Fields(s.Flags)...), nil, io.Discard, &errs); code != 0 {
			t.Errorf("%s: exit %d: %s", s.Flags, code, errs.String())
		}
	}
}
