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
	for i, file := range files {
		if testing.Short() && i%6 > 0 {
			continue // planning is one goroutine's work
		}
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
	if unfit < 4 && !testing.Short() {
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

// Wrong flags end with exit code 2 and are said once; what would not be run is
// not planned.
func TestPlanFlags(t *testing.T) {
	const small, mixture = "testdata/models/Qwen3-0.6B.json", "testdata/models/Qwen3-30B-A3B.json"
	config, err := os.ReadFile(small)
	if err != nil {
		t.Fatal(err)
	}
	long := filepath.Join(t.TempDir(), "long.json")
	config = regexp.MustCompile(`"max_position_embeddings": \d+`).ReplaceAll(config, []byte(`"max_position_embeddings": 1000000000`))
	if err := os.WriteFile(long, config, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{small + " --gpus 2xRTX-5091", exitUsage, "infer: machine 2xRTX-5091: no GPU is called \"RTX-5091\"; names"},
		{small + " --simulate 2xRTX-5090+", exitUsage, "infer: machine 2xRTX-5090+: no GPU named in an entry"},
		{small + " --gpus nofile.json", exitUsage, "infer: machine nofile.json: no such file"},
		{small + " --gpus none --batch 9223372036854775807", exitUsage, "want 1 to 1048576"},
		{small + " --gpus none --max-seqs 9223372036854775807", exitUsage, "want 1 to 1048576"},
		{small + " --gpus none --ctx 99999", exitUsage, "made for at most 40960"},
		{small + " --gpus 1xRTX-4090 --device-map cuda:1", exitUsage, "there is no device cuda:1 here"},
		{small + " --gpus 1xRTX-4090 --device-map cuda:0=0-,experts=cpu", exitUsage, "no routed experts"},
		{small + " --gpus 1xRTX-4090 --kv-cache q8", exitUsage, "--kv-cache q8: the plan has stages on cuda:0"},
		{small + " --gpus 1xRTX-4090 --kv-cache q8 --device-map cpu", exitDone, "cpu"},
		{small + " --gpus 1xRTX-4090 --precision bf16 --gpu-layers 3 --max-memory cpu=64GiB", exitUsage, "--precision bf16: the plan has stages on the CPU"},
		{small + " --gpus 1xRTX-4090 --precision bf16", exitDone, "cuda:0"},
		{small + " --gpus none --precision bf16", exitDone, "cpu"},
		{mixture + " --gpus 1xRTX-4090 --device-map cuda:0 --max-memory cpu=64GiB", exitDoesNotFit, "--device-map auto"},
		{long + " --gpus 1xRTX-4090 --max-memory cpu=8GiB", exitDoesNotFit, "--ctx 8192 "},
		{small + " --gpus none --gpu-layers 5", exitDoesNotFit, "--gpu-layers 0 "},
		{small + " --gpus 1xRTX-4090 --max-memory cuda:0=600MiB,cpu=64GiB --gpu-layers 20", exitDoesNotFit, "--gpu-layers "},
		{small + " --gpus 1xRTX-4090 --reserve 40GiB", exitDoesNotFit, "--reserve 128MiB"},
		{small + " --gpus 1xRTX-4090 --max-memory cpu=1GiB --max-seqs 200000", exitDoesNotFit, "--max-seqs "},
	} {
		var out bytes.Buffer
		args := append([]string{"plan"}, strings.Fields(c.args)...)
		if code := execute(t.Context(), args, nil, &out, &out); code != c.code || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: exit %d, want %d with %q:\n%s", c.args, code, c.code, c.want, out.String())
		}
		if c.code == exitDoesNotFit {
			followSuggestions(t, args)
		}
	}
}
