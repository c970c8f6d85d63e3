package rules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// A new GPU architecture lies above every old range and behaves differently,
// so that nothing may compare compute capabilities by order: neither Go code
// nor kernels nor scripts.

// words of identifiers that stand for a capability or a part of it.
var capabilityWords = map[string]bool{
	"major": true, "minor": true, "capability": true, "capabilities": true, "cc": true, "sm": true, "generation": true, "arch": true,
}

// isCapability tells whether an expression is named like a capability.
func isCapability(e ast.Expr) bool {
	found := false
	ast.Inspect(e, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.CallExpr:
			// Arguments are judged by the function's own name, and len(x) is a number of things.
			if f, ok := x.Fun.(*ast.Ident); ok && (f.Name == "len" || f.Name == "cap") {
				return false
			}
		case *ast.IndexExpr:
			return true
		case *ast.Ident:
			for _, w := range splitName(x.Name) {
				found = found || capabilityWords[w]
			}
		}
		return !found
	})
	return found
}

// splitName cuts computeCapability into compute and capability.
func splitName(s string) []string {
	var words []string
	start := 0
	r := []rune(s)
	for i := 1; i <= len(r); i++ {
		if i == len(r) || r[i] == '_' || unicode.IsUpper(r[i]) && !unicode.IsUpper(r[i-1]) || unicode.IsDigit(r[i]) != unicode.IsDigit(r[i-1]) {
			if w := strings.Trim(strings.ToLower(string(r[start:i])), "_"); w != "" {
				words = append(words, w)
			}
			start = i
		}
	}
	return words
}

// ordering functions of the standard library.
var orders = map[string]bool{"Compare": true, "Less": true, "Max": true, "Min": true, "max": true, "min": true, "Clamp": true, "CompareFold": true}

// orderedInGo lists the places of a Go file where capabilities are ordered.
func orderedInGo(fset *token.FileSet, f *ast.File) []string {
	var at []string
	ast.Inspect(f, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.BinaryExpr:
			switch x.Op {
			case token.LSS, token.GTR, token.LEQ, token.GEQ:
				if isCapability(x.X) || isCapability(x.Y) {
					at = append(at, fset.Position(x.Pos()).String())
				}
			}
		case *ast.CallExpr:
			name := ""
			switch fun := x.Fun.(type) {
			case *ast.Ident:
				name = fun.Name
			case *ast.SelectorExpr:
				name = fun.Sel.Name
			}
			if orders[name] {
				for _, a := range x.Args {
					if isCapability(a) {
						at = append(at, fset.Position(x.Pos()).String())
						break
					}
				}
			}
		}
		return true
	})
	return at
}

// orderedInText finds the same in kernels and scripts.
var orderedInText = regexp.MustCompile(`(?i)(__CUDA_ARCH\w*|\bcompute_cap\w*|\bsm_?(arch|version|major)|\bcc_(major|minor))["')\]}]*\s*(<|>|-(lt|le|gt|ge)\b)|(<|>)=?\s*(__CUDA_ARCH\w*|compute_cap\w*)`)

// allowed are comparisons of numbers that only look like capabilities, each
// with its reason.
var allowed = map[string]string{
	"runtime/arch/capability.go": "Of and Parse refuse negative numbers",
}

func TestNoOrderAmongCapabilities(t *testing.T) {
	root := moduleRoot(t)
	looked := map[string]int{}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if name := d.Name(); rel != "." && (strings.HasPrefix(name, ".") && name != ".ci" || name == "testdata" || name == "bin") {
				return filepath.SkipDir
			}
			return nil
		}
		ext := filepath.Ext(rel)
		switch ext {
		case ".go":
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, p, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, at := range orderedInGo(fset, f) {
				if _, ok := allowed[rel]; !ok {
					t.Errorf("%s: compute capabilities are ordered: ask the table of runtime/arch for the feature", at)
				}
			}
		case ".cu", ".cuh", ".h", ".c", ".sh", ".py", ".mk", "":
			text, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			for i, l := range strings.Split(string(text), "\n") {
				if orderedInText.MatchString(l) {
					t.Errorf("%s:%d: compute capabilities are ordered: %s", rel, i+1, strings.TrimSpace(l))
				}
			}
		default:
			return nil
		}
		looked[ext]++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if looked[".go"] < 100 || looked[".cu"] < 3 || looked[".sh"] < 1 {
		t.Fatalf("looked at too few files: %v", looked)
	}
}

// The rule can fail: each of these is found, and what is innocent is not.
func TestOrderIsFound(t *testing.T) {
	for code, bad := range map[string]bool{
		"strings.Compare(gpu.Capability.String(), x) == 0": true,

		"p.Major >= 9":                       true,
		"9 <= props.Major":                   true,
		"capability > [2]int{9, 0}":          true,
		"computeCapability.String() < x":     true,
		"cc >= 90":                           true,
		"smVersion < 80":                     true,
		"cmp.Compare(a.Major, b.Major) == 0": true,
		"max(minor, 3) == 3":                 true,
		"p.Major == 9":                       false,
		"row.Capability != c":                false,
		"len(capabilities) > 3":              false,
		"p.SMs > 80":                         false,
		"searchArchive < 3":                  false,
		"small >= 3":                         false,
		"accumulate < account":               false,
		"row.Features.WGMMA.Has":             false,
	} {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, "x.go", "package x\nvar _ = "+code, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(orderedInGo(fset, f)) > 0; got != bad {
			t.Errorf("%s: found %t", code, got)
		}
	}
	for text, bad := range map[string]bool{
		"#if __CUDA_ARCH__ >= 900":              true,
		"#if 800 <= __CUDA_ARCH__":              true,
		`if [ "$compute_cap" -ge 90 ]; then`:    true,
		"if (sm_major > 8)":                     true,
		"#if __CUDA_ARCH__ == 800":              false,
		"#ifdef __CUDA_ARCH__":                  false,
		"nvidia-smi --query-gpu=compute_cap":    false,
		"clang --cuda-gpu-arch=sm_80 >out 2>&1": false,
	} {
		if got := orderedInText.MatchString(text); got != bad {
			t.Errorf("%s: found %t", text, got)
		}
	}
}
