package rules

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// mayImport lists, for each room, the project packages it may import. A name
// ending in /... covers the packages below it. Test files are free.
var mayImport = map[string][]string{
	"runtime/tensor":                       {},
	"runtime/arch":                         {},
	"runtime/device":                       {"runtime/tensor", "runtime/arch"},
	"runtime/loader":                       {"runtime/tensor"},
	"runtime/loader/hub":                   {},
	"runtime/devicemap":                    {"runtime/tensor", "runtime/device"},
	"runtime/transfer":                     {"runtime/tensor", "runtime/arch", "runtime/device", "runtime/kernels"},
	"runtime/kernels":                      {"runtime/tensor", "runtime/device"},
	"runtime/kernels/ref":                  {"runtime/tensor", "runtime/device", "runtime/kernels"},
	"runtime/kernels/cpu":                  {"runtime/tensor", "runtime/device", "runtime/kernels", "runtime/kernels/ref"},
	"runtime/kernels/cpu/asmgen":           {},
	"runtime/kernels/kerneltest":           {"runtime/tensor", "runtime/device", "runtime/kernels", "runtime/kernels/ref"},
	"runtime/kernels/cuda":                 {"runtime/tensor", "runtime/arch", "runtime/device", "runtime/kernels", "runtime/internal/cuda", "runtime/internal/cuda/sim"},
	"runtime/internal/cuda":                {"runtime/tensor"},
	"runtime/internal/cuda/sim":            {"runtime/internal/cuda", "runtime/internal/cuda/ptx"},
	"runtime/internal/cuda/ptx":            {},
	"runtime/kvcache":                      {"runtime/tensor", "runtime/device", "runtime/kernels"},
	"runtime/tokenizer":                    {},
	"runtime/tokenizer/chattemplate":       {"runtime/tokenizer/chattemplate/jinja"},
	"runtime/tokenizer/chattemplate/jinja": {},
	"runtime/loader/loadertest":            {},
	"runtime/engine": {
		"runtime/tensor", "runtime/device", "runtime/loader", "runtime/devicemap", "runtime/transfer",
		"runtime/kernels", "runtime/kvcache", "runtime/tokenizer", "models",
	},
	// Tests only.
	"runtime/faults": {},
	"models":         {"runtime/tensor", "runtime/device", "runtime/kernels", "runtime/loader", "runtime/kvcache"},
	"models/layers":  {"runtime/tensor", "runtime/device", "runtime/kernels", "runtime/loader", "runtime/kvcache", "models"},
	"models/tiny":    {},
	"models/all":     {"models", "models/..."},
	// Helpers of tests.
	"models/modelstest": {"runtime/tensor", "runtime/device", "runtime/kernels", "runtime/loader", "runtime/kvcache", "models", "models/all"},
	// Every family package.
	"models/*":           {"runtime/tensor", "runtime/device", "runtime/kernels", "runtime/loader", "models", "models/layers"},
	"api":                {"runtime/engine", "runtime/tokenizer", "runtime/tokenizer/chattemplate"},
	"cmd/infer":          {"..."},
	"cmd/infer/gpucheck": {"models", "models/...", "runtime/tensor", "runtime/device", "runtime/devicemap", "runtime/engine", "runtime/kernels", "runtime/kernels/cuda", "runtime/kernels/kerneltest", "runtime/loader"},
	"internal/rules":     {},
	"scripts/bench/away": {},
}

// onlyIn says which rooms may use a library that is a choice of the whole house.
var onlyIn = map[string][]string{
	"github.com/gin-gonic/gin":      {"api"},
	"github.com/rs/zerolog":         {"cmd/infer", "api", "runtime/engine"},
	"github.com/spf13/cobra":        {"cmd/infer"},
	"github.com/vbauerster/mpb":     {"cmd/infer"},
	"github.com/prometheus/":        {"api"},
	"github.com/dlclark/regexp2":    {"runtime/tokenizer"},
	"github.com/nlpodyssey/":        {"runtime/loader"},
	"gorgonia.org/cu":               {"runtime/internal/cuda"},
	"github.com/NVIDIA/go-nvml":     {"runtime/internal/cuda"},
	"golang.org/x/sys/unix":         {"runtime/loader", "runtime/loader/hub", "runtime/kernels/cpu", "cmd/infer"},
	"golang.org/x/text/":            {"runtime/tokenizer", "runtime/tokenizer/chattemplate/jinja"},
	"github.com/rogpeppe/":          {"cmd/infer"},
	"github.com/klauspost/cpuid":    {"runtime/kernels/cpu"},
	"golang.org/x/sys/cpu":          {"runtime/kernels/cpu"},
	"golang.org/x/term":             {"cmd/infer"},
	"go.uber.org/goleak":            {}, // tests only
	"github.com/santhosh-tekuri/":   {"api"},
	"github.com/getkin/kin-openapi": {}, // tests only
}

func TestImportRules(t *testing.T) {
	root := moduleRoot(t)
	seen, documented := 0, map[string]bool{}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if _, err := os.Stat(filepath.Join(p, "go.mod")); err == nil && rel != "." {
				return filepath.SkipDir // a module of its own (tools)
			}
			if name := d.Name(); rel != "." && (strings.HasPrefix(name, ".") || name == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") || strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		seen++
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		room := path.Dir(rel)
		documented[room] = documented[room] || path.Base(rel) == "doc.go"
		allowed, ok := rule(room)
		if !ok {
			t.Errorf("%s: package %s has no import rule: add it to mayImport, with thought", rel, room)
			return nil
		}
		for _, spec := range f.Imports {
			imp, _ := strconv.Unquote(spec.Path.Value)
			if own, ok := strings.CutPrefix(imp, "infer/"); ok {
				if !matches(allowed, own) {
					t.Errorf("%s: %s may not import %s", rel, room, own)
				}
				continue
			}
			for lib, rooms := range onlyIn {
				if strings.HasPrefix(imp, lib) && !matches(rooms, room) {
					t.Errorf("%s: %s is used only in %v", rel, imp, rooms)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for room, ok := range documented {
		if !ok {
			t.Errorf("%s has no doc.go: say what the package is for and what it must never do", room)
		}
	}
	if seen < 20 {
		t.Fatalf("only %d files looked at: is %s the module?", seen, root)
	}
}

func rule(room string) ([]string, bool) {
	if r, ok := mayImport[room]; ok {
		return r, true
	}
	r, ok := mayImport[path.Dir(room)+"/*"]
	return r, ok
}

func matches(rules []string, pkg string) bool {
	for _, r := range rules {
		prefix, below := strings.CutSuffix(r, "...")
		if r == pkg || below && strings.HasPrefix(pkg, prefix) {
			return true
		}
	}
	return false
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = up
	}
}
