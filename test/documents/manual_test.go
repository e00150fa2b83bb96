package documents_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/kopf-runtime/kopf-runtime/test/documents"
)

// modules replaces import paths of examples by the module that a page has the reader create.
var modules = strings.NewReplacer(
	"github.com/kopf-runtime/kopf-runtime/examples/getting-started", "example.org/websites",
)

// manual lists the pages of the manual for learners, with declarations that their snippets use and do not contain.
var manual = map[string]string{
	"docs/choosing.md":           "",
	"docs/concepts.md":           "",
	"docs/fields.md":             "func move(context.Context, *kopf.Change[*v1.Database]) error { return nil }\n",
	"docs/getting-started.md":    "",
	"docs/handlers.md":           "",
	"docs/goroutines.md":         "",
	"docs/controller-runtime.md": "",
	"docs/deployment.md":         "",
	"docs/tutorial.md":           "var claimFor func(*kopf.Unstructured) (*corev1.PersistentVolumeClaim, error)\n",
	"docs/timers.md":             "func sendReport(context.Context, string) error { return nil }\n",
}

// TestManual checks the code of the manual: quotes are parts of tested files, and all other blocks of Go compile.
func TestManual(t *testing.T) {
	compiler, err := documents.NewCompiler(root, imported...)
	if err != nil {
		t.Fatal(err)
	}
	for name, given := range manual {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(root + "/" + name)
			if err != nil {
				t.Fatal(err)
			}
			snippets := documents.Snippets(documents.WithoutQuotes(string(text)))
			if len(snippets)+len(documents.Quotes(string(text))) == 0 {
				t.Fatalf("found no code in %s", name)
			}
			for _, snippet := range snippets {
				check := compiler.CheckProgram(snippet.Text)
				if !strings.HasPrefix(snippet.Text, "package ") {
					check = compiler.Check(snippet, given)
				}
				if check != nil {
					t.Errorf("%s:%d: %v", name, snippet.Line, check)
				}
			}
		})
	}
}

// TestQuotes checks the quotes of all pages.
func TestQuotes(t *testing.T) {
	pages, err := filepath.Glob(root + "/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, quote := range documents.Quotes(string(text)) {
			found++
			if err := quote.Check(os.DirFS(root), modules); err != nil {
				t.Errorf("%s: %v", filepath.Base(page), err)
			}
		}
	}
	if found < 10 {
		t.Errorf("found %d quotes: the comparison would pass without any", found)
	}
}

func TestQuotesThatAreWrong(t *testing.T) {
	files := fstest.MapFS{"p/f.go": {Data: []byte("package p\n\nfunc F() {}\nfunc G() {}\n")}}
	document := "<!-- p/f.go -->\n```go\nfunc F() {}\nfunc G() {}\n```\n" + // two lines of the file
		"<!-- p/f.go -->\n```go\nF() {}\n```\n" + // not a whole line
		"<!-- p/f.go -->\n```go\nfunc H() {}\n```\n<!-- p/g.go -->\n```\nx\n```\n```go\nx := 1\n```\n"
	var wrong []int
	for _, quote := range documents.Quotes(document) {
		if quote.Check(files, strings.NewReplacer()) != nil {
			wrong = append(wrong, quote.Line)
		}
	}
	if d := cmp.Diff([]int{8, 12, 16}, wrong); d != "" {
		t.Errorf("lines of quotes that are not in their files (-want, +got):\n%s", d)
	}
	rest := documents.Snippets(documents.WithoutQuotes(document))
	if d := cmp.Diff([]documents.Snippet{{Line: 19, Text: "x := 1\n"}}, rest); d != "" {
		t.Errorf("blocks that are not quotes (-want, +got):\n%s", d)
	}
}

// logLine matches a text in backquotes that looks like a sentence of the log.
var logLine = regexp.MustCompile("`([A-Z][a-z]+ [a-z]+ [^`]+)`")

// TestLogLines checks that the log lines in the manual are those of the framework.
func TestLogLines(t *testing.T) {
	all, err := os.ReadFile(messages)
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{"docs/troubleshooting.md", "docs/goroutines.md"} {
		text, err := os.ReadFile(root + "/" + page)
		if err != nil {
			t.Fatal(err)
		}
		found := logLine.FindAllStringSubmatch(string(text), -1)
		if len(found) == 0 {
			t.Errorf("found no log line in %s", page)
		}
		for _, line := range found {
			if !strings.Contains(string(all), "| "+line[1]) {
				t.Errorf("%s: no log line begins with %q", page, line[1])
			}
		}
	}
}
