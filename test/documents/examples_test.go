package documents_test

import (
	"bytes"
	"go/ast"
	"go/doc"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kopf-runtime/kopf-runtime/test/documents"
)

// withoutOutput are the examples that need a cluster or end the process, so that go test only compiles them.
var withoutOutput = []string{
	"", "Operator_SetupWithManager", "Operator_WithManager", // a cluster
	"ConnectionInfo", "ConnectionInfo_config", "LoginWithKubeconfig", "LoginWithServiceAccount", // credentials
}

// verbs are the methods and functions that register handlers.
var verbs = []string{
	"Selection_OnCreate", "Selection_OnUpdate", "Selection_OnDelete", "Selection_OnResume", "Selection_OnField",
	"Selection_On", "Selection_OnEvent", "Selection_Daemon", "Selection_Timer", "Selection_Validate",
	"Selection_Mutate", "Selection_Conditions", "Selection_Owns", "OnChild", "NewIndex", "NewMemo",
	"Operator_OnStartup", "Operator_OnCleanup", "Operator_OnLogin", "Operator_OnProbe",
}

// parseTests reads the test files of package kopf.
func parseTests(t *testing.T) (files []*ast.File, set *token.FileSet) {
	t.Helper()
	names, err := filepath.Glob(root + "/facade/*_test.go")
	if err != nil || len(names) < 20 {
		t.Fatalf("found %d test files: %v", len(names), err)
	}
	set = token.NewFileSet()
	for _, name := range names {
		file, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files, set
}

// TestExamples checks that each verb has an example, that go test runs every example that does not need a cluster, and
// that each one is a complete program as go doc prints it, with its imports.
func TestExamples(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: make test-all runs it")
	}
	files, set := parseTests(t)
	compiler, err := documents.NewCompiler(root, append(snippetImports,
		`"k8s.io/api/autoscaling/v1"`, `"k8s.io/api/admission/v1"`, `"github.com/prometheus/client_golang/prometheus"`,
		`"k8s.io/apimachinery/pkg/api/meta"`, `"k8s.io/apimachinery/pkg/types"`,
	)...)
	if err != nil {
		t.Fatal(err)
	}
	missing := slices.Clone(verbs)
	for _, example := range doc.Examples(files...) {
		missing = slices.DeleteFunc(missing, func(verb string) bool { return verb == example.Name })
		if example.Output == "" && !slices.Contains(withoutOutput, example.Name) {
			t.Errorf("Example%s has no output: go test does not run it", example.Name)
		}
		if lines := set.Position(example.Code.End()).Line - set.Position(example.Code.Pos()).Line; lines > 31 {
			t.Errorf("Example%s has %d lines: show one thing", example.Name, lines)
		}
		if example.Play == nil {
			t.Errorf("Example%s is not complete: it uses names of another file", example.Name)
			continue
		}
		var program bytes.Buffer
		if err := format.Node(&program, set, example.Play); err != nil {
			t.Fatal(err)
		}
		if err := compiler.CheckProgram(program.String()); err != nil {
			t.Errorf("Example%s does not compile when pasted: %v", example.Name, err)
		}
	}
	if len(missing) > 0 {
		t.Errorf("these verbs have no example: %v", missing)
	}
}

// TestNamesAreUsed checks that each exported name of package kopf, its methods included, stands in a test or example of
// the package.
func TestNamesAreUsed(t *testing.T) {
	files, _ := parseTests(t)
	functions, selected := map[string]bool{}, map[string]bool{}
	for _, file := range files {
		ast.Inspect(file, func(node ast.Node) bool {
			if selector, ok := node.(*ast.SelectorExpr); ok {
				selected[selector.Sel.Name] = true
				if from, ok := selector.X.(*ast.Ident); ok && from.Name == "kopf" {
					functions[selector.Sel.Name] = true
				}
			}
			return true
		})
	}
	names, methods, err := documents.Names(os.DirFS(root), "facade")
	if err != nil {
		t.Fatal(err)
	}
	if len(names) < 100 || len(methods) < 100 {
		t.Fatalf("found %d names and %d methods: the comparison would pass for nothing", len(names), len(methods))
	}
	for _, name := range names {
		if !functions[name] {
			t.Errorf("kopf.%s is used in no test or example: add one that shows its effect, or remove the name", name)
		}
	}
	for _, method := range methods {
		_, name, _ := strings.Cut(method, ".")
		if !selected[name] {
			t.Errorf("kopf.%s is used in no test or example: add one that shows its effect, or remove it", method)
		}
	}
}
